"""Everything that can happen to a controller, and the one queue through which it happens.

Watches, answers of brokers and requests of administrators only put events here; one task takes them out, one at a time and each to its end,
so that nothing in the controller ever sees another thing half done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.topic_partition import TopicPartition

CLOSE_TIMEOUT_S: Final = 5.0


class Event:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Startup(Event):
    """The first: look who is the controller, and try to become it."""


@dataclass(frozen=True, slots=True)
class ControllerChange(Event):
    """/controller was created or changed."""


@dataclass(frozen=True, slots=True)
class Reelect(Event):
    """/controller is gone."""


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect(Event):
    """A new session: the broker's registration and /controller went with the old one."""


@dataclass(frozen=True, slots=True)
class Expire(Event):
    """The session is gone, and with it the right to be the controller."""


@dataclass(frozen=True, slots=True)
class BrokerChange(Event):
    """Children of /brokers/ids."""


@dataclass(frozen=True, slots=True)
class BrokerModifications(Event):
    """A registration has other data: the broker's listeners changed."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange(Event):
    """Children of /brokers/topics."""


@dataclass(frozen=True, slots=True)
class PartitionModifications(Event):
    """A topic's assignment has other data."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletion(Event):
    """Children of /admin/delete_topics."""


@dataclass(frozen=True, slots=True)
class IsrChangeNotification(Event):
    """Children of /isr_change_notification: leaders of an old inter.broker.protocol.version wrote states by themselves."""


@dataclass(frozen=True, slots=True)
class LogDirEventNotification(Event):
    """Children of /log_dir_event_notification: brokers lost a log directory."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable(Event):
    """unclean.leader.election.enable became true for one topic, or for all that do not say otherwise."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ElectLeaders(Event):
    """An administrator asks for other leaders. `outcomes` gets the leader of each partition, or why it has no other one; it stays empty
    where the event is preempted, or this broker is not the controller any more."""

    partitions: Sequence[TopicPartition]
    strategy: ElectionStrategy
    outcomes: dict[TopicPartition, int | KafkaError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterReassignments(Event):
    """An administrator moves partitions to other brokers, or takes that back with None. `outcomes` as above."""

    targets: Mapping[TopicPartition, Sequence[int] | None]
    allow_replication_factor_change: bool
    outcomes: dict[TopicPartition, KafkaError | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReassignmentNodeChange(Event):
    """/admin/reassign_partitions was created: tools of old ask for a reassignment there."""


@dataclass(frozen=True, slots=True)
class PreferredElectionNodeChange(Event):
    """/admin/preferred_replica_election was created: the same for elections."""


@dataclass(frozen=True, slots=True)
class AlterPartitionReceived(Event):
    """A leader proposes in-sync replicas. `answers` gets the response; it stays empty where this broker is not the controller any more."""

    request: AlterPartitionRequest
    version: int
    answers: list[AlterPartitionResponse] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ControlledShutdown(Event):
    """A broker is about to stop. `answers` gets the partitions it still leads, or an error; likewise."""

    broker_id: int
    broker_epoch: int
    answers: list[list[TopicPartition] | ErrorCode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection(Event):
    """auto.leader.rebalance.enable: it is time to look which brokers lead too little of what they should."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived(Event):
    response: LeaderAndIsrResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived(Event):
    response: UpdateMetadataResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(Event):
    """A broker's answer to StopReplica with deletion: an error code of the whole, and one of each partition of a topic being deleted."""

    broker_id: int
    request_error: int
    partition_errors: Mapping[TopicPartition, int]


class EventQueue:
    """Every event gets a future that is done when the event was processed, and cancelled when it was preempted."""

    def __init__(self, process: Callable[[Event], Awaitable[None]]) -> None:
        self._process = process
        self._waiting: deque[tuple[Event, asyncio.Future[None]]] = deque()
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

    def put(self, event: Event) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._closed:
            done.cancel()
            return done
        self._waiting.append((event, done))
        self._arrived.set()
        return done

    def clear_and_put(self, event: Event) -> asyncio.Future[None]:
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
                await self._process(event)
                self._processing = False
                if not done.done():
                    done.set_result(None)
            self._arrived.clear()
            if not self._closed:
                await self._arrived.wait()
