"""The segment that compaction writes: what the filter lets pass, with the index entries Kafka would give it.

Until it is finished its files end in `.cleaned` and belong to nobody; a crash or an abandoned cleaning costs nothing but the work.
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
        """What stays of the next batch."""
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
        """The end of a slice."""
        self._stats.bytes_read += bytes_read
        self._write()

    def _write(self) -> None:
        if not self._pending:
            return
        self.segment.append(self._pending, self._batches)
        self._stats.bytes_written += sum(batch.size for batch in self._batches)
        self._pending, self._batches = [], []

    def finish(self) -> Callable[[], bytes]:
        """All is written; gives the call that makes it durable, for any thread."""
        self.segment.close_indexes()
        targets = self.segment.sync_targets()

        def sync() -> bytes:
            for target in targets:
                target.sync()
            return b""

        return sync

    def set_modified_ms(self, modified_ms: int) -> None:
        """As old as the newest of what it was made from: retention of old formats goes by it."""
        self.segment.files.set_modified_ms(self.segment.file.path, modified_ms)

    def discard(self) -> None:
        try:
            self.segment.delete()
        except OSError as e:
            _log.warning("Could not remove %s, the next start will: %s", self.segment.file.path, e)
