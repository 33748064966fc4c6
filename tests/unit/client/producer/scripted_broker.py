"""A cluster for the tests of the sender: it speaks the protocol over real sockets, keeps what is produced, and fails as it is told.

Each node listens on a port of its own; all run on one loop in a thread. `on_produce` decides about each batch of a Produce: None writes it,
a code refuses it, DROP leaves the request without an answer, HANG_UP closes the connection (AFTER_WRITE: once the batch is written).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.protocol import api_keys
from barnabas.protocol.framing import parse_request, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from barnabas.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.registry import APIS
from barnabas.records.batch import Batch, read_batch
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.client.producer.parts import values

DROP, HANG_UP, HANG_UP_AFTER_WRITE = "drop", "hang up", "hang up after write"
OUT_OF_ORDER = 45
SERVED = (
    api_keys.PRODUCE,
    api_keys.METADATA,
    api_keys.FIND_COORDINATOR,
    api_keys.API_VERSIONS,
    api_keys.INIT_PRODUCER_ID,
    api_keys.ADD_PARTITIONS_TO_TXN,
    api_keys.ADD_OFFSETS_TO_TXN,
    api_keys.END_TXN,
    api_keys.TXN_OFFSET_COMMIT,
)

OnProduce = Callable[[TopicPartition, Batch, int], Any]


class ScriptedCluster:
    """`transaction_version` 2 announces KIP-890; `partitions` is how many each topic has, `nodes` lead them in turn."""

    def __init__(self, *, nodes: int = 1, partitions: int = 1, transaction_version: int = 2) -> None:
        self.transaction_version = transaction_version
        self.partitions = partitions
        self.leaders: dict[int, int] = {}
        self.leader_epoch = 0
        self.log: dict[TopicPartition, list[bytes | None]] = {}
        self.requests: list[tuple[str, int, Message]] = []
        self.on_produce: OnProduce = lambda partition, batch, number: None
        # By API key: the answers to give instead of the usual ones, one after the other; a callable is given the request.
        self.answers: dict[int, list[Any]] = {}
        self.hints_leader = False
        self.log_start_offset = 0
        self.produced = 0
        self.epoch = -1
        self._sequences: dict[tuple[TopicPartition, int, int], list[tuple[int, int, int]]] = {}
        self._names: dict[Uuid, str] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._node_count = nodes
        self._servers: list[asyncio.Server] = []
        self.ports: dict[int, int] = {}
        self._connections: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> ScriptedCluster:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    def written(self, topic: str = "t", partition: int = 0) -> list[bytes | None]:
        return self.log.get(TopicPartition(topic, partition), [])

    def of_kind(self, name: str) -> list[tuple[int, Any]]:
        """Version and message of each request of an API."""
        return [(version, message) for kind, version, message in self.requests if kind == name]

    def kinds(self) -> list[str]:
        """The requests in their order, without those that every client makes."""
        return [kind for kind, _, _ in self.requests if kind not in ("ApiVersions", "Metadata")]

    async def _start(self) -> None:
        for node in range(1, self._node_count + 1):
            server = await asyncio.start_server(partial(self._serve, node), "127.0.0.1", 0)
            self._servers.append(server)
            self.ports[node] = server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        for server in self._servers:
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
        await _rounds()  # who has just been let in gets as far as _serve: a server that is closed meanwhile would leave its socket open
        for server in self._servers:
            server.close()
        for writer in list(self._connections):
            writer.transport.abort()
        await _rounds()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _rounds()

    async def _serve(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = parse_request(await reader.readexactly(size))
                message = request.message()
                self.requests.append((request.api.name, request.version, message))
                answer = self._answer(node, request.api.key, request.version, message)
                if answer == HANG_UP:
                    return
                if answer is not None and answer != DROP:
                    header_version = request.api.response_header_version(request.version)
                    writer.writelines(response_frame(answer, request.correlation_id, request.version, header_version))  # type: ignore[arg-type]
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, node: int, key: int, version: int, message: Any) -> Any:
        if self.answers.get(key):
            given = self.answers[key].pop(0)
            given = given(message) if callable(given) else given
            if given is not None:
                return given
        name = APIS[key].name
        return getattr(self, f"_on_{name}")(node, version, message)

    def _on_ApiVersions(self, node: int, version: int, message: Any) -> Message:
        rows = [ApiVersion(key, APIS[key].lowest_version, APIS[key].stable_version) for key in SERVED]
        features = [FinalizedFeatureKey("transaction.version", self.transaction_version, self.transaction_version)]
        return ApiVersionsResponse(api_keys=rows, finalized_features=features, finalized_features_epoch=1)

    def _on_Metadata(self, node: int, version: int, message: Any) -> Message:
        brokers = [MetadataResponseBroker(node_id, "127.0.0.1", port) for node_id, port in self.ports.items()]
        topics = [
            MetadataResponseTopic(
                name=topic.name,
                topic_id=self._topic_id(topic.name),
                partitions=[
                    MetadataResponsePartition(0, index, self._leader(index), self.leader_epoch, [1], [1])
                    for index in range(self.partitions)
                ],
            )
            for topic in message.topics or ()
        ]
        return MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=1, topics=topics)

    def _topic_id(self, name: str) -> Uuid:
        topic_id = Uuid(name.encode().ljust(16, b"\0")[:16])
        self._names[topic_id] = name
        return topic_id

    def _leader(self, partition: int) -> int:
        return self.leaders.get(partition, 1 + partition % self._node_count)

    def _on_Produce(self, node: int, version: int, message: Any) -> Any:
        self.produced += 1
        hang_up = False
        topics = []
        for topic in message.topic_data:
            rows = []
            name = topic.name or self._names[topic.topic_id]
            for data in topic.partition_data:
                partition = TopicPartition(name, data.index)
                content = data.records.to_bytes()
                batch = read_batch(content, 0, len(content))
                verdict = self.on_produce(partition, batch, self.produced)
                if verdict in (DROP, HANG_UP):
                    return verdict
                if node != self._leader(data.index):
                    verdict = 6
                hang_up = hang_up or verdict == HANG_UP_AFTER_WRITE
                rows.append(
                    self._write(partition, batch, content) if verdict in (None, HANG_UP_AFTER_WRITE) else self._refuse(data.index, verdict)
                )
            topics.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
        if hang_up:
            return HANG_UP
        return None if message.acks == 0 else ProduceResponse(responses=topics)

    def _refuse(self, partition: int, verdict: Any) -> PartitionProduceResponse:
        if isinstance(verdict, PartitionProduceResponse):
            verdict.index = partition
            return verdict
        leader = LeaderIdAndEpoch(self._leader(partition), self.leader_epoch) if self.hints_leader else LeaderIdAndEpoch()
        return PartitionProduceResponse(
            index=partition, error_code=verdict, base_offset=-1, log_start_offset=self.log_start_offset, current_leader=leader
        )

    def _write(self, partition: TopicPartition, batch: Batch, content: bytes) -> PartitionProduceResponse:
        """As a broker writes: in the order of sequences, a known batch not again."""
        log = self.log.setdefault(partition, [])
        if batch.producer_id >= 0:
            known = self._sequences.setdefault((partition, batch.producer_id, batch.producer_epoch), [])
            for sequence, count, offset in known:
                if (sequence, count) == (batch.base_sequence, batch.count):
                    return PartitionProduceResponse(index=partition.partition, base_offset=offset)
            expected = known[-1][0] + known[-1][1] if known else 0
            if batch.base_sequence != expected:
                return self._refuse(partition.partition, OUT_OF_ORDER)
            known.append((batch.base_sequence, batch.count, len(log)))
        offset = len(log)
        log += values(content)
        return PartitionProduceResponse(index=partition.partition, base_offset=offset, log_start_offset=self.log_start_offset)

    def _on_FindCoordinator(self, node: int, version: int, message: Any) -> Message:
        return FindCoordinatorResponse(coordinators=[Coordinator(key, 1, "127.0.0.1", self.ports[1]) for key in message.coordinator_keys])

    def _on_InitProducerId(self, node: int, version: int, message: Any) -> Message:
        self.epoch += 1
        return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)

    def _on_AddPartitionsToTxn(self, node: int, version: int, message: Any) -> Message:
        rows = [
            AddPartitionsToTxnTopicResult(topic.name, [AddPartitionsToTxnPartitionResult(index) for index in topic.partitions])
            for topic in message.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)

    def _on_AddOffsetsToTxn(self, node: int, version: int, message: Any) -> Message:
        return AddOffsetsToTxnResponse()

    def _on_EndTxn(self, node: int, version: int, message: Any) -> Message:
        if version < 5:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def _on_TxnOffsetCommit(self, node: int, version: int, message: Any) -> Message:
        topics = [
            TxnOffsetCommitResponseTopic(topic.name, [TxnOffsetCommitResponsePartition(row.partition_index) for row in topic.partitions])
            for topic in message.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)


async def _rounds() -> None:
    """Lets the loop do what it has scheduled, such as closing sockets."""
    for _ in range(10):
        await asyncio.sleep(0)
