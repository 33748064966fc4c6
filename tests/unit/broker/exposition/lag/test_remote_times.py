from __future__ import annotations

import asyncio

from barnabas.broker.exposition.lag import remote_times
from barnabas.broker.exposition.lag.remote_times import RemoteTimes, in_requests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets_request import ListOffsetsRequest
from barnabas.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 0)


class Leader:
    """A leader whose partitions have one record at each offset, with the timestamp 1000 + offset, from `starts` on."""

    def __init__(self, starts: dict[TopicPartition, int] | None = None, large: set[TopicPartition] | None = None) -> None:
        self.starts = starts or {}
        self.large = large or set()
        self.fetches: list[list[tuple[TopicPartition, int]]] = []

    async def ask(self, request: Message, version: int) -> Message:
        if isinstance(request, ListOffsetsRequest):
            return ListOffsetsResponse(
                topics=[
                    ListOffsetsTopicResponse(
                        topic.name,
                        [
                            ListOffsetsPartitionResponse(part.partition_index, offset=self.starts[TopicPartition(topic.name, 0)])
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        assert isinstance(request, FetchRequest)
        partitions = [
            (TopicPartition(topic.topic, part.partition), part.fetch_offset) for topic in request.topics for part in topic.partitions
        ]
        self.fetches.append(partitions)
        return FetchResponse(
            responses=[
                FetchableTopicResponse(key[0].topic, partitions=[self._answer(*key, alone=len(partitions) == 1)]) for key in partitions
            ]
        )

    def _answer(self, partition: TopicPartition, offset: int, alone: bool) -> PartitionData:
        if offset < self.starts.get(partition, 0):
            return PartitionData(partition.partition, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        data = b"" if partition in self.large and not alone else build([(1000 + offset, None, b"x", ())], base_offset=offset)
        return PartitionData(partition.partition, 0, 100, records=Records(data))


def read(times: RemoteTimes, leader: Leader, *unread: tuple[TopicPartition, int]) -> None:
    times.begin(unread)
    asyncio.run(times.read(list(unread), leader.ask))


def test_a_timestamp_is_read_once_for_each_committed_offset() -> None:
    times, leader = RemoteTimes(), Leader()
    read(times, leader, (ORDERS, 5), (ORDERS, 7), (PAYMENTS, 3))
    assert [times.of(ORDERS, 5), times.of(ORDERS, 7), times.of(PAYMENTS, 3)] == [1005, 1007, 1003]
    assert leader.fetches == [[(ORDERS, 5), (PAYMENTS, 3)], [(ORDERS, 7)]]
    read(times, leader, (ORDERS, 5), (PAYMENTS, 4))
    assert leader.fetches[2:] == [[(PAYMENTS, 4)]]
    assert (times.of(ORDERS, 7), times.of(PAYMENTS, 4), len(times)) == (None, 1004, 2)


def test_of_deleted_records_the_first_that_exists_counts() -> None:
    times, leader = RemoteTimes(), Leader(starts={ORDERS: 50})
    read(times, leader, (ORDERS, 5))
    assert times.of(ORDERS, 5) == 1050


def test_a_large_batch_is_asked_for_alone() -> None:
    times, leader = RemoteTimes(), Leader(large={PAYMENTS})
    read(times, leader, (ORDERS, 5), (PAYMENTS, 3))
    assert (times.of(PAYMENTS, 3), leader.fetches[1:]) == (1003, [[(PAYMENTS, 3)]])


def test_a_round_is_bounded_and_the_next_one_goes_on() -> None:
    times, leader = RemoteTimes(), Leader()
    unread = [(TopicPartition(f"t{number}", 0), 1) for number in range(remote_times.TIMES_PER_ROUND + 10)]
    read(times, leader, *unread)
    assert len(times) == remote_times.TIMES_PER_ROUND
    read(times, leader, *unread)
    assert len(times) == len(unread)


def test_a_timestamp_is_read_again_after_some_rounds() -> None:
    times, leader = RemoteTimes(), Leader()
    for _ in range(remote_times.ROUNDS_KEPT + 1):
        read(times, leader, (ORDERS, 5))
    assert len(leader.fetches) == 2


def test_a_request_names_a_partition_once() -> None:
    keys = [(ORDERS, offset) for offset in range(3)] + [(TopicPartition("many", number), 0) for number in range(20)]
    for request in in_requests(keys):
        assert len({partition for partition, _ in request}) == len(request) <= remote_times.PARTITIONS_PER_FETCH
    assert sorted(key for request in in_requests(keys) for key in request) == sorted(keys)
