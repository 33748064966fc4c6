"""The events of the controller, and the queue that orders them.

Watches, responses of brokers and requests of administrators only put events into the queue. One task processes them, one after the other,
so that no part of the controller sees a half-processed event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Final, Generic, Protocol, TypeVar

from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.topic_partition import TopicPartition

CLOSE_TIMEOUT_S: Final = 5.0

T = TypeVar("T")


class ControllerEvent:
    """A change that the controller processes. The future that `EventQueue.put` returns gets None when it was processed."""

    __slots__ = ()


class ControllerEventWithResult(ControllerEvent, Generic[T]):
    """An event whose processing gives a value of type T. The future gets that value, or None where this broker is not the active controller
    or the processing failed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Startup(ControllerEvent):
    """The first event: read /controller, and run for election if there is none."""


@dataclass(frozen=True, slots=True)
class ControllerChange(ControllerEvent):
    """/controller was created or changed."""


@dataclass(frozen=True, slots=True)
class Reelect(ControllerEvent):
    """/controller was deleted."""


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect(ControllerEvent):
    """A new session began. The old one took the broker's registration and /controller with it."""


@dataclass(frozen=True, slots=True)
class Expire(ControllerEvent):
    """The session expired: this broker is no longer the controller."""


@dataclass(frozen=True, slots=True)
class BrokerChange(ControllerEvent):
    """The children of /brokers/ids changed."""


@dataclass(frozen=True, slots=True)
class BrokerModifications(ControllerEvent):
    """The data of a registration changed, for example the broker's listeners."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange(ControllerEvent):
    """The children of /brokers/topics changed."""


@dataclass(frozen=True, slots=True)
class PartitionModifications(ControllerEvent):
    """The assignment of a topic changed."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletion(ControllerEvent):
    """The children of /admin/delete_topics changed."""


@dataclass(frozen=True, slots=True)
class IsrChangeNotification(ControllerEvent):
    """The children of /isr_change_notification changed: leaders with an old inter.broker.protocol.version write their ISR themselves."""


@dataclass(frozen=True, slots=True)
class LogDirEventNotification(ControllerEvent):
    """The children of /log_dir_event_notification changed: a log directory of a broker failed."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable(ControllerEvent):
    """unclean.leader.election.enable became true for one topic, or for all topics without their own value (None)."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ElectLeaders(ControllerEventWithResult[Mapping[TopicPartition, int | KafkaError]]):
    """ElectLeaders from an administrator. The result is the new leader of each partition, or the error that kept it from changing."""

    partitions: Sequence[TopicPartition]
    strategy: ElectionStrategy


@dataclass(frozen=True, slots=True)
class AlterReassignments(ControllerEventWithResult[Mapping[TopicPartition, KafkaError | None]]):
    """AlterPartitionReassignments from an administrator; a target of None cancels the reassignment. The result is an error, or None, for
    each partition."""

    targets: Mapping[TopicPartition, Sequence[int] | None]
    allow_replication_factor_change: bool


@dataclass(frozen=True, slots=True)
class ReassignmentNodeChange(ControllerEvent):
    """/admin/reassign_partitions was created: older tools request reassignments there."""


@dataclass(frozen=True, slots=True)
class PreferredElectionNodeChange(ControllerEvent):
    """/admin/preferred_replica_election was created: older tools request elections there."""


@dataclass(frozen=True, slots=True)
class AlterPartitionReceived(ControllerEventWithResult[AlterPartitionResponse]):
    """AlterPartition: a leader proposes an ISR."""

    request: AlterPartitionRequest
    version: int


@dataclass(frozen=True, slots=True)
class ControlledShutdown(ControllerEventWithResult[list[TopicPartition] | ErrorCode]):
    """ControlledShutdown: a broker is about to stop. The result is the list of partitions that it still leads, or an error."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection(ControllerEvent):
    """The periodic check of auto.leader.rebalance.enable: which brokers lead too few of their preferred partitions."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived(ControllerEvent):
    response: LeaderAndIsrResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived(ControllerEvent):
    response: UpdateMetadataResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(ControllerEvent):
    """The response to a StopReplica with deletion: the error code of the request, and that of each partition of a topic being deleted."""

    broker_id: int
    request_error: int
    partition_errors: Mapping[TopicPartition, int]


class EventTimes(Protocol):
    """Receives the times of events, in nanoseconds."""

    def event_begins(self, event: ControllerEvent, waited_ns: int) -> None: ...

    def event_ends(self, event: ControllerEvent, took_ns: int) -> None: ...


class EventQueue:
    """`process` gives the result of an event. Every event gets a future that has this result once the event was processed, and that is
    cancelled when the event was preempted."""

    def __init__(self, process: Callable[[ControllerEvent], Awaitable[Any]], times: EventTimes | None = None) -> None:
        self._process = process
        self._times = times
        self._waiting: deque[tuple[ControllerEvent, asyncio.Future[Any], int]] = deque()  # with the time of `put`
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._processing = False

    @property
    def is_idle(self) -> bool:
        """Whether the queue is empty and no event is being processed."""
        return not self._waiting and not self._processing

    def __len__(self) -> int:
        """The number of events that wait."""
        return len(self._waiting)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controller-events")

    def put(self, event: ControllerEvent) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._closed:
            done.cancel()
            return done
        self._waiting.append((event, done, perf_counter_ns()))
        self._arrived.set()
        return done

    def clear_and_put(self, event: ControllerEvent) -> asyncio.Future[Any]:
        """Cancels the waiting events, which no longer apply, and puts this one."""
        self._preempt()
        return self.put(event)

    async def close(self) -> None:
        """Cancels the waiting events. Waits for the event being processed, for CLOSE_TIMEOUT_S at most."""
        self._closed = True
        self._preempt()
        self._arrived.set()
        if self._task is not None:
            _, pending = await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_S)
            for task in pending:
                task.cancel()
                await asyncio.wait([task])
            self._task = None

    def _preempt(self) -> None:
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    async def _run(self) -> None:
        while not self._closed:
            while self._waiting:
                event, done, put_ns = self._waiting.popleft()
                self._processing = True
                result = await self._timed(event, put_ns)
                self._processing = False
                if not done.done():
                    done.set_result(result)
            self._arrived.clear()
            if not self._closed:
                await self._arrived.wait()

    async def _timed(self, event: ControllerEvent, put_ns: int) -> Any:
        if self._times is None:
            return await self._process(event)
        began_ns = perf_counter_ns()
        self._times.event_begins(event, began_ns - put_ns)
        result = await self._process(event)
        self._times.event_ends(event, perf_counter_ns() - began_ns)
        return result
