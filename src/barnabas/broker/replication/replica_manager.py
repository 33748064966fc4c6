# Compiled by mypyc: src/compiled.toml lists this module.
"""All partitions of this broker: the one way from the handlers and coordinators to the logs.

Produce and fetch pass through here, each to its partition and back, or into a purgatory when they have to wait; the controller's orders end
here. After everything that may complete a wait the purgatories are told, and always after the answer to whoever caused it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.partitions import offset_queries
from barnabas.broker.partitions.append_call import AppendCall, Order
from barnabas.broker.partitions.fetch_params import FetchParams, FetchResult, PartitionFetch, RequestedPartition, TopicIdPartition
from barnabas.broker.partitions.isr import IsrUpdates
from barnabas.broker.partitions.offset_queries import LeaderEpochEndOffset
from barnabas.broker.partitions.partition import ACKS_ALL, NOT_YET, Partition, PartitionHost
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.replication import log_dirs, replica_states
from barnabas.broker.replication.log_dir_mover import LogDirMover
from barnabas.broker.replication.log_dirs import DiskSpace, LogDirInfo, disk_space
from barnabas.broker.replication.long_appends import LongAppends
from barnabas.broker.replication.long_reads import LongReads
from barnabas.broker.replication.replica_selector import read_replicas
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE
from barnabas.broker.waiting.delayed_delete_records import DelayedDeleteRecords, DeletedRecords
from barnabas.broker.waiting.delayed_fetch import DelayedFetch, Fetched, LogReading
from barnabas.broker.waiting.delayed_produce import DelayedProduce
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.errors import (
    CorruptRecord,
    InconsistentTopicId,
    InvalidProducerEpoch,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    RecordBatchTooLarge,
    RecordTooLarge,
    RejectedRecords,
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
from barnabas.protocol.slices import Records
from barnabas.records.codecs.compression import FIRST_LOOK
from barnabas.records.validation.validation import CLIENT, COORDINATOR
from barnabas.records.validation.validator import LOOK_AT_ONCE
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

_log = logging.getLogger(__name__)

_UNKNOWN_SERVER_ERROR: Final = int(ErrorCode.UNKNOWN_SERVER_ERROR)
FLUSH_TIMEOUT_MS: Final = 30_000
ACKS_LEADER: Final = 1
REFUSED_LOOK: Final = FIRST_LOOK  # what a batch that is refused counts for: as much as may be looked at of a compressed one

_INVALID_REQUIRED_ACKS: Final = int(ErrorCode.INVALID_REQUIRED_ACKS)

# Everyday errors of producers, of which Kafka answers nothing but the code.
_EVERYDAY: Final = (UnknownTopicOrPartition, NotLeaderOrFollower, RecordTooLarge, RecordBatchTooLarge, CorruptRecord, KafkaStorageError)


class ReplicaManagerMetrics:
    """Counted here, read when somebody asks."""

    def __init__(self) -> None:
        self.failed_produces = 0
        self.failed_fetches = 0
        self.expired_produces = 0
        self.expired_follower_fetches = 0
        self.expired_consumer_fetches = 0


class ReplicaManager:
    """Those in `on_leadership_change` are told of the partitions that this broker began to lead and to follow, those in
    `on_partitions_deleted` of the ones that are no more, `on_log_dir_failure` of a directory whose disk failed. `on_change_of` is for the
    coordinators: told of everything that happens to the partitions of a topic, as those who wait for them are."""

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
        isr_updates: IsrUpdates | None = None,
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
        self.on_log_dir_failure: Callable[[str], None] = lambda path: None
        self.on_change_of: dict[str, Callable[[TopicPartition], None]] = {}
        self.fetchers: replica_states.Fetchers | None = None  # where there are others to follow
        self.later: Callable[[Callable[[], None]], object] | None = None  # does something when all that has come in is done with
        self.long_appends: LongAppends | None = None  # without, everything is appended in the call that brings it
        self.long_reads: LongReads | None = None  # and everything is read in the call that asks for it
        self.controller_epoch = 0
        self.online: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()  # on a disk that failed
        self.mover = LogDirMover(log_manager, self.online)
        self.host = PartitionHost(
            self.broker_id,
            log_manager,
            metadata_cache,
            clock,
            config.current.number("replica.lag.time.max.ms"),
            self.wake,
            isr_updates,
        )
        self._space_of = space_of
        self._grown: dict[TopicPartition, None] = {}  # of which followers are to be told
        self._read_replicas = read_replicas(config.current, metadata_cache)
        log_manager.on_dir_failure = self.log_dir_failed
        log_manager.flushes.on_flushed = self._flushed

    # -- partitions

    def partition(self, partition: TopicPartition) -> Partition | None:
        """The partition, if this broker has a replica of it on a disk that works."""
        return self.online.get(partition)

    def partition_or_raise(self, partition: TopicPartition, topic_id: Uuid = Uuid.ZERO) -> Partition:
        """The partition, of the topic with this id if one is given."""
        found = self.online.get(partition)
        if found is None:
            raise self._absent(partition)
        if topic_id != Uuid.ZERO:
            known = found.topic_id or self.metadata_cache.topic_id(partition.topic)
            if known != topic_id:
                raise UnknownTopicId(f"Partition {topic_id}:{partition}'s topic id doesn't match the one on disk {known}.")
        return found

    def _absent(self, partition: TopicPartition) -> KafkaError:
        if partition in self.offline:
            return KafkaStorageError(f"Partition {partition} is in an offline log directory")
        if self.metadata_cache.contains(partition.topic, partition.partition):
            # It exists elsewhere: the client must ask for metadata anew, and not give up.
            return NotLeaderOrFollower(f"Error while fetching partition state for {partition}")
        return UnknownTopicOrPartition(f"Error while fetching partition state for {partition}")

    def wake(self, partition: TopicPartition) -> None:
        """Something has happened to a partition that those who wait for it may wait for."""
        self.produce_purgatory.check_and_complete(partition)
        self.fetch_purgatory.check_and_complete(partition)
        self.delete_records_purgatory.check_and_complete(partition)
        self._tell_coordinator(partition)

    def _tell_coordinator(self, partition: TopicPartition) -> None:
        on_change = self.on_change_of.get(partition.topic)
        if on_change is not None:
            on_change(partition)

    # -- produce

    def append_records(
        self,
        timeout_ms: int,
        required_acks: int,
        entries: list[tuple[TopicPartition, Records]],
        on_done: Callable[[list[PartitionAppend]], None],
        *,
        internal_topics_allowed: bool = False,
        origin: int = CLIENT,
        verification_guards: dict[TopicPartition, VerificationGuard] | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
        order: Order | None = None,
    ) -> None:
        """Appends, and calls `on_done` with one result for each entry: at once, or when the in-sync replicas have everything.

        Whatever is wrong with one entry is an error in its result and none of the others' business. Records that take long to look at are
        appended in later turns of the loop; `order` is told, so that what the same client has sent next does not overtake them.
        """
        if not -1 <= required_acks <= 1:
            on_done([PartitionAppend(partition, _INVALID_REQUIRED_ACKS) for partition, _ in entries])
            return
        call = AppendCall(
            timeout_ms, required_acks, entries, on_done, internal_topics_allowed, origin, verification_guards, transaction_version
        )
        self.append_on(call)
        if len(call.results) == len(entries):
            self.finish_append(call)
        else:
            assert self.long_appends is not None
            if order is not None:
                order.hold_next()
            self.long_appends.begin(call, order)

    def append_on(self, call: AppendCall) -> None:
        """Appends the entries that have no result yet, until one of them takes longer than what is left of this turn of the loop."""
        left = -1 if self.long_appends is None else LOOK_AT_ONCE
        now_ms = self.clock.now_ms()
        entries, results = call.entries, call.results
        while len(results) < len(entries):
            result = self._append(call, now_ms, left)
            if result is None:
                return
            results.append(result)
            if left >= 0:
                # What was refused may have been looked at in vain.
                left = max(0, left - (result.looked_at if result.error == 0 else REFUSED_LOOK))

    def finish_append(self, call: AppendCall) -> None:
        """All entries have a result: answers, or waits for the replicas."""
        results, required_acks, timeout_ms, on_done = call.results, call.required_acks, call.timeout_ms, call.on_done
        must_flush = False
        if required_acks != 0:
            for result in results:
                must_flush = must_flush or result.must_flush
        if must_flush or (required_acks == ACKS_ALL and not self._settle(results)):
            if required_acks != ACKS_ALL:
                timeout_ms = max(timeout_ms, FLUSH_TIMEOUT_MS)  # the client's is for replicas; the disk takes the time it takes
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
        """Appends one batch of a coordinator's own at once, and gives its first offset; that it is replicated is told by `on_change_of`.

        With acks of all it is refused, as a client's would be, while fewer than min.insync.replicas are in sync.
        """
        found = self.partition_or_raise(partition)
        appended = found.append_records_to_leader(
            batch, 0, len(batch), required_acks, self.clock.now_ms(), COORDINATOR, guard, transaction_version
        )
        self._appended([appended])
        return appended.base_offset

    def _append(self, call: AppendCall, now_ms: int, at_once: int) -> PartitionAppend | None:
        """Appends the next entry; None if it takes longer than looking at `at_once` bytes of records."""
        partition, records = call.next_entry
        try:
            found = self.online.get(partition)
            if not call.internal_topics_allowed and (is_internal(partition.topic) if found is None else found.is_internal):
                raise InvalidTopic(f"Cannot append to internal topic {partition.topic}")
            if found is None:
                raise self._absent(partition)
            return found.append_records_to_leader(
                records.data,
                records.start,
                records.end,
                call.required_acks,
                now_ms,
                call.origin,
                call.guard_of(partition),
                call.transaction_version,
                at_once,
            )
        except TakesTurns:
            return None
        except Exception as error:  # whatever it is, the other partitions of the request must not suffer
            return self.refused(partition, error)

    def refused(self, partition: TopicPartition, error: Exception) -> PartitionAppend:
        if isinstance(error, (*_EVERYDAY, InvalidTopic)):
            assert isinstance(error, KafkaError)
            return PartitionAppend(partition, error.code)
        self.metrics.failed_produces += 1
        found = self.online.get(partition)
        log_start_offset = -1 if found is None else found.log_start_offset
        if not isinstance(error, KafkaError):
            _log.error("Error processing append operation on partition %s", partition, exc_info=error)
            return PartitionAppend(partition, _UNKNOWN_SERVER_ERROR, log_start_offset=log_start_offset)
        level = logging.INFO if isinstance(error, InvalidProducerEpoch) else logging.ERROR
        _log.log(level, "Error processing append operation on partition %s: %s", partition, error)
        refused = PartitionAppend(partition, error.code, log_start_offset=log_start_offset)
        if isinstance(error, RejectedRecords) and error.record_errors:
            refused.record_errors = error.record_errors
            refused.error_message = str(error)
        return refused

    def _settle(self, results: list[PartitionAppend]) -> bool:
        """Whether nothing has to wait: every entry is refused, or on all replicas that are in sync. Then their errors are final."""
        settled = True
        for result in results:
            if result.error == 0:
                error = self.check_replicated(result)
                if error == NOT_YET:
                    settled = False
                elif error != 0:
                    result.error = error
        return settled

    def check_replicated(self, result: PartitionAppend, by_all: bool = True) -> int:
        """Whether the records of an append are on disk, where they must be, and on all in-sync replicas: an error code, 0 or NOT_YET."""
        found = self.online.get(result.partition)
        if found is None:
            return self._absent(result.partition).code
        if result.must_flush:
            flushed = found.check_flushed(result.last_offset + 1)
            if flushed != 0:
                return flushed
        return found.check_replicated(result.last_offset + 1) if by_all else 0

    def _flushed(self, log: Log) -> None:
        self.produce_purgatory.check_and_complete(log.partition)
        self._tell_coordinator(log.partition)

    def _appended(self, results: list[PartitionAppend]) -> None:
        for result in results:
            if result.high_watermark_moved:
                self.wake(result.partition)
            elif result.last_offset >= 0:
                self._tell_followers(result.partition)

    def _tell_followers(self, partition: TopicPartition) -> None:
        """Followers read up to the log end. They are answered once for everything that is appended in a turn of the loop, instead of with
        its first batch: a fetch costs the same for one batch as for many."""
        if self.later is None:
            self.fetch_purgatory.check_and_complete(partition)
        elif self.fetch_purgatory.is_watched(partition):
            if not self._grown:
                self.later(self._tell_of_all)
            self._grown[partition] = None

    def _tell_of_all(self) -> None:
        grown, self._grown = self._grown, {}
        for partition in grown:
            self.fetch_purgatory.check_and_complete(partition)

    # -- fetch

    def fetch_messages(self, params: FetchParams, wanted: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        """Reads, and calls `on_done`: at once if there is enough, or an error, or no time to wait; else when one of these has come."""
        if self.long_reads is not None and len(wanted) > ELEMENTS_AT_ONCE:
            self.long_reads.begin(LogReading(params), wanted, lambda fetched: self._answer_or_wait(params, wanted, fetched, on_done))
        else:
            self._answer_or_wait(params, wanted, self.read_from_log(params, wanted), on_done)

    def _answer_or_wait(
        self, params: FetchParams, wanted: list[RequestedPartition], fetched: Fetched, on_done: Callable[[Fetched], None]
    ) -> None:
        if params.max_wait_ms <= 0 or not wanted or _answers_at_once(fetched, params.min_bytes):
            on_done(fetched)
            return
        operation = DelayedFetch(params, wanted, [result.read_at for _, result in fetched], self, on_done)
        keys = [key.partition for key, _ in wanted]
        self.fetch_purgatory.try_complete_else_watch(operation, keys, self.clock.monotonic_ms())

    def read_after_waiting(self, params: FetchParams, wanted: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        """Reads once more for a fetch that has waited, which has told how far its follower is when it came: it does not tell again."""
        reading = LogReading(params, from_purgatory=True)
        if self.long_reads is not None and len(wanted) > ELEMENTS_AT_ONCE:
            self.long_reads.begin(reading, wanted, on_done)
        else:
            self.read_on(reading, wanted)
            on_done(reading.fetched)

    def read_from_log(self, params: FetchParams, wanted: list[RequestedPartition]) -> Fetched:
        """Reads from each partition in turn until `max_bytes` are used up; the first batch found may be larger than any limit."""
        reading = LogReading(params)
        self.read_on(reading, wanted)
        return reading.fetched

    def read_on(self, reading: LogReading, wanted: list[RequestedPartition]) -> None:
        """Reads from the next of the partitions that one fetch wants."""
        monotonic_ms = self.clock.monotonic_ms()
        params, fetched, left, min_one_message = reading.params, reading.fetched, reading.left, reading.min_one_message
        for key, partition in wanted:
            max_bytes = min(partition.max_bytes, left)
            result = self._read(params, key, partition, max_bytes, min_one_message, monotonic_ms, not reading.from_purgatory)
            if result.records is not None and result.records.size > 0:
                min_one_message = False
                left = max(0, left - result.records.size)
            fetched.append((key, result))
        reading.left, reading.min_one_message = left, min_one_message

    def _read(
        self,
        params: FetchParams,
        key: TopicIdPartition,
        wanted: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        monotonic_ms: int,
        update_fetch_state: bool,
    ) -> FetchResult:
        try:
            found = self.online.get(key.partition)
            if found is None:
                raise self._absent(key.partition)
            if key.topic_id != Uuid.ZERO and (topic_id := found.topic_id) is not None and topic_id != key.topic_id:
                raise InconsistentTopicId("Topic ID in the fetch session did not match the topic ID in the log.")
            if self._read_replicas is not None and params.client_metadata is not None and not params.is_from_follower:
                elsewhere = self._read_replicas.elsewhere(found, params.client_metadata, wanted, monotonic_ms)
                if elsewhere is not None:
                    return elsewhere
            read = found.fetch_records(params, wanted, max_bytes, min_one_message, monotonic_ms, update_fetch_state)
        except KafkaError as error:
            return FetchResult(error.code)
        except Exception:
            self.metrics.failed_fetches += 1
            # A size below zero is the client's fault, and still UNKNOWN_SERVER_ERROR in Kafka; anything else is ours.
            _log.error("Error processing fetch with max size %d from %s", max_bytes, key.partition, exc_info=max_bytes >= 0)
            return FetchResult(_UNKNOWN_SERVER_ERROR)
        data = read.fetched
        # From version 3 on nobody is sent half a batch: where one does not fit, nothing goes out for this partition.
        records = None if data.first_entry_incomplete and not params.hard_max_bytes else data.records
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
        )

    # -- deleting records

    def delete_records(self, timeout_ms: int, offsets: dict[TopicPartition, int], on_done: Callable[[list[DeletedRecords]], None]) -> None:
        """Deletes what is below the offsets (-1: the high watermark), and calls `on_done` when all live replicas have done so."""
        results = [self._delete_records(partition, offset) for partition, offset in offsets.items()]
        if all(result.is_done for result in results):
            on_done(results)
            return
        operation = DelayedDeleteRecords(timeout_ms, results, self, on_done)
        self.delete_records_purgatory.try_complete_else_watch(operation, list(offsets), self.clock.monotonic_ms())

    def _delete_records(self, partition: TopicPartition, offset: int) -> DeletedRecords:
        try:
            if is_internal(partition.topic):
                raise InvalidTopic(f"Cannot delete records of internal topic {partition.topic}")
            found = self.partition_or_raise(partition)
            return DeletedRecords(partition, found.delete_records_on_leader(offset), found.low_watermark)
        except KafkaError as error:
            return DeletedRecords(partition, offset, error=error.code)

    # -- questions

    def list_offsets(
        self,
        partition: TopicPartition,
        timestamp: int,
        isolation: int | None,
        current_leader_epoch: int = -1,
        fetch_only_from_leader: bool = True,
    ) -> TimestampAndOffset | None:
        """The offset by time; None where no record is that young. `isolation` is None for brokers, which see everything."""
        found = self.partition_or_raise(partition)
        return offset_queries.list_offsets(found, timestamp, isolation, current_leader_epoch, fetch_only_from_leader)

    def legacy_offsets(
        self, partition: TopicPartition, timestamp: int, max_offsets: int, is_from_consumer: bool = True, only_from_leader: bool = True
    ) -> list[int]:
        """ListOffsets v0: offsets where segments begin, newest first."""
        found = self.partition_or_raise(partition)
        return offset_queries.legacy_offsets(found, timestamp, max_offsets, is_from_consumer, only_from_leader, self.clock.now_ms())

    def last_offset_for_leader_epoch(self, partition: TopicPartition, current_leader_epoch: int, wanted_epoch: int) -> LeaderEpochEndOffset:
        """Where an epoch ended; an error is part of the answer."""
        try:
            found = self.partition_or_raise(partition)
            return LeaderEpochEndOffset(0, *found.last_offset_for_leader_epoch(current_leader_epoch, wanted_epoch, True))
        except KafkaError as error:
            return LeaderEpochEndOffset(error.code)

    def active_producers(self, partition: TopicPartition) -> list[ProducerStateEntry]:
        """Who has written to the partition lately."""
        log = self.partition_or_raise(partition).log
        if log is None:
            raise NotLeaderOrFollower(f"Partition {partition} has no log on broker {self.broker_id}")
        return list(log.producers.active_producers.values())

    def describe_log_dirs(self, partitions: set[TopicPartition] | None = None) -> list[LogDirInfo]:
        """Every directory in log.dirs with the replicas in it, of these partitions or of all."""
        return log_dirs.describe(self.log_manager, self.config.current.log_dirs, partitions, self._space_of)

    # -- log directories

    def alter_replica_log_dirs(self, dirs: dict[TopicPartition, str]) -> dict[TopicPartition, int]:
        """Begins to move replicas to other log directories; `advance_moves` does the moving. Gives an error code for each."""
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
            # Kafka keeps the older code for this request.
            _log.warning("Unable to alter log dirs for %s: %s", partition, error)
            return int(ErrorCode.REPLICA_NOT_AVAILABLE)
        except KafkaError as error:
            _log.warning("Unable to alter log dirs for %s: %s", partition, error)
            return error.code
        return int(ErrorCode.NONE)

    def advance_moves(self, now_ms: int) -> bool:
        """Copies one slice; whether there is more to do at once."""
        return self.mover.advance(now_ms)

    def log_dir_failed(self, path: str) -> None:
        """The disk under a log directory failed, and the log manager has let go of its logs."""
        failed = [found for found in self.online.values() if found.log is not None and found.log.log_dir == path]
        self.mover.dir_failed(path)
        _log.warning("Stopped serving replicas in dir %s: %s", path, ", ".join(str(found.partition) for found in failed) or "none")
        for found in failed:
            self.mark_offline(found)
        self.on_log_dir_failure(path)
        for found in failed:
            self.wake(found.partition)

    def mark_offline(self, found: Partition) -> None:
        if self.fetchers is not None:
            self.fetchers.stop([found.partition])
        del self.online[found.partition]
        self.offline.add(found.partition)
        found.close()

    # -- the controller's orders

    def become_leader_or_follower(
        self, request: LeaderAndIsrRequest, version: int = LeaderAndIsrRequest.HIGHEST_VERSION
    ) -> LeaderAndIsrResponse:
        return replica_states.become_leader_or_follower(self, request, version)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        return replica_states.stop_replicas(self, request)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        if request.controller_epoch < self.controller_epoch:
            _log.warning("Ignoring UpdateMetadata from old controller %d of epoch %d", request.controller_id, request.controller_epoch)
            return UpdateMetadataResponse(int(ErrorCode.STALE_CONTROLLER_EPOCH))
        self.controller_epoch = request.controller_epoch
        alive = self.metadata_cache.alive_brokers()
        deleted = self.metadata_cache.update(request)
        if deleted:
            for tell in self.on_partitions_deleted:
                tell(deleted)
        if any(not self.metadata_cache.has_alive_broker(broker.id) for broker in alive):
            self._broker_gone()
        return UpdateMetadataResponse(int(ErrorCode.NONE))

    def _broker_gone(self) -> None:
        """High watermarks may have waited for one that was about to come into sync. Nobody else would move them: the others have all."""
        for found in list(self.online.values()):
            found.isr_changed()

    # -- what is done regularly

    def shrink_isrs(self, monotonic_ms: int) -> None:
        """To be called every half of replica.lag.time.max.ms."""
        self.host.replica_lag_time_max_ms = self.config.current.number("replica.lag.time.max.ms")
        for found in list(self.online.values()):
            found.isr.maybe_shrink(monotonic_ms)


def _answers_at_once(fetched: Fetched, min_bytes: int) -> bool:
    size = 0
    for _, result in fetched:
        if result.error != 0 or result.diverging_epoch is not None or result.preferred_read_replica >= 0:
            return True
        if result.records is not None:
            size += result.records.size
    return size >= min_bytes
