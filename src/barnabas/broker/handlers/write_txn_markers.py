"""WriteTxnMarkers: how transactions have ended, said by their coordinator to the leaders of their partitions.

Versions 1 to 2. From other brokers, and from an administrator who aborts a transaction that hangs (`kafka-transactions.sh abort`).
Behaviour
- each marker is appended to each of its partitions, and the answer waits until all in-sync replicas have all of them.
- a marker of `__consumer_offsets` goes through the group coordinator, and settles the offsets committed in the transaction.
- a producer that is not known gets its marker too, so that a zombie of it is fenced later.
Version notes
- 2: the transaction version. From transaction version 2 on a marker has a newer epoch than its records, and a late one is refused.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION where this broker has no replica, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
  TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT.
- UNKNOWN_SERVER_ERROR for a producer id, an epoch or a version that nobody can have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Answer
from barnabas.broker.transactions.transaction_markers import Codes
from barnabas.coordinator.transaction.markers import Marker
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from barnabas.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"), 20)  # each is a batch in a log


def handle(broker: Broker, request: Request[WriteTxnMarkersRequest]) -> WriteTxnMarkersResponse | None:
    markers = request.message.markers
    answer: Answer[WriteTxnMarkersResponse] = Answer(request)
    result = _Result(len(markers), answer)
    for marker in markers:
        result.write(broker, marker)
    return answer.now() if markers else WriteTxnMarkersResponse()


class _Result:
    """What became of the markers, by producer: two markers of one producer are told as one."""

    def __init__(self, missing: int, answer: Answer[WriteTxnMarkersResponse]) -> None:
        self._missing = missing
        self._answer = answer
        self._codes: dict[int, dict[TopicPartition, int]] = {}

    def write(self, broker: Broker, marker: WritableTxnMarker) -> None:
        partitions = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]

        def done(found: Codes) -> None:
            if found:
                self._codes.setdefault(marker.producer_id, {}).update(found)
            self._missing -= 1
            if self._missing == 0:
                self._answer.give(self._response())

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
