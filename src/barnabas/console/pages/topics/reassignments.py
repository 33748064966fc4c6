"""Reassignments: how far they are, their throttle, and their end before the time; and the form that moves the replicas of a topic."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from random import SystemRandom
from typing import Any, Final
from weakref import WeakKeyDictionary

from starlette.responses import Response

from barnabas.administration.replica_moves import Moves, moves, place_of, spread
from barnabas.client.admin.topics.reassignments import PartitionReassignment
from barnabas.console.cluster.reassigning import Reassigning, ReassignmentWatch, remove_throttle, set_throttle
from barnabas.console.cluster.session import ClusterSession
from barnabas.console.cluster.snapshot import ClusterSnapshot, TopicSnapshot
from barnabas.console.failures import UnusableField, failure_of, sentence
from barnabas.console.pages.topics.topic import topic_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

ROWS_SHOWN: Final = 500
FORM_PARTITIONS: Final = 200  # of one form
RATE_MIN: Final = 1_024
_FIELD: Final = "replicas-"
_RATE_UNITS: Final = {"": 1, "B": 1, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}

_watches: WeakKeyDictionary[ClusterSession, ReassignmentWatch] = WeakKeyDictionary()


async def reassignments(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, error: str | None = None, status: int = 200, rate: str = "") -> Response:
    snapshot = await visit.cluster.snapshots.current()
    values = {**_values(snapshot, await _read(visit, snapshot)), "rate": rate}
    if error is not None:
        return visit.refused("reassignments.html", error, status=status, **values)
    return visit.page("reassignments.html", **values)


async def events(visit: Visit) -> Response:
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    async for snapshot in visit.cluster.snapshots.updates():
        yield "fragment", visit.text("fragments/reassignments_live.html", **_values(snapshot, await _read(visit, snapshot)))


async def _read(visit: Visit, snapshot: ClusterSnapshot) -> Reassigning:
    watch = _watches.get(visit.cluster)
    if watch is None:
        watch = _watches[visit.cluster] = ReassignmentWatch(visit.cluster.admin)
    return await watch.read(snapshot)


def _values(snapshot: ClusterSnapshot, reassigning: Reassigning) -> dict[str, Any]:
    return {"snapshot": snapshot, "reassigning": reassigning, "rows": reassigning.partitions[:ROWS_SHOWN]}


async def throttle(visit: Visit) -> Response:
    """Sets the throttle of the reassignments in progress, or removes what is left of one."""
    form = await visit.form()
    snapshot = await visit.cluster.snapshots.current()
    alive = [broker.id for broker in snapshot.brokers]
    admin = visit.cluster.admin
    try:
        if "remove" in form:
            await remove_throttle(admin, snapshot.topics, alive)
            return visit.changed("The throttle of reassignments is removed.", "/reassignments")
        rate = parse_rate(form.get("rate", ""))
        if rate is None:
            raise UnusableField("Enter a rate such as 50 MB.")
        under_way = await admin.list_partition_reassignments()
        if not under_way:
            raise UnusableField("Nothing is being moved: there is nothing to throttle.")
        await set_throttle(admin, moves(under_way, {}, {}), rate, alive)
    except UnusableField as fault:
        return await _page(visit, str(fault), 422, form.get("rate", ""))
    except KafkaError as error:
        return await _page(visit, sentence(error), failure_of(error).status, form.get("rate", ""))
    return visit.changed(f"Copies are throttled to {rate:,} bytes a second on each broker.", "/reassignments")


async def cancel(visit: Visit) -> Response:
    """Ends one reassignment, or all: the partitions keep the replicas that they had."""
    form = await visit.form()
    admin = visit.cluster.admin
    try:
        under_way = await admin.list_partition_reassignments()
        chosen = [
            key for key in under_way if "all" in form or (key.topic == form.get("topic") and str(key.partition) == form.get("partition"))
        ]
        if not chosen:
            return await _page(visit, "This reassignment has ended already.", 409)
        (await admin.alter_partition_reassignments(dict.fromkeys(chosen))).all()
    except KafkaError as error:
        return await _page(visit, sentence(error), failure_of(error).status)
    what = str(chosen[0]) if len(chosen) == 1 else f"{len(chosen):,} partitions"
    return visit.changed(f"The reassignment of {what} is cancelled.", "/reassignments")


# The form of one topic


async def move_form(visit: Visit) -> Response:
    snapshot, topic = await topic_of(visit)
    proposed: dict[int, str] = {}
    error: str | None = None
    if visit.argument("brokers"):
        try:
            proposed = _proposed(snapshot, topic, visit.argument("brokers"), visit.argument("factor"))
        except (UnusableField, KafkaError) as fault:
            error = str(fault)
    values = _form_values(visit, snapshot, topic, proposed)
    return visit.refused("topic_move.html", error, **values) if error is not None else visit.page("topic_move.html", **values)


def _proposed(snapshot: ClusterSnapshot, topic: TopicSnapshot, brokers: str, factor: str) -> dict[int, str]:
    """Replicas on these brokers as if the topic were created there."""
    chosen = parse_replicas(brokers)
    racks = {broker.id: broker.rack for broker in snapshot.brokers}
    _check_brokers(chosen, racks)
    knows_racks = all(racks[broker] is not None for broker in chosen)
    replicas = topic.replication_factor
    if factor.strip():
        if not re.fullmatch(r"[1-9][0-9]{0,4}", factor.strip()):
            raise UnusableField("The number of replicas is a whole number from 1.")
        replicas = int(factor)
    if replicas > len(chosen):
        raise UnusableField(f"{replicas:,} replicas need as many brokers, and {len(chosen):,} are chosen.")
    current = {TopicPartition(topic.name, partition.partition): partition.replicas for partition in topic.partitions}
    places = [place_of(broker, racks[broker] if knows_racks else None) for broker in chosen]
    return {key.partition: ", ".join(map(str, made)) for key, made in spread(current, places, SystemRandom(), replicas).items()}


async def move(visit: Visit) -> Response:
    snapshot, topic = await topic_of(visit)
    form = await visit.form()
    entered = {int(name.removeprefix(_FIELD)): text for name, text in form.items() if re.fullmatch(rf"{_FIELD}[0-9]{{1,9}}", name)}
    try:
        rate = parse_rate(form.get("rate", ""))
        targets = _targets(snapshot, topic, entered)
        current = {TopicPartition(topic.name, partition.partition): partition.replicas for partition in topic.partitions}
        if rate is not None:
            under_way: Mapping[TopicPartition, PartitionReassignment] = await visit.cluster.admin.list_partition_reassignments()
            planned: Moves = moves(under_way, targets, current)
            await set_throttle(visit.cluster.admin, planned, rate, [broker.id for broker in snapshot.brokers])
        (await visit.cluster.admin.alter_partition_reassignments(targets)).all()
    except UnusableField as fault:
        return visit.refused("topic_move.html", str(fault), **_form_values(visit, snapshot, topic, entered, form.get("rate", "")))
    except KafkaError as error:
        values = _form_values(visit, snapshot, topic, entered, form.get("rate", ""))
        return visit.refused("topic_move.html", sentence(error), status=failure_of(error).status, **values)
    count = len(targets)
    return visit.changed(
        f"{count:,} partition{'' if count == 1 else 's'} of {topic.name} {'is' if count == 1 else 'are'} being moved.", "/reassignments"
    )


def _targets(snapshot: ClusterSnapshot, topic: TopicSnapshot, entered: Mapping[int, str]) -> dict[TopicPartition, list[int]]:
    racks = {broker.id: broker.rack for broker in snapshot.brokers}
    targets: dict[TopicPartition, list[int]] = {}
    for partition in topic.partitions:
        if partition.partition not in entered:
            continue
        replicas = parse_replicas(entered[partition.partition])
        if tuple(replicas) != partition.replicas:
            _check_brokers(replicas, racks)
            targets[TopicPartition(topic.name, partition.partition)] = replicas
    if not targets:
        raise UnusableField("No partition has other replicas than before: change some, or let the form propose replicas.")
    return targets


def parse_replicas(text: str) -> list[int]:
    """The brokers of `1, 2, 3`. Raises UnusableField."""
    parts = [part for part in re.split(r"[,\s]+", text.strip()) if part]
    if not parts or not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts):
        raise UnusableField(f"Write brokers as 1, 2, 3, and not {text.strip()[:60] or 'nothing'}.")
    brokers = [int(part) for part in parts]
    if len(set(brokers)) < len(brokers):
        raise UnusableField(f"{text.strip()[:60]} names a broker twice.")
    return brokers


def parse_rate(text: str) -> int | None:
    """Bytes a second of `50 MB` or `52428800`; None for an empty text. Raises UnusableField."""
    if not text.strip():
        return None
    match = re.fullmatch(r"([0-9]{1,15})\s*([kKMG]?B?)(?:/s)?", text.strip())
    rate = int(match[1]) * _RATE_UNITS.get(match[2].upper(), 0) if match is not None else 0
    if rate < RATE_MIN:
        raise UnusableField(
            f"Enter bytes a second, at least {RATE_MIN:,}, such as 50 MB: a smaller throttle would never let replicas catch up."
        )
    return rate


def _check_brokers(brokers: list[int], known: Mapping[int, object]) -> None:
    missing = [broker for broker in brokers if broker not in known]
    if missing:
        raise UnusableField(f"There is no running broker {missing[0]}: the cluster has {', '.join(map(str, sorted(known)))}.")


def _form_values(
    visit: Visit, snapshot: ClusterSnapshot, topic: TopicSnapshot, entered: Mapping[int, str], rate: str = ""
) -> dict[str, Any]:
    first = visit.number_argument("from", 0, 0, 10**9)
    shown = topic.partitions[first : first + FORM_PARTITIONS] or topic.partitions[:FORM_PARTITIONS]
    return {
        "snapshot": snapshot,
        "topic": topic,
        "base": f"/topics/{segment(topic.name)}",
        "shown": [(partition, entered.get(partition.partition, ", ".join(map(str, partition.replicas)))) for partition in shown],
        "starts": range(0, len(topic.partitions), FORM_PARTITIONS),
        "step": FORM_PARTITIONS,
        "first": shown[0].partition if shown else 0,
        "field": _FIELD,
        "rate": rate,
        "brokers": visit.argument("brokers") or ", ".join(str(broker.id) for broker in snapshot.brokers),
        "factor": visit.argument("factor") or str(topic.replication_factor),
    }


ROUTES: Final = (
    get("/reassignments", reassignments),
    get("/reassignments/events", events),
    post("/reassignments/throttle", throttle),
    post("/reassignments/cancel", cancel),
    get("/topics/{name}/move", move_form),
    post("/topics/{name}/move", move),
)
