"""Everything that can happen to a controller, and the one queue through which it happens.

Watches, answers of brokers and requests of administrators only put events here; one task takes them out, one at a time and each to its end,
so that nothing in the controller ever sees another thing half done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

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
    """The first: look who is the controller, and try to become it."""


@dataclass(frozen=True, slots=True)
class ControllerChange(ControllerEvent):
    """/controller was created or changed."""


@dataclass(frozen=True, slots=True)
class Reelect(ControllerEvent):
    """/controller is gone."""


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect(ControllerEvent):
    """A new session: the broker's registration and /controller went with the old one."""


@dataclass(frozen=True, slots=True)
class Expire(ControllerEvent):
    """The session is gone, and with it the right to be the controller."""


@dataclass(frozen=True, slots=True)
class BrokerChange(ControllerEvent):
    """Children of /brokers/ids."""


@dataclass(frozen=True, slots=True)
class BrokerModifications(ControllerEvent):
    """A registration has other data: the broker's listeners changed."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange(ControllerEvent):
    """Children of /brokers/topics."""


@dataclass(frozen=True, slots=True)
class PartitionModifications(ControllerEvent):
    """A topic's assignment has other data."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletion(ControllerEvent):
    """Children of /admin/delete_topics."""


@dataclass(frozen=True, slots=True)
class IsrChangeNotification(ControllerEvent):
    """Children of /isr_change_notification: leaders of an old inter.broker.protocol.version wrote states by themselves."""


@dataclass(frozen=True, slots=True)
class LogDirEventNotification(ControllerEvent):
    """Children of /log_dir_event_notification: brokers lost a log directory."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable(ControllerEvent):
    """unclean.leader.election.enable became true for one topic, or for all that do not say otherwise."""

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
    """/admin/reassign_partitions was created: tools of old ask for a reassignment there."""


@dataclass(frozen=True, slots=True)
class PreferredElectionNodeChange(ControllerEvent):
    """/admin/preferred_replica_election was created: the same for elections."""


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
    """auto.leader.rebalance.enable: it is time to look which brokers lead too little of what they should."""


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
    """A broker's answer to StopReplica with deletion: an error code of the whole, and one of each partition of a topic being deleted."""

    broker_id: int
    request_error: int
    partition_errors: Mapping[TopicPartition, int]


class EventQueue:
    """`process` gives the result of an event. Every event gets a future that has this result once the event was processed, and that is
    cancelled when the event was preempted."""

    def __init__(self, process: Callable[[ControllerEvent], Awaitable[Any]]) -> None:
        self._process = process
        self._waiting: deque[tuple[ControllerEvent, asyncio.Future[Any]]] = deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._processing = False

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is in process: what has happened so far has been dealt with."""
        return not self._waiting and not self._processing

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controller-events")

    def put(self, event: ControllerEvent) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._closed:
            done.cancel()
            return done
        self._waiting.append((event, done))
        self._arrived.set()
        return done

    def clear_and_put(self, event: ControllerEvent) -> asyncio.Future[Any]:
        """What waits is void and will not happen: its reason is gone."""
        self._preempt()
        return self.put(event)

    async def close(self) -> None:
        """The event in process comes to its end, unless the tree leaves it waiting for too long; those that wait are preempted."""
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
                event, done = self._waiting.popleft()
                self._processing = True
                result = await self._process(event)
                self._processing = False
                if not done.done():
                    done.set_result(result)
            self._arrived.clear()
            if not self._closed:
                await self._arrived.wait()
