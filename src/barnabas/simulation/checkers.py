"""Compares what a cluster has promised with what it holds. Each check returns sentences about violations; an empty list means none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.group import Group
from barnabas.coordinator.group.group_memory import GROUP_BYTES, PENDING_MEMBER_BYTES, REGEX_BYTES, REGEX_TOPIC_BYTES
from barnabas.records.batch import read_batches
from barnabas.records.control import COMMIT, parse_control_type
from barnabas.records.reader import read_records, records_of
from barnabas.simulation.applications import Ending, GroupNotes, values_of_transaction
from barnabas.simulation.workload import Promises
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.cluster import SimulatedBroker, SimulatedCluster
    from barnabas.simulation.loop import ProcessLoop
    from barnabas.storage.log.log import Log


def log_bytes(log: Log) -> bytes:
    """All batches of a log, as stored in its files."""
    return b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)


def log_of(broker: SimulatedBroker, partition: TopicPartition) -> Log | None:
    return None if broker.broker is None else broker.broker.replica_manager.log_manager.get(partition)


def all_promises_kept(held: Iterable[tuple[int, bytes]], promises: Promises) -> list[str]:
    """Every acknowledged value is stored once, at its offset and in the order it was sent; every value read is still stored."""
    by_offset = dict(held)
    places: dict[bytes, list[int]] = {}
    for offset, value in by_offset.items():
        places.setdefault(value, []).append(offset)
    wrong = [f"{value!r} was refused with error {error}" for value, error in promises.refused]
    last = -1
    for value, offset in promises.acknowledged:
        offsets = places.get(value, [])
        if not offsets:
            wrong.append(f"{value!r} was acknowledged at {offset} and is lost")
        elif len(offsets) > 1:
            wrong.append(f"{value!r} is there {len(offsets)} times, at {offsets}")
        elif offset >= 0 and offsets[0] != offset:
            wrong.append(f"{value!r} was acknowledged at {offset} and is at {offsets[0]}")
        elif offsets[0] <= last:
            wrong.append(f"{value!r} is at {offsets[0]}, before what was sent before it")
        last = max(last, offsets[0] if offsets else last)
    for offset, value in promises.read.items():
        if by_offset.get(offset) != value:
            wrong.append(f"{value!r} was read at {offset}, where now is {by_offset.get(offset)!r}")
    return wrong


def values_of(data: bytes) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value or b"") for record in records_of(data)]


def replicas_agree(cluster: SimulatedCluster, partition: TopicPartition) -> list[str]:
    """The files of all replicas hold the same batches."""
    contents = {number: log_bytes(log) for number, broker in cluster.brokers.items() if (log := log_of(broker, partition)) is not None}
    first = next(iter(contents.values()), b"")
    return [f"{partition} on broker {number} differs from the others" for number, data in contents.items() if data != first]


class ClusterWatch:
    """Invariants that hold at any moment: no leader epoch of a partition has two leaders; the leader epoch in a broker's metadata cache
    never decreases; no controller writes to the metadata store after the next one was elected. `look` has to be called again and again
    while a history runs."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._cached_epochs: dict[tuple[int, TopicPartition], tuple[ProcessLoop | None, int]] = {}
        self._terms: dict[int, int] = {}  # controller epoch to the zxid of the write that began it
        self.wrong: list[str] = []

    def look(self) -> None:
        self._look_at_tree()
        for number, broker in self._cluster.brokers.items():
            if broker.broker is None:
                continue
            for partition, hosted in list(broker.broker.replica_manager.online.items()):
                if hosted.is_leader:
                    leader = self._leaders.setdefault((partition, hosted.leader_epoch), number)
                    if leader != number:
                        self._complain(f"{partition} is led by {leader} and {number} in epoch {hosted.leader_epoch}")
                self._look_at_metadata(broker, partition)

    def _look_at_tree(self) -> None:
        epoch, began = self._cluster.controller_epoch
        self._terms.setdefault(epoch, began)
        for partition in self._cluster.partitions():
            state, written = self._cluster.written_state_of(partition)
            if state is not None and written > self._terms.get(state.controller_epoch + 1, written):
                self._complain(f"the controller of epoch {state.controller_epoch} wrote the state of {partition} when the next had begun")

    def _look_at_metadata(self, broker: SimulatedBroker, partition: TopicPartition) -> None:
        assert broker.broker is not None
        state = broker.broker.metadata_cache.partition_info(*partition)
        if state is None:
            return
        process, epoch = self._cached_epochs.get((broker.id, partition), (None, -1))
        if process is broker.process and state.leader_epoch < epoch:
            self._complain(f"{broker.host} knew the leader of {partition} in epoch {epoch}, and now that in epoch {state.leader_epoch}")
        self._cached_epochs[broker.id, partition] = (broker.process, state.leader_epoch)

    def _complain(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)


class EnoughReplicas:
    """Every acknowledged record is on min.insync.replicas replicas at that moment, whether their brokers are running or not."""

    def __init__(self, cluster: SimulatedCluster, min_insync_replicas: int) -> None:
        self._cluster = cluster
        self._min_insync_replicas = min_insync_replicas
        self.wrong: list[str] = []

    def acknowledged(self, partition: TopicPartition, offset: int) -> None:
        replicas = [number for number, broker in self._cluster.brokers.items() if self._end(broker, partition) > offset]
        if len(replicas) < self._min_insync_replicas:
            self.wrong.append(f"offset {offset} of {partition} was acknowledged when only {replicas} had it")

    def _end(self, broker: SimulatedBroker, partition: TopicPartition) -> int:
        log = log_of(broker, partition)
        if log is not None:
            return log.log_end_offset
        held = broker.held.get(partition)
        return broker.end_on_disk(partition) if held is None else held


