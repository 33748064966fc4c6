"""Kafka's AdminManager: creates and deletes topics, adds partitions, elects leaders, and waits until the cluster has done so.

The admin handlers call it on the broker that is the active controller. It validates a request (`topic_plan`) and writes the change into the
metadata store, where the controller reads it; elections and reassignments go to the controller directly. The request then waits in the
"topic" purgatory until this broker's metadata cache shows the result. It never creates a log and never sends a request to another broker:
the controller does both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from random import Random
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.config.policies import CREATE_TOPIC_POLICY, CreateTopicPolicy, load_policy
from barnabas.broker.scheduling.turns import Turns, slices
from barnabas.broker.topics.delayed_admin import (
    DelayedAdmin,
    DelayedCreatePartitions,
    DelayedDeleteTopics,
    DelayedElectLeaders,
    DeletionMark,
)
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.topics.topic_plan import PARTITIONS_PER_REQUEST_MAX, Assignment, TopicPlanner
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import InvalidTopic, KafkaError, NotController, PolicyViolation, RequestTimedOut, UnknownTopicOrPartition
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree, PlannedTopic
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.metadata.tree import Exists
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsTopic
from barnabas.protocol.messages.create_topics_request import CreatableTopic
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)

# Every update of the metadata cache checks the waiting requests. An update covers many topics, so they all wait for this one key.
_METADATA: Final = "metadata"

TOPICS_PER_SLICE: Final = 50  # topics that are checked in one loop iteration
CREATED_PER_SLICE: Final = 20  # topics that are written to the metadata store at once

_NOT_CONTROLLER: Final = "This is not the correct controller for this cluster."

Key = TypeVar("Key")
P = ParamSpec("P")
R = TypeVar("R")


def _requires_session(call: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Raises NotController when the metadata session expires: this broker is not the controller any more, and the client finds the next."""

    @wraps(call)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await call(*args, **kwargs)
        except SessionExpired as error:
            raise NotController(_NOT_CONTROLLER) from error

    return guarded


class ActiveController(Protocol):
    @property
    def is_active(self) -> bool: ...

    @property
    def cordoned_brokers(self) -> frozenset[int]: ...

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy
    ) -> Mapping[TopicPartition, int | KafkaError]: ...

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], allow_replication_factor_change: bool
    ) -> Mapping[TopicPartition, KafkaError | None]: ...

    def reassignments(self) -> dict[TopicPartition, ReplicaAssignment]: ...


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """The result of creating a topic. Without an error the topic exists or, with `validate_only`, could be created."""

    name: str
    error: KafkaError | None = None
    topic_id: Uuid = Uuid.ZERO
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)


