"""The controller's reads and writes of the metadata store, as steps: generators that yield requests and receive the responses.

Steps let the deciding code be written in sequence without awaiting: `Controller` runs them, and only it calls the metadata store. A loop
over thousands of partitions uses `in_turns`, which now and then yields an empty request, so that the broker can serve clients on the same
event loop. Every write is a multi that first checks the version of /controller_epoch: a controller that has been replaced cannot write, and
gets `ControllerMoved`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from barnabas.controller.context import LeaderAndIsr, LiveBroker
from barnabas.metadata import paths
from barnabas.metadata.errors import BadVersion, NodeExists, NoNode, TreeError
from barnabas.metadata.tree import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
    Stat,
    TreeRequest,
    TreeResponse,
)
from barnabas.metadata.znodes import admin, cluster, configs, topics
from barnabas.metadata.znodes.json_text import CorruptZNode
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")

Steps = Generator[Sequence[TreeRequest[Any]], list[TreeResponse[Any]], T]

ITEMS_AT_ONCE: Final = 500

_log = logging.getLogger(__name__)


class ControllerMoved(Exception):
    """Another broker is the controller now. The current event must be abandoned."""


class StateChangeFailed(Exception):
    """The state of one partition or replica cannot be changed. The others of the same change are not affected."""


def in_turns(items: Iterable[T], act: Callable[[T], object]) -> Steps[None]:
    """Calls `act` with each item, and yields to other work on the event loop after every ITEMS_AT_ONCE items."""
    for at, item in enumerate(items, 1):
        act(item)
        if at % ITEMS_AT_ONCE == 0:
            yield ()


def write(operations: Sequence[Operation], epoch_version: int) -> Steps[list[TreeResponse[Any]]]:
    """Writes each operation in a multi of its own, all in one batch. A response has the result or error of its operation."""
    if not operations:
        return []
    check = Check(paths.CONTROLLER_EPOCH, epoch_version)
    responses = yield [Multi((check, operation)) for operation in operations]
    unwrapped: list[TreeResponse[Any]] = []
    yield from in_turns(responses, lambda response: unwrapped.append(_unwrapped(response)))
    return unwrapped


def _unwrapped(response: TreeResponse[Any]) -> TreeResponse[Any]:
    error = response.error
    if error is None:
        return TreeResponse(response.request, response.value[1])
    if error.operation == 0 and isinstance(error, (BadVersion, NoNode)):
        raise ControllerMoved(f"/controller_epoch has another version than the one of this controller: {error}")
    return response


# --- becoming the controller


def read_controller_id() -> Steps[int]:
    """The broker id of the controller, -1 if there is none."""
    (response,) = yield [GetData(paths.CONTROLLER)]
    if isinstance(response.error, NoNode):
        return -1
    return cluster.decode_controller(response.value.data).broker_id


def register_controller(broker_id: int, now_ms: int) -> Steps[tuple[int, int]]:
    """Creates /controller and increments /controller_epoch, in one multi. Returns the new epoch and the version of its znode."""
    (response,) = yield [GetData(paths.CONTROLLER_EPOCH)]
    if isinstance(response.error, NoNode):
        yield [Create(paths.CONTROLLER_EPOCH, cluster.encode_controller_epoch(0))]
        (response,) = yield [GetData(paths.CONTROLLER_EPOCH)]  # ours, or that of another broker that created it first
    epoch = cluster.decode_controller_epoch(response.value.data) + 1
    claim = Multi(
        (
            Create(paths.CONTROLLER, cluster.encode_controller(cluster.ControllerZNode(broker_id, now_ms)), CreateMode.EPHEMERAL),
            SetData(paths.CONTROLLER_EPOCH, cluster.encode_controller_epoch(epoch), response.value.stat.version),
        )
    )
    (outcome,) = yield [claim]
    if isinstance(outcome.error, (NodeExists, BadVersion)):
        return (yield from _check_election(broker_id, epoch))
    return epoch, outcome.value[1].version


def _check_election(broker_id: int, epoch: int) -> Steps[tuple[int, int]]:
    """The registration may have succeeded although its response was lost; the retry then fails. Checks whether this broker already owns
    /controller in this epoch."""
    if (yield from read_controller_id()) == broker_id:
        (response,) = yield [GetData(paths.CONTROLLER_EPOCH)]
        if cluster.decode_controller_epoch(response.value.data) == epoch:
            return epoch, response.value.stat.version
    raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")


def enable_feature_versioning() -> Steps[None]:
    """Creates /feature as Kafka's controllers expect it. Its finalized features are Kafka's; those of Barnabas are in
    /barnabas/features."""
    (response,) = yield [GetData(paths.FEATURE)]
    if isinstance(response.error, NoNode):
        yield [Create(paths.FEATURE, cluster.encode_features(cluster.FeatureZNode({})))]
        return
    features = cluster.decode_features(response.value.data)
    if features.status != cluster.FEATURE_ENABLED:
        yield [SetData(paths.FEATURE, cluster.encode_features(cluster.FeatureZNode({})), response.value.stat.version)]


# --- brokers and topics


def read_brokers() -> Steps[list[LiveBroker]]:
    """All registered brokers, in order of id."""
    ids = sorted(int(name) for name in (yield from read_children(paths.BROKER_IDS)) if name.isascii() and name.isdecimal())
    return [broker for broker in (yield from read_registrations(ids)) if broker is not None]


def read_registrations(ids: Sequence[int]) -> Steps[list[LiveBroker | None]]:
    responses = yield [GetData(paths.broker_id(broker_id)) for broker_id in ids]
    brokers: list[LiveBroker | None] = []
    for broker_id, response in zip(ids, responses, strict=True):
        broker: LiveBroker | None = None
        if not isinstance(response.error, NoNode):  # otherwise the broker stopped in the meantime
            try:
                broker = LiveBroker(broker_id, response.value.stat.czxid, cluster.decode_broker(broker_id, response.value.data))
            except CorruptZNode as fault:
                _log.error("Ignoring broker %d: %s. Restart it, so that it registers again", broker_id, fault)
        brokers.append(broker)
    return brokers


def read_children(path: str) -> Steps[list[str]]:
    (response,) = yield [GetChildren(path)]
    if isinstance(response.error, NoNode):
        return []
    names: list[str] = response.value.names
    return names


def read_topics(names: Sequence[str]) -> Steps[dict[str, topics.TopicAssignment]]:
    """The assignments of the topics that exist. Reading them sets the watches of their registered handlers."""
    responses = yield [GetData(paths.topic(name)) for name in names]
    assignments = {}
    for name, response in zip(names, responses, strict=True):
        if isinstance(response.error, NoNode):
            continue
        try:
            assignments[name] = topics.decode_topic(name, response.value.data)
        except CorruptZNode as fault:
            _log.error("Ignoring topic %s, which cannot be read or written until it is repaired: %s", name, fault)
    return assignments


def set_topic(name: str, topic: topics.TopicAssignment, epoch_version: int) -> Steps[None]:
    (response,) = yield from write([SetData(paths.topic(name), topics.encode_topic(topic))], epoch_version)
    if response.error is not None:
        raise response.error


def set_topics(assigned: Mapping[str, topics.TopicAssignment], epoch_version: int) -> Steps[None]:
    yield from write([SetData(paths.topic(name), topics.encode_topic(topic)) for name, topic in assigned.items()], epoch_version)


def delete_topics(names: Sequence[str], epoch_version: int) -> Steps[None]:
    """Deletes the topics, their configs, and last their marks in /admin/delete_topics: while a mark exists, the next controller resumes."""
    nodes = yield from _below([paths.topic(name) for name in names])
    marks = [paths.delete_topic(name) for name in names]
    all_paths = [*nodes, *(paths.config_entity(f"topics/{name}") for name in names), *marks]
    yield from delete_paths(all_paths, epoch_version)


def delete_paths(all_paths: Sequence[str], epoch_version: int) -> Steps[None]:
    """Deletes the paths in this order. A missing path is not an error."""
    for response in (yield from write([Delete(path) for path in all_paths], epoch_version)):
        if response.error is not None and not isinstance(response.error, NoNode):
            raise response.error


def delete_children(parent: str, names: Iterable[str], epoch_version: int) -> Steps[None]:
    yield from delete_paths([f"{parent}/{name}" for name in names], epoch_version)


def _below(roots: Sequence[str]) -> Steps[list[str]]:
    """The roots and all their descendants, children before parents, in the order in which Kafka deletes them."""
    children: dict[str, list[str]] = {}
    level = list(roots)
    while level:
        responses = yield [GetChildren(path) for path in level]
        existing = [
            (path, response.value.names) for path, response in zip(level, responses, strict=True) if not isinstance(response.error, NoNode)
        ]
        children |= {path: [f"{path}/{name}" for name in names] for path, names in existing}
        level = [child for path, _ in existing for child in children[path]]
    ordered: list[str] = []
    pending = [path for path in roots if path in children]
    while pending:  # collects in reverse order: the last root first, parents before children
        path = pending.pop()
        ordered.append(path)
        pending.extend(children.get(path, ()))
    ordered.reverse()
    return ordered


# --- requests of older tools


def read_reassignments() -> Steps[dict[TopicPartition, tuple[int, ...]] | None]:
    """The targets in /admin/reassign_partitions. None if it does not exist, empty if it cannot be decoded."""
    _, response = yield [
        Exists(paths.REASSIGN_PARTITIONS),
        GetData(paths.REASSIGN_PARTITIONS),
    ]  # Exists sets the watch if there is no znode yet
    if isinstance(response.error, NoNode):
        return None
    try:
        return admin.decode_reassignment(response.value.data)
    except CorruptZNode as fault:
        _log.error("Ignoring a request to reassign partitions: %s", fault)
        return {}


def write_reassignments(remaining: Mapping[TopicPartition, tuple[int, ...]], epoch_version: int) -> Steps[None]:
    """Writes the remaining reassignments, or deletes the znode if there are none."""
    if not remaining:
        yield from delete_paths([paths.REASSIGN_PARTITIONS], epoch_version)
        return
    (response,) = yield from write([SetData(paths.REASSIGN_PARTITIONS, admin.encode_reassignment(remaining))], epoch_version)
    if response.error is not None and not isinstance(response.error, NoNode):
        raise response.error


def read_preferred_elections() -> Steps[list[TopicPartition] | None]:
    """The partitions in /admin/preferred_replica_election. None if it does not exist, empty if it cannot be decoded."""
    _, response = yield [Exists(paths.PREFERRED_REPLICA_ELECTION), GetData(paths.PREFERRED_REPLICA_ELECTION)]
    if isinstance(response.error, NoNode):
        return None
    try:
        return admin.decode_preferred_replica_election(response.value.data)
    except CorruptZNode as fault:
        _log.error("Ignoring a request to elect preferred leaders: %s", fault)
        return []


# --- the states of partitions


def read_leadership(partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, LeaderAndIsr]]:
    """The states of the partitions that have one. A partition without a state never had a leader."""
    states = {}
    for partition, outcome in (yield from read_states(partitions)).items():
        if isinstance(outcome, LeaderAndIsr):
            states[partition] = outcome
        elif isinstance(outcome, CorruptZNode):
            _log.error("Ignoring the state of partition %s: %s", partition, outcome)
        elif not isinstance(outcome, NoNode):
            raise outcome
    return states


def read_states(partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, LeaderAndIsr | Exception]]:
    responses = yield [GetData(paths.topic_partition_state(*partition)) for partition in partitions]
    states: dict[TopicPartition, LeaderAndIsr | Exception] = {}

    def decode(pair: tuple[TopicPartition, TreeResponse[Any]]) -> None:
        partition, response = pair
        try:
            node = response.value
            state = topics.decode_partition_state(partition.topic, partition.partition, node.data)
            states[partition] = LeaderAndIsr.from_znode(state, node.stat.version, node.stat.mzxid)
        except (TreeError, CorruptZNode) as error:
            states[partition] = error

    yield from in_turns(zip(partitions, responses, strict=True), decode)
    return states


def create_states(states: Mapping[TopicPartition, LeaderAndIsr], epoch_version: int) -> Steps[dict[TopicPartition, TreeError | None]]:
    """Creates the states of new partitions and their parent znodes. An existing parent is not an error; an existing state is."""
    parents = [Create(paths.topic_partitions(topic)) for topic in dict.fromkeys(partition.topic for partition in states)]
    holders = [Create(paths.topic_partition(*partition)) for partition in states]
    nodes: list[Create] = []

    def encode(new: tuple[TopicPartition, LeaderAndIsr]) -> None:
        (topic, partition), state = new
        nodes.append(Create(paths.topic_partition_state(topic, partition), topics.encode_partition_state(state.to_znode())))

    yield from in_turns(states.items(), encode)
    responses = yield from write([*parents, *holders, *nodes], epoch_version)
    return {partition: response.error for partition, response in zip(states, responses[len(responses) - len(nodes) :], strict=True)}


def update_states(
    states: Mapping[TopicPartition, LeaderAndIsr], controller_epoch: int, epoch_version: int
) -> Steps[tuple[dict[TopicPartition, LeaderAndIsr | TreeError], list[TopicPartition]]]:
    """Writes states. Returns the written state with its new version, or an error, by partition; and the partitions whose znode changed in
    the meantime, which the caller reads and writes again."""
    stamped: dict[TopicPartition, LeaderAndIsr] = {}
    operations: list[SetData] = []

    def encode(changed: tuple[TopicPartition, LeaderAndIsr]) -> None:
        partition, state = changed
        state = stamped[partition] = replace(state, controller_epoch=controller_epoch)
        path = paths.topic_partition_state(partition.topic, partition.partition)
        operations.append(SetData(path, topics.encode_partition_state(state.to_znode()), state.partition_epoch))

    yield from in_turns(states.items(), encode)
    responses = yield from write(operations, epoch_version)
    finished: dict[TopicPartition, LeaderAndIsr | TreeError] = {}
    changed_meanwhile: list[TopicPartition] = []

    def finish(pair: tuple[TopicPartition, TreeResponse[Any]]) -> None:
        partition, response = pair
        if isinstance(response.error, BadVersion):
            changed_meanwhile.append(partition)
        elif response.error is not None:
            finished[partition] = response.error
        else:
            stat: Stat = response.value
            finished[partition] = replace(stamped[partition], partition_epoch=stat.version)

    yield from in_turns(zip(stamped, responses, strict=True), finish)
    own = yield from _own_writes({partition: stamped[partition] for partition in changed_meanwhile})
    return finished | own, [partition for partition in changed_meanwhile if partition not in own]


def _own_writes(states: Mapping[TopicPartition, LeaderAndIsr]) -> Steps[dict[TopicPartition, LeaderAndIsr]]:
    """The states that are in the tree already, with their versions: the connection broke after the write and before its response, so the
    store's client wrote again and got BadVersion. Nobody but this controller writes with its epoch."""
    if not states:
        return {}
    own = {}
    for partition, current in (yield from read_states(list(states))).items():
        written = replace(states[partition], partition_epoch=states[partition].partition_epoch + 1)
        if current == written:
            own[partition] = written
    return own


