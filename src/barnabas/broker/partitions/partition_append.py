# Compiled by mypyc: src/compiled.toml lists this module.
"""What became of the records for one partition: the answer a producer, or a coordinator, gets for them.

The partition makes it when it has appended; a wait for replicas may still change its error. A plain class, for one is made on the path of
every append.
"""

from __future__ import annotations

from barnabas.topic_partition import TopicPartition

NO_RECORD_ERRORS: list[tuple[int, str]] = []  # shared by all that have none; never changed


class PartitionAppend:
    """For a duplicate these are the offsets of the original. Offsets and times are -1 where nothing was appended."""

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
        self.looked_at = looked_at  # bytes of records that the validation has looked at
        self.must_flush = must_flush  # no acknowledgement before the records are on disk: flush.messages asked for it

    def __repr__(self) -> str:
        return f"PartitionAppend({self.partition}, error={self.error}, base_offset={self.base_offset}, last_offset={self.last_offset})"
