# Compiled by mypyc: src/compiled.toml lists this module.
"""The offsets of a log that say what its readers may see.

log start offset  ≤  last stable offset  ≤  high watermark  ≤  log end offset
"""

from __future__ import annotations

import logging

from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segments.segments import Segments
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class VisibleOffsets:
    """The base of Log, which changes the log end offset and looks up positions."""

    def __init__(
        self, partition: TopicPartition, segments: Segments, producers: ProducerStateManager, log_start_offset: int, log_end_offset: int
    ) -> None:
        self.partition = partition
        self.segments = segments
        self.producers = producers
        self.log_start_offset = log_start_offset
        self._log_end_offset = log_end_offset
        self._high_watermark = LogOffset(log_start_offset)
        self._first_unstable: LogOffset | None = None

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._log_end_offset

    @property
    def end(self) -> LogOffset:
        active = self.segments.active
        return LogOffset(self._log_end_offset, active.base_offset, active.size)

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below it is committed or aborted; read_committed stops here."""
        unstable = self._first_unstable
        if unstable is not None and unstable.offset < self._high_watermark.offset:
            return unstable.offset
        return self._high_watermark.offset

    def fetch_high_watermark(self) -> LogOffset:
        """The high watermark with its segment and position, which are looked up once if only the offset is known."""
        if not self._high_watermark.has_position:
            self._set_high_watermark(self._place(self._high_watermark.offset))
        return self._high_watermark

    def fetch_last_stable_offset(self) -> LogOffset:
        high_watermark = self.fetch_high_watermark()
        unstable = self._first_unstable
        if unstable is None or unstable.offset >= high_watermark.offset:
            return high_watermark
        if not unstable.has_position:
            self._first_unstable = unstable = self._place(unstable.offset)
        return unstable

    def update_high_watermark(self, offset: int) -> int:
        """Sets the high watermark of a follower to that of its leader, limited to log start and log end; returns the new one."""
        if offset < self.log_start_offset:
            self._set_high_watermark(LogOffset(self.log_start_offset))
        elif offset >= self._log_end_offset:
            self._set_high_watermark(self.end)
        else:
            self._set_high_watermark(LogOffset(offset))
        return self.high_watermark

    def maybe_increment_high_watermark(self, new: LogOffset) -> LogOffset | None:
        """Moves the high watermark of a leader forward; returns the old one, or None if it has not moved."""
        if new.offset > self._log_end_offset:
            raise ValueError(f"High watermark {new.offset} update exceeds current log end offset {self._log_end_offset}")
        old = self.fetch_high_watermark()
        if old.offset < new.offset or (old.offset == new.offset and old.on_older_segment(new)):
            self._set_high_watermark(new)
            return old
        return None

    def _set_high_watermark(self, new: LogOffset) -> None:
        if new.offset < 0:
            raise ValueError("High watermark offset should be non-negative")
        if new.offset < self._high_watermark.offset:
            _log.warning("Non-monotonic update of high watermark of %s from %d to %d", self.partition, self.high_watermark, new.offset)
        self._high_watermark = new
        self.producers.on_high_watermark_updated(new.offset)
        self._update_first_unstable()

    def pull_high_watermark_to_end(self) -> None:
        """After a roll: where the high watermark is the log end offset, its position becomes the new active segment."""
        if self._high_watermark.offset >= self._log_end_offset:
            self._set_high_watermark(self.end)

    def move_high_watermark_to_end(self) -> None:
        """After the log was emptied: there is nothing below the log end offset."""
        self._set_high_watermark(self.end)

    def update_visible_offsets(self) -> None:
        """After a truncation: the high watermark is at most the log end offset, and the first unstable offset may have gone."""
        if self._high_watermark.offset >= self._log_end_offset:
            self._set_high_watermark(self.end)
        else:
            self._update_first_unstable()

    def _update_first_unstable(self) -> None:
        first = self.producers.first_unstable_offset
        if first is not None and (first.offset < self.log_start_offset or not first.has_position):
            first = self._place(max(first.offset, self.log_start_offset))
        self._first_unstable = first

    def _update_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        if self._high_watermark.offset < offset:
            self.update_high_watermark(offset)
        # The recovery point stays: a crash may lose the new start, and then unflushed records below it must be recovered.

    def _place(self, offset: int) -> LogOffset:
        """An offset with its segment and position, without them if the offset is out of range."""
        raise NotImplementedError
