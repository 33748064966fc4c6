# Compiled by mypyc: src/compiled.toml lists this module.
"""Runs a coordinator on the partitions of its topic: loads them, writes what it decides, answers when the log has it.

Between the handlers and the log. One shard per partition this broker leads. A write decides, appends, replays, and answers once the high
watermark has passed; an append that fails leaves the state alone. It must never answer with something that a new leader might not know.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.coordinator.result import Clock, Record, Result
from barnabas.errors import CoordinatorLoadInProgress, CorruptRecord, KafkaError, NotCoordinator, RecordTooLarge, RequestTimedOut
from barnabas.protocol.coordinator_log import GROUP_RECORDS, RecordTypes
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Batch, read_intact_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import ABORT, COMMIT, end_txn_marker, parse_control_type
from barnabas.records.reader import read_records
from barnabas.records.record import Record as StoredRecord
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_name import CONSUMER_OFFSETS

RECORDS_PER_SLICE: Final = 1_000  # so that loading does not hold up everything else
SKIPS_LOGGED_MAX: Final = 10  # unreadable records of one partition that are logged one by one; the others are only counted
_BATCH_MARGIN: Final = 1_024  # of a split batch, for what the header and the varints take

log = logging.getLogger(__name__)

R = TypeVar("R")
Fail = Callable[[Exception], None]


class Producer(NamedTuple):
    """Whose transaction the records of a write belong to. `guard` is the log's own, and proves that the transaction is known where it is
    decided; `transaction_version` says, with a marker, how its epoch is to be understood."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    guard: VerificationGuard | None = None
    transaction_version: int = TRANSACTION_VERSION_UNKNOWN


NOBODY: Final = Producer()


