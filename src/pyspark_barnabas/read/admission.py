"""The limits of a trigger of a stream: maxOffsetsPerTrigger, minOffsetsPerTrigger and maxTriggerDelay.

The rules are those of Spark's own connector. The allowed offsets are divided among the partitions in proportion to their size, and every
partition with something to read gets at least one. A trigger with too little to read waits up to maxTriggerDelay. The caller passes the
time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.offsets import PartitionOffsets


def limited(begin: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], rows_max: int) -> PartitionOffsets:
    """The end offsets of a trigger that may read `limit` offsets; `begin` has the first offset of each partition."""
    sizes = {partition: end - begin[partition] for partition, end in latest.items() if end > begin.get(partition, end)}
    total = sum(sizes.values())
    end = dict(latest)
    for partition, size in sizes.items():
        share = rows_max * (size / total)
        # Rounded up: otherwise a small partition beside large ones would never be read.
        allowed = math.ceil(share) if share < 1 else math.floor(share)
        end[partition] = min(latest[partition], begin[partition] + allowed)
    return end


class MinimumRows:
    """Delays a trigger until there is enough to read, or until maxTriggerDelay has passed."""

    def __init__(self, rows_min: int, delay_ms_max: int) -> None:
        self._rows_min = rows_min
        self._delay_ms_max = delay_ms_max
        self._last_ms: int | None = None  # the first trigger never waits

    def holds_back(self, begin: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], now_ms: int) -> bool:
        rows = sum(end - begin.get(partition, 0) for partition, end in latest.items())
        if self._last_ms is not None and now_ms - self._last_ms < self._delay_ms_max and rows < self._rows_min:
            return True
        self._last_ms = now_ms
        return False
