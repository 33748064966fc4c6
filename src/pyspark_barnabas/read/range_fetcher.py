"""Fetches one range of offsets from the leader of the partition, ahead of the task that decodes it.

It runs on the event loop of the worker's client: one Fetch after the other, each sent as soon as the batch headers of the last response
give the next offset, while the task is not too far behind. When a leader moves or a broker fails it retries, until it has made no progress
for too long. It reads only the headers of batches, and never skips a record without an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.client.cluster import Node
from barnabas.client.errors import KafkaError, Timeout, error_for
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.protocol.slices import Records
from barnabas.records.batch import read_batches
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from pyspark_barnabas.read.batch_cuts import Cut, next_offset_and_cuts
from pyspark_barnabas.read.read_errors import fetch_timeout, offsets_lost, topic_deleted, topic_recreated

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client
    from pyspark_barnabas.read.fetch import FetchOptions
    from pyspark_barnabas.read.ranges import OffsetRange

_log: Final = logging.getLogger(__name__)

FETCHES_AHEAD: Final = 2  # responses that wait to be decoded; one more is in flight
VERSION_MAX_BY_NAME: Final = 12  # later versions of Fetch have topic ids only
UNKNOWN_TOPIC_S_MAX: Final = 10.0  # a broker that has just started may not have the topic yet; after this time the topic counts as deleted
EARLIEST: Final = -2
LATEST: Final = -1
EMPTY_ANSWERS: Final = 2
FETCH_BYTES_MIN: Final = 64 * 1024
RECORD_BYTES_GUESS: Final = 1024
SIZE_MARGIN: Final = 1.25

_UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})


class Fetched:
    """The result of one Fetch: batches, and the positions at which they can be cut. `aborted` is for read_committed; otherwise None."""

    __slots__ = ("aborted", "cuts", "data", "first_offset", "next_offset")

    def __init__(self, data: bytes, cuts: list[Cut], first_offset: int, next_offset: int, aborted: list[tuple[int, int]] | None) -> None:
        self.data = data
        self.cuts = cuts
        self.first_offset = first_offset
        self.next_offset = next_offset
        self.aborted = aborted


class RangeFetcher:
    """Calls `give` on the loop's thread with each response, until `run` ends or fails."""

    def __init__(self, client: Client, offset_range: OffsetRange, options: FetchOptions, give: Callable[[Fetched], None]) -> None:
        self._client = client
        self._network = client.network
        self._metadata = client.metadata
        self._partition = TopicPartition(offset_range.topic, offset_range.partition)
        self._topic_id = Uuid.from_string(offset_range.topic_id) if offset_range.topic_id else Uuid.ZERO
        self._offset = offset_range.start
        self._end = offset_range.end
        self._options = options
        self._give = give
        config = client.config
        self._retry = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._fetch_bytes_max: int = (
            config["max.partition.fetch.bytes"] if config.is_given("max.partition.fetch.bytes") else options.fetch_bytes
        )
        self._response_bytes_max: int = max(config["fetch.max.bytes"], self._fetch_bytes_max)
        self._max_wait_ms: int = config["fetch.max.wait.ms"]
        self._min_bytes: int = config["fetch.min.bytes"]
        self._rack: str = config["client.rack"]
        self._room = asyncio.Semaphore(FETCHES_AHEAD)
        self._attempts = 0
        self._deadline_ms = 0
        self._last_error: KafkaError | None = None
        self._unknown_since_ms: int | None = None
        self._read_replica: int | None = None
        self._is_throttled = False
        self._empty_answers = 0
        self._bytes_per_offset = float(RECORD_BYTES_GUESS)

    def taken(self) -> None:
        """The task has taken one response, so that another can be fetched. Called on the loop's thread."""
        self._room.release()

    async def run(self) -> None:
        """Fetches until the end of the range. Raises DataSourceError, or the broker's error if a retry cannot help."""
        self._progress()
        self._metadata.add(self._partition.topic)
        while self._offset < self._end:
            await self._room.acquire()
            self._progress()  # time in which the task took nothing does not count
            fetched = await self._fetched()
            if fetched is None:
                return
            self._give(fetched)

    async def _fetched(self) -> Fetched | None:
        """The next response with batches; None if nothing is left to read."""
        while self._offset < self._end:
            try:
                leader, epoch = await self._leader()
                data = await self._fetch(leader, epoch)
            except KafkaError as error:
                if not error.retriable:
                    raise
                self._read_replica = None
                await self._wait_after(error)
                continue
            if data is None:
                continue
            fetched = self._take_in(data)
            if fetched is not None:
                self._progress()
                return fetched
        return None

    # Finding the replica

    async def _leader(self) -> tuple[Node, int]:
        topic = self._partition.topic
        current = self._metadata.current_leader(self._partition)
        cluster = self._metadata.cluster
        if current.leader is None:
            self._metadata.add(topic)
            await self._refresh()
            cluster, current = self._metadata.cluster, self._metadata.current_leader(self._partition)
            self._metadata.raise_for_topic(topic)
        known_id = cluster.topic_id(topic)
        if Uuid.ZERO != known_id != self._topic_id != Uuid.ZERO:
            raise topic_recreated(topic, str(self._topic_id), str(known_id))
        if current.leader is None:
            self._check_known(cluster.partition(self._partition) is not None)
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{self._partition} has no leader at the moment")
        if self._read_replica is not None:
            node = cluster.node_if_online(self._partition, self._read_replica)
            if node is not None:
                return node, current.epoch
            self._read_replica = None
        return current.leader, current.epoch

    async def _refresh(self) -> None:
        version = self._metadata.request_update(False)
        left_ms = max(self._deadline_ms - self._client.clock.monotonic_ms(), 1)
        await self._metadata.wait_for_update(version, min(left_ms, self._network.request_timeout_ms))

    def _check_known(self, known: bool) -> None:
        """Raises an error once the topic has been unknown for so long that it must have been deleted."""
        now_ms = self._client.clock.monotonic_ms()
        if known:
            self._unknown_since_ms = None
        elif self._unknown_since_ms is None:
            self._unknown_since_ms = now_ms
        elif now_ms - self._unknown_since_ms > UNKNOWN_TOPIC_S_MAX * 1000:
            raise topic_deleted(self._partition.topic, self._partition.partition)

    # Asking

    async def _fetch(self, node: Node, leader_epoch: int) -> PartitionData | None:
        """One response; None after an error that is handled. Raises errors that need a retry or cannot be retried."""
        fetch_partition = FetchPartition(
            partition=self._partition.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=self._offset,
            partition_max_bytes=self._size_to_ask_for(),
        )
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._response_bytes_max,
            isolation_level=1 if self._options.read_committed else 0,
            topics=[FetchTopic(self._partition.topic, self._topic_id, [fetch_partition])],
            rack_id=self._rack,
        )
        by_name = self._topic_id == Uuid.ZERO
        response = await self._network.send(
            node.id, request, timeout_ms=self._time_left(), max_version=VERSION_MAX_BY_NAME if by_name else None
        )
        assert isinstance(response, FetchResponse)
        if response.error_code != 0:
            raise error_for(response.error_code)
        self._is_throttled = response.throttle_time_ms > 0
        data = response.responses[0].partitions[0]
        if data.error_code == 0:
            if data.preferred_read_replica >= 0:
                self._read_replica = data.preferred_read_replica
            return data
        await self._dealt_with(data, response)
        return None

    def _time_left(self) -> int:
        return max(min(self._network.request_timeout_ms, self._deadline_ms - self._client.clock.monotonic_ms()), 1)

    def _size_to_ask_for(self) -> int:
        """The estimated size of the rest of the range, so that a short range does not fetch megabytes beyond its end."""
        expected = int((self._end - self._offset) * self._bytes_per_offset * SIZE_MARGIN)
        return min(max(expected, FETCH_BYTES_MIN), self._fetch_bytes_max)

    async def _dealt_with(self, data: PartitionData, response: FetchResponse) -> None:
        code = data.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._read_replica is not None:  # that replica may be behind
                self._read_replica = None
                return
            await self._out_of_range()
            return
        error = error_for(code)
        leader = data.current_leader
        if leader is not None and leader.leader_id >= 0 and leader.leader_epoch >= 0:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            if self._metadata.update_partition_leadership({self._partition: (leader.leader_id, leader.leader_epoch)}, nodes):
                return  # the response contains the new leader
        self._metadata.request_update(False)
        if code in _UNKNOWN:
            await self._refresh()
            known_id = self._metadata.cluster.topic_id(self._partition.topic)
            if Uuid.ZERO != known_id != self._topic_id != Uuid.ZERO:
                raise topic_recreated(self._partition.topic, str(self._topic_id), str(known_id))
            self._check_known(False)
            await self._wait_after(error)
            return
        raise error

    # Answers

    def _take_in(self, data: PartitionData) -> Fetched | None:
        records: Records | None = data.records
        if records is None or records.size == 0:
            self._take_nothing(data)
            return None
        self._empty_answers = 0
        batches = records.to_bytes()
        first_offset = self._offset
        next_offset, cuts = next_offset_and_cuts(read_batches(batches), first_offset, self._end)
        if next_offset <= first_offset:  # an incomplete batch, larger than the requested size: old brokers return these
            self._bytes_per_offset *= 2
            self._fetch_bytes_max = max(self._fetch_bytes_max, 2 * records.size)
            self._check_time(None)
            return None
        self._offset = next_offset
        self._bytes_per_offset = len(batches) / (next_offset - first_offset)
        aborted = None
        if self._options.read_committed:
            aborted = [(transaction.producer_id, transaction.first_offset) for transaction in data.aborted_transactions or ()]
        return Fetched(batches, cuts, first_offset, next_offset, aborted)

    def _take_nothing(self, data: PartitionData) -> None:
        """Handles an empty response: the last records of the range may be removed by compaction, although the log reaches beyond the range.

        A broker returns at least one batch if there is one (KIP-74), unless it throttles; therefore the fetch is repeated once.
        """
        visible = data.last_stable_offset if self._options.read_committed and data.last_stable_offset >= 0 else data.high_watermark
        self._empty_answers = self._empty_answers + 1 if visible >= self._end and not self._is_throttled else 0
        if self._empty_answers >= EMPTY_ANSWERS:
            _log.info("%s has no records from offset %d to %d", self._partition, self._offset, self._end)
            self._offset = self._end
        self._check_time(None)

    async def _out_of_range(self) -> None:
        """Retention has passed the query, or the log was truncated. Raises an error, or continues at the next offset with records."""
        earliest, latest = await self._offset_at(EARLIEST), await self._offset_at(LATEST)
        if earliest <= self._offset <= latest:
            raise error_for(ErrorCode.OFFSET_NOT_AVAILABLE, "the log has changed while it was asked")
        if self._options.fail_on_data_loss:
            raise offsets_lost(self._partition.topic, self._partition.partition, self._offset, self._end, earliest, latest)
        resume = min(earliest, self._end) if self._offset < earliest else self._end
        _log.warning(
            "Skipping offsets %d to %d of %s, which are lost: the log has %d to %d", self._offset, resume, self._partition, earliest, latest
        )
        self._offset = resume

    async def _offset_at(self, timestamp: int) -> int:
        leader, epoch = await self._leader()
        partition = ListOffsetsPartition(self._partition.partition, epoch, timestamp)
        request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(self._partition.topic, [partition])])
        response = await self._network.send(leader.id, request, timeout_ms=self._time_left())
        assert isinstance(response, ListOffsetsResponse)
        answer = response.topics[0].partitions[0]
        if answer.error_code != 0:
            self._metadata.request_update(False)
            raise error_for(answer.error_code)
        return answer.offset if answer.offset >= 0 or not answer.old_style_offsets else answer.old_style_offsets[0]

    # Time

    def _progress(self) -> None:
        self._attempts = 0
        self._last_error = None
        self._unknown_since_ms = None
        self._deadline_ms = self._client.clock.monotonic_ms() + self._options.timeout_ms

    async def _wait_after(self, error: KafkaError) -> None:
        self._last_error = error
        self._check_time(error)
        wait_ms = self._retry.backoff_ms(self._attempts)
        self._attempts += 1
        await asyncio.sleep(wait_ms / 1000)

    def _check_time(self, error: KafkaError | None) -> None:
        if self._client.clock.monotonic_ms() >= self._deadline_ms:
            reason = error or self._last_error
            raise fetch_timeout(
                self._partition.topic, self._partition.partition, self._offset, self._options.timeout_ms, reason
            ) from reason
        if isinstance(error, Timeout):
            self._metadata.request_update(False)