def all_know_the_same(cluster: SimulatedCluster) -> list[str]:
    """The metadata cache of every broker equals the metadata store."""
    wrong = []
    for partition in cluster.partitions():
        state = cluster.state_of(partition)
        for broker in cluster.brokers.values():
            cached = None if broker.broker is None else broker.broker.metadata_cache.partition_info(*partition)
            if state is None or cached is None:
                wrong.append(f"{broker.host} knows {cached} of {partition}, of which the tree has {state}")
            elif (cached.leader, cached.leader_epoch) != (state.leader, state.leader_epoch):
                wrong.append(
                    f"{broker.host} takes {cached.leader} for the leader of {partition} in epoch {cached.leader_epoch}, "
                    f"where {state.leader} leads in epoch {state.leader_epoch}"
                )
    return wrong


def accounts_are_right(cluster: SimulatedCluster) -> list[str]:
    """The bytes that each broker has counted for its groups are the sum of what their members hold."""
    wrong = []
    for broker in cluster.brokers.values():
        service = None if broker.broker is None or broker.server is None else broker.server.groups
        shards = [] if service is None else service.coordinator.shards()
        held = sum(_bytes_of(group) for shard in shards for group in shard.groups.values())
        if service is not None and shards and service.memory.members.used != held:
            wrong.append(f"{broker.host} has counted {service.memory.members.used} bytes of groups that hold {held}")
    return wrong


def _bytes_of(group: Group) -> int:
    size = GROUP_BYTES + len(group.group_id)
    if isinstance(group, ClassicGroup):
        size += sum(PENDING_MEMBER_BYTES + len(member_id) for member_id in group.pending_join_members)
        return size + sum(member.size for member in group.members.values())
    assert isinstance(group, ConsumerGroup)
    size += sum(REGEX_BYTES + len(regex) + REGEX_TOPIC_BYTES * len(resolved.topics) for regex, resolved in group.resolved_regexes.items())
    return size + sum(member.size for member in group.members.values())


def committed_values(data: bytes) -> tuple[list[tuple[int, bytes]], list[int]]:
    """The records that a read_committed consumer sees in a log, and the producers whose transactions are open at its end."""
    visible: list[tuple[int, bytes]] = []
    pending: dict[int, list[tuple[int, bytes]]] = {}
    for batch in read_batches(data):
        records = read_records(data, batch)
        if batch.is_control:
            ended = pending.pop(batch.producer_id, [])
            visible += ended if parse_control_type(records[0]) == COMMIT else []
        elif batch.is_transactional:
            pending.setdefault(batch.producer_id, []).extend((record.offset, record.value or b"") for record in records)
        else:
            visible += [(record.offset, record.value or b"") for record in records]
    return sorted(visible), list(pending)


def transactions_are_whole(contents: Sequence[bytes], endings: Mapping[int, Ending]) -> list[str]:
    """Each transaction is stored in all partitions or in none, as its producer was informed. `contents` are the logs of its partitions."""
    seen = []
    wrong = []
    for partition, data in enumerate(contents):
        visible, pending = committed_values(data)
        values = [value for _, value in visible]
        wrong += [f"{value!r} is there more than once" for value in sorted(set(values)) if values.count(value) > 1]
        wrong += [f"partition {partition} has an open transaction of producer {producer}" for producer in pending]
        seen.append(frozenset(values))
    for number, ending in endings.items():
        is_stored = [value in seen[partition] for partition, value in enumerate(values_of_transaction(number, len(contents)))]
        if len(set(is_stored)) > 1:
            wrong.append(f"transaction {number}, {ending.value}, is there in part: {is_stored}")
        elif (ending is Ending.COMMITTED and not is_stored[0]) or (ending is Ending.ABORTED and is_stored[0]):
            wrong.append(f"transaction {number} was {ending.value} and is {'there' if is_stored[0] else 'not there'}")
    return wrong


def group_saw(notes: GroupNotes, contents: Mapping[TopicPartition, bytes]) -> list[str]:
    """A group of read_committed consumers has read all committed records, and nothing else."""
    wrong = list(notes.wrong)
    for partition, data in contents.items():
        visible = dict(committed_values(data)[0])
        read = notes.read.get(partition, {})
        wrong += [
            f"{value!r} was read at {at} of {partition}, and is not committed" for at, value in read.items() if visible.get(at) != value
        ]
        wrong += [f"{value!r} at {at} of {partition} was never read" for at, value in visible.items() if at not in read]
    return wrong


def in_sync(cluster: SimulatedCluster, partition: TopicPartition) -> Mapping[int, frozenset[int]]:
    """The in-sync replicas according to each broker that considers itself the leader."""
    isr_by_leader = {}
    for number, broker in cluster.brokers.items():
        if broker.broker is not None:
            hosted = broker.broker.replica_manager.partition(partition)
            if hosted is not None and hosted.is_leader:
                isr_by_leader[number] = hosted.isr.committed
    return isr_by_leader
