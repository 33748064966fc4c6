"""Who uses a topic: the groups that read it, with their lag, and the producers that write to it, with their open transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from barnabas.console.cluster.snapshot import GroupSnapshot, TopicSnapshot
from barnabas.console.failures import sentence
from barnabas.console.pages.topics.topic import topic_of
from barnabas.console.web.listing import Column, TablePage, listing_of
from barnabas.console.web.routes import get, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

_IDS_MAX: Final = 1_000  # producers whose transactional id is looked for


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A group with an offset in the topic. `lag` counts records of this topic."""

    group: GroupSnapshot
    lag: int
    stuck: int


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer that a partition remembers. `open_since` is the first offset of its open transaction; readers of committed records wait
    there, with `held` records behind."""

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_ms: int
    open_since: int | None
    held: int | None
    transactional_id: str | None


READERS: Final[tuple[Column[TopicReader], ...]] = (
    Column("group", "Group", lambda reader: reader.group.group_id),
    Column("type", "Type", lambda reader: reader.group.type),
    Column("state", "State", lambda reader: reader.group.state),
    Column("members", "Members", lambda reader: reader.group.members, True),
    Column("lag", "Lag in this topic, records", lambda reader: reader.lag, True),
    Column("total", "Lag in all topics", lambda reader: reader.group.lag, True),
)
PRODUCERS: Final[tuple[Column[ProducerRow], ...]] = (
    Column("partition", "Partition", lambda row: row.partition),
    Column("producer", "Producer id", lambda row: row.producer_id, True),
    Column("transactional", "Transactional id", lambda row: row.transactional_id),
    Column("epoch", "Epoch", lambda row: row.epoch, True),
    Column("sequence", "Last sequence number", lambda row: row.last_sequence, True),
    Column("last", "Last write", lambda row: row.last_ms, True),
    Column("open", "Open transaction", lambda row: row.held, True),
)


async def readers(visit: Visit) -> Response:
    snapshot, topic = await topic_of(visit)
    rows = [
        TopicReader(group, group.lag_by_topic[topic.name], sum(partition.topic == topic.name for partition in group.stuck))
        for group in snapshot.groups.values()
        if topic.name in group.lag_by_topic
    ]
    listing: TablePage[TopicReader] = listing_of(visit, rows, READERS, lambda reader: reader.group.group_id)
    return visit.page("topic_readers.html", snapshot=snapshot, topic=topic, base=f"/topics/{segment(topic.name)}", listing=listing)


async def producers(visit: Visit) -> Response:
    _, topic = await topic_of(visit)
    unknown: str | None = None
    rows: list[ProducerRow] = []
    try:
        rows, unknown = await _producers(visit, topic)
    except KafkaError as error:
        unknown = sentence(error)
    listing: TablePage[ProducerRow] = listing_of(visit, rows, PRODUCERS, lambda row: f"{row.transactional_id or ''} {row.producer_id}")
    return visit.page(
        "topic_producers.html",
        topic=topic,
        base=f"/topics/{segment(topic.name)}",
        listing=listing,
        open_transactions=sum(row.open_since is not None for row in rows),
        unknown=unknown,
    )


async def _producers(visit: Visit, topic: TopicSnapshot) -> tuple[list[ProducerRow], str | None]:
    """The producers of all partitions that have a leader, and why some could not be read."""
    led = {partition.partition: partition for partition in topic.partitions if partition.leader is not None}
    outcomes = await visit.cluster.admin.describe_producers([TopicPartition(topic.name, number) for number in led])
    states = [(partition.partition, state) for partition, listed in outcomes.successes.items() for state in listed]
    ids = await _transactional_ids(visit, {state.producer_id for _, state in states})
    rows: list[ProducerRow] = []
    for number, state in states:
        since, end = state.current_transaction_start_offset, led[number].end_offset
        rows.append(
            ProducerRow(
                number,
                state.producer_id,
                state.producer_epoch,
                state.last_sequence,
                state.last_timestamp,
                since,
                None if since is None else max(0, (end or since) - since),
                ids.get(state.producer_id),
            )
        )
    return rows, next((sentence(error) for error in outcomes.errors.values()), None)


async def _transactional_ids(visit: Visit, producer_ids: set[int]) -> dict[int, str]:
    """Transactional ids by producer id, as far as the visitor may see them."""
    if not producer_ids:
        return {}
    try:
        by_broker = await visit.cluster.admin.list_transactions(producer_ids=sorted(producer_ids)[:_IDS_MAX])
    except KafkaError:
        return {}
    return {listing.producer_id: listing.transactional_id for listings in by_broker.successes.values() for listing in listings}


ROUTES: Final = (get("/topics/{name}/readers", readers), get("/topics/{name}/producers", producers))
