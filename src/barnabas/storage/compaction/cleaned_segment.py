"""The segment that compaction writes: the records that the filter retains, with the index entries that Kafka would write.

Until it is finished its files end in `.cleaned` and are not part of the log, so that a crash or an abandoned cleaning loses only work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.records.batch import Batch, read_batch
from barnabas.storage.compaction.record_filter import RecordFilter
from barnabas.storage.compaction.stats import CleanerStats
from barnabas.storage.log.log import Log
from barnabas.storage.segments.surgery import new_cleaned_segment

_log = logging.getLogger(__name__)


class CleanedSegment:
    def __init__(self, log: Log, base_offset: int, record_filter: RecordFilter, stats: CleanerStats, now_ms: int) -> None:
        self.segment = new_cleaned_segment(log.files, log.directory, base_offset, log.config, now_ms)
        self._log = log
        self._filter = record_filter
        self._stats = stats
        self._pending: list[memoryview] = []
        self._batches: list[Batch] = []  # their headers

    def add(self, data: bytes, batch: Batch) -> bool:
        """Adds what stays of the next batch."""
        retained = self._filter.filter(data, batch)
        if retained is None:
            return True
        size = retained.size
        self._pending.append(memoryview(retained.data)[retained.start : retained.end])
        self._batches.append(read_batch(retained.data, retained.start, size))
        self._stats.messages_written += retained.count
        if size > batch.size and size > self._log.config.max_message_bytes:
            _log.warning(
                "Record batch from %s with last offset %d exceeded max record batch size %d after cleaning (new size is %d). "
                "Consumers with version earlier than 0.10.1.0 may need to increase their fetch sizes.",
                self._log.partition,
                batch.last_offset,
                self._log.config.max_message_bytes,
                size,
            )
        return True

    def flush(self, bytes_read: int) -> None:
        """Writes the retained batches at the end of a slice."""
        self._stats.bytes_read += bytes_read
        self._write()

    def _write(self) -> None:
        if not self._pending:
            return
        self.segment.append(self._pending, self._batches)
        self._stats.bytes_written += sum(batch.size for batch in self._batches)
        self._pending, self._batches = [], []

    def finish(self) -> Callable[[], bytes]:
        """Called when everything is written; returns the call that makes it durable, for any thread."""
        self.segment.close_indexes()
        targets = self.segment.sync_targets()

        def sync() -> bytes:
            for target in targets:
                target.sync()
            return b""

        return sync

    def set_modified_ms(self, modified_ms: int) -> None:
        """Sets the modification time to that of the newest source segment: retention of formats v0 and v1 uses it."""
        self.segment.files.set_modified_ms(self.segment.file.path, modified_ms)

    def discard(self) -> None:
        try:
            self.segment.delete()
        except OSError as e:
            _log.warning("Could not remove %s, the next start will: %s", self.segment.file.path, e)