class AdminManager:
    """Its methods call `on_wait` when a request goes into the purgatory, and `on_change` with the number of partitions before those of a
    topic are created or deleted; a KafkaError of `on_change` is the result of that topic. With a timeout of 0 or less the change is made
    without waiting for it: as in Kafka, the result is then REQUEST_TIMED_OUT."""

    def __init__(
        self,
        tree: TreeClient,
        admin_tree: AdminTree,
        metadata_cache: MetadataCache,
        controller: ActiveController,
        config: DynamicBrokerConfig,
        clock: Clock,
        purgatory: DelayedOperationPurgatory[Any],
        random: Random,
        turns: Turns | None = None,
    ) -> None:
        self._turns = turns  # of the event loop, between slices of a request with many topics
        self._tree = tree
        self._admin_tree = admin_tree
        self._cache = metadata_cache
        self._controller = controller
        self._clock = clock
        self._purgatory = purgatory
        self._random = random
        self._policy: CreateTopicPolicy | None = load_policy(config.current, CREATE_TOPIC_POLICY)
        self._planner = TopicPlanner(config, self._policy, random)
        self._marks: dict[str, DeletionMark] = {}
        metadata_cache.on_update.append(self._check_waiting)

    def shutdown(self) -> None:
        if self._policy is not None:
            self._policy.close()

    @_requires_session
    async def create_topics(
        self,
        topics: Sequence[CreatableTopic],
        timeout_ms: int,
        validate_only: bool = False,
        on_wait: Callable[[], None] = lambda: None,
        on_change: Callable[[int], None] = lambda partitions: None,
    ) -> list[TopicCreation]:
        """The results in the order of `topics`, whose names are unique."""
        self._check_controller()
        planned = await self._plan(topics)
        if not validate_only:
            planned = [_allowed(plan, on_change) for plan in planned]
        new = [plan for plan in planned if isinstance(plan, PlannedTopic)]
        if validate_only:
            ids: list[Uuid | KafkaError] = [Uuid.random(self._random) for _ in new]
        else:
            ids = []
            for part in slices(new, CREATED_PER_SLICE):  # the controller handles each part separately
                ids += await self._admin_tree.create_topics(part)
                if self._turns is not None and len(ids) < len(new):
                    await self._turns.next("CreateTopics")
        outcomes = {plan.name: _creation(plan, topic_id) for plan, topic_id in zip(new, ids, strict=True)}
        created = {name: list(outcome.assignment) for name, outcome in outcomes.items() if outcome.error is None}
        late = frozenset() if validate_only else await self._until_led(created, timeout_ms, on_wait)
        outcomes |= {name: TopicCreation(name, RequestTimedOut()) for name in late}
        return [
            outcomes[topic.name] if isinstance(plan, PlannedTopic) else TopicCreation(topic.name, plan)
            for topic, plan in zip(topics, planned, strict=True)
        ]

    @_requires_session
    async def delete_topics(
        self,
        names: Sequence[str],
        timeout_ms: int,
        on_wait: Callable[[], None] = lambda: None,
        on_change: Callable[[int], None] = lambda partitions: None,
    ) -> dict[str, KafkaError | None]:
        """An error, or None, by name. Also waits for a topic whose deletion was already requested."""
        self._check_controller()
        existing = await self._admin_tree.topic_names()
        outcomes: dict[str, KafkaError | None] = {
            name: None if name in existing else UnknownTopicOrPartition("This server does not host this topic-partition.") for name in names
        }
        for name, error in outcomes.items():
            if error is None:
                outcomes[name] = _refusal(on_change, self._cache.partition_count(name) or 0)
        deletable = [name for name, error in outcomes.items() if error is None]
        if not deletable:
            return outcomes
        marks = await self._mark(deletable)
        if timeout_ms <= 0:
            late = frozenset(deletable)
        else:
            done: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
            late = await self._wait(DelayedDeleteTopics(timeout_ms, marks, self._cache, done), done, on_wait)
        return outcomes | dict.fromkeys(late, RequestTimedOut())

    @_requires_session
    async def create_partitions(
        self,
        topics: Sequence[CreatePartitionsTopic],
        timeout_ms: int,
        validate_only: bool = False,
        on_wait: Callable[[], None] = lambda: None,
        on_change: Callable[[int], None] = lambda partitions: None,
    ) -> dict[str, KafkaError | None]:
        """An error, or None, by name. The names in `topics` are unique."""
        self._check_controller()
        existing = await self._admin_tree.topic_names()
        outcomes: dict[str, KafkaError | None] = {}
        grown: dict[str, Sequence[int]] = {}
        allowed = PARTITIONS_PER_REQUEST_MAX
        for index, topic in enumerate(topics):
            await self._take_turns(index)
            try:
                if existing.is_marked_for_deletion(topic.name):
                    raise InvalidTopic("The topic is queued for deletion.")
                if topic.name not in existing:
                    raise UnknownTopicOrPartition
                new, grown[topic.name] = await self._add_partitions(topic, allowed, validate_only, on_change)
                allowed -= new
                outcomes[topic.name] = None
            except KafkaError as error:
                outcomes[topic.name] = error
        late = frozenset() if validate_only else await self._until_led(grown, timeout_ms, on_wait)
        return outcomes | dict.fromkeys(late, RequestTimedOut())

    async def elect_leaders(
        self,
        partitions: Sequence[TopicPartition],
        strategy: ElectionStrategy,
        timeout_ms: int,
        on_wait: Callable[[], None] = lambda: None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """An error, or None, by partition. Raises RequestTimedOut, without an election, for a timeout of 0 or less."""
        self._check_controller()
        if timeout_ms <= 0:
            raise RequestTimedOut
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        leaders: dict[TopicPartition, int] = {}
        outcomes: dict[TopicPartition, KafkaError | None] = dict.fromkeys(partitions, NotController(_NOT_CONTROLLER))
        for partition, outcome in (await self._controller.elect_leaders(partitions, strategy)).items():
            if isinstance(outcome, KafkaError):
                outcomes[partition] = outcome
            else:
                leaders[partition] = outcome
                outcomes[partition] = None
        late = await self._until_led_by(leaders, max(0, deadline_ms - self._clock.monotonic_ms()), on_wait)
        return outcomes | dict.fromkeys(late, RequestTimedOut())

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], allow_replication_factor_change: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """An error, or None, by partition. Raises NotController."""
        self._check_controller()
        outcomes: dict[TopicPartition, KafkaError | None] = dict.fromkeys(targets, NotController(_NOT_CONTROLLER))
        outcomes.update(await self._controller.alter_reassignments(targets, allow_replication_factor_change))
        return outcomes

    def list_reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions that are being reassigned. Raises NotController."""
        self._check_controller()
        return self._controller.reassignments()

    async def _take_turns(self, index: int) -> None:
        """Called for each topic of a request: after TOPICS_PER_SLICE topics, other work gets its turn."""
        if self._turns is not None and index % TOPICS_PER_SLICE == TOPICS_PER_SLICE - 1:
            await self._turns.next("CreateTopics")

    def _check_controller(self) -> None:
        if not self._controller.is_active:
            raise NotController(_NOT_CONTROLLER)

    async def _plan(self, topics: Sequence[CreatableTopic]) -> list[PlannedTopic | KafkaError]:
        """The plan of each topic, or an error. The name of a planned topic counts as existing for the topics after it."""
        try:
            self._planner.check_total(topics)
        except KafkaError as error:
            return [error] * len(topics)
        names = await self._admin_tree.topic_names()
        brokers = self._brokers()
        planned: list[PlannedTopic | KafkaError] = []
        for index, topic in enumerate(topics):
            await self._take_turns(index)
            try:
                plan = self._planner.new_topic(topic, names, brokers)
                names.add(plan.name)
                planned.append(plan)
            except KafkaError as error:
                if isinstance(error, PolicyViolation):
                    _log.info("Topic %s is not created: %s", topic.name, error)
                planned.append(error)
            except Exception as error:  # a policy is code of the operator and may raise anything
                _log.exception("The check of new topic %s failed", topic.name)
                planned.append(KafkaError(str(error)))
        return planned

    async def _add_partitions(
        self, request: CreatePartitionsTopic, allowed: int, validate_only: bool, on_change: Callable[[int], None]
    ) -> tuple[int, list[int]]:
        """The number of added partitions, and all partitions of the topic."""
        brokers = self._brokers()
        added: Assignment = {}

        def plan(topic: TopicAssignment) -> Assignment:
            nonlocal added
            is_first_attempt = not added
            added = self._planner.new_partitions(request, topic, brokers, allowed)
            if is_first_attempt and not validate_only:
                on_change(len(added))
            return added

        topic = await self._admin_tree.add_partitions(request.name, plan, validate_only=validate_only)
        return len(added), list(topic.partitions)

    async def _mark(self, names: Sequence[str]) -> dict[str, DeletionMark]:
        """Marks the topics for deletion and watches their marks, which the controller deletes last."""
        for name in names:
            if name not in self._marks:
                mark = self._marks[name] = DeletionMark(paths.delete_topic(name), partial(self._deleted, name))
                self._tree.register_change_handler(mark)
        marks = {name: self._marks[name] for name in names}
        await self._admin_tree.delete_topics(names)
        for name, answer in zip(names, await self._tree.handle([Exists(mark.path) for mark in marks.values()]), strict=True):
            if answer.value is None:
                marks[name].handle_deletion()
        return marks

    def _deleted(self, name: str) -> None:
        self._marks.pop(name, None)
        self._tree.unregister_change_handler(paths.delete_topic(name))
        self._check_waiting()

    async def _until_led(self, partitions: Mapping[str, Sequence[int]], timeout_ms: int, on_wait: Callable[[], None]) -> frozenset[str]:
        """Waits until the partitions have leaders. Returns the topics with a leaderless partition at the timeout."""
        if not partitions or timeout_ms <= 0:
            return frozenset(partitions)
        done: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
        return await self._wait(DelayedCreatePartitions(timeout_ms, partitions, self._cache, done), done, on_wait)

    async def _until_led_by(
        self, leaders: Mapping[TopicPartition, int], timeout_ms: int, on_wait: Callable[[], None]
    ) -> frozenset[TopicPartition]:
        if not leaders:
            return frozenset()
        done: asyncio.Future[frozenset[TopicPartition]] = asyncio.get_running_loop().create_future()
        return await self._wait(DelayedElectLeaders(timeout_ms, leaders, self._cache, done), done, on_wait)

    async def _wait(
        self, operation: DelayedAdmin[Key], done: asyncio.Future[frozenset[Key]], on_wait: Callable[[], None]
    ) -> frozenset[Key]:
        if not self._purgatory.try_complete_else_watch(operation, (_METADATA,), self._clock.monotonic_ms()):
            on_wait()
        return await done

    def _check_waiting(self) -> None:
        self._purgatory.check_and_complete(_METADATA)

    def _brokers(self) -> list[BrokerMetadata]:
        cordoned = self._controller.cordoned_brokers
        return [BrokerMetadata(broker.id, broker.rack, broker.id in cordoned) for broker in self._cache.alive_brokers()]


def _allowed(plan: PlannedTopic | KafkaError, on_change: Callable[[int], None]) -> PlannedTopic | KafkaError:
    if isinstance(plan, KafkaError):
        return plan
    return _refusal(on_change, len(plan.assignment)) or plan


def _refusal(on_change: Callable[[int], None], partitions: int) -> KafkaError | None:
    try:
        on_change(partitions)
    except KafkaError as error:
        return error
    return None


def _creation(plan: PlannedTopic, topic_id: Uuid | KafkaError) -> TopicCreation:
    if isinstance(topic_id, KafkaError):
        return TopicCreation(plan.name, topic_id)
    return TopicCreation(plan.name, None, topic_id, plan.assignment, plan.config)
