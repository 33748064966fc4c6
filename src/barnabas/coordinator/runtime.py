# Compiled by mypyc: src/compiled.toml lists this module.
"""Runs a coordinator on the partitions of its topic: loads them, appends the records it decides on, responds when they are committed.

The layer between the request handlers and the log. There is one shard per partition that this broker leads. A write decides, appends,
replays, and responds once the high watermark has passed its records; an append that fails leaves the state unchanged. A response must never
reveal state that a new leader might not have.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from barnabas.coordinator.partition_log import NO_TRANSACTION, CoordinatorPartitionLog, TransactionProducer
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, TimerAction
from barnabas.coordinator.shard_timer import Scheduled, Scheduler, ShardTimer
from barnabas.errors import CoordinatorLoadInProgress, CorruptRecord, KafkaError, NotCoordinator, RecordTooLarge, RequestTimedOut
from barnabas.protocol.coordinator_log import GROUP_RECORDS, RecordTypes
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.records.batch import NO_PRODUCER_ID, Batch, each_batch
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import ABORT, COMMIT, end_txn_marker, parse_control_type
from barnabas.records.reader import read_records
from barnabas.records.record import Record as StoredRecord
from barnabas.topic_name import CONSUMER_OFFSETS

RECORDS_PER_SLICE: Final = 1_000  # loading yields to the event loop after this many records
SKIPS_LOGGED_MAX: Final = 10  # unreadable records of one partition that are logged one by one; the rest are only counted
_BATCH_MARGIN: Final = 1_024  # bytes of a split batch reserved for its header and varints

log = logging.getLogger(__name__)

R = TypeVar("R")
Fail = Callable[[Exception], None]


class CoordinatorShard(Protocol):
    """The coordinator of one partition."""

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None: ...

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None: ...

    def on_loaded(self) -> None: ...

    def on_unloaded(self) -> None: ...


S = TypeVar("S", bound=CoordinatorShard)


class _Completion:
    """Called when written records are committed, or with the error that prevented it."""

    def end(self, error: Exception | None) -> None:
        raise NotImplementedError


class _Response(_Completion, Generic[R]):
    """Completes a request."""

    def __init__(self, result: CoordinatorResult[R], respond: Callable[[R], None], fail: Fail) -> None:
        self._result = result
        self._respond = respond
        self._fail = fail

    def end(self, error: Exception | None) -> None:
        result = self._result
        if result.on_appended is not None:
            result.on_appended(error)
        if error is not None:
            self._fail(error)
        elif result.response is not None:
            self._respond(result.response)


class _Notification(_Completion):
    """Completes a write that no request started, such as one of a timer."""

    def __init__(self, on_done: Callable[[Exception | None], None]) -> None:
        self._on_done = on_done

    def end(self, error: Exception | None) -> None:
        self._on_done(error)


class _PendingWrite:
    """A write that is appended and waits for the high watermark."""

    __slots__ = ("_completion", "offset", "queue", "timeout")

    def __init__(self, offset: int, completion: _Completion, queue: deque[_PendingWrite]) -> None:
        self.offset = offset
        self.queue = queue
        self.timeout: Scheduled | None = None
        self._completion = completion

    def end(self, error: Exception | None) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
            self.timeout = None
        self._completion.end(error)

    def expire(self) -> None:
        self.timeout = None
        self.queue.remove(self)
        self._completion.end(RequestTimedOut("The write was not replicated in time."))


class _Active(Generic[S]):
    """One partition that this broker coordinates, loaded or loading."""

    def __init__(self, partition: int, epoch: int, shard: S, timer: ShardTimer) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.timer = timer
        self.loaded = False
        self.skipped = 0  # unreadable records
        self.last_written = 0
        self.waiting: deque[_PendingWrite] = deque()


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        partition_log: CoordinatorPartitionLog,
        make_shard: Callable[[int, ShardTimer], S],
        clock: Clock,
        scheduler: Scheduler,
        *,
        load_buffer_size: int,
        codec: int = 0,
        topic: str = CONSUMER_OFFSETS,
        record_types: RecordTypes = GROUP_RECORDS,
        base_sequence: int = 0,  # also of batches without a producer, so that the bytes in the log equal Kafka's
    ) -> None:
        self.skipped_records = 0  # unreadable records of all partitions loaded since the broker started
        self._log = partition_log
        self._topic = topic
        self._content = "offsets and group metadata" if topic == CONSUMER_OFFSETS else "transaction metadata"  # in log lines
        self._base_sequence = base_sequence
        self._make_shard = make_shard
        self._clock = clock
        self._scheduler = scheduler
        self._load_buffer_size = load_buffer_size
        self._codec = codec
        self._record_types = record_types
        self._active: dict[int, _Active[S]] = {}
        self._failed: set[int] = set()  # partitions that failed to load

    # -- operations

    def write(
        self,
        partition: int,
        operation: Callable[[S], CoordinatorResult[R]],
        respond: Callable[[R], None],
        fail: Fail,
        *,
        timeout_ms: int,
        producer: TransactionProducer | None = None,
    ) -> None:
        """Run `operation`, append the records of its result, and call `respond` with its response once they are committed; else `fail`.

        A result without a response calls neither: the operation responds through a callback of its own.
        """
        try:
            active = self._loaded(partition)
            result = operation(active.shard)
        except Exception as error:
            _log_failure(error)
            fail(error)
            return
        self._append(active, result, _Response(result, respond, fail), timeout_ms, producer or NO_TRANSACTION)

    def read(self, partition: int, operation: Callable[[S], R], respond: Callable[[R], None], fail: Fail, *, timeout_ms: int) -> None:
        """Query the state. The response waits until the records behind that state are committed, as for `write`."""
        self.write(partition, lambda shard: CoordinatorResult(response=operation(shard)), respond, fail, timeout_ms=timeout_ms)

    def shards(self) -> list[S]:
        """The shards of all loaded partitions."""
        return [active.shard for active in self._active.values() if active.loaded]

    def shard(self, partition: int) -> S | None:
        """The shard of a partition that is loaded."""
        active = self._active.get(partition)
        return active.shard if active is not None and active.loaded else None

    def partitions(self) -> list[int]:
        return [active.partition for active in self._active.values() if active.loaded]

    @property
    def partition_count(self) -> int:
        """The number of partitions coordinated here, loaded or loading."""
        return len(self._active)

    @property
    def failed_count(self) -> int:
        """The number of partitions that failed to load. They stay unavailable until the leader changes."""
        return len(self._failed)

    @property
    def is_loading(self) -> bool:
        return any(not active.loaded for active in self._active.values())

    def complete_transaction(
        self,
        partition: int,
        producer: TransactionProducer,
        coordinator_epoch: int,
        *,
        committed: bool,
        on_done: Callable[[Exception | None], None],
        timeout_ms: int,
    ) -> None:
        """Write the end marker of a transaction. It commits or drops the transaction's pending offsets."""
        try:
            active = self._loaded(partition)
            marker = end_txn_marker(committed, producer.producer_id, producer.producer_epoch, coordinator_epoch, self._clock.now_ms())
            active.last_written = self._log.append(partition, marker, producer) + 1
            active.shard.replay_end_transaction(producer.producer_id, committed=committed)
        except Exception as error:
            _log_failure(error)
            on_done(error)
            return
        self._when_committed(active, _Notification(on_done), timeout_ms)

    def high_watermark_updated(self, partition: int, high_watermark: int) -> None:
        """Must be called whenever the high watermark of a partition of the topic has moved."""
        active = self._active.get(partition)
        if active is not None:
            while active.waiting and active.waiting[0].offset <= high_watermark:
                active.waiting.popleft().end(None)

    def _loaded(self, partition: int) -> _Active[S]:
        active = self._active.get(partition)
        if active is None:
            raise NotCoordinator
        if not active.loaded:
            raise CoordinatorLoadInProgress
        return active

    def _append(
        self, active: _Active[S], result: CoordinatorResult[R], completion: _Completion, timeout_ms: int, producer: TransactionProducer
    ) -> None:
        try:
            if result.records:
                if result.atomic:
                    self._append_batch(active, result.records, result.replay, producer)
                else:
                    for records in self._batches(active.partition, result.records):
                        self._append_batch(active, records, result.replay, producer)
        except Exception as error:
            _log_failure(error)
            completion.end(error)
            return
        self._when_committed(active, completion, timeout_ms)

    def _append_batch(self, active: _Active[S], records: list[CoordinatorRecord], replay: bool, producer: TransactionProducer) -> None:
        base_offset = self._log.append(active.partition, self._build(records, producer), producer)
        active.last_written = base_offset + len(records)
        if replay:
            for index, record in enumerate(records):
                active.shard.replay(base_offset + index, producer.producer_id, record)

    def _when_committed(self, active: _Active[S], completion: _Completion, timeout_ms: int) -> None:
        if active.last_written <= self._log.high_watermark(active.partition):
            self.high_watermark_updated(active.partition, active.last_written)  # earlier writes respond first
            completion.end(None)
            return
        waiting = _PendingWrite(active.last_written, completion, active.waiting)
        waiting.timeout = self._scheduler.call_later(timeout_ms, waiting.expire)
        active.waiting.append(waiting)

    def _batches(self, partition: int, unsplit: list[CoordinatorRecord]) -> Iterator[list[CoordinatorRecord]]:
        """Split records that need not stay together into batches, as many to a batch as fit."""
        room = self._log.max_batch_size(partition) - _BATCH_MARGIN
        records: list[CoordinatorRecord] = []
        size = 0
        for record in unsplit:
            record_size = len(record.key_bytes()) + len(record.value_bytes() or b"") + 32
            if records and size + record_size > room:
                yield records
                records, size = [], 0
            records.append(record)
            size += record_size
        yield records

    def _build(self, records: list[CoordinatorRecord], producer: TransactionProducer) -> bytes:
        transactional = producer.producer_id != NO_PRODUCER_ID
        builder = BatchBuilder(
            codec=self._codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=self._base_sequence,
            transactional=transactional,
        )
        now_ms = self._clock.now_ms()
        for record in records:
            builder.append(now_ms, record.key_bytes(), record.value_bytes())
        return builder.build()

    # -- loading and unloading

    def load(self, partition: int, leader_epoch: int) -> Iterator[None]:
        """This broker became the leader: the partition is loading from now on, and each step of the iterator reads a slice of it."""
        active = self._active.get(partition)
        if active is not None:
            active.epoch = max(active.epoch, leader_epoch)
            return iter(())
        timer = ShardTimer(self._scheduler, lambda key, action: self._run_timer(partition, key, action))
        active = _Active(partition, leader_epoch, self._make_shard(partition, timer), timer)
        self._failed.discard(partition)
        self._active[partition] = active
        return self._load(active)

    def _load(self, active: _Active[S]) -> Iterator[None]:
        partition = active.partition
        try:
            offset = self._log.log_start_offset(partition)
            records_in_slice = 0
            buffer_size = self._load_buffer_size
            if self._log.log_end_offset(partition) < 0:
                log.warning("Attempted to load %s from %s-%d, but found no log", self._content, self._topic, partition)
            while offset < self._log.log_end_offset(partition):
                begin = offset
                try:
                    data = self._log.read(partition, offset, self._load_buffer_size)
                    if not data:
                        break
                    if len(data) > buffer_size:
                        buffer_size = len(data)
                        log.warning(
                            "Loaded %s from %s-%d with buffer larger (%d bytes) than configured %s (%d bytes)",
                            self._content,
                            self._topic,
                            partition,
                            buffer_size,
                            "offsets.load.buffer.size" if self._topic == CONSUMER_OFFSETS else "transaction.state.log.load.buffer.size",
                            self._load_buffer_size,
                        )
                    # One by one: the headers of many small batches need several times the memory of their bytes, and objects that other
                    # work creates between the slices would keep that memory from being returned.
                    for batch in each_batch(data):
                        if batch.last_offset < offset:
                            continue
                        records_in_slice += self._replay_batch(active, data, batch)
                        offset = batch.next_offset
                        if records_in_slice >= RECORDS_PER_SLICE:
                            records_in_slice = 0
                            yield
                            if self._active.get(partition) is not active:
                                return
                    if offset == begin:
                        raise CorruptRecord(f"The batch at offset {offset} is cut")
                except CorruptRecord as unreadable:
                    offset = self._skip_segment(active, offset, unreadable)
            if self._log.log_end_offset(partition) < 0:
                raise NotCoordinator
            active.last_written = offset
            active.loaded = True
            active.shard.on_loaded()
            log.info("Loaded partition %d with epoch %d up to offset %d", partition, active.epoch, offset)
            if active.skipped > SKIPS_LOGGED_MAX:
                log.error("Skipped %d records of %s-%d that cannot be read", active.skipped, self._topic, partition)
        except Exception as error:
            # As in Kafka, requests fail with NOT_COORDINATOR until the leader of the partition changes.
            log.error("Failed to load partition %d: %r", partition, error)
            if self._active.get(partition) is active:
                self._drop(active)
                self._failed.add(partition)

    def _skip_segment(self, active: _Active[S], offset: int, error: CorruptRecord) -> int:
        """Skip the rest of a truncated or damaged segment. It counts as one record, because the number of lost records is unknown."""
        following = self._log.next_segment(active.partition, offset)
        self._count_skipped(active, 1)
        log.error(
            "Skipped the offsets from %d up to %d of %s-%d, which cannot be read: %s. What they held is lost",
            offset,
            following - 1,
            self._topic,
            active.partition,
            error,
        )
        return following

    def _replay_batch(self, active: _Active[S], data: bytes, batch: Batch) -> int:
        """Replay the records of a batch and return their number. An unreadable record must not make all groups of the partition
        unavailable: any client with write access to the topic can produce one, and it stays there until compaction removes it."""
        try:
            records = read_records(data, batch)
        except Exception as error:
            self._skip(active, int(batch.base_offset), error, max(1, int(batch.count)))
            return 1
        for stored in records:
            try:
                if batch.is_control:
                    self._replay_marker(active.shard, stored, int(batch.producer_id))
                else:
                    producer_id = int(batch.producer_id) if batch.is_transactional else NO_PRODUCER_ID
                    active.shard.replay(stored.offset, producer_id, self.decode(stored.key, stored.value))
            except Exception as error:
                self._skip(active, stored.offset, error)
        return len(records)

    def _replay_marker(self, shard: S, marker: StoredRecord, producer_id: int) -> None:
        kind = parse_control_type(marker)
        if kind in (COMMIT, ABORT):
            shard.replay_end_transaction(producer_id, committed=kind == COMMIT)

    def _skip(self, active: _Active[S], offset: int, error: Exception, count: int = 1) -> None:
        self._count_skipped(active, count)
        if active.skipped > SKIPS_LOGGED_MAX:
            return
        where = f"{self._topic}-{active.partition} at offset {offset}"
        if isinstance(error, UnsupportedVersion):
            log.warning("Skipped a record of %s that a newer Kafka may have written: %s", where, error)
        else:
            log.error(
                "Skipped a record of %s that cannot be read: %r. What it held is lost. Only brokers may write to this topic: find the "
                "client that does and stop it",
                where,
                error,
            )

    def _count_skipped(self, active: _Active[S], count: int) -> None:
        active.skipped += count
        self.skipped_records += count

    def decode(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
        if key is None:
            raise ValueError("A coordinator's record without a key")
        record_type, parsed = self._record_types.read_key(key)
        if value is None:
            return CoordinatorRecord(record_type, parsed)
        return CoordinatorRecord(record_type, parsed, self._record_types.read_value(record_type, value), int.from_bytes(value[:2], "big"))

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """This broker no longer leads the partition (None: its replica was deleted). Waiting requests fail with NOT_COORDINATOR."""
        active = self._active.get(partition)
        if active is None:
            self._failed.discard(partition)
        elif leader_epoch is None or active.epoch < leader_epoch:
            self._drop(active)

    def _drop(self, active: _Active[S]) -> None:
        del self._active[active.partition]
        active.timer.cancel_all()
        active.shard.on_unloaded()
        active.timer.cancel_all()
        while active.waiting:
            active.waiting.popleft().end(NotCoordinator())

    def shutdown(self) -> None:
        for active in list(self._active.values()):
            self._drop(active)

    def _run_timer(self, partition: int, key: str, action: TimerAction) -> None:
        active = self._active.get(partition)
        if active is None or not active.loaded:
            return
        try:
            result = action()
        except Exception:
            log.exception("A timer of partition %d failed", partition)
            return
        if result is None:
            return
        on_appended, replay = result.on_appended, result.replay

        def finish(error: Exception | None) -> None:
            if on_appended is not None:
                on_appended(error)
            if error is not None and replay:
                self._retry_timer(active, key, action, error)

        self._append(active, result, _Notification(finish), _TIMER_WRITE_TIMEOUT_MS, NO_TRANSACTION)

    def _retry_timer(self, active: _Active[S], key: str, action: TimerAction, error: Exception) -> None:
        """Without its records the state is as it was: the member whose session expired is still in its group, for example."""
        if self._active.get(active.partition) is not active or active.timer.is_scheduled(key):
            return
        log.info("The write event for the timer %s failed due to %s. Rescheduling it.", key, error)
        active.timer.schedule(key, _TIMER_RETRY_MS, action)


_TIMER_RETRY_MS: Final = 500  # as in Kafka
_TIMER_WRITE_TIMEOUT_MS: Final = 5_000


def _log_failure(error: Exception) -> None:
    if isinstance(error, RecordTooLarge):
        log.warning("The coordinator's records are larger than max.message.bytes of its topic: %s", error)
    elif not isinstance(error, KafkaError):
        log.error("A coordinator operation failed", exc_info=error)
