"""A complete broker in this process for tests of transactions. Frames go to its dispatcher without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.network.event_loop import run
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.grouping import turn_of_the_loop
from tests.unit.broker.handlers.asking import ask

M = TypeVar("M", bound=Message)
T = TypeVar("T")

ID = "orders-1"
PARTITIONS = 3  # of __transaction_state and __consumer_offsets: a start is quicker with few of them
TIMEOUT_MS = 60_000
DEADLINE_S = 60
TRANSACTION = 1  # as FindCoordinator's type of key

Errors = dict[tuple[str, int], int]


class Transactions:
    """A broker that runs, and the requests of a transactional producer."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server
        self.broker = server.broker

    async def ask(self, request: Message, answer: type[M], version: int) -> M:
        return await ask(self.broker, request, answer, version)

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        created = await self.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1)], 10_000), CreateTopicsResponse, 7)
        assert [topic.error_code for topic in created.topics] == [0]

    async def find(self, transactional_id: str = ID) -> FindCoordinatorResponse:
        return await self.ask(FindCoordinatorRequest(transactional_id, TRANSACTION), FindCoordinatorResponse, 3)

    async def ready(self, transactional_id: str = ID) -> None:
        """Until the id has a coordinator that has loaded it, as clients wait for theirs."""

        async def look() -> bool:
            coordinator, described = await self.find(transactional_id), await self.describe(transactional_id)
            return coordinator.error_code == 0 and described.error_code in (0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

        await self.until(look)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not await condition():
                await turn_of_the_loop()

    async def init(
        self, transactional_id: str | None = ID, timeout_ms: int = TIMEOUT_MS, producer_id: int = -1, epoch: int = -1, version: int = 5
    ) -> InitProducerIdResponse:
        return await self.ask(InitProducerIdRequest(transactional_id, timeout_ms, producer_id, epoch), InitProducerIdResponse, version)

    async def begin(self, transactional_id: str = ID) -> InitProducerIdResponse:
        """A producer that was let in."""
        await self.ready(transactional_id)

        got = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)

        async def look() -> bool:
            nonlocal got
            got = await self.init(transactional_id)
            return got.error_code != ErrorCode.CONCURRENT_TRANSACTIONS

        await self.until(look)
        assert got.error_code == 0
        return got

    async def add(self, producer: InitProducerIdResponse, *partitions: tuple[str, int], version: int = 3, id: str = ID) -> Errors:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics_of(partitions),
        )
        response = await self.ask(request, AddPartitionsToTxnResponse, version)
        return errors_of(response.results_by_topic_v3_and_below)

    async def add_many(self, *transactions: AddPartitionsToTxnTransaction, version: int = 5) -> list[tuple[str, Errors]]:
        response = await self.ask(AddPartitionsToTxnRequest(list(transactions)), AddPartitionsToTxnResponse, version)
        assert response.error_code == 0
        return [(result.transactional_id, errors_of(result.topic_results)) for result in response.results_by_transaction]

    async def add_offsets(self, producer: InitProducerIdResponse, group: str, version: int = 4, id: str = ID) -> int:
        request = AddOffsetsToTxnRequest(id, producer.producer_id, producer.producer_epoch, group)
        return (await self.ask(request, AddOffsetsToTxnResponse, version)).error_code

    async def end(self, producer: InitProducerIdResponse, committed: bool = True, version: int = 4, id: str = ID) -> EndTxnResponse:
        request = EndTxnRequest(id, producer.producer_id, producer.producer_epoch, committed)
        return await self.ask(request, EndTxnResponse, version)

    async def produce(
        self, producer: InitProducerIdResponse, topic: str, sequence: int = 0, version: int = 11, partition: int = 0, id: str = ID
    ) -> int:
        """One record; the error."""
        builder = BatchBuilder(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, base_sequence=sequence, transactional=True
        )
        builder.append(self.broker.clock.now_ms(), None, b"value")
        data = builder.build()
        records = PartitionProduceData(partition, Records(data, 0, len(data)))
        request = ProduceRequest(id, -1, 10_000, [TopicProduceData(topic, partition_data=[records])])
        response = await self.ask(request, ProduceResponse, version)
        return response.responses[0].partition_responses[0].error_code

    async def describe(self, transactional_id: str = ID) -> TransactionState:
        response = await self.ask(DescribeTransactionsRequest([transactional_id]), DescribeTransactionsResponse, 0)
        (state,) = response.transaction_states
        return state

    async def until_state(self, state: str, transactional_id: str = ID) -> TransactionState:
        async def look() -> bool:
            return (await self.describe(transactional_id)).transaction_state == state

        await self.until(look)
        return await self.describe(transactional_id)

    async def list(self, version: int = 2, **filters: list[str] | list[int] | int | str) -> ListTransactionsResponse:
        return await self.ask(ListTransactionsRequest(**filters), ListTransactionsResponse, version)  # type: ignore[arg-type]

    def offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Up to where read_committed and read_uncommitted may read."""
        log = self.broker.replica_manager.log_manager.get(TopicPartition(topic, partition))
        assert log is not None
        return log.last_stable_offset, log.high_watermark


def topics_of(partitions: Iterable[tuple[str, int]]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(partition)
    return list(topics.values())


def errors_of(topics: Iterable[AddPartitionsToTxnTopicResult]) -> Errors:
    return {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in topics
        for partition in topic.results_by_partition
    }


def settings(data: Path, **given: str) -> dict[str, str]:
    few = {f"{topic}.{name}": value for topic in ("offsets.topic", "transaction.state.log") for name, value in _ONE_NODE.items()}
    quick = {"transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0"}
    own = {name.replace("_", "."): value for name, value in given.items()}
    return {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(data), **few, **quick, **own}


_ONE_NODE = {"num.partitions": str(PARTITIONS), "replication.factor": "1"}


def with_transactions(data: Path, use: Callable[[Transactions], Awaitable[T]], **given: str) -> T:
    """Starts a broker, does something to it, stops it cleanly."""

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(settings(data, **given)))
        await server.start()
        try:
            return await asyncio.wait_for(use(Transactions(server)), 2 * DEADLINE_S)
        finally:
            await server.shutdown(1000)

    return run(life())
