"""What is asked of a broker for a range, and what is made of its answers: with a broker that answers from a list."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from barnabas.client.clock import SystemClock
from barnabas.client.cluster import Cluster, LeaderAndEpoch, Node
from barnabas.client.consumer.config import consumer_config
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.slices import Records
from pyspark_barnabas.connections import Client
from pyspark_barnabas.read.fetch import FetchOptions
from pyspark_barnabas.read.range_fetcher import FETCH_BYTES_MIN, Fetched, RangeFetcher
from pyspark_barnabas.read.ranges import OffsetRange
from pyspark_barnabas.read.read_errors import FetchTimeoutError
from tests.unit.storage.logs import batch

NODE = Node(1, "broker", 9092)


class ScriptedBroker:
    """A client whose one broker gives these answers, one after the other, and remembers what it was asked."""

    request_timeout_ms = 1000

    def __init__(self, answers: list[FetchResponse], **settings: str) -> None:
        self.config = consumer_config({"bootstrap.servers": "broker:9092", "retry.backoff.ms": "1", **settings}, {})
        self.clock = SystemClock()
        self.cluster = Cluster([NODE])
        self.answers = answers
        self.asked: list[FetchRequest] = []
        self.network = self.metadata = self

    async def send(self, node_id: int, request: FetchRequest, **_: Any) -> FetchResponse:
        self.asked.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def current_leader(self, partition: object) -> LeaderAndEpoch:
        return LeaderAndEpoch(NODE, 3)

    def add(self, topic: str) -> None: ...

    def request_update(self, reset_backoff: bool) -> int:
        return 0

    def sizes(self) -> list[int]:
        return [request.topics[0].partitions[0].partition_max_bytes for request in self.asked]


def answer(data: bytes = b"", *, high_watermark: int = 100, throttle_ms: int = 0, error: int = 0, **fields: Any) -> FetchResponse:
    records = Records(data) if data else None
    partition = PartitionData(0, error, high_watermark, fields.pop("stable", high_watermark), 0, records=records, **fields)
    return FetchResponse(throttle_ms, responses=[FetchableTopicResponse("orders", partitions=[partition])])


def fetched(broker: ScriptedBroker, start: int = 0, end: int = 10, **options: Any) -> list[Fetched]:
    async def run() -> list[Fetched]:
        fetches: list[Fetched] = []

        def give(one_fetch: Fetched) -> None:
            fetches.append(one_fetch)
            fetcher.taken()

        fetcher = RangeFetcher(cast(Client, broker), OffsetRange("orders", 0, start, end), FetchOptions(**options), give)
        await fetcher.run()
        return fetches

    return asyncio.run(run())


def test_it_goes_on_behind_the_last_whole_batch() -> None:
    broker = ScriptedBroker([answer(batch(4) + batch(4, offset=4)[:30]), answer(batch(6, offset=4))])
    assert [fetch.next_offset for fetch in fetched(broker)] == [4, 10]
    assert [request.topics[0].partitions[0].fetch_offset for request in broker.asked] == [0, 4]


def test_a_short_range_is_not_asked_for_by_the_megabyte() -> None:
    broker = ScriptedBroker([answer(batch(10))])
    fetched(broker)
    assert broker.sizes() == [FETCH_BYTES_MIN]


def test_a_long_range_is_asked_for_in_full_fetches() -> None:
    broker = ScriptedBroker([answer(batch(10), high_watermark=10**6), answer(batch([b"x"], offset=999_999), high_watermark=10**6)])
    fetched(broker, end=10**6, fetch_bytes=3_000_000)
    assert broker.sizes()[0] == 3_000_000


def test_the_size_that_the_user_gave_is_the_largest() -> None:
    broker = ScriptedBroker([answer(batch([b"x"], offset=10**6 - 1))], **{"max.partition.fetch.bytes": "70000"})
    fetched(broker, end=10**6)
    assert broker.sizes() == [70_000]


def test_a_batch_larger_than_what_was_asked_for_is_asked_for_again_with_more_room() -> None:
    large = batch([b"x" * 200_000])
    broker = ScriptedBroker([answer(large[:FETCH_BYTES_MIN]), answer(large[: 2 * FETCH_BYTES_MIN]), answer(large)])
    assert [fetch.next_offset for fetch in fetched(broker, end=1)] == [1]


def test_a_log_without_records_up_to_the_end_is_at_its_end() -> None:
    broker = ScriptedBroker([answer(batch(4)), answer()])
    assert [fetch.next_offset for fetch in fetched(broker)] == [4]
    assert len(broker.asked) == 3


def test_an_empty_answer_of_a_broker_that_throttles_means_nothing() -> None:
    broker = ScriptedBroker([answer(throttle_ms=1), answer(throttle_ms=1), answer(throttle_ms=1), answer(batch(10))])
    assert [fetch.next_offset for fetch in fetched(broker)] == [10]


def test_what_is_not_stable_yet_is_waited_for() -> None:
    broker = ScriptedBroker([answer(stable=4), answer(stable=4), answer(stable=4), answer(batch(10))])
    assert [fetch.next_offset for fetch in fetched(broker)] == [10]
    with pytest.raises(FetchTimeoutError, match="shows nothing at that offset"):
        fetched(ScriptedBroker([answer(stable=4)]), timeout_ms=20)


def test_read_uncommitted_looks_at_the_high_watermark_alone() -> None:
    assert fetched(ScriptedBroker([answer(stable=4)]), read_committed=False) == []


def test_aborted_transactions_come_along_with_read_committed_only() -> None:
    aborted = [AbortedTransaction(7, 2)]
    assert [fetch.aborted for fetch in fetched(ScriptedBroker([answer(batch(10), aborted_transactions=aborted)]))] == [[(7, 2)]]
    assert [each.aborted for each in fetched(ScriptedBroker([answer(batch(10))]), read_committed=False)] == [None]


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_errors_that_pass_are_waited_out_until_there_is_no_time_left(code: ErrorCode) -> None:
    assert len(fetched(ScriptedBroker([answer(error=code), answer(error=code), answer(batch(10))]))) == 1
    with pytest.raises(FetchTimeoutError, match="pollTimeoutMs"):
        fetched(ScriptedBroker([answer(error=code)]), timeout_ms=20)
