"""Handles brokers that start, stop, restart, change their registration, or lose a log directory, in Kafka's order.

The methods are steps, composed of the steps of the state machines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.controller import steps
from barnabas.controller.changes.reassignments import Reassignments
from barnabas.controller.channel import ControllerChannel
from barnabas.controller.context import ControllerContext, LeaderAndIsr, LiveBroker, PartitionAndReplica, PartitionStatus, ReplicaStatus
from barnabas.controller.events import LeaderAndIsrResponseReceived
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.states.topic_deletion import TopicDeletionManager
from barnabas.controller.steps import Steps
from barnabas.controller.watches import ControllerWatches
from barnabas.metadata import paths
from barnabas.metadata.tree import Exists
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class BrokerChanges:
    def __init__(
        self,
        context: ControllerContext,
        channel: ControllerChannel,
        watches: ControllerWatches,
        replica_states: ReplicaStateMachine,
        partition_states: PartitionStateMachine,
        deletion: TopicDeletionManager,
        reassignments: Reassignments,
        new_batch: Callable[[], RequestBatch],
    ) -> None:
        self._context = context
        self._channel = channel
        self._watches = watches
        self._replica_states = replica_states
        self._partition_states = partition_states
        self._deletion = deletion
        self._reassignments = reassignments
        self._new_batch = new_batch

    def send_update_metadata(self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        batch = self._new_batch()
        batch.add_update_metadata(broker_ids, partitions)
        batch.send()

    def watch_registrations(self, broker_ids: Sequence[int]) -> Steps[None]:
        for broker_id in broker_ids:
            self._watches.watch_broker(broker_id)
        if broker_ids:
            yield [Exists(paths.broker_id(broker_id)) for broker_id in broker_ids]

    def process_broker_change(self) -> Steps[None]:
        """A broker whose epoch has grown has restarted in the meantime: it *bounced* and has lost its in-memory state."""
        registered = {broker.broker_id: broker for broker in (yield from steps.read_brokers())}
        live = self._context.live_brokers
        new = [broker for broker_id, broker in registered.items() if broker_id not in live]
        dead = sorted(broker_id for broker_id in live if broker_id not in registered)
        bounced = [broker for broker_id, broker in registered.items() if broker_id in live and broker.epoch > live[broker_id].epoch]
        _log.info(
            "Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s, all live brokers: %s",
            [broker.broker_id for broker in new],
            dead,
            [broker.broker_id for broker in bounced],
            list(registered),
        )
        for broker_id in [*(broker.broker_id for broker in bounced), *dead]:
            self._channel.remove_broker(broker_id)
        for broker in [*new, *bounced]:
            self._channel.add_broker(broker.broker_id, broker.registration)
        if new:
            yield from self._bring_up(new)
        if bounced:
            yield from self._take_down([broker.broker_id for broker in bounced])
            yield from self._bring_up(bounced)
        if dead:
            yield from self._take_down(dead)

    def process_broker_modification(self, broker_id: int) -> Steps[None]:
        (registered,) = yield from steps.read_registrations([broker_id])
        live = self._context.live_brokers.get(broker_id)
        if registered is None or live is None:
            return
        before, after = live.registration, registered.registration
        if before.endpoints != after.endpoints or before.features != after.features:
            # Keeps the epoch: a greater one is a bounce, which process_broker_change must handle.
            self._context.add_live_broker(live._replace(registration=after))
            self.send_update_metadata(self._context.live_brokers)
        elif before.is_cordoned != after.is_cordoned:
            self._context.add_live_broker(live._replace(registration=after))

    def process_log_dir_events(self) -> Steps[None]:
        """Sends LeaderAndIsr for all replicas of the brokers: a replica in a failed log directory responds with KAFKA_STORAGE_ERROR."""
        names = yield from steps.read_children(paths.LOG_DIR_EVENT_NOTIFICATION)
        broker_ids = yield from steps.read_log_dir_events(names)
        if broker_ids:
            _log.info("Handling log directory failure for brokers %s", broker_ids)
        yield from self._replica_states.handle_state_changes(self._context.replicas_on_brokers(broker_ids), ReplicaStatus.ONLINE)
        yield from steps.delete_children(paths.LOG_DIR_EVENT_NOTIFICATION, names, self._context.epoch_version)

    def process_leader_and_isr_response(self, event: LeaderAndIsrResponseReceived) -> Steps[None]:
        response, broker_id = event.response, event.broker_id
        if response.error_code != ErrorCode.NONE:
            _log.error("Received error %d in LeaderAndIsr response from broker %d", response.error_code, broker_id)
            return
        before = self._context.replicas_on_offline_dirs.get(broker_id, set())
        now = set(before)
        for partition, error in self._errors(event):
            if error == ErrorCode.KAFKA_STORAGE_ERROR:
                now.add(partition)
            elif error == ErrorCode.NONE:
                now.discard(partition)
        self._context.replicas_on_offline_dirs[broker_id] = now
        lost = sorted(now - before)
        if lost:
            _log.info("Mark replicas %s on broker %d as offline", ",".join(map(str, lost)), broker_id)
            yield from self._replicas_become_offline([PartitionAndReplica(partition, broker_id) for partition in lost])

    def _errors(self, event: LeaderAndIsrResponseReceived) -> Iterable[tuple[TopicPartition, int]]:
        """The error codes by partition. Since version 5 the response has topic ids; topics deleted in the meantime are skipped."""
        for result in event.response.partition_errors:
            yield TopicPartition(result.topic_name, result.partition_index), result.error_code
        for topic in event.response.topics:
            name = self._context.topic_names.get(topic.topic_id)
            if name is not None:
                for topic_result in topic.partition_errors:
                    yield TopicPartition(name, topic_result.partition_index), topic_result.error_code

    def _bring_up(self, brokers: Sequence[LiveBroker]) -> Steps[None]:
        context = self._context
        for broker in brokers:
            context.add_live_broker(broker)
            context.replicas_on_offline_dirs.pop(broker.broker_id, None)
        started = [broker.broker_id for broker in brokers]
        # The other brokers only need the new brokers. The new brokers need all metadata, before the states of their replicas.
        self.send_update_metadata([broker_id for broker_id in context.live_brokers if broker_id not in started])
        self.send_update_metadata(started, context.partitions_with_leaders)
        held = context.replicas_on_brokers(started)
        yield from self._replica_states.handle_state_changes(held, ReplicaStatus.ONLINE)
        yield from self._partition_states.trigger_online()
        yield from self._reassignments.resume_on(started)
        yield from self._deletion.resume_deletion_for(dict.fromkeys(replica.partition.topic for replica in held))
        yield from self.watch_registrations(started)

    def _take_down(self, broker_ids: Sequence[int]) -> Steps[None]:
        self._context.remove_live_brokers(broker_ids)
        for broker_id in broker_ids:
            self._context.replicas_on_offline_dirs.pop(broker_id, None)
            self._context.shutting_down_broker_ids.discard(broker_id)
        yield from self._replicas_become_offline(self._context.replicas_on_brokers(broker_ids))
        self._watches.forget_brokers(broker_ids)

    def _replicas_become_offline(self, replicas: Sequence[PartitionAndReplica]) -> Steps[None]:
        context = self._context
        being_deleted = [replica for replica in replicas if context.is_topic_queued_for_deletion(replica.partition.topic)]
        others = [replica for replica in replicas if not context.is_topic_queued_for_deletion(replica.partition.topic)]
        yield from self._partition_states.handle_state_changes(context.partitions_with_offline_leader, PartitionStatus.OFFLINE)
        outcomes = yield from self._partition_states.trigger_online()
        yield from self._replica_states.handle_state_changes(others, ReplicaStatus.OFFLINE)
        yield from self._deletion.fail_replica_deletion(being_deleted)
        if not others and not any(isinstance(outcome, LeaderAndIsr) for outcome in outcomes.values()):
            # No state has changed, so no request was sent, but the brokers must still learn that this broker is down.
            self.send_update_metadata(context.live_brokers)
