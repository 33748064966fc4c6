"""Looks through the partitions of a topic, forwards or backwards, and merges what it finds by timestamp.

A topic may have a hundred million messages, so a scan works in small windows of offsets and stops at a deadline: it then says how far it
has looked, and a cursor continues there. Kafka reads forwards only; backwards, a window is read from its lowest offset on and turned
around. The windows grow while they are read quickly, and shrink when messages are large.

Each partition has a frontier, the timestamp up to which it has been looked at. A message is emitted when no other partition can have one
that comes before it. At the deadline, what has been found is emitted in any case.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from barnabas.client import AsyncConsumer
from barnabas.client.consumer.record import ConsumerRecords
from barnabas.client.errors import AuthenticationError, AuthorizationError, OffsetOutOfRange
from barnabas.console.messages.cursor import Cursor
from barnabas.console.messages.decoding import DecodedMessage, Decoder, RawRecord
from barnabas.console.messages.expression import OutOfTime
from barnabas.console.messages.filters import Filter
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")

FIRST_STEP: Final = 8
FIRST_STEP_WITH_FILTER: Final = 500
STEP_MAX: Final = 200_000
WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024  # a window is about that large at most, once the size of the messages is known
WINDOW_S: Final = 0.15  # a window that took less is followed by a larger one,
WINDOW_S_MAX: Final = 0.35  # and one that took more by a smaller one: a scan passes its deadline by about that much
STEP_GROWTH: Final = 3
FOUND_BYTES_MAX: Final = 32 * 1024 * 1024  # found, but not yet emitted
PARTITIONS_FIRST: Final = 32  # read for the first time at the same time: each of them holds a fetch and a decompressed batch
PARTITIONS_AT_ONCE: Final = 4  # read further at the same time, while nothing was found
SILENCE_S_MAX: Final = 4.0
POLL_S: Final = 0.25
EXAMINE_S_MAX: Final = 10.0  # for all messages of one poll: a filter has its own bound for each of them

# Settings of a consumer that scans. The wait is short because a fetch at the end of a log would delay the fetch of the next window.
SCAN_SETTINGS: Final[Mapping[str, object]] = {
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "none",
    "fetch.max.wait.ms": 10,
    "fetch.max.bytes": 2 * 1024 * 1024,
    "max.partition.fetch.bytes": 256 * 1024,
    "max.poll.records": 1000,
    "exclude.internal.topics": False,
}


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """A message that was looked for: what was made of it, and where it is."""

    partition: int
    offset: int
    timestamp: int
    item: T
    weight: int


class Examiner(Generic[T]):
    """Decodes, filters, and makes of each message what is wanted of it, for example a row of a page, with its size in memory.

    Runs in worker threads, for one scan never in two at the same time.
    """

    def __init__(self, decoder: Decoder, chosen: Filter | None, make: Callable[[DecodedMessage], tuple[T, int]]) -> None:
        self._decoder = decoder
        self._filter = chosen
        self._make = make
        self.has_filter = chosen is not None
        self.out_of_time = 0  # messages for which the filter took too long, and those of a poll after its time was over

    def examine(self, records: list[RawRecord]) -> list[Found[T]]:
        """What was looked for, in the order of the records. After EXAMINE_S_MAX the rest of them is left out, and counted."""
        matches: list[Found[T]] = []
        deadline = time.monotonic() + EXAMINE_S_MAX
        for number, record in enumerate(records):
            if number and time.monotonic() >= deadline:
                self.out_of_time += len(records) - number
                return matches
            message = DecodedMessage(record, self._decoder)
            try:
                if self._filter is not None and not self._filter.matches(message):
                    continue
            except OutOfTime:
                self.out_of_time += 1
                continue
            item, weight = self._make(message)
            matches.append(Found(record.partition, record.offset, record.timestamp, item, weight))
        return matches


@dataclass
class ScanRange(Generic[T]):
    """One partition of a scan: it is looked at from `position` to `end` forwards, or down to `begin` backwards."""

    partition: int
    begin: int
    end: int
    position: int
    step: int = FIRST_STEP
    frontier: int | None = None
    is_silent: bool = False
    found: deque[Found[T]] = field(default_factory=deque)  # in the order in which they are emitted
    mean_bytes: float = 0.0


class Scan(Generic[T]):
    """`look` returns the next messages; `cursor` is where the next scan goes on. The consumer has SCAN_SETTINGS and belongs to the scan."""

    def __init__(
        self,
        consumer: AsyncConsumer[bytes, bytes],
        topic: str,
        ranges: list[ScanRange[T]],
        examiner: Examiner[T],
        *,
        backwards: bool,
        looked_before: int = 0,
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self._ranges = {one.partition: one for one in ranges}
        self._examiner = examiner
        self._backwards = backwards
        self._looked_before = looked_before
        self._remaining_at_start = sum(map(self._left, ranges))
        self._is_assigned = False
        self._fetched_to: dict[int, int] = {}  # the positions of the consumer
        self._reads_singly = False
        self.notes: list[str] = []  # partitions that could not be read, in words
        self.records_examined = 0

    @property
    def is_finished(self) -> bool:
        """Whether everything was looked at and emitted."""
        return all(self._left(one) == 0 and not one.found for one in self._ranges.values() if not one.is_silent)

    @property
    def out_of_time(self) -> int:
        """Messages for which the filter took too long: they are not shown."""
        return self._examiner.out_of_time

    @property
    def looked(self) -> int:
        """Offsets looked at, those before the cursor included."""
        return self._looked_before + self._remaining_at_start - self.remaining

    @property
    def remaining(self) -> int:
        """Offsets not yet looked at."""
        return sum(map(self._left_for_cursor, self._ranges.values()))

    def cursor(self) -> Cursor | None:
        """Where to go on: None if nothing is left."""
        positions = {one.partition: self._cursor_position(one) for one in self._ranges.values() if self._left_for_cursor(one) > 0}
        return Cursor(positions, self.looked) if positions else None

    async def look(self, limit: int, time_s: float) -> list[Found[T]]:
        """Up to `limit` messages. Returns earlier after `time_s`, or when nothing is left. A window that was begun is finished.

        The first window is read whatever the time is, so that each call gets further.
        """
        deadline, has_read = time.monotonic() + time_s, False
        silent_at = deadline + SILENCE_S_MAX
        emitted: list[Found[T]] = []
        for one in self._ranges.values():
            one.is_silent = False
            one.step = one.step if one.frontier is not None else self._first_step(limit)
        while len(emitted) < limit:
            best = self._best()
            ahead = self._to_read(best)
            is_full = sum(match.weight for one in self._ranges.values() for match in one.found) > FOUND_BYTES_MAX
            if best is not None and (not ahead or is_full):
                emitted.append(best.found.popleft())
                continue
            if not ahead or (has_read and time.monotonic() >= deadline):
                break
            await self._read(ahead, limit, silent_at)
            has_read = True
        while len(emitted) < limit and (best := self._best()) is not None:
            emitted.append(best.found.popleft())
        return emitted

    # Which partitions to read

    def _first_step(self, limit: int) -> int:
        if self._examiner.has_filter:
            return FIRST_STEP_WITH_FILTER
        return min(limit, max(FIRST_STEP, -(-2 * limit // max(len(self._ranges), 1)))) if len(self._ranges) > 1 else FIRST_STEP

    def _best(self) -> ScanRange[T] | None:
        """The partition whose first message comes before those of all others."""
        ready = [one for one in self._ranges.values() if one.found]
        if self._backwards:
            return max(ready, key=lambda one: (one.found[0].timestamp, -one.partition), default=None)
        return min(ready, key=lambda one: (one.found[0].timestamp, one.partition), default=None)

    def _to_read(self, best: ScanRange[T] | None) -> list[ScanRange[T]]:
        """The partitions that must be read before the best message may be emitted; without one, those that are behind."""
        readable = [one for one in self._ranges.values() if not one.found and not one.is_silent and self._left(one) > 0]
        unknown = [one for one in readable if one.frontier is None]
        if unknown:
            return unknown[:PARTITIONS_FIRST]
        if best is not None:
            time_of_best = best.found[0].timestamp
            return [one for one in readable if (one.frontier > time_of_best if self._backwards else one.frontier < time_of_best)]  # type: ignore[operator]
        readable.sort(key=lambda one: one.frontier or 0, reverse=self._backwards)
        return readable[:PARTITIONS_AT_ONCE]

    def _left(self, one: ScanRange[T]) -> int:
        return max(0, one.position - one.begin if self._backwards else one.end - one.position)

    def _left_for_cursor(self, one: ScanRange[T]) -> int:
        position = self._cursor_position(one)
        return max(0, position - one.begin if self._backwards else one.end - position)

    def _cursor_position(self, one: ScanRange[T]) -> int:
        if not one.found:
            return one.position
        return one.found[0].offset + 1 if self._backwards else one.found[0].offset

    # Reading

    async def _read(self, ranges: list[ScanRange[T]], limit: int, silent_at: float) -> None:
        """Reads the next window of each of these partitions."""
        await self._assign()
        if self._reads_singly:
            ranges = ranges[:1]
        began = time.monotonic()
        windows = {one.partition: _Window(one, *self._next_window(one), limit, self._backwards) for one in ranges}
        for partition, window in windows.items():
            if self._fetched_to.get(partition) != window.low:  # otherwise the data after the last window is still there
                self._seek(partition, window.low)
        self._consumer.resume([TopicPartition(self._topic, partition) for partition in windows])
        try:
            await self._read_windows(windows, silent_at)
        finally:
            self._consumer.pause([TopicPartition(self._topic, one.partition) for one in ranges])
            self._drop_fetched(windows)
        took_s = time.monotonic() - began
        for one in ranges:
            if took_s < WINDOW_S:  # most of a small window is the way to its first record: larger ones cost less for each
                one.step = min(one.step * STEP_GROWTH, STEP_MAX)
            elif took_s > WINDOW_S_MAX:
                one.step = max(one.step // 2, FIRST_STEP)
            if one.mean_bytes:
                one.step = max(1, min(one.step, int(WINDOW_BYTES_MAX / one.mean_bytes)))

    async def _assign(self) -> None:
        if self._is_assigned:
            return
        partitions = [TopicPartition(self._topic, partition) for partition in self._ranges]
        await self._consumer.assign(partitions)
        self._consumer.pause(partitions)
        for one in self._ranges.values():  # a partition without a position would be looked up, and there is no rule for that
            self._seek(one.partition, one.position)
        self._is_assigned = True

    def _seek(self, partition: int, offset: int) -> None:
        """Also drops what was fetched of the partition."""
        self._consumer.seek(TopicPartition(self._topic, partition), offset)
        self._fetched_to[partition] = offset

    def _drop_fetched(self, partitions: Iterable[int]) -> None:
        """Frees the memory of fetches that are not read on: those of backward windows, and all if there are many partitions."""
        if self._backwards or len(self._ranges) > PARTITIONS_AT_ONCE:
            for partition in partitions:
                self._seek(partition, self._ranges[partition].position)

    def _next_window(self, one: ScanRange[T]) -> tuple[int, int]:
        if self._backwards:
            return max(one.begin, one.position - one.step), one.position
        return one.position, min(one.end, one.position + one.step)

    async def _read_windows(self, windows: dict[int, _Window[T]], silent_at: float) -> None:
        pending = dict(windows)
        while pending:
            left_s = silent_at - time.monotonic()
            if left_s <= 0:
                self._give_up(pending.values(), "did not answer in time")
                return
            try:
                polled = await self._consumer.poll(min(POLL_S, left_s))
            except (AuthenticationError, AuthorizationError):
                raise
            except OffsetOutOfRange as fault:
                await self._skip_deleted(pending, fault)
                continue
            except KafkaError as fault:
                if len(pending) > 1:  # it is not known which partition it is
                    self._reads_singly = True
                    return
                self._give_up(pending.values(), f"cannot be read: {fault}")
                return
            await self._take(polled, pending)

    async def _take(self, polled: ConsumerRecords[bytes, bytes], pending: dict[int, _Window[T]]) -> None:
        for partition, position in polled.next_offsets().items():
            window = pending.get(partition.partition)
            if window is None:
                continue
            self._fetched_to[partition.partition] = position.offset
            records = [record for record in polled.records(partition) if record.offset < window.high]
            if records:
                matches = await asyncio.to_thread(self._examiner.examine, records)
                self.records_examined += len(records)
                window.add(records, matches)
            if position.offset >= window.high or window.is_full:
                window.finish()
                del pending[partition.partition]
                self._consumer.pause([partition])

    async def _skip_deleted(self, pending: dict[int, _Window[T]], fault: OffsetOutOfRange) -> None:
        """Messages were deleted since the scan began: goes on at the first one that is left, or leaves the partition."""
        partitions = [partition for partition in fault.offset_out_of_range_partitions if partition.partition in pending]
        begins = await self._consumer.beginning_offsets(partitions or [TopicPartition(self._topic, number) for number in pending])
        for partition, begin in begins.items():
            window = pending[partition.partition]
            window.range.begin = max(window.range.begin, begin)
            if window.low < begin < window.high:
                window.low = begin
                self._seek(partition.partition, begin)
            elif begin >= window.high:
                window.range.position = begin if not self._backwards else window.range.begin
                self._drop(pending, partition)
            else:
                self._give_up([window], "has lost messages at its end")
                self._drop(pending, partition)

    def _drop(self, pending: dict[int, _Window[T]], partition: TopicPartition) -> None:
        del pending[partition.partition]
        self._consumer.pause([partition])

    def _give_up(self, windows: Any, reason: str) -> None:
        for window in windows:
            window.range.is_silent = True
            note = f"Partition {window.range.partition} {reason}"
            if note not in self.notes:
                self.notes.append(note)


class _Window(Generic[T]):
    """A window of offsets while it is read. What does not fit is left out, and read again later."""

    def __init__(self, one: ScanRange[T], low: int, high: int, limit: int, backwards: bool) -> None:
        self.range = one
        self.low = low
        self.high = high
        self.is_full = False
        self._limit = limit
        self._backwards = backwards
        self._found: deque[Found[T]] = deque()
        self._weight = 0
        self._dropped = False
        self._first_timestamp: int | None = None
        self._last_timestamp: int | None = None

    def add(self, records: list[RawRecord], matches: list[Found[T]]) -> None:
        """Adds what was found in the next records of the window."""
        one = self.range
        if self._first_timestamp is None:
            self._first_timestamp = records[0].timestamp
        self._last_timestamp = records[-1].timestamp
        size = sum(max(record.serialized_value_size, 0) + max(record.serialized_key_size, 0) for record in records) / len(records)
        one.mean_bytes = size if not one.mean_bytes else (one.mean_bytes + size) / 2
        for item in matches:
            if self.is_full:
                return
            self._found.append(item)
            self._weight += item.weight
            is_over = len(self._found) > self._limit or (self._weight > WINDOW_BYTES_MAX and len(self._found) > 1)
            if not is_over:
                continue
            if self._backwards:  # the lowest ones come last: leave them for another window
                self._weight -= self._found.popleft().weight
                self._dropped = True
            else:
                self._weight -= self._found.pop().weight
                self._dropped = self.is_full = True

    def finish(self) -> None:
        """Moves the partition behind the window, or behind what fits of it."""
        one = self.range
        if self._backwards:
            one.position = self._found[0].offset if self._dropped else self.low
            one.frontier = self._found[0].timestamp if self._dropped else _or(self._first_timestamp, one.frontier)
            one.found.extend(reversed(self._found))
        else:
            one.position = self._found[-1].offset + 1 if self._dropped else self.high
            one.frontier = self._found[-1].timestamp if self._dropped else _or(self._last_timestamp, one.frontier)
            one.found.extend(self._found)


def _or(value: int | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else value
