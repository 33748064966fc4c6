"""Reads topics as a batch: the ranges are determined once, when the query is planned, and each is read by one task.

Every partition has a start and an end offset before anything is read; an offset of the options that the log does not have is an error in
planning, not in a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.offsets import EARLIEST, LATEST, PartitionOffsets
from pyspark_barnabas.read.filters import pushed
from pyspark_barnabas.read.ranges import OffsetRange, RangePartition, split_ranges
from pyspark_barnabas.read.record_reader import RecordReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_barnabas.cluster import ClusterClient
    from pyspark_barnabas.read.read_options import ReadOptions


class BatchReader(DataSourceReader):
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._records = RecordReader(options, schema)

    @error_first()
    def partitions(self) -> list[InputPartition]:
        from pyspark_barnabas.cluster import ClusterClient

        options = self._options
        with ClusterClient.of(options) as cluster:
            ranges = self._ranges(cluster)
        pieces = split_ranges(ranges, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with error_first():  # a generator: errors are raised while it runs
            yield from self._records.read(partition)

    def _ranges(self, cluster: ClusterClient) -> list[OffsetRange]:
        options, record_filter = self._options, self._records.record_filter
        topics = cluster.topics(options.subscription)
        options.subscription.check(topics, options.servers)
        partitions = options.subscription.partitions(topics.values())
        for bound in (options.starting, options.ending):
            bound.check(partitions)
        selected = [partition for partition in partitions if record_filter.wants(*partition)]
        starts, ends = self._bounds(cluster, selected)
        ranges = [OffsetRange(*partition, starts[partition], ends[partition], topics[partition.topic].topic_id) for partition in selected]
        narrowed = [left for offset_range in ranges if (left := record_filter.narrowed(offset_range)) is not None]
        return _from_time(cluster, narrowed, record_filter.earliest_ms())

    def _bounds(self, cluster: ClusterClient, partitions: list[TopicPartition]) -> tuple[PartitionOffsets, PartitionOffsets]:
        """The start and end of each partition. The end is requested last, so that it is never before the start."""
        starting, ending = self._options.starting, self._options.ending
        first = cluster.offsets(starting.specs(partitions))
        last = cluster.offsets(ending.specs(partitions))
        latest = last
        if ending.everywhere is None:
            latest = cluster.offsets(dict.fromkeys(partitions, LATEST))
        starts = starting.resolved(partitions, first, latest)
        ends = ending.resolved(partitions, last, latest)
        if starting.offsets is not None or ending.offsets is not None:
            log_starts = cluster.offsets(dict.fromkeys(partitions, EARLIEST))
            starts = starting.kept(starts, log_starts, latest, fails=self._options.fail_on_data_loss)
            ends = ending.kept(ends, log_starts, latest, fails=self._options.fail_on_data_loss)
        for partition in partitions:
            if starts[partition] > ends[partition]:
                raise OptionError(
                    ending.option,
                    f"{partition} would end at {ends[partition]}, before its start at {starts[partition]} ('{starting.option}').",
                )
        return starts, ends


class FilteringReader(BatchReader):
    """A BatchReader for sessions with spark.sql.python.filterPushdown.enabled."""

    @error_first()
    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Keeps the filters that this source can apply to every record, and returns the rest."""
        self._records.record_filter, rest = pushed(self._records.record_filter, filters)
        return rest


def _from_time(cluster: ClusterClient, ranges: list[OffsetRange], earliest_ms: int | None) -> list[OffsetRange]:
    """The ranges from the first record of that time on; a partition without such a record has no range."""
    if earliest_ms is None:
        return ranges
    firsts = cluster.offsets({TopicPartition(one.topic, one.partition): earliest_ms for one in ranges})
    kept: list[OffsetRange] = []
    for one in ranges:
        first = firsts[TopicPartition(one.topic, one.partition)]
        if 0 <= first < one.end:
            kept.append(replace(one, start=max(one.start, first)))
    return kept
