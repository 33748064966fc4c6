"""Plans a stream: the start and end offsets of each trigger, changes of the cluster, and finished offsets.

Spark writes the offsets to the checkpoint before a batch runs and passes them back. A batch that is planned again after a crash has the
same offsets, and therefore the same records, or ends with an error that says why.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.errors import UnknownTopicOrPartition
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.cluster import ClusterClient
from pyspark_barnabas.errors import DataSourceError
from pyspark_barnabas.offsets import EARLIEST, LATEST, PartitionOffsets, StreamOffset
from pyspark_barnabas.queries.batch_note import BatchHistory, BatchNote
from pyspark_barnabas.queries.query_record import part_key
from pyspark_barnabas.read.admission import MinimumRows, limited
from pyspark_barnabas.read.progress import ArrivalRate, GroupProgress, lag_metrics, with_metrics
from pyspark_barnabas.read.ranges import OffsetRange, split_ranges
from pyspark_barnabas.read.stream_changes import Losses, added_too_late, gone, not_there, receded, recreated, replay_impossible
from pyspark_barnabas.spark_versions import ReadAllAvailable, ReadMaxRows

if TYPE_CHECKING:
    from pyspark_barnabas.read.read_options import ReadOptions
    from pyspark_barnabas.subscription import Topic


class StreamPlanner:
    """The planner of one query, with its connection to the cluster and the last known state of it. Must be closed."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = ClusterClient.of(options)
        self._losses = Losses(options.fail_on_data_loss)
        self._topics: dict[str, Topic] = {}
        self._initial: StreamOffset | None = None
        self._planned: StreamOffset | None = None  # the end of the last batch that was planned here
        self._checked: StreamOffset | None = None  # the offsets that were last compared with the cluster
        self._target: StreamOffset | None = None  # the end for Trigger.AvailableNow
        self._shown: tuple[StreamOffset, Mapping[TopicPartition, int], float | None] | None = None
        self._rate = ArrivalRate()
        self.note: BatchNote | None = None  # of the batch that was planned last
        self.source_key: str | None = None
        self._history: BatchHistory | None = None
        if options.publish:
            self.source_key = part_key(str(options.subscription), str(options.source.get("filter")))
            self._history = BatchHistory(self.source_key, str(options.subscription))
        self._minimum: MinimumRows | None = None
        if options.min_offsets_per_trigger is not None:
            self._minimum = MinimumRows(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        self._progress: GroupProgress | None = None
        if options.group_id is not None:
            self._progress = GroupProgress(options.group_id, self._cluster.commit)

    def initial(self) -> StreamOffset:
        """The start offsets of a new query."""
        starting = self._options.starting
        self._look()
        self._options.subscription.check(self._topics, self._options.servers)
        partitions = self._options.subscription.partitions(self._topics.values())
        starting.check(partitions)
        partitions = self._wanted(partitions)
        answers = self._cluster.offsets(starting.specs(partitions))
        unmatched = [partition for partition, offset in answers.items() if offset < 0]
        latest = self._cluster.offsets(dict.fromkeys(unmatched, LATEST))
        offsets = starting.resolved(partitions, answers, latest)
        if starting.offsets is not None:
            bounds = [self._cluster.offsets(dict.fromkeys(partitions, spec)) for spec in (EARLIEST, LATEST)]
            offsets = starting.kept(offsets, *bounds, fails=self._options.fail_on_data_loss)
        self._initial = self._planned = self._known(offsets)
        return self._initial

    def fix_target(self) -> None:
        """Fixes the end: later records are not read."""
        self._target = self._newest()

    def latest(self, start: StreamOffset | None, limit: Any) -> StreamOffset:
        """The end of the next batch. Everything before `start` is finished when Spark calls this. Spark before 4.2 passes no start (None):
        then it is the end of the last batch, or unknown after a restart."""
        start = self._planned if start is None else start
        if self._history is not None:
            self._history.ended()
        if start is None:
            self._planned = self._newest()
            return self._planned
        newest = self._target if self._target is not None else self._newest(start)
        self._check(start, newest)
        begin = self._begin(start, newest)
        if start != self._initial:
            going_on = {partition: start.offsets[partition] for partition in newest.offsets if _continues(start, newest, partition)}
            self.finished(StreamOffset(going_on, start.topic_ids))
        end = self._planned = self._admitted(start, begin, newest, limit)
        if self._target is not None and end == start and self._progress is not None:
            self._progress.close()  # everything available is read: Spark may end this process at any time now
        rate = None if self._target is not None else self._rate.update(newest.offsets, int(time.monotonic() * 1000))
        self._shown = (end, newest.offsets, rate)
        return end

    def ranges(self, start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
        """The ranges for the tasks of a batch."""
        self._planned = end
        if any(partition.topic not in self._topics for partition in end.offsets):
            self._look()
        readable = self._readable(end)
        if start != self._checked:
            self._check(start, end)  # a batch is planned again after a restart
        begin = {partition: start.offsets[partition] for partition in readable if _continues(start, end, partition)}
        added = [partition for partition in readable if partition not in begin]
        firsts = self._cluster.offsets(dict.fromkeys(added, EARLIEST))
        self._losses.report([added_too_late(partition, first) for partition, first in sorted(firsts.items()) if first > 0])
        begin.update(firsts)
        self._take_note(begin, end)
        ranges = [self._range(partition, begin[partition], end) for partition in sorted(readable)]
        narrowed = [left for offset_range in ranges if (left := self._options.record_filter.narrowed(offset_range)) is not None]
        return split_ranges(narrowed, self._options.min_partitions, self._options.max_records_per_partition)

    def _take_note(self, begin: PartitionOffsets, end: StreamOffset) -> None:
        if self._history is None:
            return
        shown_end, latest, rate = self._shown if self._shown is not None else (None, None, None)
        planned_here = shown_end == end
        self.note = self._history.begins(begin, end.offsets, latest if planned_here else None, rate if planned_here else None)

    def finished(self, offset: StreamOffset) -> None:
        if self._progress is not None:
            self._progress.finished(offset)

    def report(self) -> dict[str, Any] | None:
        """The latest offsets for the query's progress, with the lag of the planned batch."""
        if self._shown is None:
            return None
        end, latest, rate = self._shown
        metrics = lag_metrics(end.offsets, latest)
        if rate is not None:
            metrics["recordsArrivedPerSecond"] = rate
        return with_metrics(StreamOffset(latest, end.topic_ids).to_json(), self._options.description(), metrics)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.close()
        self._cluster.close()

    # The state of the cluster

    def _look(self) -> None:
        """The current topics and partitions."""
        self._topics = self._cluster.topics(self._options.subscription)

    def _newest(self, start: StreamOffset | None = None) -> StreamOffset:
        """The latest offsets of all existing partitions. Offsets before the position of the stream are requested again: the response may
        come from a former leader."""
        latest = self._latest()
        partitions = list(latest)
        newest = self._known(latest)
        for _ in range(self._options.attempts - 1):
            behind = [] if start is None else [p for p in partitions if _continues(start, newest, p) and latest[p] < start.offsets[p]]
            if not behind:
                break
            time.sleep(self._options.retry_interval_ms / 1000)
            latest.update(self._cluster.offsets(dict.fromkeys(behind, LATEST)))
            newest = self._known(latest)
        return newest

    def _latest(self) -> PartitionOffsets:
        for left in range(self._options.attempts - 1, -1, -1):
            self._look()
            partitions = self._wanted(self._options.subscription.partitions(self._topics.values()))
            try:
                return self._cluster.offsets(dict.fromkeys(partitions, LATEST))
            except UnknownTopicOrPartition:
                if not left:
                    raise
                time.sleep(self._options.retry_interval_ms / 1000)  # deleted between the two requests
        raise AssertionError("there is at least one attempt")

    def _wanted(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [partition for partition in partitions if self._options.record_filter.wants(*partition)]

    def _known(self, offsets: PartitionOffsets) -> StreamOffset:
        ids = {partition.topic: self._topics[partition.topic].topic_id for partition in offsets}
        return StreamOffset(offsets, {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None})

    # The content of a batch

    def _check(self, start: StreamOffset, newer: StreamOffset) -> None:
        """Reports losses between the two."""
        self._checked = start
        subscription = self._options.subscription
        losses = [recreated(topic) for topic in sorted({p.topic for p in start.offsets}) if not start.same_topic(newer, topic)]
        missing = sorted(partition for partition in start.offsets if partition not in newer.offsets)
        losses += gone(missing, subscription, self._options.record_filter)
        if never := sorted((subscription.names() or frozenset()) - self._topics.keys() - {p.topic for p in missing}):
            losses.append(not_there(never, subscription.option, self._options.servers))
        for partition, offset in newer.offsets.items():
            if _continues(start, newer, partition) and offset < start.offsets[partition]:
                losses.append(receded(partition, start.offsets[partition], offset))
        self._losses.report(losses)

    def _begin(self, start: StreamOffset, newest: StreamOffset) -> PartitionOffsets:
        """The start of each partition: its position, or the beginning of a new partition."""
        begin = {partition: start.offsets[partition] for partition in newest.offsets if _continues(start, newest, partition)}
        added = [partition for partition in newest.offsets if partition not in begin]
        begin.update(self._cluster.offsets(dict.fromkeys(added, EARLIEST)))
        return begin

    def _admitted(self, start: StreamOffset, begin: PartitionOffsets, newest: StreamOffset, limit: Any) -> StreamOffset:
        if isinstance(limit, ReadAllAvailable):
            return newest
        if self._target is None and self._held_back(begin, newest):
            return start
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if rows_max is None:
            return newest
        return StreamOffset(limited(begin, newest.offsets, rows_max), newest.topic_ids)

    def _held_back(self, begin: PartitionOffsets, newest: StreamOffset) -> bool:
        return self._minimum is not None and self._minimum.holds_back(begin, newest.offsets, int(time.monotonic() * 1000))

    def _readable(self, end: StreamOffset) -> list[TopicPartition]:
        """The partitions of a planned batch that can still be read."""
        losses: list[DataSourceError] = []
        readable: list[TopicPartition] = []
        for partition in sorted(end.offsets):
            topic = self._topics.get(partition.topic)
            wanted_id = end.topic_ids.get(partition.topic)
            if topic is None or partition.partition not in topic.numbers:
                losses.append(replay_impossible(partition, "is gone"))
            elif wanted_id is not None and topic.topic_id is not None and topic.topic_id != wanted_id:
                losses.append(replay_impossible(partition, "is of another topic of the same name, created since"))
            else:
                readable.append(partition)
        self._losses.report(losses)
        return readable

    def _range(self, partition: TopicPartition, start: int, end: StreamOffset) -> OffsetRange:
        topic = self._topics[partition.topic]
        topic_id = end.topic_ids.get(partition.topic, topic.topic_id)
        return OffsetRange(*partition, start, end.offsets[partition], topic_id)


def _continues(start: StreamOffset, newer: StreamOffset, partition: TopicPartition) -> bool:
    """Whether the stream has read this partition before, and not one of a deleted topic of the same name."""
    return partition in start.offsets and start.same_topic(newer, partition.topic)
