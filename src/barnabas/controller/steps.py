"""What the controller asks of the tree, as steps: generators that yield requests and are sent the responses.

So everything that decides can read like one straight account of what happens, and still awaits nothing: `Controller` drives the steps and
is the only one that touches a tree. What goes through thousands of partitions does so `in_turns`, which asks for nothing now and then: a
broker serves its clients on the same loop. Every write is a multi whose first operation checks the version of /controller_epoch: a
controller that has been replaced without noticing changes nothing any more, and learns of it by `ControllerMoved`.
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
    Request,
    Response,
    SetData,
    Stat,
)
from barnabas.metadata.znodes import admin, cluster, configs, topics
from barnabas.metadata.znodes.json_text import CorruptZNode
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")

Steps = Generator[Sequence[Request[Any]], list[Response[Any]], T]

ITEMS_AT_ONCE: Final = 500

_log = logging.getLogger(__name__)


class ControllerMoved(Exception):
    """Another broker is the controller now; whatever was being done is not ours to do any more."""


class StateChangeFailed(Exception):
    """One partition or replica cannot go where it should; the others of the same change are not held up by it."""


def in_turns(items: Iterable[T], act: Callable[[T], object]) -> Steps[None]:
    """Does it with each; after every so many the others on the loop have their turn."""
    for at, item in enumerate(items, 1):
        act(item)
        if at % ITEMS_AT_ONCE == 0:
            yield ()


def write(operations: Sequence[Operation], epoch_version: int) -> Steps[list[Response[Any]]]:
    """Each in a multi of its own, all in one batch. A response holds the operation's own result or error."""
    if not operations:
        return []
    check = Check(paths.CONTROLLER_EPOCH, epoch_version)
    answers = yield [Multi((check, operation)) for operation in operations]
    unwrapped: list[Response[Any]] = []
    yield from in_turns(answers, lambda answer: unwrapped.append(_unwrapped(answer)))
    return unwrapped


def _unwrapped(answer: Response[Any]) -> Response[Any]:
    error = answer.error
    if error is None:
        return Response(answer.request, answer.value[1])
    if error.operation == 0 and isinstance(error, (BadVersion, NoNode)):
        raise ControllerMoved(f"/controller_epoch has another version than the one of this controller: {error}")
    return answer


# --- becoming the controller


def read_controller_id() -> Steps[int]:
    """-1 if there is none."""
    (answer,) = yield [GetData(paths.CONTROLLER)]
    if isinstance(answer.error, NoNode):
        return -1
    return cluster.decode_controller(answer.value.data).broker_id


def register_controller(broker_id: int, now_ms: int) -> Steps[tuple[int, int]]:
    """Creates /controller and raises /controller_epoch, both or neither. Gives the new epoch and the version of its node."""
    (answer,) = yield [GetData(paths.CONTROLLER_EPOCH)]
    if isinstance(answer.error, NoNode):
        yield [Create(paths.CONTROLLER_EPOCH, cluster.encode_controller_epoch(0))]
        (answer,) = yield [GetData(paths.CONTROLLER_EPOCH)]  # ours, or that of the one who was faster
    epoch = cluster.decode_controller_epoch(answer.value.data) + 1
    claim = Multi(
        (
            Create(paths.CONTROLLER, cluster.encode_controller(cluster.ControllerZNode(broker_id, now_ms)), CreateMode.EPHEMERAL),
            SetData(paths.CONTROLLER_EPOCH, cluster.encode_controller_epoch(epoch), answer.value.stat.version),
        )
    )
    (outcome,) = yield [claim]
    if isinstance(outcome.error, (NodeExists, BadVersion)):
        return (yield from _check_election(broker_id, epoch))
    return epoch, outcome.value[1].version


