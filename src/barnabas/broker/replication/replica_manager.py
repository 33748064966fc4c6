# Compiled by mypyc: src/compiled.toml lists this module.
"""All partitions of this broker: handlers and coordinators reach the logs only through it.

Produce and Fetch go to their partitions and return, or wait in a purgatory. Control requests are applied here. After every change that may
complete a delayed operation, the purgatories are checked, and always after the response to the request that made the change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas import loggers
from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.metrics.topic_metrics import TopicMetrics
from barnabas.broker.partitions import offset_queries
from barnabas.broker.partitions.ack_status import ACKNOWLEDGED, AckStatus
from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.fetch_params import FetchParams, FetchResult, PartitionFetch, RequestedPartition, TopicIdPartition
from barnabas.broker.partitions.offset_queries import LeaderEpochEndOffset
from barnabas.broker.partitions.partition import ACKS_ALL, Partition, PartitionHost
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.quotas.replication_quotas import ReplicationQuotas
from barnabas.broker.replication import log_dirs, replica_states
from barnabas.broker.replication.log_dir_mover import LogDirMover
from barnabas.broker.replication.log_dirs import DiskSpace, LogDirInfo, disk_space
from barnabas.broker.replication.long_appends import LongAppends
from barnabas.broker.replication.long_reads import LongReads
from barnabas.broker.replication.refused_appends import refused_append
from barnabas.broker.replication.replica_parts import ReplicaParts
from barnabas.broker.replication.replica_selector import read_replicas
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE
from barnabas.broker.waiting.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsResult
from barnabas.broker.waiting.delayed_fetch import DelayedFetch, Fetched, LogReading
from barnabas.broker.waiting.delayed_produce import DelayedProduce
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.errors import (
    InconsistentTopicId,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    TakesTurns,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.records.codecs.compression import FIRST_LOOK
from barnabas.records.validation.validation import COORDINATOR
from barnabas.records.validation.validator import LOOK_AT_ONCE
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.storage.segments.segment import TimestampAndOffset
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.topics.metadata_cache import MetadataCache

_log: Final = logging.getLogger(__name__)

_UNKNOWN_SERVER_ERROR: Final = int(ErrorCode.UNKNOWN_SERVER_ERROR)
FLUSH_TIMEOUT_MS: Final = 30_000
ACKS_LEADER: Final = 1
REFUSED_LOOK: Final = FIRST_LOOK  # the bytes that a refused batch counts for: as many as are validated at first of a compressed one

_INVALID_REQUIRED_ACKS: Final = int(ErrorCode.INVALID_REQUIRED_ACKS)


class ReplicaManagerMetrics:
    """Counters, which the metrics read."""

    def __init__(self) -> None:
        self.expired_produces = 0
        self.expired_follower_fetches = 0
        self.expired_consumer_fetches = 0


class ReplicaManager:
    """`on_leadership_change` are called with the partitions that this broker began to lead and to follow, `on_partitions_deleted` with
    deleted partitions, `on_log_dir_failure` with a directory whose disk failed. `on_change_of` is for the coordinators: it is called for
    every change to a partition of a topic that also checks the purgatories."""

    def __init__(
        self,
        config: DynamicBrokerConfig,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        clock: Clock,
        *,
        produce_purgatory: DelayedOperationPurgatory[Any],
        fetch_purgatory: DelayedOperationPurgatory[Any],
        delete_records_purgatory: DelayedOperationPurgatory[Any],
        on_log_dir_failure: Callable[[str], None] | None = None,
        later: Callable[[Callable[[], None]], object] | None = None,
        make_parts: Callable[[ReplicaManager], ReplicaParts] | None = None,
        space_of: DiskSpace = disk_space,
    ) -> None:
        self.config = config
        self.broker_id = metadata_cache.broker_id
        self.log_manager = log_manager
        self.metadata_cache = metadata_cache
        self.clock = clock
        self.produce_purgatory = produce_purgatory
        self.fetch_purgatory = fetch_purgatory
        self.delete_records_purgatory = delete_records_purgatory
        self.metrics = ReplicaManagerMetrics()
        self.on_leadership_change: list[Callable[[list[Partition], list[Partition]], None]] = []
        self.on_partitions_deleted: list[Callable[[list[TopicPartition]], None]] = []
        self.on_log_dir_failure = on_log_dir_failure
        self.on_change_of: dict[str, Callable[[TopicPartition], None]] = {}
        self.fetchers: replica_states.Fetchers | None = None  # None for a single broker
        self.later = later  # loop.call_soon: runs a callback in the next iteration
        self.long_appends: LongAppends | None = None  # None: append_records appends everything in one call
        self.long_reads: LongReads | None = None  # None: fetch_messages reads everything in one call
        self.controller_epoch = 0
        self.online: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()  # on a disk that failed
        self.quotas = ReplicationQuotas(self.broker_id, config.static.number)
        self.mover = LogDirMover(log_manager, self.online, self.quotas.alter_log_dirs)
        self.host = PartitionHost(
            self.broker_id,
            log_manager,
            metadata_cache,
            clock,
            config.current.number("replica.lag.time.max.ms"),
            self.wake,
        )
        self._space_of = space_of
        self._grown: dict[TopicPartition, None] = {}  # partitions whose waiting fetches are checked in the next iteration
        self._read_replicas = read_replicas(config.current, metadata_cache)
        if make_parts is not None:
            parts = make_parts(self)
            self.long_appends, self.long_reads, self.fetchers = parts.long_appends, parts.long_reads, parts.fetchers
            self.host.isr_updates = parts.isr_updates

    # -- partitions

    def partition(self, partition: TopicPartition) -> Partition | None:
        """The partition, if this broker has an online replica of it."""
        return self.online.get(partition)

    def partition_or_raise(self, partition: TopicPartition, topic_id: Uuid = Uuid.ZERO) -> Partition:
        """The partition. Raises UnknownTopicId if its topic has another id than the given one."""
        hosted = self.online.get(partition)
        if hosted is None:
            raise self._absent(partition)
        if topic_id != Uuid.ZERO:
            hosted_id = hosted.topic_id or self.metadata_cache.topic_id(partition.topic)
            if hosted_id != topic_id:
                raise UnknownTopicId(f"Partition {topic_id}:{partition}'s topic id doesn't match the one on disk {hosted_id}.")
        return hosted

    def _absent(self, partition: TopicPartition) -> KafkaError:
        if partition in self.offline:
            return KafkaStorageError(f"Partition {partition} is in an offline log directory")
        if self.metadata_cache.contains(partition.topic, partition.partition):
            # The partition exists on other brokers: the client has to refresh its metadata and retry.
            return NotLeaderOrFollower(f"Error while fetching partition state for {partition}")
        return UnknownTopicOrPartition(f"Error while fetching partition state for {partition}")

    def _topic_metrics(self, partition: TopicPartition) -> TopicMetrics:
        hosted = self.online.get(partition)
        return self.host.topic_metrics.elsewhere if hosted is None else hosted.topic_metrics

    def wake(self, partition: TopicPartition) -> None:
        """Checks the delayed operations of a partition that has changed."""
        self.produce_purgatory.check_and_complete(partition)
        self.fetch_purgatory.check_and_complete(partition)
        self.delete_records_purgatory.check_and_complete(partition)
        self._notify_coordinator(partition)

    def _notify_coordinator(self, partition: TopicPartition) -> None:
        on_change = self.on_change_of.get(partition.topic)
        if on_change is not None:
            on_change(partition)

    # -- produce

    def append_records(self, call: AppendCall) -> None:
        """Appends, and calls `call.on_done` with one result for each entry: at once, or when the in-sync replicas have everything.

        An error of one entry is in its result and does not affect the others. Records that take long to validate are appended in later
        turns of the loop; `call.order` then holds the next request of the client, which could overtake them.
        """
        if not -1 <= call.required_acks <= 1:
            call.on_done([PartitionAppend(partition, _INVALID_REQUIRED_ACKS) for partition, _ in call.entries])
            return
        self.append_on(call)
        if call.is_done:
            self.finish_append(call)
        else:
            assert self.long_appends is not None
            if call.order is not None:
                call.order.hold_next()
            self.long_appends.begin(call)

    def append_on(self, call: AppendCall) -> None:
        """Appends the entries that have no result yet, until one has more records to validate than fit into this turn of the loop."""
        left = -1 if self.long_appends is None else LOOK_AT_ONCE
        now_ms = self.clock.now_ms()
        entries, results = call.entries, call.results
        while len(results) < len(entries):
            result = self._append(call, now_ms, left)
            if result is None:
                return
            results.append(result)
            if left >= 0:
                # A refused batch may have been validated up to its last record.
                left = max(0, left - (result.looked_at if result.error == 0 else REFUSED_LOOK))

    def finish_append(self, call: AppendCall) -> None:
        """Called when all entries have a result: completes the call, or lets it wait for the replicas."""
        results, required_acks, timeout_ms, on_done = call.results, call.required_acks, call.timeout_ms, call.on_done
        must_flush = False
        if required_acks != 0:
            for result in results:
                must_flush = must_flush or result.must_flush
        if must_flush or (required_acks == ACKS_ALL and not self._settle(results)):
            if required_acks != ACKS_ALL:
                timeout_ms = max(timeout_ms, FLUSH_TIMEOUT_MS)  # the timeout of the client is for replicas, not for the disk
            operation = DelayedProduce(timeout_ms, results, self, on_done, required_acks == ACKS_ALL)
            keys = [result.partition for result in results]
            self.produce_purgatory.try_complete_else_watch(operation, keys, self.clock.monotonic_ms())
            self._appended(results)
            return
        try:
            on_done(results)
        finally:
            self._appended(results)

    def append_as_coordinator(
        self,
        partition: TopicPartition,
        batch: bytes,
        guard: VerificationGuard | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
        required_acks: int = ACKS_LEADER,
    ) -> int:
        """Appends one batch of a coordinator, and returns its first offset. `on_change_of` is called when it is replicated.

        With acks=all it is refused like a client's batch while fewer than min.insync.replicas are in sync.
        """
        append = LogAppend(
            batch, self.clock.now_ms(), origin=COORDINATOR, verification_guard=guard, transaction_version=transaction_version
        )
        appended = self.partition_or_raise(partition).append_records_to_leader(append, required_acks)
        self._appended([appended])
        return appended.base_offset

    def _append(self, call: AppendCall, now_ms: int, at_once: int) -> PartitionAppend | None:
        """Appends the next entry; None if more than `at_once` bytes of records have to be validated."""
        partition = call.next_entry[0]
        try:
            hosted = self.online.get(partition)
            if not call.internal_topics_allowed and (is_internal(partition.topic) if hosted is None else hosted.is_internal):
                raise InvalidTopic(f"Cannot append to internal topic {partition.topic}")
            if hosted is None:
                raise self._absent(partition)
            return hosted.append_records_to_leader(call.next_append(now_ms, at_once), call.required_acks)
        except TakesTurns:
            return None
        except Exception as error:  # an error of one partition must not affect the other partitions of the request
            return self.refused(partition, error, call.next_entry[1].size)

    def refused(self, partition: TopicPartition, error: Exception, size: int = 0) -> PartitionAppend:
        """The result of an entry of `size` bytes that was not appended."""
        hosted = self.online.get(partition)
        log_start_offset = -1 if hosted is None else hosted.log_start_offset
        return refused_append(partition, error, size, self._topic_metrics(partition), log_start_offset)

    def _settle(self, results: list[PartitionAppend]) -> bool:
        """Whether no entry has to wait: each has an error or is on all in-sync replicas. Then the errors in the results are final."""
        settled = True
        for result in results:
            if result.error == 0:
                status = self.check_replicated(result)
                if status.is_pending:
                    settled = False
                elif status.error != 0:
                    result.error = status.error
        return settled

    def check_replicated(self, result: PartitionAppend, by_all: bool = True) -> AckStatus:
        """Whether the records of an append are on disk, if they must be, and on all in-sync replicas, if `by_all`."""
        hosted = self.online.get(result.partition)
        if hosted is None:
            return AckStatus(False, self._absent(result.partition).code)
        if result.must_flush:
            flushed = hosted.check_flushed(result.last_offset + 1)
            if not flushed.is_acknowledged:
                return flushed
        return hosted.check_replicated(result.last_offset + 1) if by_all else ACKNOWLEDGED

    def log_flushed(self, log: Log) -> None:
        """A hook of the log manager."""
        self.produce_purgatory.check_and_complete(log.partition)
        self._notify_coordinator(log.partition)

    def _appended(self, results: list[PartitionAppend]) -> None:
        for result in results:
            if result.high_watermark_moved:
                self.wake(result.partition)
            elif result.last_offset >= 0:
                self._check_fetches_later(result.partition)

    def _check_fetches_later(self, partition: TopicPartition) -> None:
        """Schedules a check of the waiting fetches. Followers read up to the log end offset. They get all batches of a loop iteration in
        one response instead of one each: a fetch costs the same for one batch as for many."""
        if self.later is None:
            self.fetch_purgatory.check_and_complete(partition)
        elif self.fetch_purgatory.is_watched(partition):
            if not self._grown:
                self.later(self._check_grown)
            self._grown[partition] = None

    def _check_grown(self) -> None:
        grown, self._grown = self._grown, {}
        for partition in grown:
            self.fetch_purgatory.check_and_complete(partition)

    # -- fetch

    def fetch_messages(self, params: FetchParams, requested: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        """Reads, and calls `on_done`: at once if there are min_bytes, an error or no max_wait_ms; else the fetch waits in the purgatory."""
        if self.long_reads is not None and len(requested) > ELEMENTS_AT_ONCE:
            self.long_reads.begin(LogReading(params), requested, lambda fetched: self._answer_or_wait(params, requested, fetched, on_done))
        else:
            self._answer_or_wait(params, requested, self.read_from_log(params, requested), on_done)

    def _answer_or_wait(
        self, params: FetchParams, requested: list[RequestedPartition], fetched: Fetched, on_done: Callable[[Fetched], None]
    ) -> None:
        if params.max_wait_ms <= 0 or not requested or _answers_at_once(fetched, params.min_bytes):
            on_done(fetched)
            return
        operation = DelayedFetch(params, requested, [result.read_at for _, result in fetched], self, on_done)
        keys = [key.partition for key, _ in requested]
        self.fetch_purgatory.try_complete_else_watch(operation, keys, self.clock.monotonic_ms())

    def read_after_waiting(self, params: FetchParams, requested: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        """Reads again for a delayed fetch. It does not update the state of the follower, which its first read has done. A Produce or a
        timer ends the wait; the time counts for the request of the fetch."""
        usage = params.usage
        if usage is None:
            self._read_after_waiting(params, requested, on_done)
            return
        is_step = usage.begin()
        try:
            self._read_after_waiting(params, requested, on_done)
        finally:
            if is_step:
                usage.end()

    def _read_after_waiting(self, params: FetchParams, requested: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        reading = LogReading(params, from_purgatory=True)
        if self.long_reads is not None and len(requested) > ELEMENTS_AT_ONCE:
            self.long_reads.begin(reading, requested, on_done)
        else:
            self.read_on(reading, requested)
            on_done(reading.fetched)

    def read_from_log(self, params: FetchParams, requested: list[RequestedPartition]) -> Fetched:
        """Reads from each partition in turn, up to `max_bytes` in all. The first batch may be larger than any limit."""
        reading = LogReading(params)
        self.read_on(reading, requested)
        return reading.fetched

    def read_on(self, reading: LogReading, requested: list[RequestedPartition]) -> None:
        """Continues a read with the next partitions of a fetch."""
        monotonic_ms = self.clock.monotonic_ms()
        params, fetched, left, min_one_message = reading.params, reading.fetched, reading.left, reading.min_one_message
        for key, request in requested:
            max_bytes = min(request.max_bytes, left)
            result = self._read(params, key, request, max_bytes, min_one_message, monotonic_ms, not reading.from_purgatory)
            if result.records is not None and result.records.size > 0:
                min_one_message = False
                left = max(0, left - result.records.size)
            fetched.append((key, result))
        reading.left, reading.min_one_message = left, min_one_message

    def _read(
        self,
        params: FetchParams,
        key: TopicIdPartition,
        request: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        monotonic_ms: int,
        update_fetch_state: bool,
    ) -> FetchResult:
        try:
            hosted = self.online.get(key.partition)
            if hosted is None:
                self.host.topic_metrics.elsewhere.total_fetches += 1
                raise self._absent(key.partition)
            hosted.topic_metrics.total_fetches += 1
            if key.topic_id != Uuid.ZERO and (topic_id := hosted.topic_id) is not None and topic_id != key.topic_id:
                raise InconsistentTopicId("Topic ID in the fetch session did not match the topic ID in the log.")
            if self._read_replicas is not None and params.client_metadata is not None and not params.is_from_follower:
                elsewhere = self._read_replicas.elsewhere(hosted, params.client_metadata, request, monotonic_ms)
                if elsewhere is not None:
                    return elsewhere
            read = hosted.fetch_records(params, request, max_bytes, min_one_message, monotonic_ms, update_fetch_state)
        except KafkaError as error:
            return FetchResult(error.code)
        except Exception:
            self._topic_metrics(key.partition).failed_fetches += 1
            # A negative size is an error of the client, although Kafka answers UNKNOWN_SERVER_ERROR. Other errors are logged with a trace.
            _log.error("Error processing fetch with max size %d from %s", max_bytes, key.partition, exc_info=max_bytes >= 0)
            return FetchResult(_UNKNOWN_SERVER_ERROR)
        data = read.fetched
        # From version 3 on no incomplete batch is sent: if the first batch does not fit, the partition has no records.
        records = None if data.first_entry_incomplete and not params.hard_max_bytes else data.records
        if params.is_from_follower and self.quotas.leader.is_in_use and self.must_wait(hosted, params.replica_id, monotonic_ms):
            records = None
        return FetchResult(
            0,
            read.high_watermark,
            read.last_stable_offset,
            read.log_start_offset,
            records,
            data.aborted,
            read.diverging_epoch,
            -1,
            data.offset if data.offset.offset >= 0 else None,
            hosted.topic_metrics,
        )

    def must_wait(self, hosted: Partition, replica_id: int, monotonic_ms: int) -> bool:
        """Whether a follower gets no records of a partition for now: it is throttled, not in sync, and the throttle is exceeded."""
        if replica_id in hosted.isr.committed:
            return False
        quota = self.quotas.leader
        return quota.is_throttled(hosted.partition) and quota.is_exceeded(monotonic_ms)

    # -- deleting records

    def delete_records(
        self, timeout_ms: int, offsets: dict[TopicPartition, int], on_done: Callable[[list[DeleteRecordsResult]], None]
    ) -> None:
        """Deletes the records below the offsets (-1: the high watermark), and calls `on_done` when all live replicas have done so."""
        results = [self._delete_records(partition, offset) for partition, offset in offsets.items()]
        if all(result.is_done for result in results):
            on_done(results)
            return
        operation = DelayedDeleteRecords(timeout_ms, results, self, on_done)
        self.delete_records_purgatory.try_complete_else_watch(operation, list(offsets), self.clock.monotonic_ms())

    def _delete_records(self, partition: TopicPartition, offset: int) -> DeleteRecordsResult:
        try:
            if is_internal(partition.topic):
                raise InvalidTopic(f"Cannot delete records of internal topic {partition.topic}")
            hosted = self.partition_or_raise(partition)
            return DeleteRecordsResult(partition, hosted.delete_records_on_leader(offset), hosted.low_watermark)
        except KafkaError as error:
            return DeleteRecordsResult(partition, offset, error=error.code)

    # -- queries

    def list_offsets(
        self,
        partition: TopicPartition,
        timestamp: int,
        isolation: int | None,
        current_leader_epoch: int = -1,
        fetch_only_from_leader: bool = True,
    ) -> TimestampAndOffset | None:
        """The first record at or after a timestamp; None if there is none. `isolation` is None for brokers, which see everything."""
        hosted = self.partition_or_raise(partition)
        return offset_queries.list_offsets(hosted, timestamp, isolation, current_leader_epoch, fetch_only_from_leader)

    def legacy_offsets(
        self, partition: TopicPartition, timestamp: int, max_offsets: int, is_from_consumer: bool = True, only_from_leader: bool = True
    ) -> list[int]:
        """ListOffsets v0: base offsets of segments, newest first."""
        hosted = self.partition_or_raise(partition)
        return offset_queries.legacy_offsets(hosted, timestamp, max_offsets, is_from_consumer, only_from_leader, self.clock.now_ms())

    def last_offset_for_leader_epoch(self, partition: TopicPartition, current_leader_epoch: int, leader_epoch: int) -> LeaderEpochEndOffset:
        """The end offset of a leader epoch, or an error."""
        try:
            hosted = self.partition_or_raise(partition)
            return LeaderEpochEndOffset(0, *hosted.last_offset_for_leader_epoch(current_leader_epoch, leader_epoch, True))
        except KafkaError as error:
            return LeaderEpochEndOffset(error.code)

    def active_producers(self, partition: TopicPartition) -> list[ProducerStateEntry]:
        """The producers of the partition that have not expired."""
        log = self.partition_or_raise(partition).log
        if log is None:
            raise NotLeaderOrFollower(f"Partition {partition} has no log on broker {self.broker_id}")
        return list(log.producers.active_producers.values())

    def describe_log_dirs(self, partitions: set[TopicPartition] | None = None) -> list[LogDirInfo]:
        """Every directory in log.dirs with its replicas, of these partitions or of all."""
        return log_dirs.describe(self.log_manager, self.config.current.log_dirs, partitions, self._space_of)

    # -- log directories

    def alter_replica_log_dirs(self, dirs: dict[TopicPartition, str]) -> dict[TopicPartition, int]:
        """Begins to move replicas to other log directories; `advance_moves` copies them. Returns an error code for each."""
        return {partition: self._alter_log_dir(partition, path) for partition, path in dirs.items()}

    def _alter_log_dir(self, partition: TopicPartition, path: str) -> int:
        try:
            self.mover.require_possible(partition, path)
            if partition in self.offline:
                raise KafkaStorageError(f"Partition {partition} is offline")
            self.mover.prefer(partition, path)
            self.partition_or_raise(partition)
            self.mover.begin(partition, path, self.clock.now_ms())
        except NotLeaderOrFollower as error:
            # As in Kafka, which keeps the older code for this API.
            _log.warning("Unable to alter log dirs for %s: %s", partition, error)
            return int(ErrorCode.REPLICA_NOT_AVAILABLE)
        except KafkaError as error:
            _log.warning("Unable to alter log dirs for %s: %s", partition, error)
            return error.code
        return int(ErrorCode.NONE)

    def advance_moves(self, now_ms: int) -> bool:
        """Copies one slice; returns whether there is more to copy."""
        return self.mover.advance(now_ms, self.clock.monotonic_ms())

    def log_dir_failed(self, path: str) -> None:
        """A hook of the log manager: the disk of a log directory failed, and its logs are closed."""
        failed = [hosted for hosted in self.online.values() if hosted.log is not None and hosted.log.log_dir == path]
        self.mover.dir_failed(path)
        _log.warning("Stopped serving replicas in dir %s: %s", path, ", ".join(str(hosted.partition) for hosted in failed) or "none")
        for hosted in failed:
            self.mark_offline(hosted)
        if self.on_log_dir_failure is not None:
            self.on_log_dir_failure(path)
        for hosted in failed:
            self.wake(hosted.partition)

    def mark_offline(self, hosted: Partition) -> None:
        if self.fetchers is not None:
            self.fetchers.stop([hosted.partition])
        del self.online[hosted.partition]
        self.offline.add(hosted.partition)
        hosted.close()

    # -- control requests

    def become_leader_or_follower(
        self,
        request: LeaderAndIsrRequest,
        version: int = LeaderAndIsrRequest.HIGHEST_VERSION,
        correlation_id: int = loggers.NO_CORRELATION_ID,
    ) -> LeaderAndIsrResponse:
        return replica_states.become_leader_or_follower(self, request, version, correlation_id)

    def stop_replicas(self, request: StopReplicaRequest, correlation_id: int = loggers.NO_CORRELATION_ID) -> StopReplicaResponse:
        return replica_states.stop_replicas(self, request, correlation_id)

    def update_metadata(self, request: UpdateMetadataRequest, correlation_id: int = loggers.NO_CORRELATION_ID) -> UpdateMetadataResponse:
        return replica_states.update_metadata(self, request, correlation_id)

    # -- periodic work

    def shrink_isrs(self, monotonic_ms: int) -> None:
        """Called every half of replica.lag.time.max.ms."""
        self.host.replica_lag_time_max_ms = self.config.current.number("replica.lag.time.max.ms")
        for hosted in list(self.online.values()):
            hosted.isr.maybe_shrink(monotonic_ms)


def _answers_at_once(fetched: Fetched, min_bytes: int) -> bool:
    size = 0
    for _, result in fetched:
        if result.error != 0 or result.diverging_epoch is not None or result.preferred_read_replica >= 0:
            return True
        if result.records is not None:
            size += result.records.size
    return size >= min_bytes
