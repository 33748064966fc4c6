"""The options of the direct reader: log directories, topics and offsets.

Options that the reader of a broker has too keep their names: subscribe, subscribePattern, assign, the starting and ending offsets,
filter, includeHeaders, minPartitions, failOnDataLoss, kafka.isolation.level, kafka.check.crcs, value.*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas import values
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.offsets import STRATEGY, Bound, check_order, ending_bound, ending_options, starting_bound
from pyspark_barnabas.options import KAFKA, boolean, choice, given, integer, refuse_unknown
from pyspark_barnabas.read.filters import FILTER, RowFilter, parse_filter
from pyspark_barnabas.segments.file_store import LOG_DIRS
from pyspark_barnabas.segments.log_dirs import INTERNAL_TOPICS, parse_log_dirs
from pyspark_barnabas.subscription import STRATEGIES, Subscription, parse_subscription

BYTES_PER_TASK: Final = "maxBytesPerPartition"
BYTES_PER_TASK_DEFAULT: Final = 128 * 1024 * 1024  # as spark.sql.files.maxPartitionBytes
ISOLATION: Final = "kafka.isolation.level"
CHECK_CRCS: Final = "kafka.check.crcs"
KNOWN: Final = (
    LOG_DIRS,
    *STRATEGIES,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    STRATEGY,
    *ending_options(),
    FILTER,
    "includeHeaders",
    "minPartitions",
    "failOnDataLoss",
    BYTES_PER_TASK,
    *values.OPTIONS,
)


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """The validated options."""

    log_dirs: tuple[str, ...]
    subscription: Subscription | None
    start: Bound
    end: Bound
    headers: bool = False
    read_committed: bool = True
    check_crc: bool = True
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    bytes_per_task: int = BYTES_PER_TASK_DEFAULT
    record_filter: RowFilter = field(default_factory=RowFilter)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SegmentOptions:
        refuse_unknown(options, KNOWN, "reading log directories")
        for name in options:
            if name.lower().startswith(KAFKA) and name.lower() not in (ISOLATION, CHECK_CRCS):
                raise OptionError(name, f"has no meaning without a broker. Leave it out, or '{LOG_DIRS}'.")
        start, end = starting_bound(options, streaming=False), ending_bound(options)
        check_order(start, end)
        return cls(
            tuple(parse_log_dirs(given(options, LOG_DIRS) or "")),
            parse_subscription(options) if any(given(options, name) is not None for name in STRATEGIES) else None,
            start,
            end,
            boolean(options, "includeHeaders", False),
            choice(options, ISOLATION, "read_committed", ("read_committed", "read_uncommitted")) == "read_committed",
            boolean(options, CHECK_CRCS, True),
            boolean(options, "failOnDataLoss", True),
            integer(options, "minPartitions"),
            integer(options, BYTES_PER_TASK, BYTES_PER_TASK_DEFAULT, least=1024) or BYTES_PER_TASK_DEFAULT,
            parse_filter(given(options, FILTER)),
        )

    def wants(self, partition: TopicPartition) -> bool:
        """Whether to read this partition. Without a selection all are read, except internal topics."""
        if self.subscription is None:
            return partition.topic not in INTERNAL_TOPICS
        is_named = self.subscription.pattern is None
        return (is_named or partition.topic not in INTERNAL_TOPICS) and self.subscription.includes(partition)
