"""The requests between controller and brokers. Each is stale or of a broker that does not exist, so that nothing changes."""

from __future__ import annotations

from barnabas.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import Acl, Case, Cell, on_cluster
from tests.integration.security.matrix.names import TOPIC
from tests.integration.security.matrix.peers import BROKER_ID

_UNKNOWN_BROKER = 99
_STALE_EPOCH = 0  # of a controller; the first has 1
_GROUPED_LEADERS = 2  # the versions with partitions by topic
_GROUPED_STOPS = 3
_IDS_OF_LEADERS = 5
_IDS_OF_ISR = 2
_ISR_WITH_EPOCHS = 3


def _leader_and_isr(cell: Cell) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(TOPIC, 0, _STALE_EPOCH, BROKER_ID, 0, [BROKER_ID], 0, [BROKER_ID])
    if cell.version < _GROUPED_LEADERS:
        return LeaderAndIsrRequest(BROKER_ID, False, _STALE_EPOCH, ungrouped_partition_states=[state])
    topic_id = cell.world.topic_ids[TOPIC] if cell.version >= _IDS_OF_LEADERS else Uuid.ZERO
    state.topic_name = ""
    return LeaderAndIsrRequest(BROKER_ID, False, _STALE_EPOCH, topic_states=[LeaderAndIsrTopicState(TOPIC, topic_id, [state])])


def _stop_replica(cell: Cell) -> StopReplicaRequest:
    if cell.version < _GROUPED_STOPS:
        return StopReplicaRequest(BROKER_ID, False, _STALE_EPOCH, ungrouped_partitions=[StopReplicaPartitionV0(TOPIC, 0)])
    states = [StopReplicaTopicState(TOPIC, [StopReplicaPartitionState(0, 0)])]
    return StopReplicaRequest(BROKER_ID, False, _STALE_EPOCH, topic_states=states)


def _alter_partition(cell: Cell) -> AlterPartitionRequest:
    part = PartitionData(0, 0, [BROKER_ID])
    if cell.version >= _ISR_WITH_EPOCHS:
        part = PartitionData(0, 0, [], [BrokerState(BROKER_ID)])
    topic = TopicData("", cell.world.topic_ids[TOPIC], [part]) if cell.version >= _IDS_OF_ISR else TopicData(TOPIC, Uuid.ZERO, [part])
    return AlterPartitionRequest(_UNKNOWN_BROKER, 0, [topic])


def _right(cell: Cell) -> list[Acl]:
    return [on_cluster(AclOperation.CLUSTER_ACTION)]


CASES = (
    Case("LeaderAndIsr", (0, 4, 7), _leader_and_isr, _right),
    Case("StopReplica", (0, 4), _stop_replica, _right),
    Case("UpdateMetadata", (0, 8), lambda cell: UpdateMetadataRequest(BROKER_ID, False, 0, _STALE_EPOCH), _right),
    Case("ControlledShutdown", (0, 1, 3), lambda cell: ControlledShutdownRequest(_UNKNOWN_BROKER), _right),
    Case("AlterPartition", (0, 1, 2, 3), _alter_partition, _right),
    Case("AllocateProducerIds", (0,), lambda cell: AllocateProducerIdsRequest(_UNKNOWN_BROKER, 0), _right),
)
