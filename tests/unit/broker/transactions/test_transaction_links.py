"""End markers and verifications for other brokers: no batch is larger than a broker accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.transactions.transaction_links import ClusterMarkers, ClusterVerifier
from barnabas.client.errors import Disconnected
from barnabas.coordinator.transaction.markers import Marker
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import parse_request, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages import add_partitions_to_txn_response as added
from barnabas.protocol.messages import write_txn_markers_response as written
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from barnabas.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from barnabas.protocol.registry import BY_NAME
from barnabas.topic_name import TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.handlers.asking import topic, update

OTHER = 1
TRANSACTIONS = 500
PARTITIONS = 70


class OtherBroker:
    """Reads requests as a broker does, and agrees to all."""

    def __init__(self) -> None:
        self.asked: list[Message] = []

    async def ask(self, broker_id: int, request: Message, version: int) -> Message:
        assert broker_id == OTHER
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        frame = b"".join(request_frame(request, api, version, 1, "broker"))
        try:
            message = parse_request(frame[4:]).message()
        except MalformedMessage as error:
            raise Disconnected(str(error)) from error
        self.asked.append(message)
        return _agreed_markers(message) if isinstance(message, WriteTxnMarkersRequest) else _agreed_questions(message)

    async def close(self) -> None: ...


def _agreed_markers(request: WriteTxnMarkersRequest) -> Message:
    return written.WriteTxnMarkersResponse(
        [
            written.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    written.WritableTxnMarkerTopicResult(
                        marked.name, [written.WritableTxnMarkerPartitionResult(index, 0) for index in marked.partition_indexes]
                    )
                    for marked in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _agreed_questions(request: Message) -> Message:
    assert isinstance(request, AddPartitionsToTxnRequest)
    return added.AddPartitionsToTxnResponse(
        results_by_transaction=[
            added.AddPartitionsToTxnResult(
                transaction.transactional_id,
                [
                    added.AddPartitionsToTxnTopicResult(
                        one.name, [added.AddPartitionsToTxnPartitionResult(index, 0) for index in one.partitions]
                    )
                    for one in transaction.topics
                ],
            )
            for transaction in request.transactions
        ]
    )


class Environment:
    def __init__(self, partitions: int) -> None:
        self.other = OtherBroker()
        self.cache = MetadataCache(0)
        self.cache.update(update(topic("t", partitions, leader=OTHER), topic(TRANSACTION_STATE, leader=OTHER)))
        self.cluster: Any = SimpleNamespace(new_links=lambda *_: self.other, endpoint_of=lambda _: None)
        self.partitions = [TopicPartition("t", index) for index in range(partitions)]
        self.codes: list[tuple[TopicPartition, int]] = []

    def heard(self, codes: Mapping[TopicPartition, int]) -> None:
        self.codes += codes.items()

    def markers(self) -> ClusterMarkers:
        return ClusterMarkers(cast("Any", None), self.cache, self.cluster)

    def verifier(self) -> ClusterVerifier:
        coordinator: Any = SimpleNamespace(partition_for=lambda _: 0)
        return ClusterVerifier(cast("Any", None), coordinator, self.cache, self.cluster)

    async def all_agreed(self, count: int) -> None:
        await _until(lambda: len(self.codes) >= count)
        assert len(self.codes) == count
        assert {code for _, code in self.codes} == {0}


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0)


def marker(producer_id: int, partitions: list[TopicPartition]) -> Marker:
    return Marker(f"t{producer_id}", producer_id, 0, 1, True, tuple(partitions), 2)


async def test_markers_of_many_partitions_are_taken_in_several_requests() -> None:
    around = Environment(PARTITIONS)
    markers = around.markers()
    for producer_id in range(TRANSACTIONS):
        markers.send(marker(producer_id, around.partitions), around.heard)
    await around.all_agreed(TRANSACTIONS * PARTITIONS)
    await markers.close()


async def test_few_markers_go_together() -> None:
    around = Environment(3)
    markers = around.markers()
    for producer_id in range(TRANSACTIONS):
        markers.send(marker(producer_id, around.partitions), around.heard)
    await around.all_agreed(TRANSACTIONS * 3)
    assert len(around.other.asked) == 1
    await markers.close()


async def test_one_marker_for_very_many_partitions_is_taken() -> None:
    around = Environment(65_000)
    markers = around.markers()
    markers.send(marker(1, around.partitions), around.heard)
    await around.all_agreed(65_000)
    await markers.close()


async def test_questions_about_many_partitions_are_taken_in_several_requests() -> None:
    around = Environment(PARTITIONS)
    verifier = around.verifier()
    for number in range(TRANSACTIONS):
        verifier.add_or_verify(f"t{number}", number, 0, around.partitions, add=True, on_done=around.heard)
    await around.all_agreed(TRANSACTIONS * PARTITIONS)
    await verifier.close()