def _check_election(broker_id: int, epoch: int) -> Steps[tuple[int, int]]:
    """A claim that was made, lost its answer on the way and was made again is refused the second time, and is good all the same."""
    if (yield from read_controller_id()) == broker_id:
        (answer,) = yield [GetData(paths.CONTROLLER_EPOCH)]
        if cluster.decode_controller_epoch(answer.value.data) == epoch:
            return epoch, answer.value.stat.version
    raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")


def enable_feature_versioning() -> Steps[None]:
    """/feature as Kafka's controllers want to find it. What is finalized there is theirs; our own levels are kept elsewhere."""
    (answer,) = yield [GetData(paths.FEATURE)]
    if isinstance(answer.error, NoNode):
        yield [Create(paths.FEATURE, cluster.encode_features(cluster.FeatureZNode({})))]
        return
    found = cluster.decode_features(answer.value.data)
    if found.status != cluster.FEATURE_ENABLED:
        yield [SetData(paths.FEATURE, cluster.encode_features(cluster.FeatureZNode({})), answer.value.stat.version)]


# --- brokers and topics


def read_brokers() -> Steps[list[LiveBroker]]:
    """All that are registered, by id."""
    ids = sorted(int(name) for name in (yield from read_children(paths.BROKER_IDS)) if name.isascii() and name.isdecimal())
    return [broker for broker in (yield from read_registrations(ids)) if broker is not None]


def read_registrations(ids: Sequence[int]) -> Steps[list[LiveBroker | None]]:
    answers = yield [GetData(paths.broker_id(broker_id)) for broker_id in ids]
    found: list[LiveBroker | None] = []
    for broker_id, answer in zip(ids, answers, strict=True):
        broker: LiveBroker | None = None
        if not isinstance(answer.error, NoNode):  # else it went away in between
            try:
                broker = LiveBroker(broker_id, answer.value.stat.czxid, cluster.decode_broker(broker_id, answer.value.data))
            except CorruptZNode as fault:
                _log.error("Ignoring broker %d: %s. Restart it, so that it registers again", broker_id, fault)
        found.append(broker)
    return found


def read_children(path: str) -> Steps[list[str]]:
    (answer,) = yield [GetChildren(path)]
    if isinstance(answer.error, NoNode):
        return []
    names: list[str] = answer.value.names
    return names


def read_topics(names: Sequence[str]) -> Steps[dict[str, topics.TopicAssignment]]:
    """Those that are still there; reading them leaves the watches of the handlers that stand on them."""
    answers = yield [GetData(paths.topic(name)) for name in names]
    found = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer.error, NoNode):
            continue
        try:
            found[name] = topics.decode_topic(name, answer.value.data)
        except CorruptZNode as fault:
            _log.error("Ignoring topic %s, which nobody can read or write until it is repaired: %s", name, fault)
    return found


def set_topic(name: str, topic: topics.TopicAssignment, epoch_version: int) -> Steps[None]:
    (answer,) = yield from write([SetData(paths.topic(name), topics.encode_topic(topic))], epoch_version)
    if answer.error is not None:
        raise answer.error


def set_topics(assigned: Mapping[str, topics.TopicAssignment], epoch_version: int) -> Steps[None]:
    yield from write([SetData(paths.topic(name), topics.encode_topic(topic)) for name, topic in assigned.items()], epoch_version)


def delete_topics(names: Sequence[str], epoch_version: int) -> Steps[None]:
    """Topics, their configs, and last the marks: as long as a mark is there, the next controller goes on where this one stopped."""
    nodes = yield from _below([paths.topic(name) for name in names])
    marks = [paths.delete_topic(name) for name in names]
    all_paths = [*nodes, *(paths.config_entity(f"topics/{name}") for name in names), *marks]
    yield from delete_paths(all_paths, epoch_version)


def delete_paths(all_paths: Sequence[str], epoch_version: int) -> Steps[None]:
    """In this order; what is not there is as good as deleted."""
    for answer in (yield from write([Delete(path) for path in all_paths], epoch_version)):
        if answer.error is not None and not isinstance(answer.error, NoNode):
            raise answer.error


