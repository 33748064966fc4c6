"""The timestamps of first unread records in partitions that other brokers lead, by Fetch: a part of the round of `remote_offsets.py`.

A round reads at most TIMES_PER_ROUND timestamps from a leader, PARTITIONS_PER_FETCH in one request of at most FETCH_BYTES_MAX bytes. A
partition whose first batch is larger than PARTITION_BYTES_MAX is asked for alone, because a leader returns the first batch of the first
partition whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from barnabas.broker.exposition.lag.record_time import first_batch
from barnabas.broker.exposition.lag.unread_times import Key
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchResponse
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.topic_partition import TopicPartition

TIMES_PER_ROUND: Final = 400
PARTITIONS_PER_FETCH: Final = 16
PARTITION_BYTES_MAX: Final = 65_536
FETCH_BYTES_MAX: Final = 1 << 20
LARGE_PER_ROUND: Final = 8  # fetches of one large batch each
ROUNDS_KEPT: Final = 6  # a timestamp is read again after these: the record may have been deleted
FETCH_VERSION: Final = 12
LIST_OFFSETS_VERSION: Final = 5
_EARLIEST: Final = -2
_CONSUMER: Final = -1

Ask = Callable[[Message, int], Awaitable[Message]]  # sends a request of a version to the leader


class RemoteTimes:
    """`of` returns the timestamp of the first unread record, for a partition and a committed offset."""

    def __init__(self) -> None:
        self._times: dict[Key, tuple[int, int]] = {}  # timestamp, and the round in which it was read
        self._round = 0
        self._first = 0  # where the next round begins among too many unknown timestamps

    def __len__(self) -> int:
        return len(self._times)

    def of(self, partition: TopicPartition, offset: int) -> int | None:
        read = self._times.get((partition, offset))
        return None if read is None else read[0]

    def begin(self, unread: Iterable[Key]) -> None:
        """Starts a round. Forgets the timestamps of offsets that are not among the `unread` ones, and those of ROUNDS_KEPT rounds ago."""
        self._round += 1
        oldest = self._round - ROUNDS_KEPT
        times = self._times
        self._times = {key: times[key] for key in unread if key in times and times[key][1] > oldest}

    async def read(self, unread: list[Key], ask: Ask) -> None:
        """Reads the timestamps that are unknown from the leader of these partitions. Raises KafkaError if it does not answer."""
        missing = [key for key in unread if key not in self._times]
        if len(missing) > TIMES_PER_ROUND:
            start = self._first % len(missing)
            missing = (missing[start:] + missing[:start])[:TIMES_PER_ROUND]
            self._first += TIMES_PER_ROUND
        large: list[Key] = []
        deleted: list[Key] = []
        for keys in in_requests(missing):
            await self._fetch({partition: (offset, (partition, offset)) for partition, offset in keys}, ask, large, deleted)
        for partition, offset in large[:LARGE_PER_ROUND]:
            await self._fetch({partition: (offset, (partition, offset))}, ask, [], deleted)
        for keys in in_requests(deleted):
            starts = await _start_offsets([partition for partition, _ in keys], ask)
            await self._fetch({key[0]: (starts[key[0]], key) for key in keys if key[0] in starts}, ask, [], [])

    async def _fetch(self, fetches: dict[TopicPartition, tuple[int, Key]], ask: Ask, large: list[Key], deleted: list[Key]) -> None:
        if not fetches:
            return
        response = await ask(fetch_request({partition: offset for partition, (offset, _) in fetches.items()}), FETCH_VERSION)
        assert isinstance(response, FetchResponse)
        for topic in response.responses:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic, part.partition_index)
                if partition not in fetches:
                    continue
                offset, key = fetches[partition]
                if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    deleted.append(key)
                elif part.error_code == ErrorCode.NONE:
                    data = b"" if part.records is None else part.records.to_bytes()
                    timestamp = _first_timestamp(data, offset)
                    if timestamp is not None:
                        self._times[key] = timestamp, self._round
                    elif not data and part.high_watermark > offset:
                        large.append(key)


def in_requests(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """The keys in lists for one request each: a request can name a partition once."""
    waiting = list(keys)
    while waiting:
        now: dict[TopicPartition, Key] = {}
        later: list[Key] = []
        for key in waiting:
            if key[0] in now or len(now) == PARTITIONS_PER_FETCH:
                later.append(key)
            else:
                now[key[0]] = key
        yield list(now.values())
        waiting = later


def fetch_request(offsets: dict[TopicPartition, int]) -> FetchRequest:
    """Of a consumer that waits for nothing."""
    topics: dict[str, FetchTopic] = {}
    for (topic, index), offset in offsets.items():
        part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
        topics.setdefault(topic, FetchTopic(topic)).partitions.append(part)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES_MAX, topics=list(topics.values()))


async def _start_offsets(partitions: list[TopicPartition], ask: Ask) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in partitions:
        topics.setdefault(topic, ListOffsetsTopic(topic)).partitions.append(ListOffsetsPartition(index, timestamp=_EARLIEST))
    response = await ask(ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values())), LIST_OFFSETS_VERSION)
    assert isinstance(response, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, part.partition_index): part.offset
        for topic in response.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE
    }


def _first_timestamp(data: bytes, offset: int) -> int | None:
    """Of the first batch in `data` that is not a transaction marker."""
    at = 0
    try:
        while (batch := first_batch(data[at:] if at else data, offset)) is not None:
            if batch.timestamp is not None:
                return batch.timestamp
            at += batch.size
    except KafkaError:
        pass
    return None
