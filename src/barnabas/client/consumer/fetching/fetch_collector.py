# Compiled by mypyc: src/compiled.toml lists this module.
"""Collects the records that a poll returns from the fetched data, at most `max.poll.records`, and advances the positions.

Runs in the polling thread. Partition errors that only the application can handle are raised here, but records before the error are returned
first. Data that no longer matches the position, because of a seek or a revocation, is discarded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch, Decoding
from barnabas.client.consumer.fetching.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetching.fetch_metrics import FetchMetrics
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.partition_state import FetchPosition, epoch_or_none
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.consumer.record import ConsumerRecord
from barnabas.client.errors import IllegalState, OffsetOutOfRange, TopicAuthorization
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

_log: Final = logging.getLogger(__name__)

# Takes at most `most` records of a fetch: a list of records, or an Arrow batch. Returns it and its number of records.
Take = Callable[[CompletedFetch, int], tuple[Any, int]]


class Collected:
    """The records of one poll, by partition. `advanced` means that a position moved, possibly without a visible record."""

    __slots__ = ("advanced", "by_partition", "count", "finished", "next_offsets")

    def __init__(self) -> None:
        self.by_partition: dict[TopicPartition, list[Any]] = {}
        self.next_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.count = 0
        self.advanced = False
        self.finished = False  # a fetch was consumed: there is room for another

    @property
    def is_empty(self) -> bool:
        return self.count == 0 and not self.advanced


class FetchCollector:
    def __init__(
        self,
        subscriptions: SubscriptionState,
        buffer: FetchBuffer,
        decoding: Decoding,
        metrics: FetchMetrics,
        *,
        max_poll_records: int,
    ) -> None:
        self._subscriptions = subscriptions
        self._lock = subscriptions.lock
        self._buffer = buffer
        self._decoding = decoding
        self._metrics = metrics
        self._max_poll_records = max_poll_records

    def collect(self, most: int | None = None) -> Collected:
        """The records for a poll."""
        return self._collect(most or self._max_poll_records, self._records)

    def collect_by(self, take: Take, most: int) -> Collected:
        """Like `collect`, with another way of taking records."""
        return self._collect(most, take)

    def _records(self, fetch: CompletedFetch, most: int) -> tuple[list[ConsumerRecord[Any, Any]], int]:
        records = fetch.take(most, self._decoding)
        return records, len(records)

    def _collect(self, most: int, take: Take) -> Collected:
        collected = Collected()
        paused: list[CompletedFetch] = []
        moved: list[TopicPartition] = []
        buffer = self._buffer
        try:
            while collected.count < most:
                with self._lock:
                    fetch = buffer.first(paused)
                if fetch is None:
                    break
                partition = TopicPartition(fetch.topic, fetch.partition)
                if self._subscriptions.is_paused(partition):
                    paused.append(fetch)
                    continue
                if not fetch.is_initialized and not self._initialize(fetch, partition, collected):
                    continue
                self._take(fetch, partition, most - collected.count, take, collected)
                if fetch.is_consumed:
                    if fetch.bytes_read > 0:
                        moved.append(partition)
                    self._finish(partition, fetch, collected)
        except KafkaError:
            if collected.is_empty:
                raise
        finally:
            if paused:
                with self._lock:
                    buffer.to_end(paused)
            if moved:
                self._subscriptions.move_to_end(moved)
        return collected

    def _take(self, fetch: CompletedFetch, partition: TopicPartition, most: int, take: Take, collected: Collected) -> None:
        state = self._subscriptions.state_or_none(partition)
        before = None if state is None or not state.is_fetchable else state.position
        if state is None or before is None or before.offset != fetch.next_fetch_offset:
            _log.debug("Not returning fetched records for partition %s: it is not at their offset any more", partition)
            fetch.drain()
            return
        taken, count = take(fetch, most)
        with self._lock:
            # The event loop may have processed a new leader or a revocation in the meantime.
            now = state.position
            if now is None or now.offset != before.offset or not state.is_fetchable:
                fetch.drain()
                return
            if fetch.next_fetch_offset > now.offset:
                state.position = FetchPosition(fetch.next_fetch_offset, fetch.last_epoch, now.leader_id, now.leader_epoch)
                collected.advanced = True
                collected.next_offsets[partition] = OffsetAndMetadata(fetch.next_fetch_offset, "", epoch_or_none(fetch.last_epoch))
        if count > 0:
            previous = collected.by_partition.get(partition)
            if previous is None:
                collected.by_partition[partition] = taken
            else:
                previous.extend(taken)
            collected.count += count

    def _finish(self, partition: TopicPartition, fetch: CompletedFetch, collected: Collected) -> None:
        with self._lock:
            self._buffer.remove(partition, fetch)
        if fetch.records_read > 0:
            self._metrics.consumed(partition, fetch.records_read, fetch.bytes_read)
        collected.finished = True

    def _initialize(self, fetch: CompletedFetch, partition: TopicPartition, collected: Collected) -> bool:
        """Whether records can be taken of the fetch; otherwise it is dropped."""
        position = self._subscriptions.valid_position(partition) if self._subscriptions.is_assigned(partition) else None
        if position is None or position.offset != fetch.fetch_offset:
            _log.debug("Discarding stale fetch response for partition %s since its offset is not the expected one", partition)
            self._finish(partition, fetch, collected)
            return False
        try:
            if fetch.error_code != 0:
                self._settle_error(fetch, partition, position)
                self._finish(partition, fetch, collected)
                self._subscriptions.move_to_end([partition])
                return False
            if fetch.has_no_whole_batch:
                raise KafkaError(
                    f"Failed to make progress reading messages at {partition}={fetch.fetch_offset}. Received a non-empty fetch response "
                    "from the server, but no complete records were found."
                )
        except KafkaError:
            # Records before the error are returned first; then it is raised. It is raised only once if the fetch holds no data.
            if collected.is_empty and fetch.size == 0:
                self._finish(partition, fetch, collected)
            raise
        fetch.is_initialized = True
        return True

    def _settle_error(self, fetch: CompletedFetch, partition: TopicPartition, position: FetchPosition) -> None:
        offset = fetch.fetch_offset
        if fetch.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._subscriptions.clear_preferred_read_replica(partition) is not None:
                _log.debug("Unset the preferred read replica for partition %s since its offset is out of range there", partition)
            elif self._subscriptions.has_default_reset_policy():
                _log.info("Fetch position %s is out of range for partition %s, resetting offset", position, partition)
                self._subscriptions.request_offset_reset_if_assigned(partition)
            else:
                message = f"Fetch position {position} is out of range for partition {partition}"
                _log.info("%s, raising error to the application since no reset policy is configured", message)
                raise OffsetOutOfRange(message, {partition: offset})
        elif fetch.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            _log.warning("Not authorized to read from partition %s.", partition)
            raise TopicAuthorization(unauthorized_topics=[partition.topic])
        elif fetch.error_code == ErrorCode.CORRUPT_MESSAGE:
            raise KafkaError(f"Encountered corrupt message when fetching offset {offset} for topic-partition {partition}")
        else:
            raise IllegalState(
                f"Unexpected error code {fetch.error_code} while fetching at offset {offset} from topic-partition {partition}"
            )
