"""One topic: its partitions, and what changes them. Moves of replicas are in `reassignments`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, Final, TypeVar

from starlette.responses import Response

from barnabas.client.admin.topics.elections import ElectionType
from barnabas.client.admin.topics.records import RecordsToDelete
from barnabas.console.cluster.history import columns
from barnabas.console.cluster.snapshot import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from barnabas.console.failures import failure_of, sentence
from barnabas.console.pages.lookup import named_in_path
from barnabas.console.web.listing import Column, TablePage, listing_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

K = TypeVar("K")
V = TypeVar("V")
_ELECTIONS: Final = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}
_ELECTION_NOT_NEEDED: Final = 84

COLUMNS: Final[tuple[Column[PartitionSnapshot], ...]] = (
    Column("partition", "Partition", lambda partition: partition.partition),
    Column("leader", "Leader", lambda partition: partition.leader),
    Column("replicas", "Replicas", lambda partition: partition.replicas),
    Column("isr", "In sync", lambda partition: len(partition.isr)),
    Column("start", "First offset", lambda partition: partition.start_offset, True),
    Column("end", "Next offset", lambda partition: partition.end_offset, True),
    Column("records", "Records, at most", lambda partition: partition.records, True),
    Column("size", "Size", lambda partition: partition.size_bytes, True),
)


async def topic_of(visit: Visit) -> tuple[ClusterSnapshot, TopicSnapshot]:
    """The topic that the path names. Raises NotThere."""
    return await named_in_path(visit, "topic", lambda snapshot: snapshot.topics, 250)


async def topic(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, error: str | None = None, status: int = 200, **entered: str) -> Response:
    snapshot, topic_snapshot = await topic_of(visit)
    values = {**_values(visit, snapshot, topic_snapshot), "entered": entered}
    if error is not None:
        return visit.refused("topic.html", error, status=status, **values)
    return visit.page("topic.html", **values)


async def events(visit: Visit) -> Response:
    await topic_of(visit)
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    name = visit.path("name")
    async for snapshot in visit.cluster.snapshots.updates():
        topic_snapshot = snapshot.topics.get(name)
        if topic_snapshot is None:
            return
        yield "fragment", visit.text("fragments/topic_partitions.html", **_values(visit, snapshot, topic_snapshot))


def _values(visit: Visit, snapshot: ClusterSnapshot, topic_snapshot: TopicSnapshot) -> dict[str, Any]:
    base = f"/topics/{segment(topic_snapshot.name)}"
    listing: TablePage[PartitionSnapshot] = listing_of(
        visit, topic_snapshot.partitions, COLUMNS, lambda partition: str(partition.partition)
    )
    return {
        "snapshot": snapshot,
        "topic": topic_snapshot,
        "base": base,
        "listing": listing,
        "live": visit.url(f"{base}/events", **{**listing.query, "page": listing.page}),
        "rate": columns(visit.cluster.snapshots.history.topic_rate(topic_snapshot.name)),
        "moving": sum(partition.topic == topic_snapshot.name for partition in snapshot.reassignments),
        "readers": sum(topic_snapshot.name in group.lag_by_topic for group in snapshot.groups.values()),
    }


async def add_partitions(visit: Visit) -> Response:
    _, topic_snapshot = await topic_of(visit)
    text = (await visit.form()).get("count", "").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) <= len(topic_snapshot.partitions):
        return await _page(visit, f"The topic has {len(topic_snapshot.partitions):,} partitions: enter a larger number.", 422, count=text)
    refusal = await _refusal(visit.cluster.admin.create_partitions({topic_snapshot.name: int(text)}))
    if refusal is not None:
        return await _page(visit, sentence(refusal), failure_of(refusal).status, count=text)
    return visit.changed(f"The topic {topic_snapshot.name} now has {int(text):,} partitions.", f"/topics/{segment(topic_snapshot.name)}")


async def elect(visit: Visit) -> Response:
    """Elects leaders of the given partition, or of all partitions of the topic."""
    _, topic_snapshot = await topic_of(visit)
    form = await visit.form()
    kind = _ELECTIONS.get(form.get("kind", ""))
    text = form.get("partition", "")
    numbers = [partition.partition for partition in topic_snapshot.partitions if not text or str(partition.partition) == text]
    if kind is None or not numbers:
        return await _page(visit, "Choose a kind of election, and a partition that the topic has.", 422)
    partitions = [TopicPartition(topic_snapshot.name, number) for number in numbers]
    try:
        outcomes = await visit.cluster.admin.elect_leaders(kind, partitions)
    except KafkaError as error:
        return await _page(visit, sentence(error), failure_of(error).status)
    failed = {partition: why for partition, why in outcomes.errors.items() if why.code != _ELECTION_NOT_NEEDED}
    if failed and not outcomes.successes:
        partition, refusal = next(iter(failed.items()))
        return await _page(visit, f"Partition {partition.partition}: {sentence(refusal)}", failure_of(refusal).status)
    if not outcomes.successes:
        return await _page(visit, "Nothing to elect: these partitions have the right leader already.", 409)
    name = "Preferred" if kind is ElectionType.PREFERRED else "Unclean"
    rest = f"; {len(failed):,} could not be elected" if failed else ""
    what = f"{name} leaders of {_counted(len(outcomes.successes))} of {topic_snapshot.name} are elected{rest}."
    return visit.changed(what, f"/topics/{segment(topic_snapshot.name)}")


async def empty(visit: Visit) -> Response:
    """Deletes all records up to the present end of each partition."""
    _, topic_snapshot = await topic_of(visit)
    form = await visit.form()
    if form.get("name") != topic_snapshot.name:
        return await _page(visit, f"Type the name of the topic, {topic_snapshot.name}, to delete its records.", 422)
    all_records = {TopicPartition(topic_snapshot.name, partition.partition): RecordsToDelete(-1) for partition in topic_snapshot.partitions}
    refusal = await _refusal(visit.cluster.admin.delete_records(all_records))
    if refusal is not None:
        return await _page(visit, sentence(refusal), failure_of(refusal).status)
    return visit.changed(f"All records of {topic_snapshot.name} are deleted.", f"/topics/{segment(topic_snapshot.name)}")


async def delete(visit: Visit) -> Response:
    _, topic_snapshot = await topic_of(visit)
    form = await visit.form()
    if form.get("name") != topic_snapshot.name:
        return await _page(visit, f"Type the name of the topic, {topic_snapshot.name}, to delete it.", 422)
    refusal = await _refusal(visit.cluster.admin.delete_topics([topic_snapshot.name]))
    if refusal is not None:
        return await _page(visit, sentence(refusal), failure_of(refusal).status)
    return visit.changed(f"The topic {topic_snapshot.name} is deleted.", "/topics")


async def _refusal(change: Awaitable[Mapping[K, V]]) -> KafkaError | None:
    """The first error of a change; None if it succeeded."""
    try:
        dict((await change).items())  # raises the error of the first key that failed
    except KafkaError as error:
        return error
    return None


def _counted(number: int) -> str:
    return f"{number:,} partition{'' if number == 1 else 's'}"


ROUTES: Final = (
    get("/topics/{name}", topic),
    get("/topics/{name}/events", events),
    post("/topics/{name}/partitions", add_partitions),
    post("/topics/{name}/elect", elect),
    post("/topics/{name}/empty", empty),
    post("/topics/{name}/delete", delete),
)