def delete_children(parent: str, names: Iterable[str], epoch_version: int) -> Steps[None]:
    yield from delete_paths([f"{parent}/{name}" for name in names], epoch_version)


def _below(roots: Sequence[str]) -> Steps[list[str]]:
    """The roots and all nodes under them, children before their parents, as Kafka deletes them."""
    children: dict[str, list[str]] = {}
    level = list(roots)
    while level:
        answers = yield [GetChildren(path) for path in level]
        found = [(path, answer.value.names) for path, answer in zip(level, answers, strict=True) if not isinstance(answer.error, NoNode)]
        children |= {path: [f"{path}/{name}" for name in names] for path, names in found}
        level = [child for path, _ in found for child in children[path]]
    ordered: list[str] = []
    pending = [path for path in roots if path in children]
    while pending:  # the last first, and parents before children: the reverse of what is wanted
        path = pending.pop()
        ordered.append(path)
        pending.extend(children.get(path, ()))
    ordered.reverse()
    return ordered


# --- what tools of old ask for


def read_reassignments() -> Steps[dict[TopicPartition, tuple[int, ...]] | None]:
    """None if there is no /admin/reassign_partitions; one that cannot be read asks for nothing."""
    _, answer = yield [Exists(paths.REASSIGN_PARTITIONS), GetData(paths.REASSIGN_PARTITIONS)]  # the first leaves a watch for a node to come
    if isinstance(answer.error, NoNode):
        return None
    try:
        return admin.decode_reassignment(answer.value.data)
    except CorruptZNode as fault:
        _log.error("Ignoring a request to reassign partitions: %s", fault)
        return {}


def write_reassignments(asked: Mapping[TopicPartition, tuple[int, ...]], epoch_version: int) -> Steps[None]:
    """What is still to be done; the node goes with the last of it."""
    if not asked:
        yield from delete_paths([paths.REASSIGN_PARTITIONS], epoch_version)
        return
    (answer,) = yield from write([SetData(paths.REASSIGN_PARTITIONS, admin.encode_reassignment(asked))], epoch_version)
    if answer.error is not None and not isinstance(answer.error, NoNode):
        raise answer.error


def read_preferred_elections() -> Steps[list[TopicPartition] | None]:
    """None if there is no /admin/preferred_replica_election; likewise."""
    _, answer = yield [Exists(paths.PREFERRED_REPLICA_ELECTION), GetData(paths.PREFERRED_REPLICA_ELECTION)]
    if isinstance(answer.error, NoNode):
        return None
    try:
        return admin.decode_preferred_replica_election(answer.value.data)
    except CorruptZNode as fault:
        _log.error("Ignoring a request to elect preferred leaders: %s", fault)
        return []


# --- the states of partitions


def read_leadership(partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, LeaderAndIsr]]:
    """Of those that have a state; a partition without one was never led."""
    found = {}
    for partition, outcome in (yield from read_states(partitions)).items():
        if isinstance(outcome, LeaderAndIsr):
            found[partition] = outcome
        elif isinstance(outcome, CorruptZNode):
            _log.error("Ignoring the state of partition %s: %s", partition, outcome)
        elif not isinstance(outcome, NoNode):
            raise outcome
    return found


def read_states(partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, LeaderAndIsr | Exception]]:
    answers = yield [GetData(paths.topic_partition_state(each.topic, each.partition)) for each in partitions]
    found: dict[TopicPartition, LeaderAndIsr | Exception] = {}

    def decode(asked: tuple[TopicPartition, Response[Any]]) -> None:
        partition, answer = asked
        try:
            node = answer.value
            state = topics.decode_partition_state(partition.topic, partition.partition, node.data)
            found[partition] = LeaderAndIsr.from_znode(state, node.stat.version, node.stat.mzxid)
        except (TreeError, CorruptZNode) as error:
            found[partition] = error

    yield from in_turns(zip(partitions, answers, strict=True), decode)
    return found


