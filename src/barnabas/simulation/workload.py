"""The simple clients of a simulated cluster: idempotent writers with acks=all, and readers.

They only record what was promised to them; `checkers` verifies that it was kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.reader import records_of
from barnabas.simulation.client import RETRY_S, SimulatedClient
from barnabas.topic_partition import TopicPartition

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
_DUPLICATE: Final = int(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


@dataclass
class Promises:
    """The promises about one partition. `acknowledged` holds values with their offsets, in the order they were sent (-1: a duplicate was
    acknowledged without its offset); `read` holds the value that a reader saw at each offset."""

    acknowledged: list[tuple[bytes, int]] = field(default_factory=list)
    read: dict[int, bytes] = field(default_factory=dict)
    refused: list[tuple[bytes, int]] = field(default_factory=list)  # records or offsets, with an error that a correct cluster never returns


class PartitionWriter:
    """Sends one batch after the other to one partition, and repeats each until it is acknowledged."""

    def __init__(
        self,
        client: SimulatedClient,
        topic: str,
        partition: int,
        promises: Promises,
        name: str,
        on_acknowledged: Callable[[TopicPartition, int], None] = lambda *_: None,
    ) -> None:
        self._client = client
        self._topic = topic
        self._partition = partition
        self._promises = promises
        self._name = name
        self._on_acknowledged = on_acknowledged
        self._producer_id = -1
        self._sequence = 0

    async def write(self, count: int, pause_s: float = 0.0) -> None:
        await self._get_id()
        for number in range(count):
            if not await self._send(f"{self._name}-{number}".encode()):
                return
            if pause_s:
                await asyncio.sleep(pause_s)

    async def _get_id(self) -> None:
        while self._producer_id < 0:
            response = await self._client.ask_any_broker(InitProducerIdRequest(None, 60_000), 4)
            if response.error_code == ErrorCode.NONE:
                self._producer_id = response.producer_id
            else:
                await asyncio.sleep(RETRY_S)

    async def _send(self, value: bytes) -> bool:
        """Returns whether the record was acknowledged, so that the next one may be sent."""
        batch = build([(1_700_000_000_000, None, value, ())], producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequence)
        data = TopicProduceData(self._topic, partition_data=[PartitionProduceData(self._partition, Records(batch))])
        while True:
            try:
                address = await self._client.leader(self._topic, self._partition)
                response = await self._client.ask(address, ProduceRequest(None, -1, 3_000, [data]), PRODUCE_VERSION)
            except (OSError, TimeoutError):
                self._client.forget(self._topic, self._partition)
                await asyncio.sleep(RETRY_S)
                continue
            partition_response = response.responses[0].partition_responses[0]
            if partition_response.error_code in (ErrorCode.NONE, _DUPLICATE):
                self._promises.acknowledged.append(
                    (value, partition_response.base_offset if partition_response.error_code == ErrorCode.NONE else -1)
                )
                self._sequence += 1
                self._on_acknowledged(TopicPartition(self._topic, self._partition), partition_response.base_offset)
                return True
            if partition_response.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._promises.refused.append((value, partition_response.error_code))
                return False
            self._client.forget(self._topic, self._partition)
            await asyncio.sleep(RETRY_S)


class PartitionReader:
    """Reads a partition from its leader up to the high watermark, forever."""

    def __init__(self, client: SimulatedClient, topic: str, partition: int, promises: Promises) -> None:
        self._client = client
        self._topic = topic
        self._partition = partition
        self._promises = promises
        self._offset = 0

    async def read(self) -> None:
        while True:
            try:
                address = await self._client.leader(self._topic, self._partition)
                response = await self._client.ask(address, self._request(), FETCH_VERSION)
            except (OSError, TimeoutError):
                self._client.forget(self._topic, self._partition)
                await asyncio.sleep(RETRY_S)
                continue
            if response.throttle_time_ms and not response.responses:  # a fetch above the quota is answered empty
                await asyncio.sleep(response.throttle_time_ms / 1000)
                continue
            partition = response.responses[0].partitions[0]
            if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # Nothing deletes records here, and the leader of this epoch has every record that a reader has seen.
                self._promises.refused.append((b"offset %d" % self._offset, partition.error_code))
                await asyncio.sleep(RETRY_S)
            elif partition.error_code != ErrorCode.NONE:
                self._client.forget(self._topic, self._partition)
                await asyncio.sleep(RETRY_S)
            else:
                self._take(partition.records.to_bytes() if partition.records is not None else b"")

    def _request(self) -> FetchRequest:
        fetch_partition = FetchPartition(
            self._partition,
            current_leader_epoch=self._client.epoch(self._topic, self._partition),
            fetch_offset=self._offset,
            partition_max_bytes=65_536,
        )
        topic = FetchTopic(self._topic, partitions=[fetch_partition])
        return FetchRequest(replica_id=-1, max_wait_ms=1_000, min_bytes=1, max_bytes=65_536, topics=[topic])

    def _take(self, data: bytes) -> None:
        for record in records_of(data):
            if record.offset >= self._offset:
                self._promises.read[record.offset] = record.value or b""
                self._offset = record.offset + 1