# --- configs and notifications


def read_topic_configs(names: Sequence[str]) -> Steps[dict[str, dict[str, str] | TreeError]]:
    responses = yield [GetData(paths.config_entity(f"topics/{name}")) for name in names]
    by_topic: dict[str, dict[str, str] | TreeError] = {}
    for name, response in zip(names, responses, strict=True):
        if isinstance(response.error, NoNode):
            by_topic[name] = {}
        elif response.error is not None:
            by_topic[name] = response.error
        else:
            by_topic[name] = configs.decode_config(f"topics/{name}", response.value.data)
    return by_topic


def read_isr_changes(names: Sequence[str]) -> Steps[list[TopicPartition]]:
    notifications = yield from _read_notifications(paths.ISR_CHANGE_NOTIFICATION, names, admin.decode_isr_change)
    return list(dict.fromkeys(partition for partitions in notifications for partition in partitions))


def read_log_dir_events(names: Sequence[str]) -> Steps[list[int]]:
    """The brokers with a failed log directory."""
    return list(dict.fromkeys((yield from _read_notifications(paths.LOG_DIR_EVENT_NOTIFICATION, names, admin.decode_log_dir_event))))


def _read_notifications(parent: str, names: Sequence[str], decode: Callable[[str, bytes | None], T]) -> Steps[list[T]]:
    node_paths = [f"{parent}/{name}" for name in names]
    responses = yield [GetData(path) for path in node_paths]
    notifications = []
    for path, response in zip(node_paths, responses, strict=True):
        try:
            if not isinstance(response.error, NoNode):
                notifications.append(decode(path, response.value.data))
        except CorruptZNode as fault:
            _log.error("Ignoring a notification: %s", fault)
    return notifications
