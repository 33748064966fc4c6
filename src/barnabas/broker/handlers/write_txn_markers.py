"""WriteTxnMarkers: writes the commit or abort markers of transactions to partitions that this broker leads.

Versions 1 to 2. Sent by transaction coordinators, and by tools that abort a hanging transaction (`kafka-transactions.sh abort`).
Behaviour
- each marker is appended to each of its partitions. The broker responds when all in-sync replicas have all markers.
- a marker for `__consumer_offsets` goes through the group coordinator, which commits or drops the offsets of the transaction.
- a marker of an unknown producer is written too, so that later records with an older epoch of it are fenced.
Authorization: ALTER or CLUSTER_ACTION on the cluster, else every partition has the error CLUSTER_AUTHORIZATION_FAILED.
Version notes
- 2: the transaction version. From transaction version 2 on a marker has a newer epoch than its records, and a late marker is refused.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION where this broker has no replica, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
  TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED.
- UNKNOWN_SERVER_ERROR for an impossible producer id, epoch or transaction version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.broker.transactions.transaction_markers import Codes
from barnabas.coordinator.transaction.markers import Marker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from barnabas.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"), 20)  # each is a batch in a log


def handle(broker: Broker, request: Request[WriteTxnMarkersRequest]) -> Reply[WriteTxnMarkersResponse]:
    markers = request.message.markers
    if not _is_authorized(broker, request):
        return Reply.now(request, _denied(markers))
    reply: Reply[WriteTxnMarkersResponse] = Reply(request)
    result = _MarkerResults(len(markers), reply)
    for marker in markers:
        result.write(broker, marker)
    return reply if markers else Reply.now(request, WriteTxnMarkersResponse())


def _is_authorized(broker: Broker, request: Request[WriteTxnMarkersRequest]) -> bool:
    """Tools have ALTER, coordinators CLUSTER_ACTION."""
    access = broker.access
    return access.allows_on_cluster(request, AclOperation.ALTER, logs_denied=False) or access.allows_on_cluster(
        request, AclOperation.CLUSTER_ACTION
    )


def _denied(markers: list[WritableTxnMarker]) -> WriteTxnMarkersResponse:
    code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    denied = {marker.producer_id: dict.fromkeys(_partitions(marker), code) for marker in markers}
    return WriteTxnMarkersResponse([WritableTxnMarkerResult(producer_id, _topics(codes)) for producer_id, codes in denied.items()])


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


class _MarkerResults:
    """The results of the markers by producer: two markers of one producer have one result. The last marker completes the reply."""

    def __init__(self, missing: int, reply: Reply[WriteTxnMarkersResponse]) -> None:
        self._missing = missing
        self._reply = reply
        self._codes: dict[int, dict[TopicPartition, int]] = {}

    def write(self, broker: Broker, marker: WritableTxnMarker) -> None:
        partitions = _partitions(marker)

        def done(codes: Codes) -> None:
            if codes:
                self._codes.setdefault(marker.producer_id, {}).update(codes)
            self._missing -= 1
            if self._missing == 0:
                self._reply.complete(self._response())

        broker.markers.append(
            Marker(
                "",
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                tuple(partitions),
                marker.transaction_version,
            ),
            done,
        )

    def _response(self) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse([WritableTxnMarkerResult(producer_id, _topics(codes)) for producer_id, codes in self._codes.items()])


def _topics(codes: Codes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for partition, code in codes.items():
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = WritableTxnMarkerTopicResult(partition.topic)
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition.partition, code))
    return list(topics.values())
