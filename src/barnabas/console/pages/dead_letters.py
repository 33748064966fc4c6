"""Dead letters: the topics that hold them, why their records failed, and sending them back."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from starlette.responses import Response

from barnabas.console.cluster.session import ClusterSession
from barnabas.console.cluster.snapshot import PartitionSnapshot
from barnabas.console.messages.browse import MessageQuery, open_scan
from barnabas.console.messages.cursor import parse_cursor
from barnabas.console.messages.dead_letters import (
    LetterFilter,
    LetterNotSent,
    LetterOutcome,
    Reason,
    SentLetters,
    by_reason,
    letter_of,
    parse_places,
    send_again,
)
from barnabas.console.messages.rows import LIST_SHOWN_BYTES_MAX
from barnabas.console.messages.scan import SCAN_SETTINGS
from barnabas.console.pages.reading import consumer_of, masks_of, query_settings, registry_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import IllegalArgument, KafkaError

LETTERS_MAX: Final = 1000  # of a page
LOOK_S: Final = 0.7
TOPICS_AT_ONCE: Final = 4
TOPIC_LOOK_S: Final = 0.2
LIST_S: Final = 2.0  # for looking into topics that were not looked into before
KNOWN_S: Final = 60.0
FORMS_KEPT: Final = 1000
_LIKELY: Final = re.compile(r"dead|dlq|dlt|letter|error|fail|reject|invalid|malformed|corrupt|poison|quarantine|parking", re.IGNORECASE)

_sent = SentLetters()


@dataclass
class _Looked:
    """Which topics of a session hold dead letters, and when that was found out."""

    topics: dict[str, tuple[float, bool]] = field(default_factory=dict)


_looked: WeakKeyDictionary[ClusterSession, _Looked] = WeakKeyDictionary()


class _Forms:
    """The result of each form that was sent, by its token: a second click gets the result of the first, and sends nothing."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, asyncio.Future[list[LetterOutcome]]] = OrderedDict()

    def result(self, token: str) -> asyncio.Future[list[LetterOutcome]] | None:
        """The result of a form that was sent already, perhaps not yet finished."""
        return self._results.get(token)

    def begin(self, token: str) -> asyncio.Future[list[LetterOutcome]]:
        """A place for the result of a form that is sent now."""
        result: asyncio.Future[list[LetterOutcome]] = asyncio.get_running_loop().create_future()
        self._results[token] = result
        if len(self._results) > FORMS_KEPT:
            self._results.popitem(last=False)
        return result


_forms = _Forms()


async def topics(visit: Visit) -> Response:
    """The topics that hold dead letters. Only topics with a likely name are read, or all topics with `all=1`."""
    wants_all = visit.argument("all") == "1"
    snapshot = await visit.cluster.snapshots.current()
    candidates = sorted(
        name
        for name, topic in snapshot.topics.items()
        if not topic.is_internal and not name.startswith("__") and (wants_all or _LIKELY.search(name)) and _records(topic.partitions) != 0
    )
    known = _looked.setdefault(visit.cluster, _Looked()).topics
    until = time.monotonic() + LIST_S
    places = asyncio.Semaphore(TOPICS_AT_ONCE)

    async def look(name: str) -> None:
        async with places:
            if time.monotonic() < until and not _is_known(known, name):
                known[name] = (time.monotonic(), await _holds_letters(visit, name))

    await asyncio.gather(*(look(name) for name in candidates))
    holding = [name for name in candidates if known.get(name, (0.0, False))[1]]
    return visit.page(
        "dead_letters.html",
        topics=[(name, f"/dead-letters/{segment(name)}", _records(snapshot.topics[name].partitions)) for name in holding],
        looked=sum(_is_known(known, name) for name in candidates),
        candidates=len(candidates),
        wants_all=wants_all,
    )


def _is_known(known: dict[str, tuple[float, bool]], name: str) -> bool:
    return name in known and time.monotonic() - known[name][0] < KNOWN_S


def _records(partitions: Iterable[PartitionSnapshot]) -> int | None:
    """The number of offsets of all partitions; None while it is not known."""
    numbers = [partition.records for partition in partitions]
    return None if None in numbers else sum(number for number in numbers if number is not None)


