"""The messages of a topic: a list that is searched, one message as a whole, and the live tail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from starlette.responses import Response

from barnabas.console.failures import NotThere, sentence
from barnabas.console.messages import parquet
from barnabas.console.messages.browse import KeyIsMasked, MessageQuery, open_scan
from barnabas.console.messages.decoding import READINGS, REASON_HEADER
from barnabas.console.messages.export import RECORDS_DEFAULT, RECORDS_MAX
from barnabas.console.messages.masks import MASKED
from barnabas.console.messages.places import DOWNLOADS, TAILS, close_later
from barnabas.console.messages.query_text import LIMITS, QueryError, parse_limit, parse_query
from barnabas.console.messages.rows import LIST_SHOWN_BYTES_MAX, Row, detail_of, row_of
from barnabas.console.messages.scan import Scan
from barnabas.console.messages.tail import TAIL_SETTINGS, follow
from barnabas.console.pages.downloads import Download, file_name
from barnabas.console.pages.reading import (
    asked,
    consumer_of,
    masks_of,
    message_of,
    new_consumer,
    place_of,
    query_settings,
    registry_of,
)
from barnabas.console.web.routes import get, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_name import is_valid

LOOK_S: Final = 0.5  # a page shows what was found until then; the window that was begun is finished
_READING_LABELS: Final = {
    "auto": "automatic",
    "json": "JSON",
    "registry": "schema registry",
    "text": "text",
    "hex": "hexadecimal",
    "number": "number (big-endian)",
}
_EXTENSIONS: Final = {True: "json", False: "bin"}


async def messages(visit: Visit) -> Response:
    """The list. What is asked for stands in the address, so it can be shared; `cursor` looks further."""
    topic = visit.path("name")
    values = _form_values(visit, topic)
    try:
        query = parse_query(topic, visit.argument, round(time.time() * 1000))
        scan, rows = await _look(visit, query, parse_limit(visit.argument("limit")))
    except (QueryError, KeyIsMasked) as fault:
        return visit.refused("messages.html", str(fault), **values, rows=(), result=None)
    return visit.page("messages.html", **values, rows=rows, result=_result(visit, topic, query, scan, rows))


async def _look(visit: Visit, query: MessageQuery, limit: int) -> tuple[Scan[Row], list[Row]]:
    async with consumer_of(visit, query_settings(visit, query)) as consumer:
        scan = await open_scan(
            consumer, query, row_of, masks=masks_of(visit), registry=registry_of(visit), shown_bytes_max=LIST_SHOWN_BYTES_MAX
        )
        matches = await scan.look(limit, LOOK_S)
        return scan, [one.item for one in matches]


def _form_values(visit: Visit, topic: str) -> dict[str, Any]:
    return {
        "topic": topic,
        "base": f"/topics/{segment(topic)}/messages",
        "asked": asked(visit),
        "readings": [(reading, _READING_LABELS[reading]) for reading in READINGS],
        "limits": [(limit, str(limit)) for limit in LIMITS],
        "has_registry": bool(visit.cluster.config.registry),
        "masks": masks_of(visit).for_topic(topic),
        "parquet_problem": None if parquet.is_available() else parquet.NOT_AVAILABLE,
        "records_default": RECORDS_DEFAULT,
        "records_max": RECORDS_MAX,
        "is_live": visit.argument("live") == "1",
        "live_url": visit.url(f"/topics/{segment(topic)}/messages/live", **{**asked(visit), "start": "", "offset": "", "time": ""}),
    }


def _result(visit: Visit, topic: str, query: MessageQuery, scan: Scan[Row], rows: list[Row]) -> dict[str, Any]:
    """What the page says about how far the scan has looked."""
    cursor = scan.cursor()
    text = None if cursor is None else cursor.address_text()
    total = scan.looked + scan.remaining
    return {
        "looked": scan.looked,
        "total": total,
        "share": scan.looked / total if total else None,
        "is_backwards": query.is_backwards,
        "has_filter": query.filter is not None or query.key is not None,
        "key_partition": query.key is not None and not query.partitions,
        "further": None if text is None else visit.url(f"/topics/{segment(topic)}/messages", **asked(visit), cursor=text),
        "is_too_long": cursor is not None and text is None,
        "is_further": query.cursor is not None,
        "notes": scan.notes,
        "out_of_time": scan.out_of_time,
        "has_letters": any(name == REASON_HEADER for row in rows for name, _ in row.headers),
    }


async def message(visit: Visit) -> Response:
    """One message as a whole: a page, or a part of the list."""
    topic = visit.path("name")
    place = place_of(visit)
    message = await message_of(visit, topic, place)
    row = await asyncio.to_thread(detail_of, message)
    values: dict[str, Any] = {
        "topic": topic,
        "base": f"/topics/{segment(topic)}/messages",
        "row": row,
        "asked": {"keys": visit.argument("keys"), "values": visit.argument("values")},
        "readings": [(reading, _READING_LABELS[reading]) for reading in READINGS],
        "is_masked": bool(message.masks),
        "place": f"{place[0]}-{place[1]}",
    }
    return visit.fragment("fragments/message.html", **values) if visit.is_htmx else visit.page("message.html", **values)


async def value_file(visit: Visit) -> Response:
    """The whole value as a file."""
    return await _part_file(visit, is_key=False)


async def key_file(visit: Visit) -> Response:
    """The whole key as a file."""
    return await _part_file(visit, is_key=True)


async def _part_file(visit: Visit, *, is_key: bool) -> Response:
    await DOWNLOADS.take()  # a slow browser keeps the value in memory
    try:
        name, raw = await _part(visit, is_key=is_key)
    except BaseException:
        DOWNLOADS.free()
        raise
    return Download(_pieces(raw), DOWNLOADS.free, name)


async def _part(visit: Visit, *, is_key: bool) -> tuple[str, bytes]:
    """The name of the file and its bytes."""
    topic, place = visit.path("name"), place_of(visit)
    message = await message_of(visit, topic, place)
    part = "key" if is_key else "value"
    raw, paths = (message.record.key, message.masks.key) if is_key else (message.record.value, message.masks.value)
    if raw is None:
        raise KafkaError(f"This message has no {part}, so there is nothing to download")
    if paths:
        shown = await asyncio.to_thread(lambda: message.key if is_key else message.value)
        if shown.form == "withheld":
            raise KafkaError(f"A mask applies to the {part} and it cannot be parsed, so it is withheld ({MASKED})")
        raw = shown.text.encode("utf-8", "backslashreplace")
    return f"{file_name(topic)}-{place[0]}-{place[1]}-{part}.{_EXTENSIONS[bool(paths)]}", raw


async def _pieces(raw: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(raw), 256 * 1024):
        yield raw[at : at + 256 * 1024]


async def live(visit: Visit) -> Response:
    """New messages as server-sent events, with the filter of the address."""
    topic = visit.path("name")
    if not is_valid(topic):  # the client cannot ask for it, and the stream has begun by then
        raise NotThere("No topic can have this name.")
    try:
        query = parse_query(topic, lambda name: "" if name in ("cursor", "start") else visit.argument(name), 0)
        if query.key is not None and masks_of(visit).for_topic(topic).key:
            raise QueryError("Keys of this topic are masked, so it cannot be searched by key")
    except QueryError as fault:
        return visit.refused("messages.html", str(fault), **_form_values(visit, topic), rows=(), result=None)
    return visit.events(_tail(visit, query))


async def _tail(visit: Visit, query: MessageQuery) -> AsyncIterator[tuple[str, str]]:
    """Rows to put in front of the table, and a line that says how many messages came."""
    seen = left_out = 0
    try:
        async with TAILS:
            consumer = new_consumer(visit, {**TAIL_SETTINGS, "isolation.level": query.isolation})
            try:
                is_waiting = False
                async for step in follow(consumer, query, row_of, masks=masks_of(visit), registry=registry_of(visit)):
                    if not step.seen:
                        if not is_waiting:
                            is_waiting = True
                            yield "status", "Waiting for new messages"
                        continue
                    seen, left_out = seen + step.seen, left_out + step.left_out
                    if step.found:
                        rows = [match.item for match in reversed(step.found)]
                        base = f"/topics/{segment(query.topic)}/messages"
                        yield "prepend", visit.text("fragments/message_rows.html", rows=rows, base=base, asked=asked(visit))
                    yield "status", _status(seen, left_out)
            finally:
                close_later(consumer)
    except KafkaError as fault:
        yield "status", f"The live tail has ended: {sentence(fault)}"


def _status(seen: int, left_out: int) -> str:
    return f"{seen:,} new messages" + (f", {left_out:,} of them not shown: they come faster than they can be read" if left_out else "")


ROUTES: Final = (
    get("/topics/{name}/messages", messages),
    get("/topics/{name}/messages/live", live),
    get("/topics/{name}/messages/{partition}/{offset}", message),
    get("/topics/{name}/messages/{partition}/{offset}/value", value_file),
    get("/topics/{name}/messages/{partition}/{offset}/key", key_file),
)