def create_states(states: Mapping[TopicPartition, LeaderAndIsr], epoch_version: int) -> Steps[dict[TopicPartition, TreeError | None]]:
    """First states of new partitions, with the nodes above them. Parents that stand already are no error, a state that does is one."""
    parents = [Create(paths.topic_partitions(topic)) for topic in dict.fromkeys(each.topic for each in states)]
    holders = [Create(paths.topic_partition(each.topic, each.partition)) for each in states]
    nodes: list[Create] = []

    def encode(wanted: tuple[TopicPartition, LeaderAndIsr]) -> None:
        (topic, partition), state = wanted
        nodes.append(Create(paths.topic_partition_state(topic, partition), topics.encode_partition_state(state.to_znode())))

    yield from in_turns(states.items(), encode)
    answers = yield from write([*parents, *holders, *nodes], epoch_version)
    return {each: answer.error for each, answer in zip(states, answers[len(answers) - len(nodes) :], strict=True)}


def update_states(
    states: Mapping[TopicPartition, LeaderAndIsr], controller_epoch: int, epoch_version: int
) -> Steps[tuple[dict[TopicPartition, LeaderAndIsr | TreeError], list[TopicPartition]]]:
    """What was written, with its new version, or why not; and those that a leader changed in the meantime, to be read and tried again."""
    stamped: dict[TopicPartition, LeaderAndIsr] = {}
    operations: list[SetData] = []

    def encode(wanted: tuple[TopicPartition, LeaderAndIsr]) -> None:
        partition, state = wanted
        state = stamped[partition] = replace(state, controller_epoch=controller_epoch)
        path = paths.topic_partition_state(partition.topic, partition.partition)
        operations.append(SetData(path, topics.encode_partition_state(state.to_znode()), state.partition_epoch))

    yield from in_turns(states.items(), encode)
    answers = yield from write(operations, epoch_version)
    finished: dict[TopicPartition, LeaderAndIsr | TreeError] = {}
    again: list[TopicPartition] = []

    def finish(asked: tuple[TopicPartition, Response[Any]]) -> None:
        partition, answer = asked
        if isinstance(answer.error, BadVersion):
            again.append(partition)
        elif answer.error is not None:
            finished[partition] = answer.error
        else:
            stat: Stat = answer.value
            finished[partition] = replace(stamped[partition], partition_epoch=stat.version)

    yield from in_turns(zip(stamped, answers, strict=True), finish)
    return finished, again


# --- configs and notifications


def read_topic_configs(names: Sequence[str]) -> Steps[dict[str, dict[str, str] | TreeError]]:
    answers = yield [GetData(paths.config_entity(f"topics/{name}")) for name in names]
    found: dict[str, dict[str, str] | TreeError] = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer.error, NoNode):
            found[name] = {}
        elif answer.error is not None:
            found[name] = answer.error
        else:
            found[name] = configs.decode_config(f"topics/{name}", answer.value.data)
    return found


def read_isr_changes(names: Sequence[str]) -> Steps[list[TopicPartition]]:
    found = yield from _read_notifications(paths.ISR_CHANGE_NOTIFICATION, names, admin.decode_isr_change)
    return list(dict.fromkeys(partition for partitions in found for partition in partitions))


def read_log_dir_events(names: Sequence[str]) -> Steps[list[int]]:
    """The brokers that lost a log directory."""
    return list(dict.fromkeys((yield from _read_notifications(paths.LOG_DIR_EVENT_NOTIFICATION, names, admin.decode_log_dir_event))))


def _read_notifications(parent: str, names: Sequence[str], decode: Callable[[str, bytes | None], T]) -> Steps[list[T]]:
    every = [f"{parent}/{name}" for name in names]
    answers = yield [GetData(path) for path in every]
    found = []
    for path, answer in zip(every, answers, strict=True):
        try:
            if not isinstance(answer.error, NoNode):
                found.append(decode(path, answer.value.data))
        except CorruptZNode as fault:
            _log.error("Ignoring a notification: %s", fault)
    return found