class PartitionLog(Protocol):
    """The partitions of the coordinator's topic, as the runtime sees them. All of it happens at once, on the loop."""

    def append(self, partition: int, batch: bytes, producer: Producer = NOBODY) -> int:
        """Append one batch as leader and return the offset of its first record; raises the KafkaError a producer would hear."""

    def high_watermark(self, partition: int) -> int: ...

    def max_batch_size(self, partition: int) -> int:
        """max.message.bytes of the topic."""

    def log_start_offset(self, partition: int) -> int: ...

    def log_end_offset(self, partition: int) -> int:
        """-1 when this broker is not the leader (any more)."""

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one with `offset` on, at least one; empty at the end of the log. Raises CorruptRecord where the log is
        damaged."""

    def next_segment(self, partition: int, offset: int) -> int:
        """The offset at which the segment after that of `offset` begins, or the log ends."""


class Scheduled(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def monotonic_ms(self) -> int:
        """By the clock that the delays are measured with: one that never goes back."""

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> Scheduled: ...


class Shard(Protocol):
    """The coordinator of one partition."""

    def replay(self, offset: int, producer_id: int, record: Record) -> None: ...

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None: ...

    def on_loaded(self) -> None: ...

    def on_unloaded(self) -> None: ...


S = TypeVar("S", bound=Shard)


class _Entry:
    """One timer of a shard. It is due at `due_ms`; the scheduler wakes it at `wakes_ms`, which may be sooner."""

    __slots__ = ("action", "due_ms", "key", "scheduled", "timer", "wakes_ms")

    def __init__(self, timer: ShardTimer, key: str, due_ms: int, action: Callable[[], Result[None] | None]) -> None:
        self.timer = timer
        self.key = key
        self.due_ms = due_ms
        self.wakes_ms = due_ms
        self.action = action
        self.scheduled: Scheduled | None = None

    def fire(self) -> None:
        self.timer.fired(self)


class ShardTimer:
    """The timers of one shard. They go with it: after an unload none fires.

    Most are sessions, which are put off with every request of a member and hardly ever end. So a timer that is put off is left to wake
    when it was to, and goes back to sleep until it is due.
    """

    def __init__(self, scheduler: Scheduler, run: Callable[[Callable[[], Result[None] | None]], None]) -> None:
        self._scheduler = scheduler
        self._run = run
        self._entries: dict[str, _Entry] = {}

    def schedule(self, key: str, delay_ms: int, action: Callable[[], Result[None] | None]) -> None:
        due_ms = self._scheduler.monotonic_ms() + max(delay_ms, 0)
        entry = self._entries.get(key)
        if entry is not None and entry.wakes_ms <= due_ms:
            entry.due_ms = due_ms
            entry.action = action
            return
        self.cancel(key)
        entry = _Entry(self, key, due_ms, action)
        entry.scheduled = self._scheduler.call_later(max(delay_ms, 0), entry.fire)
        self._entries[key] = entry

    def cancel(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.scheduled is not None:
            entry.scheduled.cancel()
            entry.scheduled = None

    def cancel_all(self) -> None:
        for key in list(self._entries):
            self.cancel(key)

    def is_scheduled(self, key: str) -> bool:
        return key in self._entries

    def fired(self, entry: _Entry) -> None:
        left_ms = entry.due_ms - self._scheduler.monotonic_ms()
        if left_ms > 0:
            entry.wakes_ms = entry.due_ms
            entry.scheduled = self._scheduler.call_later(left_ms, entry.fire)
            return
        entry.scheduled = None
        del self._entries[entry.key]
        self._run(entry.action)

    def __len__(self) -> int:
        return len(self._entries)


class _Ending:
    """What is to be done when something that was written is committed, or could not be."""

    def end(self, error: Exception | None) -> None:
        raise NotImplementedError


class _Answering(_Ending, Generic[R]):
    """The end of a request."""

    def __init__(self, result: Result[R], respond: Callable[[R], None], fail: Fail) -> None:
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


class _Telling(_Ending):
    """The end of what no request asked for."""

    def __init__(self, on_done: Callable[[Exception | None], None]) -> None:
        self._on_done = on_done

    def end(self, error: Exception | None) -> None:
        self._on_done(error)


class _Waiting:
    """A write that is in the log and not yet everywhere it has to be."""

    __slots__ = ("_ending", "offset", "queue", "timeout")

    def __init__(self, offset: int, ending: _Ending, queue: deque[_Waiting]) -> None:
        self.offset = offset
        self.queue = queue
        self.timeout: Scheduled | None = None
        self._ending = ending

    def end(self, error: Exception | None) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
            self.timeout = None
        self._ending.end(error)

    def expire(self) -> None:
        self.timeout = None
        self.queue.remove(self)
        self._ending.end(RequestTimedOut("The write was not replicated in time."))


class _Active(Generic[S]):
    """One partition this broker coordinates, loaded or being loaded."""

    def __init__(self, partition: int, epoch: int, shard: S, timer: ShardTimer) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.timer = timer
        self.loaded = False
        self.skipped = 0  # records that could not be read
        self.last_written = 0
        self.waiting: deque[_Waiting] = deque()


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        partition_log: PartitionLog,
        make_shard: Callable[[int, ShardTimer], S],
        clock: Clock,
        scheduler: Scheduler,
        *,
        load_buffer_size: int,
        codec: int = 0,
        topic: str = CONSUMER_OFFSETS,
        record_types: RecordTypes = GROUP_RECORDS,
        base_sequence: int = 0,  # of batches without a producer, too, as Kafka writes them: the same bytes in the log
    ) -> None:
        self.skipped_records = 0  # that could not be read, in all partitions loaded since the broker was started
        self._log = partition_log
        self._topic = topic
        self._base_sequence = base_sequence
        self._make_shard = make_shard
        self._clock = clock
        self._scheduler = scheduler
        self._load_buffer_size = load_buffer_size
        self._codec = codec
        self._record_types = record_types
        self._active: dict[int, _Active[S]] = {}
        self._failed: set[int] = set()  # partitions that could not be loaded

    # -- operations

    def write(
        self,
        partition: int,
        operation: Callable[[S], Result[R]],
        respond: Callable[[R], None],
        fail: Fail,
        *,
        timeout_ms: int,
        producer: Producer | None = None,
    ) -> None:
        """Run `operation`, append what it returns, and `respond` with its response once that is committed; else `fail`.

        A result without a response calls neither: it has been, or will be, answered through what the operation was given.
        """
        try:
            active = self._loaded(partition)
            result = operation(active.shard)
        except Exception as error:
            _complain(error)
            fail(error)
            return
        self._append(active, result, _Answering(result, respond, fail), timeout_ms, producer or NOBODY)

    def read(self, partition: int, operation: Callable[[S], R], respond: Callable[[R], None], fail: Fail, *, timeout_ms: int) -> None:
        """Ask the state. The answer waits for what the state was made from, so that nobody sees what a new leader might not have."""
        self.write(partition, lambda shard: Result(response=operation(shard)), respond, fail, timeout_ms=timeout_ms)

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
        """How many partitions are coordinated here, loaded or being loaded."""
        return len(self._active)

    @property
    def failed_count(self) -> int:
        """How many partitions could not be loaded, and wait for another leader."""
        return len(self._failed)

    @property
    def is_loading(self) -> bool:
        return any(not active.loaded for active in self._active.values())

    def complete_transaction(
        self,
        partition: int,
        producer: Producer,
        coordinator_epoch: int,
        *,
        committed: bool,
        on_done: Callable[[Exception | None], None],
        timeout_ms: int,
    ) -> None:
        """Write the end marker of a transaction, which settles the offsets it committed."""
        try:
            active = self._loaded(partition)
            marker = end_txn_marker(committed, producer.producer_id, producer.producer_epoch, coordinator_epoch, self._clock.now_ms())
            active.last_written = self._log.append(partition, marker, producer) + 1
            active.shard.replay_end_transaction(producer.producer_id, committed=committed)
        except Exception as error:
            _complain(error)
            on_done(error)
            return
        self._when_committed(active, _Telling(on_done), timeout_ms)

    def high_watermark_updated(self, partition: int, high_watermark: int) -> None:
        """To be called whenever the high watermark of a partition of the topic has moved."""
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

    def _append(self, active: _Active[S], result: Result[R], ending: _Ending, timeout_ms: int, producer: Producer) -> None:
        try:
            if result.records:
                if result.atomic:
                    self._append_batch(active, result.records, result.replay, producer)
                else:
                    for records in self._batches(active.partition, result.records):
                        self._append_batch(active, records, result.replay, producer)
        except Exception as error:
            _complain(error)
            ending.end(error)
            return
        self._when_committed(active, ending, timeout_ms)

    def _append_batch(self, active: _Active[S], records: list[Record], replay: bool, producer: Producer) -> None:
        base_offset = self._log.append(active.partition, self._build(records, producer), producer)
        active.last_written = base_offset + len(records)
        if replay:
            for index, record in enumerate(records):
                active.shard.replay(base_offset + index, producer.producer_id, record)

    def _when_committed(self, active: _Active[S], ending: _Ending, timeout_ms: int) -> None:
        if active.last_written <= self._log.high_watermark(active.partition):
            self.high_watermark_updated(active.partition, active.last_written)  # those that came before are answered before
            ending.end(None)
            return
        waiting = _Waiting(active.last_written, ending, active.waiting)
        waiting.timeout = self._scheduler.call_later(timeout_ms, waiting.expire)
        active.waiting.append(waiting)

    def _batches(self, partition: int, wanted: list[Record]) -> Iterator[list[Record]]:
        """Records that need not stay together, as many to a batch as fit."""
        room = self._log.max_batch_size(partition) - _BATCH_MARGIN
        records: list[Record] = []
        size = 0
        for record in wanted:
            record_size = len(record.key_bytes()) + len(record.value_bytes() or b"") + 32
            if records and size + record_size > room:
                yield records
                records, size = [], 0
            records.append(record)
            size += record_size
        yield records

    def _build(self, records: list[Record], producer: Producer) -> bytes:
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
        """This broker became the leader: from now on the partition is loading, and each step of the iterator reads a slice of it."""
        active = self._active.get(partition)
        if active is not None:
            active.epoch = max(active.epoch, leader_epoch)
            return iter(())
        timer = ShardTimer(self._scheduler, lambda action: self._run_timer(partition, action))
        active = _Active(partition, leader_epoch, self._make_shard(partition, timer), timer)
        self._failed.discard(partition)
        self._active[partition] = active
        return self._load(active)

    def _load(self, active: _Active[S]) -> Iterator[None]:
        partition = active.partition
        try:
            offset = self._log.log_start_offset(partition)
            unsliced = 0
            while offset < self._log.log_end_offset(partition):
                begin = offset
                try:
                    data = self._log.read(partition, offset, self._load_buffer_size)
                    if not data:
                        break
                    batches, damage = read_intact_batches(data)
                    for batch in batches:
                        if batch.last_offset < offset:
                            continue
                        unsliced += self._replay_batch(active, data, batch)
                        offset = batch.next_offset
                        if unsliced >= RECORDS_PER_SLICE:
                            unsliced = 0
                            yield
                            if self._active.get(partition) is not active:
                                return
                    if offset == begin:
                        raise damage or CorruptRecord(f"The batch at offset {offset} is cut")
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
            # As Kafka does, requests hear NOT_COORDINATOR until the partition changes hands.
            log.error("Failed to load partition %d: %r", partition, error)
            if self._active.get(partition) is active:
                self._drop(active)
                self._failed.add(partition)

    def _skip_segment(self, active: _Active[S], offset: int, error: CorruptRecord) -> int:
        """Passes over the rest of a segment that is cut or damaged, which counts as one record: nobody knows how many it held."""
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
        """Replays the records of a batch and gives how many there are. A record that cannot be read must not take all groups of the
        partition with it: any client that may write to the topic can leave one there, and it stays there until compaction removes it."""
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

    def decode(self, key: bytes | None, value: bytes | None) -> Record:
        if key is None:
            raise ValueError("A coordinator's record without a key")
        record_type, parsed = self._record_types.read_key(key)
        if value is None:
            return Record(record_type, parsed)
        return Record(record_type, parsed, self._record_types.read_value(record_type, value), int.from_bytes(value[:2], "big"))

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """This broker is no leader of the partition any more (None: it is gone from here). What waits hears NOT_COORDINATOR."""
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

    def _run_timer(self, partition: int, action: Callable[[], Result[None] | None]) -> None:
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
        on_appended = result.on_appended

        def finish(error: Exception | None) -> None:
            if on_appended is not None:
                on_appended(error)
            elif error is not None:
                log.warning("What a timer of partition %d decided could not be written: %s", partition, error)

        self._append(active, result, _Telling(finish), _TIMER_WRITE_TIMEOUT_MS, NOBODY)


_TIMER_WRITE_TIMEOUT_MS: Final = 5_000


def _complain(error: Exception) -> None:
    if isinstance(error, RecordTooLarge):
        log.warning("The coordinator's records are larger than max.message.bytes of its topic: %s", error)
    elif not isinstance(error, KafkaError):
        log.error("A coordinator operation failed", exc_info=error)
