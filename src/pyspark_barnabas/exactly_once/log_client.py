"""The decision log on a broker: one partition of a compacted topic, read to its end and appended to.

Reading continues where it stopped, so that a reused worker reads only new records. An append is sent once: whether a failed append arrived
is unknown, and `steps` finds out by reading. The broker sets the time of each record, so that clocks of clients are not compared.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from barnabas.client.errors import KafkaError, Timeout, error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.records.columns.columns import decode as decode_batches
from barnabas.records.columns.columns import encode as encode_batches
from pyspark_barnabas.exactly_once import decision_topic
from pyspark_barnabas.exactly_once.decision_log import DecisionLog
from pyspark_barnabas.exactly_once.patience import Patience
from pyspark_barnabas.exactly_once.records import Record, Tombstone, decode, encode, start_of_keys

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client

_log: Final = logging.getLogger(__name__)

FETCH_BYTES: Final = 4 * 1024 * 1024
VERSION_MAX_BY_NAME: Final = 12  # of Fetch and Produce: later versions have topic ids only
EARLIEST: Final = -2
_BATCH_SIZE_MAX: Final = 900_000
_ALL_REPLICAS: Final = -1

# Errors with which the leader says that it has not appended.
_NOT_APPENDED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class LogClient:
    """The log of one prefix in one topic. All methods but `shared` run on the client's loop."""

    def __init__(self, client: Client, topic: str, prefix: str) -> None:
        self._client = client
        self._network = client.network
        self._topic = topic
        self._prefix = prefix
        self._start = start_of_keys(prefix)
        self._timeout_ms: int = client.config["delivery.timeout.ms"]
        self._request_timeout_ms: int = client.config["request.timeout.ms"]
        self._leader: int | None = None
        self._offset: int | None = None
        self._folded = DecisionLog()
        self._failing_since_ms: int | None = None
        self._is_checked = False

    # Reading

    async def read(self) -> DecisionLog:
        """The state of the log up to its current end."""
        patience = Patience(self._client, self._timeout_ms, f"Reading {self._topic}")
        end: int | None = None
        while True:
            try:
                node_id = await self._leader_id(patience)
                if not self._is_checked:
                    await decision_topic.check(self._client, self._topic)
                    self._is_checked = True
                if self._offset is None:
                    await self._start_anew(node_id)
                data = await self._fetch(node_id)
                end = data.high_watermark if end is None else end
                self._take(data)
            except KafkaError as error:
                self._leader = None
                await patience.wait(error)
                continue
            assert self._offset is not None
            if self._offset >= end:
                return self._folded

    async def _start_anew(self, node_id: int) -> None:
        question = ListOffsetsTopic(self._topic, [ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)])
        response = await self._network.send(node_id, ListOffsetsRequest(replica_id=-1, topics=[question]))
        assert isinstance(response, ListOffsetsResponse)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise error_for(answer.error_code)
        self._offset = answer.offset
        self._folded = DecisionLog()

    async def _fetch(self, node_id: int) -> PartitionData:
        assert self._offset is not None
        partition = FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES, topics=[FetchTopic(self._topic, partitions=[partition])])
        response = await self._network.send(node_id, request, max_version=VERSION_MAX_BY_NAME)
        assert isinstance(response, FetchResponse)
        if response.error_code:
            raise error_for(response.error_code)
        data = response.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._offset = None  # the topic was recreated or truncated
            raise Timeout(f"The offsets of {self._topic} have changed")
        if data.error_code:
            raise error_for(data.error_code)
        return data

    def _take(self, data: PartitionData) -> None:
        if data.records is None or data.records.size == 0:
            if data.high_watermark < (self._offset or 0):
                self._offset = None
                raise Timeout(f"The end of {self._topic} went back")
            return
        assert self._offset is not None
        decoded = decode_batches(data.records.to_bytes(), first_offset=self._offset)
        records = decoded.records
        stamps = records.column("timestamp").cast(pa.int64()).to_pylist()
        for key, value, timestamp_ms in zip(records.column("key").to_pylist(), records.column("value").to_pylist(), stamps, strict=True):
            if key is not None and key.startswith(self._start):
                self._folded.apply(key, decode(key, value), timestamp_ms)
        self._offset = decoded.next_offset

    # Appending

    async def append(self, records: Sequence[Record | Tombstone]) -> bool:
        """Returns whether the in-sync replicas acknowledged the records. Raises an error if nothing was acknowledged for too long."""
        pairs = [encode(self._prefix, record) for record in records]
        now_ms = self._client.clock.now_ms()
        keys, values = pa.array([key for key, _ in pairs], pa.binary()), pa.array([value for _, value in pairs], pa.binary())
        for data in encode_batches(keys, values, now_ms=now_ms, batch_size=_BATCH_SIZE_MAX):
            if not await self._append(data):
                return False
        return True

    async def _append(self, data: bytes) -> bool:
        patience = Patience(self._client, self._timeout_ms, f"Writing to {self._topic}")
        topic = TopicProduceData(self._topic, partition_data=[PartitionProduceData(0, Records(data))])
        request = ProduceRequest(None, _ALL_REPLICAS, self._request_timeout_ms, [topic])
        while True:
            try:
                node_id = await self._leader_id(patience)
                await patience.connected(node_id)
            except KafkaError as error:
                self._leader = None
                await patience.wait(error)
                continue
            try:
                response = await self._network.send(node_id, request, max_version=VERSION_MAX_BY_NAME)
                assert isinstance(response, ProduceResponse)
                code = response.responses[0].partition_responses[0].error_code
            except KafkaError as error:
                self._leader = None
                await self._unknown(patience, error)
                return False
            if not code:
                self._failing_since_ms = None
                return True
            self._leader = None
            failure = error_for(code, response.responses[0].partition_responses[0].error_message)
            if code not in _NOT_APPENDED:
                await self._unknown(patience, failure)
                return False
            await patience.wait(failure)

    async def _unknown(self, patience: Patience, failure: KafkaError) -> None:
        now_ms = self._client.clock.monotonic_ms()
        self._failing_since_ms = now_ms if self._failing_since_ms is None else self._failing_since_ms
        if now_ms - self._failing_since_ms > self._timeout_ms:
            raise Timeout(f"Nothing written to {self._topic} was acknowledged for {self._timeout_ms} ms; the last failure: {failure}")
        await patience.wait(failure)

    # Finding the leader

    async def _leader_id(self, patience: Patience) -> int:
        while self._leader is None:
            request = MetadataRequest([MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False)
            try:
                response = await self._network.send_to_any(request)
                assert isinstance(response, MetadataResponse)
                topic = response.topics[0]
                if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    await decision_topic.create(self._client, self._topic)
                    raise error_for(ErrorCode.LEADER_NOT_AVAILABLE)
                code = topic.error_code or topic.partitions[0].error_code
                if code:
                    raise error_for(code)
                leader: int = topic.partitions[0].leader_id
                if self._client.metadata.cluster.node_by_id(leader) is None:
                    metadata = self._client.metadata
                    await metadata.wait_for_update(metadata.request_update(False), self._request_timeout_ms)
                self._leader = leader
            except KafkaError as error:
                await patience.wait(error)
        return self._leader


_logs: Final[WeakKeyDictionary[Client, dict[tuple[str, str], LogClient]]] = WeakKeyDictionary()


def shared(client: Client, topic: str, prefix: str) -> LogClient:
    """The log as this client has read it so far; kept with the client."""
    logs = _logs.setdefault(client, {})
    return logs.setdefault((topic, prefix), LogClient(client, topic, prefix))
