"""The controller of the cluster. Every broker has one: one controller is active, the others wait for the deletion of /controller.

It works between the metadata store and the brokers. A `Term` decides what to do, in steps. `Controller` runs the steps, and is the only
part of the controller that awaits the metadata store. Events are processed one at a time. Not thread-safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeVar

from barnabas.controller import steps
from barnabas.controller.channel import ControllerChannel
from barnabas.controller.config import ControllerConfig
from barnabas.controller.context import INITIAL_CONTROLLER_EPOCH, ControllerContext
from barnabas.controller.controller_metrics import ControllerMetrics, ControllerState
from barnabas.controller.elections import ElectionStrategy
from barnabas.controller.events import (
    AlterPartitionReceived,
    AlterReassignments,
    AutoPreferredReplicaLeaderElection,
    ControlledShutdown,
    ControllerChange,
    ControllerEvent,
    ControllerEventWithResult,
    ElectLeaders,
    EventQueue,
    Expire,
    Reelect,
    RegisterBrokerAndReelect,
    Startup,
    UncleanLeaderElectionEnable,
)
from barnabas.controller.steps import ControllerMoved, Steps
from barnabas.controller.term import Term
from barnabas.controller.watches import ControllerWatches
from barnabas.errors import KafkaError
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.tree import TreeRequest, TreeResponse
from barnabas.metadata.znodes.topics import ReplicaAssignment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.topic_partition import TopicPartition

__all__ = ["Controller", "ControllerConfig"]

T = TypeVar("T")

NO_CONTROLLER: Final = -1
REQUESTS_AT_ONCE: Final = 500  # per batch to the metadata store; other work on the event loop runs between two batches
FIRST_REBALANCE_S: Final = 5.0  # after a failover
FAILED_FAILOVER_BACKOFF_S: Final = 0.1  # before /controller is deleted, so that failovers that cannot succeed do not become a busy loop

_log = logging.getLogger(__name__)


class WallClock(Protocol):
    def now_ms(self) -> int: ...


class Controller:
    """`register_broker` registers this broker in a new session with the metadata store, after the old session expired."""

    def __init__(
        self,
        *,
        broker_id: int,
        tree: TreeClient,
        channel: ControllerChannel,
        config: ControllerConfig,
        clock: WallClock,
        random: Random,
        register_broker: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.controller_id = NO_CONTROLLER
        self._tree = tree
        self._channel = channel
        self._clock = clock
        self._random = random
        self._register_broker = register_broker
        self._term: Term | None = None
        self.metrics = ControllerMetrics()
        self._events = EventQueue(self._process, self.metrics)
        self._watches = ControllerWatches(tree, self._events.put)
        self._session_handler = SessionHandler(self._events)
        self._rebalance: asyncio.TimerHandle | None = None

    @property
    def is_active(self) -> bool:
        """Whether this broker is the active controller. /controller may also name it from before a restart, without a term."""
        return self._term is not None and self.controller_id == self.broker_id

    @property
    def epoch(self) -> int:
        """The controller epoch if this broker is the active controller, else 0."""
        return self._term.context.epoch if self._term is not None else INITIAL_CONTROLLER_EPOCH

    @property
    def context(self) -> ControllerContext | None:
        """The context of the active controller, read only. None if this broker is not active."""
        return self._term.context if self._term is not None else None

    @property
    def queued_events(self) -> int:
        """Events that wait for their processing."""
        return len(self._events)

    @property
    def unclean_elections(self) -> int:
        """Leaders elected outside of the ISR by this broker since its start."""
        context = self.context
        return self.metrics.past_unclean_elections + (0 if context is None else context.unclean_leader_elections)

    @property
    def cordoned_brokers(self) -> frozenset[int]:
        """The live brokers that get no new replicas; none if this broker is not active."""
        if self._term is None:
            return frozenset()
        return frozenset(broker_id for broker_id, broker in self._term.context.live_brokers.items() if broker.registration.is_cordoned)

    async def start(self) -> None:
        """Returns when this broker is the active controller, or another broker is."""
        self._tree.register_state_change_handler(self._session_handler)
        self._watches.watch_controller()
        self._events.start()
        await settled(self._events.put(Startup()))

    async def shutdown(self) -> None:
        """To be called before the session is closed, which deletes /controller, so that another broker is elected."""
        self._tree.unregister_state_change_handler(self._session_handler.name)
        self._watches.forget_controller()
        await self._events.close()
        self.controller_id = NO_CONTROLLER
        self._resign()

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return self._term is not None and self._term.context.is_topic_queued_for_deletion(topic)

    def enable_unclean_leader_election(self, topic: str | None = None) -> None:
        """Called when unclean.leader.election.enable became true for a topic, or for all: elects leaders for offline partitions."""
        self._events.put(UncleanLeaderElectionEnable(topic))

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy
    ) -> Mapping[TopicPartition, int | KafkaError]:
        """The new leader of each partition, or an error. Control requests are sent, but brokers may not have handled them yet. The result
        is empty if this broker is not the active controller."""
        return await self._result_of(ElectLeaders(partitions, strategy)) or {}

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], allow_replication_factor_change: bool = True
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Reassigns partitions to these brokers, or cancels a reassignment (None). Returns an error, or None, by partition; empty if this
        broker is not the active controller."""
        return await self._result_of(AlterReassignments(targets, allow_replication_factor_change)) or {}

    def reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions that are being reassigned; empty if this broker is not the active controller."""
        context = self.context
        if context is None:
            return {}
        self.metrics.record(ControllerState.LIST_PARTITION_REASSIGNMENT, 0)  # read from the context, without an event
        return {partition: context.assignment(partition) for partition in context.partitions_being_reassigned}

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Handles the ISR that a leader proposes. NOT_CONTROLLER if this broker is not the active controller."""
        response = await self._result_of(AlterPartitionReceived(request, version))
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER) if response is None else response

    async def shut_down_broker(self, broker_id: int, broker_epoch: int) -> list[TopicPartition] | ErrorCode:
        """Moves the leaders of a broker away before it stops. Returns the partitions that no other broker can lead, or an error."""
        remaining = await self._result_of(ControlledShutdown(broker_id, broker_epoch))
        return ErrorCode.NOT_CONTROLLER if remaining is None else remaining

    async def _result_of(self, event: ControllerEventWithResult[T]) -> T | None:
        """None where this broker is not the active controller, or the event was preempted or failed."""
        return await settled(self._events.put(event))

    async def _process(self, event: ControllerEvent) -> Any:
        result = None
        try:
            result = await self._dispatch(event)
            if result is not None and self._term is not None:
                await self._run(self._term.complete(event, result))
        except ControllerMoved as moved:
            _log.info("Controller moved to another broker when processing %s: %s", event, moved)
            await self._resign_if_moved(event)
        except SessionExpired:
            _log.warning("The session with the metadata store ended while processing %s: the next controller processes it", event)
        except Exception:
            _log.exception("Error processing event %s", event)
        return result

    async def _resign_if_moved(self, event: ControllerEvent) -> None:
        try:
            await self._maybe_resign()
        except SessionExpired:
            pass  # the Expire event resigns
        except Exception:
            _log.exception("Error while resigning, after %s", event)

    async def _dispatch(self, event: ControllerEvent) -> Any:
        match event:
            case Startup() | Reelect():
                await self._maybe_resign()
                await self._elect()
            case RegisterBrokerAndReelect():
                if self._register_broker is not None:
                    await self._register_broker()
                await self._maybe_resign()
                await self._elect()
            case ControllerChange():
                await self._maybe_resign()
            case Expire():
                self.controller_id = NO_CONTROLLER
                self._resign()
            case _:
                if self._term is not None and self.is_active:
                    return await self._run(self._term.process(event))
        return None

    async def _elect(self) -> None:
        self.controller_id = await self._run(steps.read_controller_id())
        if self.controller_id != NO_CONTROLLER:
            _log.debug("Broker %d has been elected as the controller, so stopping the election process.", self.controller_id)
            return
        try:
            epoch, version = await self._run(steps.register_controller(self.broker_id, self._clock.now_ms()))
            _log.info("%d successfully elected as the controller. Epoch incremented to %d", self.broker_id, epoch)
            context = ControllerContext(epoch=epoch, epoch_version=version)
            self._term = Term(self.broker_id, context, self.config, self._tree, self._channel, self._events.put, self._random)
            self.controller_id = self.broker_id
            await self._run(self._term.fail_over())
            self._plan_rebalance(FIRST_REBALANCE_S)
        except ControllerMoved:
            await self._maybe_resign()
            if self.controller_id != NO_CONTROLLER:
                _log.debug("Broker %d was elected as controller instead of broker %d", self.controller_id, self.broker_id)
            else:
                _log.warning("A controller has been elected but just resigned, this will result in another round of election")
        except SessionExpired:
            raise  # /controller is deleted with the session, so there is nothing to give up
        except Exception:
            _log.exception("Error while electing or becoming controller on broker %d. Trigger controller movement", self.broker_id)
            await self._trigger_move()

    def _plan_rebalance(self, delay_s: float) -> None:
        if self.config.auto_leader_rebalance_enable:
            self._rebalance = asyncio.get_running_loop().call_later(delay_s, self._rebalance_now)

    def _rebalance_now(self) -> None:
        self._events.put(AutoPreferredReplicaLeaderElection())
        self._plan_rebalance(self.config.leader_imbalance_check_interval_s)

    async def _trigger_move(self) -> None:
        """Deletes /controller after a failed failover, so that another broker, or this one in a new term, can be elected."""
        self.controller_id = await self._run(steps.read_controller_id())
        if not self.is_active or self._term is None:
            self._resign()
            return
        version = self._term.context.epoch_version
        self.controller_id = NO_CONTROLLER
        self._resign()
        await asyncio.sleep(FAILED_FAILOVER_BACKOFF_S)
        try:
            await self._run(steps.delete_paths([paths.CONTROLLER], version))
        except ControllerMoved:
            _log.warning("Controller has already moved when trying to trigger controller movement")

    async def _maybe_resign(self) -> None:
        was_active = self.is_active
        await self._tree.exists(paths.CONTROLLER)  # sets the watch, also if /controller does not exist
        self.controller_id = await self._run(steps.read_controller_id())
        if was_active and not self.is_active:
            self._resign()

    def _resign(self) -> None:
        if self._rebalance is not None:
            self._rebalance.cancel()
            self._rebalance = None
        if self._term is not None:
            _log.info("Resigned as the controller of epoch %d", self._term.context.epoch)
            self.metrics.past_unclean_elections += self._term.context.unclean_leader_elections
            self._term.end()
            self._term = None

    async def _run(self, work: Steps[T]) -> T:
        try:
            requests = next(work)
            while True:
                requests = work.send(await self._send(requests))
        except StopIteration as finished:
            result: T = finished.value
            return result

    async def _send(self, requests: Sequence[TreeRequest[Any]]) -> list[TreeResponse[Any]]:
        if not requests:
            await asyncio.sleep(0)
            return []
        responses = await self._tree.handle(requests[:REQUESTS_AT_ONCE])
        for start in range(REQUESTS_AT_ONCE, len(requests), REQUESTS_AT_ONCE):
            await asyncio.sleep(0)
            responses += await self._tree.handle(requests[start : start + REQUESTS_AT_ONCE])
        return responses


class SessionHandler:
    """An expired session deletes /controller: the controller resigns before the next session, and runs for election in it."""

    name: Final = "controller-state-change-handler"

    def __init__(self, events: EventQueue) -> None:
        self._events = events

    async def before_initializing_session(self) -> None:
        await settled(self._events.clear_and_put(Expire()))

    async def after_initializing_session(self) -> None:
        await settled(self._events.put(RegisterBrokerAndReelect()))


async def settled(event: asyncio.Future[T]) -> T | None:
    """Waits until the event was processed: its result, or None where another event preempted it."""
    await asyncio.wait([event])
    return None if event.cancelled() else event.result()