async def _holds_letters(visit: Visit, topic: str) -> bool:
    """Whether one of the newest messages is a dead letter."""
    query = MessageQuery(topic)
    try:
        async with consumer_of(visit, query_settings(visit, query)) as consumer:
            scan = await open_scan(
                consumer, query, letter_of, masks=masks_of(visit), registry=registry_of(visit), shown_bytes_max=LIST_SHOWN_BYTES_MAX
            )
            newest = await scan.look(5, TOPIC_LOOK_S)
            return any(match.item.reason or match.item.topic for match in newest)
    except KafkaError:
        return False  # deleted meanwhile, or not allowed: it is not in the list


async def letters(visit: Visit) -> Response:
    """The newest dead letters of a topic, by reason."""
    return await _letters(visit, visit.path("name"))


async def _letters(visit: Visit, topic: str, *, error: str = "", outcomes: list[LetterOutcome] | None = None) -> Response:
    query = MessageQuery(topic, filter=LetterFilter())
    cursor = visit.argument("cursor")
    if cursor:
        try:
            query = replace(query, cursor=parse_cursor(cursor))
        except ValueError as fault:
            raise IllegalArgument(str(fault)) from None
    async with consumer_of(visit, query_settings(visit, query)) as consumer:
        scan = await open_scan(
            consumer, query, letter_of, masks=masks_of(visit), registry=registry_of(visit), shown_bytes_max=LIST_SHOWN_BYTES_MAX
        )
        matches = await scan.look(LETTERS_MAX, LOOK_S)
    reasons: list[Reason] = by_reason(one.item for one in matches)
    further = scan.cursor()
    text = None if further is None else further.address_text()
    values: dict[str, Any] = {
        "topic": topic,
        "base": f"/topics/{segment(topic)}/messages",
        "path": f"/dead-letters/{segment(topic)}",
        "reasons": reasons,
        "count": len(matches),
        "looked": scan.looked,
        "total": scan.looked + scan.remaining,
        "notes": scan.notes,
        "further": None if text is None else visit.url(f"/dead-letters/{segment(topic)}", cursor=text),
        "is_further": query.cursor is not None,
        "token": secrets.token_urlsafe(16),
        "outcomes": outcomes,
        "sent": sum(not outcome.problem for outcome in outcomes or ()),
    }
    return visit.refused("dead_letter_topic.html", error, **values) if error else visit.page("dead_letter_topic.html", **values)


async def send_back(visit: Visit) -> Response:
    """Sends the selected letters back to where they came from, once for each form."""
    topic = visit.path("name")
    given = (await visit.form()).get("token", "")[:200]
    token = f"{visit.visitor} {topic} {given or secrets.token_urlsafe(16)}"
    try:
        places = parse_places(await visit.form_list("place"))
    except LetterNotSent as fault:
        return await _letters(visit, topic, error=str(fault))
    earlier = _forms.result(token)
    if earlier is not None:
        return await _letters(visit, topic, outcomes=await asyncio.shield(earlier))
    result = _forms.begin(token)
    try:
        repeat = (await visit.form()).get("repeat") == "1"
        async with consumer_of(visit, SCAN_SETTINGS) as consumer:
            producer = await visit.cluster.producer()
            outcomes = await send_again(consumer, producer, topic, places, _sent, visit.cluster_name, repeat=repeat)
    except BaseException as fault:
        result.set_result([LetterOutcome(place, problem=f"not sent: {fault or type(fault).__name__}") for place in places])
        raise
    result.set_result(outcomes)
    for target in sorted({outcome.topic for outcome in outcomes if not outcome.problem}):
        count = sum(outcome.topic == target for outcome in outcomes)
        visit.audit("change", f"Sent {count} dead letters of {topic} back to {target}")
    visit.cluster.snapshots.stale()
    return await _letters(visit, topic, outcomes=outcomes)


ROUTES: Final = (
    get("/dead-letters", topics),
    get("/dead-letters/{name}", letters),
    post("/dead-letters/{name}", send_back),
)
