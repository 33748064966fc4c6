"""Plans the conversion of one layout to another: which log goes to which broker, and the new contents of the metadata store.

Pure: nothing here reads or writes a file. The logs themselves are never changed. A partition keeps the replica of its leader, or else the
longest of its ISR, and as many more as the new layout has brokers for. New replicas begin empty and outside the ISR; their brokers fetch
them after the start, as in Kafka when a replication factor is raised. Leader epochs and the controller epoch only grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from barnabas.layout.cluster_image import TopicImage
from barnabas.layout.errors import NeedsStart, NotConvertible
from barnabas.layout.inventory import LayoutInventory, LogInventory
from barnabas.layout.layout import FIRST_NODE, Layout
from barnabas.layout.replica_choice import Candidate, Placement, in_order_of_trust, keep, spread
from barnabas.metadata import paths
from barnabas.metadata.znodes import configs
from barnabas.metadata.znodes.topics import (
    NO_LEADER,
    PartitionState,
    ReplicaAssignment,
    encode_partition_state,
    encode_topic,
)
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CHECKPOINTS, REPLICATION_OFFSET_CHECKPOINT
from barnabas.storage.directory.meta_properties import MetaProperties
from barnabas.topic_name import SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

MIN_IN_SYNC: Final = "min.insync.replicas"
# Topics whose min.insync.replicas the broker sets when it creates them, from a setting that `barnabas up` chooses.
_COORDINATOR_TOPICS: Final = (TRANSACTION_STATE, SHARE_GROUP_STATE)
_UNIQUE_BITS: Final = 128
_START_ONCE: Final = "start {} once, stop with Ctrl-C, then convert again"


@dataclass(frozen=True)
class LogMove:
    """The move of a log directory from one broker to another."""

    source: int
    name: str
    target: int
    new_name: str


@dataclass(frozen=True)
class NewNode:
    meta: MetaProperties
    checkpoints: Mapping[str, Mapping[TopicPartition, int]]


@dataclass(frozen=True)
class TopicReplicaChange:
    name: str
    partitions: int
    replicas: int  # of each partition, before the conversion
    new_replicas: int


@dataclass(frozen=True)
class Amount:
    logs: int = 0
    size: int = 0  # bytes

    def plus(self, log: LogInventory, times: int = 1) -> Amount:
        return Amount(self.logs + times, self.size + times * log.size)


@dataclass(frozen=True)
class ConversionPlan:
    source: Layout
    target: Layout
    cluster_id: str
    topics: Sequence[TopicReplicaChange]
    moves: Sequence[LogMove]
    nodes: Mapping[int, NewNode]
    znodes: Sequence[tuple[str, bytes]]
    moved: Amount  # by renaming
    dropped: Amount  # replicas that the new layout has no broker for
    fetched: Amount  # by the brokers from each other, after the start
    remarks: Sequence[str] = ()


@dataclass
class _Draft:
    moves: list[LogMove] = field(default_factory=list)
    topics: list[TopicReplicaChange] = field(default_factory=list)
    znodes: list[tuple[str, bytes]] = field(default_factory=list)
    checkpoints: defaultdict[int, dict[str, dict[TopicPartition, int]]] = field(default_factory=lambda: defaultdict(dict))
    moved: Amount = Amount()
    dropped: Amount = Amount()
    fetched: Amount = Amount()


def plan(inventory: LayoutInventory, target: Layout, random: Random) -> ConversionPlan:
    """Raises NotConvertible if an acknowledged record might be lost."""
    _refuse_unclean(inventory)
    draft = _Draft()
    for index, topic in enumerate(inventory.image.topics):
        _plan_topic(draft, inventory, topic, target, index)
    _plan_others(draft, inventory, target, random)
    _plan_broker_configs(draft, inventory, target)
    return ConversionPlan(
        inventory.layout,
        target,
        inventory.image.cluster_id,
        draft.topics,
        draft.moves,
        {node: NewNode(_meta(inventory, node, random), draft.checkpoints[node]) for node in target.nodes},
        draft.znodes,
        draft.moved,
        draft.dropped,
        draft.fetched,
        _remarks(inventory, draft),
    )


def _refuse_unclean(inventory: LayoutInventory) -> None:
    unclean = [node.node for node in inventory.nodes.values() if node.logs and not node.is_clean]
    if unclean:
        raise NeedsStart(f"broker {_listed(unclean)} was not stopped cleanly: {_START_ONCE.format(inventory.layout)}")
    foreign = [node.node for node in inventory.nodes.values() if node.meta.cluster_id not in (None, inventory.image.cluster_id)]
    if foreign:
        raise NotConvertible(
            f"the logs of broker {_listed(foreign)} are not of the cluster of the metadata store ({inventory.image.cluster_id}): "
            "restore the store that belongs to them"
        )
    moving = [
        TopicPartition(topic.name, number)
        for topic in inventory.image.topics
        for number, assigned in topic.assignment.partitions.items()
        if assigned.is_being_reassigned
    ]
    if moving or inventory.image.has_reassignments:
        which = ", ".join(map(str, moving[:10])) or "some partitions"
        raise NotConvertible(f"a reassignment of {which} is under way: start {inventory.layout}, let it finish, stop, then convert again")


# -- one topic


def _plan_topic(draft: _Draft, inventory: LayoutInventory, topic: TopicImage, target: Layout, index: int) -> None:
    placements: dict[int, Placement] = {}
    for number in sorted(topic.assignment.partitions):
        partition = TopicPartition(topic.name, number)
        replicas = topic.assignment.partitions[number].replicas
        logs = _logs_of(inventory, topic, partition)
        factor = _factor(len(replicas), inventory.layout, target)
        ordered = _ordered(inventory, topic, partition, logs)
        first = index + number
        if inventory.layout.is_single:
            placed = spread(ordered[0].node if ordered else None, factor, target.nodes, first)
        else:
            placed = keep(ordered, replicas, factor, target.nodes, first)
        placements[number] = placed
        _plan_logs(draft, inventory, target, partition, logs, placed)
        _plan_state(draft, partition, topic.states.get(number), replicas, placed)
    _plan_assignment(draft, topic, placements)
    _plan_topic_config(draft, inventory.layout, topic, target)


def _factor(replicas: int, source: Layout, target: Layout) -> int:
    """A topic with the default replication factor of its layout gets that of the new layout. Other topics keep theirs."""
    return target.replication_factor if replicas == source.replication_factor else min(replicas, target.brokers)


def _logs_of(inventory: LayoutInventory, topic: TopicImage, partition: TopicPartition) -> dict[int, LogInventory]:
    """The logs by broker, without those of an earlier topic of that name."""
    logs = {node.node: node.logs[partition] for node in inventory.nodes.values() if partition in node.logs}
    return {node: log for node, log in logs.items() if _belongs_to(topic, partition, log)}


def _ordered(inventory: LayoutInventory, topic: TopicImage, partition: TopicPartition, logs: Mapping[int, LogInventory]) -> list[Candidate]:
    assigned = topic.assignment.partitions[partition.partition].replicas
    candidates = [
        Candidate(
            node,
            log.log_end_offset,
            log.latest_epoch,
            inventory.nodes[node].offset(REPLICATION_OFFSET_CHECKPOINT, partition) or 0,
        )
        for node, log in logs.items()
        if node in assigned
    ]
    state = topic.states.get(partition.partition)
    if topic.is_being_deleted or (state is None and not candidates):
        return candidates
    if state is None:
        raise NeedsStart(f"no leader of {partition} was ever elected: {_START_ONCE.format(inventory.layout)}")
    return in_order_of_trust(partition, state, candidates)


def _plan_logs(
    draft: _Draft,
    inventory: LayoutInventory,
    target: Layout,
    partition: TopicPartition,
    logs: Mapping[int, LogInventory],
    placed: Placement,
) -> None:
    name = names.partition_dir_name(partition)
    for node, log in logs.items():
        home = placed.homes.get(node)
        if home is None:
            draft.dropped = draft.dropped.plus(log)
            continue
        draft.moves.append(LogMove(node, name, home, name))
        if inventory.layout.is_single or target.is_single or home != node:
            draft.moved = draft.moved.plus(log)
        for checkpoint in CHECKPOINTS:
            offset = inventory.nodes[node].offset(checkpoint, partition)
            if offset is not None:
                draft.checkpoints[home].setdefault(checkpoint, {})[partition] = offset
    if placed.homes:
        leader = logs[next(iter(placed.homes))]
        new = set(placed.replicas) - set(placed.homes.values()) - (set() if inventory.layout.is_single else set(logs))
        draft.fetched = draft.fetched.plus(leader, len(new))


def _plan_state(draft: _Draft, partition: TopicPartition, state: PartitionState | None, replicas: Sequence[int], placed: Placement) -> None:
    """If the replicas of a partition change, its new state has the new broker ids and a new leader epoch."""
    if state is None or (placed.replicas == tuple(replicas) and all(node == home for node, home in placed.homes.items())):
        return
    isr = tuple(placed.homes[node] for node in state.isr if node in placed.homes) or placed.replicas[:1]
    leader = placed.homes.get(state.leader, NO_LEADER)
    if leader not in isr:
        leader = isr[0]
    changed = replace(state, leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)
    draft.znodes.append((paths.topic_partition_state(*partition), encode_partition_state(changed)))


def _plan_assignment(draft: _Draft, topic: TopicImage, placements: Mapping[int, Placement]) -> None:
    changed = {number: ReplicaAssignment(placed.replicas) for number, placed in placements.items()}
    before, after = (
        max((len(replica_assignment.replicas) for replica_assignment in assignments.values()), default=0)
        for assignments in (topic.assignment.partitions, changed)
    )
    draft.topics.append(TopicReplicaChange(topic.name, len(changed), before, after))
    if changed != topic.assignment.partitions:
        draft.znodes.append((paths.topic(topic.name), encode_topic(replace(topic.assignment, partitions=changed))))


def _plan_topic_config(draft: _Draft, source: Layout, topic: TopicImage, target: Layout) -> None:
    if topic.name not in _COORDINATOR_TOPICS or topic.config.get(MIN_IN_SYNC) != str(source.min_in_sync):
        return
    if source.min_in_sync != target.min_in_sync:
        changed = {**topic.config, MIN_IN_SYNC: str(target.min_in_sync)}
        draft.znodes.append((paths.config_entity(f"topics/{topic.name}"), configs.encode_config(changed)))


# -- everything else


def _plan_others(draft: _Draft, inventory: LayoutInventory, target: Layout, random: Random) -> None:
    """Stray logs, and logs marked for deletion, are moved too. A log that belongs to no topic becomes stray, as at a start."""
    topics = {topic.name: topic for topic in inventory.image.topics}
    for node in inventory.nodes.values():
        home = node.node if node.node in target.nodes and not inventory.layout.is_single else FIRST_NODE
        draft.moves += [LogMove(node.node, name, home, name) for name in node.marked]
        for partition, log in node.logs.items():
            if not _belongs_to(topics.get(partition.topic), partition, log):
                stray = names.marked_dir_name(partition, f"{random.getrandbits(_UNIQUE_BITS):032x}", names.STRAY_DIR_SUFFIX)
                draft.moves.append(LogMove(node.node, names.partition_dir_name(partition), home, stray))


def _belongs_to(topic: TopicImage | None, partition: TopicPartition, log: LogInventory) -> bool:
    if topic is None or partition.partition not in topic.assignment.partitions:
        return False
    return topic.assignment.topic_id is None or log.topic_id in (None, topic.assignment.topic_id)


def _plan_broker_configs(draft: _Draft, inventory: LayoutInventory, target: Layout) -> None:
    """The settings of a single broker become those of each of several. The settings of removed brokers stay in the store."""
    for node in inventory.nodes if inventory.layout.is_single else ():
        data = inventory.image.broker_configs.get(str(node))
        if data is not None:
            draft.znodes += [(paths.config_entity(f"brokers/{new}"), data) for new in target.nodes if new != node]


def _meta(inventory: LayoutInventory, node: int, random: Random) -> MetaProperties:
    """A remaining broker keeps its directory id; the first of several inherits that of the single one, and the other way round."""
    first = next(iter(inventory.nodes.values()))
    existing = inventory.nodes.get(node) or (first if node == FIRST_NODE else None)
    directory_id = existing.meta.directory_id if existing is not None and existing.meta.directory_id is not None else Uuid.random(random)
    return MetaProperties(first.meta.version, inventory.image.cluster_id, node, directory_id)


def _listed(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))


def _remarks(inventory: LayoutInventory, draft: _Draft) -> list[str]:
    remarks = []
    new_replicas = {change.name: change.new_replicas for change in draft.topics}
    strict = [
        topic.name
        for topic in inventory.image.topics
        if topic.name not in _COORDINATOR_TOPICS and int(topic.config.get(MIN_IN_SYNC, "1")) > new_replicas[topic.name]
    ]
    if strict:
        remarks.append(f"{MIN_IN_SYNC} of {', '.join(strict)} is more than its replicas afterwards; it counts as their number")
    deleted = [topic.name for topic in inventory.image.topics if topic.is_being_deleted]
    if deleted:
        remarks.append(f"the deletion of {', '.join(deleted)} goes on after the start")
    return remarks
