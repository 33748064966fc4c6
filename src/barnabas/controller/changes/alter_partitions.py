"""AlterPartition (KIP-497): a leader proposes a new ISR to the controller.

The controller validates the ISR against its context, writes it with the znode version that the leader knows, and sends UpdateMetadata to
all brokers. A proposal of a former leader, for an older state, or with a replica that cannot be in sync is rejected, for its partition
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr
from barnabas.controller.steps import Steps
from barnabas.metadata.znodes.topics import RECOVERED, RECOVERING
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import alter_partition_request as requests
from barnabas.protocol.messages import alter_partition_response as responses
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_TOPIC_IDS_SINCE: Final = 2
_EPOCHS_OF_REPLICAS_SINCE: Final = 3
_UNKNOWN_EPOCH: Final = -1

_log = logging.getLogger(__name__)

Outcome = LeaderAndIsr | ErrorCode


class AlterPartitions:
    """`send_metadata` sends UpdateMetadata with the states of partitions to all brokers."""

    def __init__(self, context: ControllerContext, send_metadata: Callable[[Iterable[TopicPartition]], None]) -> None:
        self._context = context
        self._send_metadata = send_metadata

    def alter(self, request: requests.AlterPartitionRequest, version: int) -> Steps[responses.AlterPartitionResponse]:
        broker = self._context.live_brokers.get(request.broker_id)
        if broker is None or (request.broker_epoch != broker.epoch and request.broker_epoch != _UNKNOWN_EPOCH):
            _log.info("Ignoring AlterPartition of broker %d in epoch %d", request.broker_id, request.broker_epoch)
            return responses.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        outcomes: dict[tuple[Uuid, TopicPartition], Outcome] = {}
        accepted: dict[TopicPartition, LeaderAndIsr] = {}
        keys: dict[TopicPartition, tuple[Uuid, TopicPartition]] = {}
        for topic in request.topics:
            name = self._name(topic, version)
            for proposal in topic.partitions:
                index = proposal.partition_index
                partition = TopicPartition(name or "", index)
                key = (topic.topic_id, partition if name is not None else TopicPartition(str(topic.topic_id), index))
                outcome = self._checked(request.broker_id, partition, proposal, version) if name is not None else ErrorCode.UNKNOWN_TOPIC_ID
                outcomes[key] = outcome
                if isinstance(outcome, LeaderAndIsr) and outcome is not self._context.leadership.get(partition):
                    accepted[partition] = outcome
                    keys[partition] = key
        written, again = yield from steps.update_states(accepted, self._context.epoch, self._context.epoch_version)
        for partition, result in written.items():
            if isinstance(result, LeaderAndIsr):
                self._context.leadership[partition] = outcomes[keys[partition]] = result
            else:
                _log.error("The ISR of %s could not be written: %s", partition, result)
                outcomes[keys[partition]] = ErrorCode.UNKNOWN_SERVER_ERROR
        for partition in again:  # the controller wrote in the meantime: the leader gets that state by LeaderAndIsr
            outcomes[keys[partition]] = ErrorCode.INVALID_UPDATE_VERSION
        changed = [partition for partition, result in written.items() if isinstance(result, LeaderAndIsr)]
        if changed:
            self._send_metadata(changed)
        return _response(request, outcomes, version, self._context.topic_names)

    def _name(self, topic: requests.TopicData, version: int) -> str | None:
        return topic.topic_name if version < _TOPIC_IDS_SINCE else self._context.topic_names.get(topic.topic_id)

    def _checked(self, broker_id: int, partition: TopicPartition, proposal: requests.PartitionData, version: int) -> Outcome:
        """The state to write, the current state if there is nothing to write, or an error."""
        current = self._context.leadership.get(partition)
        if current is None or self._context.is_topic_queued_for_deletion(partition.topic):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        isr = _isr_of(proposal, version)
        if broker_id != current.leader:
            return ErrorCode.FENCED_LEADER_EPOCH if proposal.leader_epoch <= current.leader_epoch else ErrorCode.NOT_CONTROLLER
        if proposal.leader_epoch < current.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.leader_epoch > current.leader_epoch or proposal.partition_epoch > current.partition_epoch:
            return ErrorCode.NOT_CONTROLLER  # the leader has a newer state, so there is a newer controller
        recovery = proposal.leader_recovery_state
        if set(isr) == set(current.isr) and recovery == current.leader_recovery_state:
            return current  # a retry: the response to the first request was lost
        if proposal.partition_epoch < current.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if recovery == RECOVERING and (len(isr) > 1 or current.leader_recovery_state == RECOVERED):
            return ErrorCode.INVALID_REQUEST
        if not isr or broker_id not in isr or not set(isr) <= set(self._context.replicas(partition)):
            return ErrorCode.INVALID_REQUEST
        if any(self._is_ineligible(replica, epoch, partition) for replica, epoch in isr.items()):
            return ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
        return replace(current, isr=tuple(isr), leader_recovery_state=recovery)

    def _is_ineligible(self, broker_id: int, epoch: int, partition: TopicPartition) -> bool:
        """Whether a broker is offline, shutting down, or restarted since the leader saw its fetches, which may have lost records."""
        broker = self._context.live_brokers.get(broker_id)
        if broker is None or not self._context.is_replica_online(broker_id, partition):
            return True
        return epoch not in (_UNKNOWN_EPOCH, broker.epoch)


def _isr_of(proposal: requests.PartitionData, version: int) -> dict[int, int]:
    """The proposed replicas, each with the broker epoch that the leader saw."""
    if version < _EPOCHS_OF_REPLICAS_SINCE:
        return dict.fromkeys(proposal.new_isr, _UNKNOWN_EPOCH)
    return {state.broker_id: state.broker_epoch for state in proposal.new_isr_with_epochs}


def _response(
    request: requests.AlterPartitionRequest,
    outcomes: dict[tuple[Uuid, TopicPartition], Outcome],
    version: int,
    names: dict[Uuid, str],
) -> responses.AlterPartitionResponse:
    response = responses.AlterPartitionResponse()
    for topic in request.topics:
        name = topic.topic_name if version < _TOPIC_IDS_SINCE else names.get(topic.topic_id, str(topic.topic_id))
        partitions = [
            _partition_response(partition.partition_index, outcomes[topic.topic_id, TopicPartition(name, partition.partition_index)])
            for partition in topic.partitions
        ]
        response.topics.append(responses.TopicData(topic.topic_name, topic.topic_id, partitions))
    return response


def _partition_response(index: int, outcome: Outcome) -> responses.PartitionData:
    if isinstance(outcome, ErrorCode):
        return responses.PartitionData(index, int(outcome))
    return responses.PartitionData(
        index, 0, outcome.leader, outcome.leader_epoch, list(outcome.isr), outcome.leader_recovery_state, outcome.partition_epoch
    )
