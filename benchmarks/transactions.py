"""Transactions next to Apache Kafka's, measured by turns in one run. The first figures are the throughput of Kafka's own
`kafka-producer-perf-test` with a commit every 10 ms, 100 ms and second (records of 1 KB to 4 partitions, `acks=all`, its defaults
otherwise). The last is how many transactions of one record 10 producers commit in a second; each is a bare connection that sends Produce
and EndTxn and waits for both.

The Java producer shares the two cores with the broker, and costs the same for both.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from barnabas.network.event_loop import run as run_loop
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.uuid import Uuid
from benchmarks import peers, perf_test
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import CLIENT_ID, Client

INTERVALS_MS = (10, 100, 1000)
RECORD_BYTES = 1000
MEGABYTES_MAX = 200  # for one figure
PARTITIONS = 4
TOPIC = "transactions"

PRODUCERS = 10
SECONDS = 5
VERSIONS = {"InitProducerId": 5, "Produce": 12, "EndTxn": 5, "FindCoordinator": 4}
TRANSACTION = 1  # the key type of FindCoordinator
NOT_YET = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})
BACK_OFF_SECONDS = 0.001


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    rates = {ms: Comparison(f"kafka-producer-perf-test, a commit every {ms:,} ms", "MB/s", 1.5) for ms in INTERVALS_MS}
    small = Comparison(f"transactions of one record, {PRODUCERS} producers", "transactions/s", 1.5)
    records = min(megabytes, MEGABYTES_MAX) * 1_000_000 // RECORD_BYTES
    with peers.apache_kafka() as theirs, peers.barnabas() as ours:
        for peer in (ours, theirs):
            _prepare(peer)
        for turn in range(turns + 1):
            for peer in (ours, theirs):
                found = [_perf_test(peer, interval_ms, records) for interval_ms in INTERVALS_MS]
                found.append(run_loop(_transactions_a_second(peer)))
                if turn > 0:
                    for comparison, value in zip((*rates.values(), small), found, strict=True):
                        (comparison.ours if peer is ours else comparison.theirs).append(value)
    return [*rates.values(), small]


def _prepare(peer: Peer) -> None:
    """The topic, and the coordinator: the first who asks for one makes `__transaction_state`."""
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics([TOPIC], PARTITIONS)
        request = FindCoordinatorRequest("", TRANSACTION, ["first"])
        while client.ask(request, VERSIONS["FindCoordinator"]).coordinators[0].error_code:
            time.sleep(0.05)


def _perf_test(peer: Peer, interval_ms: int, records: int) -> float:
    """MB/s with a commit as often as that."""
    transactions = ("--transactional-id", f"perf-{interval_ms}", "--transaction-duration-ms", str(interval_ms))
    return perf_test.produce(peer.bootstrap, TOPIC, records, RECORD_BYTES, *transactions)


async def _transactions_a_second(peer: Peer) -> float:
    producers = [Producer(f"small-{number}", number % PARTITIONS) for number in range(PRODUCERS)]
    for producer in producers:
        await producer.connect(peer.port)
    until = time.perf_counter() + SECONDS
    counts = await asyncio.gather(*(producer.commit_until(until) for producer in producers))
    for producer in producers:
        producer.close()
    return sum(counts) / SECONDS


class Producer:
    """A producer of transactions of one record each, as a client of today speaks: the broker adds partitions by itself, and each end
    gives the next epoch."""

    def __init__(self, transactional_id: str, partition: int) -> None:
        self._transactional_id = transactional_id
        self._partition = partition
        self._id = -1
        self._epoch = -1

    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await self._patiently(InitProducerIdRequest(self._transactional_id, 60_000))
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def close(self) -> None:
        self._writer.close()

    async def commit_until(self, until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            await self._patiently(self._produce())
            answer = await self._patiently(EndTxnRequest(self._transactional_id, self._id, self._epoch, True))
            self._id, self._epoch = answer.producer_id, answer.producer_epoch
            count += 1
        return count

    def _produce(self) -> ProduceRequest:
        builder = BatchBuilder(producer_id=self._id, producer_epoch=self._epoch, base_sequence=0, transactional=True)
        builder.append(int(time.time() * 1000), None, b"v" * 100)
        data = [PartitionProduceData(self._partition, Records(builder.build()))]
        return ProduceRequest(self._transactional_id, -1, 30_000, [TopicProduceData(TOPIC, Uuid.ZERO, data)])

    async def _patiently(self, request: Message) -> Any:
        """The answer, asked for again while the transaction before is still being ended."""
        while True:
            answer = await self._ask(request)
            code = _error_code(answer)
            if code == ErrorCode.NONE:
                return answer
            if code not in NOT_YET:
                raise RuntimeError(f"{type(request).__name__} was answered with error {code}")
            await asyncio.sleep(BACK_OFF_SECONDS)

    async def _ask(self, request: Message) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        version = VERSIONS[api.name]
        self._writer.write(b"".join(request_frame(request, api, version, 1, CLIENT_ID)))
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        _, reader = parse_response_header(await self._reader.readexactly(size), api.response_header_version(version))
        return api.response.read(reader, version)


def _error_code(answer: Any) -> int:
    code: int = answer.error_code if "error_code" in answer.field_names() else answer.responses[0].partition_responses[0].error_code
    return code
