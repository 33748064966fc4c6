"""A transactional producer that is nothing but requests: it sees every error code, and begins the next transaction with no pause at all.

With transaction version 2 the broker adds partitions and each end gives the next epoch (KIP-890); with version 1 the producer adds
partitions itself. What a producer is told while its last transaction is being ended (CONCURRENT_TRANSACTIONS) it sends again, as the Java
client does; every other error is raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.uuid import Uuid
from tests.error_codes import code_of

GROUP, TRANSACTION = 0, 1  # the key types of FindCoordinator
BACK_OFF_S: Final = 0.02  # as the Java producer waits before it adds partitions again
WAIT_S: Final = 60
TRANSACTION_TIMEOUT_MS: Final = 60_000
CLIENT_ID: Final = "wire"

_ALWAYS = {"Metadata": 9, "FindCoordinator": 4, "InitProducerId": 4, "AddPartitionsToTxn": 3, "AddOffsetsToTxn": 3}
_VERSIONS = {
    1: {**_ALWAYS, "Produce": 11, "TxnOffsetCommit": 4, "EndTxn": 4},
    2: {**_ALWAYS, "Produce": 12, "TxnOffsetCommit": 5, "EndTxn": 5},
}
_STARTING = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER})
_ENDING = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})


class WireError(Exception):
    """A broker has answered with an error that the producer cannot pass over."""


class WireProducer:
    """`transaction_version` is 1 or 2. `group_id` is that for which offsets are committed."""

    def __init__(self, bootstrap: str, transactional_id: str, topic: str, transaction_version: int, group_id: str = "") -> None:
        self._bootstrap = bootstrap.split(",")[0]
        self._transactional_id = transactional_id
        self._topic = topic
        self._bumps = transaction_version == 2
        self._versions = _VERSIONS[transaction_version]
        self._group_id = group_id
        self._id, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}
        self._connections: dict[str, _Connection] = {}
        self._leaders: dict[int, str] = {}  # addresses, by partition
        self._passing = _ENDING | _UNKNOWN  # of the first transaction, to a topic that has just been made
        self.retries = 0  # how often the last transaction was found being ended

    async def start(self) -> None:
        metadata = await self._patiently(self._bootstrap, MetadataRequest([MetadataRequestTopic(name=self._topic)]), _UNKNOWN, _topic_code)
        addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in metadata.brokers}
        self._leaders = {partition.partition_index: addresses[partition.leader_id] for partition in metadata.topics[0].partitions}
        self._coordinator = await self._find(TRANSACTION, self._transactional_id)
        self._group_coordinator = await self._find(GROUP, self._group_id) if self._group_id else ""
        answer = await self._patiently(
            self._coordinator, InitProducerIdRequest(self._transactional_id, TRANSACTION_TIMEOUT_MS), _STARTING | _ENDING, _code
        )
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    async def transact(self, values: Mapping[int, bytes], offset: tuple[str, int, int] | None = None, *, commit: bool = True) -> None:
        """A record for each of the partitions, and an offset of a partition of a topic, in one transaction."""
        if not self._bumps:
            await self._add(list(values))
        if offset is not None:
            await self._commit_offset(*offset)
        by_leader: dict[str, dict[int, bytes]] = {}
        for partition, value in values.items():
            by_leader.setdefault(self._leaders[partition], {})[partition] = value
        await asyncio.gather(*(self._produce(leader, some) for leader, some in by_leader.items()))
        self._passing = _ENDING
        request = EndTxnRequest(self._transactional_id, self._id, self._epoch, commit)
        answer = await self._patiently(self._coordinator, request, _ENDING, _code)
        if self._bumps:
            if answer.producer_id != self._id or answer.producer_epoch != self._epoch:
                self._sequences.clear()
            self._id, self._epoch = answer.producer_id, answer.producer_epoch

    async def _add(self, partitions: list[int]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(self._topic, partitions)],
        )
        await self._patiently(
            self._coordinator,
            request,
            _ENDING,
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    async def _commit_offset(self, topic: str, partition: int, offset: int) -> None:
        if not self._bumps:
            adding = AddOffsetsToTxnRequest(self._transactional_id, self._id, self._epoch, self._group_id)
            await self._patiently(self._coordinator, adding, _ENDING, _code)
        place = TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(partition, offset)])
        request = TxnOffsetCommitRequest(self._transactional_id, self._group_id, self._id, self._epoch, topics=[place])
        await self._patiently(
            self._group_coordinator, request, _STARTING | _ENDING, lambda answer: answer.topics[0].partitions[0].error_code
        )

    async def _produce(self, leader: str, values: Mapping[int, bytes]) -> None:
        """All in one request; what was refused because the last transaction is being ended is sent again."""
        left = dict(values)
        deadline = time.monotonic() + WAIT_S
        while left:
            data = [PartitionProduceData(partition, Records(self._batch(partition, value))) for partition, value in left.items()]
            topics = [TopicProduceData(self._topic, Uuid.ZERO, data)]
            answer = await self._ask(leader, ProduceRequest(self._transactional_id, -1, 30_000, topics))
            for result in answer.responses[0].partition_responses:
                if result.error_code == ErrorCode.NONE:
                    del left[result.index]
                    self._sequences[result.index] = self._sequences.get(result.index, 0) + 1
                elif result.error_code not in self._passing or time.monotonic() > deadline:
                    raise WireError(f"Produce to {self._topic}-{result.index}: {code_of(result.error_code).name}")
            if left:
                self.retries += 1
                await asyncio.sleep(BACK_OFF_S)

    def _batch(self, partition: int, value: bytes) -> bytes:
        builder = BatchBuilder(
            producer_id=self._id, producer_epoch=self._epoch, base_sequence=self._sequences.get(partition, 0), transactional=True
        )
        builder.append(int(time.time() * 1000), None, value)
        return builder.build()

    async def _find(self, kind: int, key: str) -> str:
        coordinator = await self._patiently(
            self._bootstrap,
            FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]),
            _STARTING,
            lambda answer: answer.coordinators[0].error_code,
        )
        return f"{coordinator.coordinators[0].host}:{coordinator.coordinators[0].port}"

    async def _patiently(self, address: str, request: Message, passing: frozenset[ErrorCode], error_of: Callable[[Any], int]) -> Any:
        """The answer, asked for again while the error is one that passes."""
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = await self._ask(address, request)
            code = error_of(answer)
            if code == ErrorCode.NONE:
                return answer
            if code not in passing or time.monotonic() > deadline:
                raise WireError(f"{type(request).__name__}: {code_of(code).name}")
            self.retries += 1
            await asyncio.sleep(BACK_OFF_S)

    async def _ask(self, address: str, request: Message) -> Any:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = _Connection(address)
        return await connection.ask(request, self._versions[type(request).__name__.removesuffix("Request")])


class _Connection:
    """One request at a time."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._lock = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: Message, version: int) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        async with self._lock:
            if self._reader is None or self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.write(b"".join(request_frame(request, api, version, 1, CLIENT_ID)))
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            _, reader = parse_response_header(await self._reader.readexactly(size), api.response_header_version(version))
            return api.response.read(reader, version)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _topic_code(answer: Any) -> int:
    """Of the topic, or the first that a partition of it has."""
    topic = answer.topics[0]
    code: int = topic.error_code or next((partition.error_code for partition in topic.partitions if partition.error_code), 0)
    return code


def _code(answer: Any) -> int:
    code: int = answer.error_code
    return code
