# Compiled by mypyc: src/compiled.toml lists this module.
"""The result of an append to one partition, for a producer or a coordinator.

The partition makes it after the append; the wait for replicas may still change its error. A plain class, because one is made for every
append.
"""

from __future__ import annotations

from barnabas.topic_partition import TopicPartition

NO_RECORD_ERRORS: list[tuple[int, str]] = []  # shared by all results without record errors; never changed


class PartitionAppend:
    """For a duplicate these are the offsets of the original. Offsets and times are -1 if nothing was appended."""

    def __init__(
        self,
        partition: TopicPartition,
        error: int = 0,
        base_offset: int = -1,
        last_offset: int = -1,
        log_append_time: int = -1,
        log_start_offset: int = -1,
        record_errors: list[tuple[int, str]] = NO_RECORD_ERRORS,
        error_message: str | None = None,
        high_watermark_moved: bool = False,
        must_flush: bool = False,
        looked_at: int = 0,
    ) -> None:
        self.partition = partition
        self.error = error
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.high_watermark_moved = high_watermark_moved
        self.looked_at = looked_at  # bytes of records that were validated
        self.must_flush = must_flush  # flush.messages requires that the records are on disk before they are acknowledged

    def __repr__(self) -> str:
        return f"PartitionAppend({self.partition}, error={self.error}, base_offset={self.base_offset}, last_offset={self.last_offset})"
