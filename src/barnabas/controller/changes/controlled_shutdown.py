"""ControlledShutdown: moves the leaders of a broker away before it stops, and removes its replicas from their ISRs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from barnabas.controller.context import ControllerContext, PartitionAndReplica, PartitionStatus, ReplicaStatus
from barnabas.controller.elections import ElectionStrategy
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.steps import Steps
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

_UNKNOWN_EPOCH: Final = -1

_log = logging.getLogger(__name__)


class ControlledShutdowns:
    def __init__(
        self,
        context: ControllerContext,
        partition_states: PartitionStateMachine,
        replica_states: ReplicaStateMachine,
        new_batch: Callable[[], RequestBatch],
    ) -> None:
        self._context = context
        self._partition_states = partition_states
        self._replica_states = replica_states
        self._new_batch = new_batch

    def shut_down(self, broker_id: int, broker_epoch: int) -> Steps[list[TopicPartition] | ErrorCode]:
        """Returns the partitions that the broker still leads, because no other replica can, or an error."""
        context = self._context
        broker = context.live_brokers.get(broker_id)
        if broker is None:
            _log.warning("Broker %d requests a controlled shutdown, but is not registered", broker_id)
            return ErrorCode.BROKER_NOT_AVAILABLE
        if broker_epoch != _UNKNOWN_EPOCH and broker_epoch < broker.epoch:
            _log.warning(
                "Broker %d requested a controlled shutdown in epoch %d, but has restarted with epoch %d since",
                broker_id,
                broker_epoch,
                broker.epoch,
            )
            return ErrorCode.STALE_BROKER_EPOCH
        context.shutting_down_broker_ids.add(broker_id)
        led, followed = self._held(broker_id)
        _log.info("Broker %d shuts down: it leads %d partitions and follows %d", broker_id, len(led), len(followed))
        yield from self._partition_states.handle_state_changes(led, PartitionStatus.ONLINE, ElectionStrategy.CONTROLLED_SHUTDOWN)
        batch = self._new_batch()
        for partition in followed:
            batch.add_stop_replica(broker_id, partition, delete=False)
        batch.send()
        yield from self._replica_states.handle_state_changes(
            [PartitionAndReplica(partition, broker_id) for partition in followed], ReplicaStatus.OFFLINE
        )
        return self._held(broker_id)[0]

    def _held(self, broker_id: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """The partitions that a broker leads and follows, of those with other replicas."""
        context = self._context
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for partition, _ in context.replicas_on_brokers((broker_id,)):
            state = context.leadership.get(partition)
            if state is None or len(context.replicas(partition)) < 2 or context.is_topic_queued_for_deletion(partition.topic):
                continue
            (led if state.leader == broker_id else followed).append(partition)
        return led, followed
