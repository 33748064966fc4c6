"""Windowed aggregation of a topic into a topic, with late records: the pipeline that `barnabas demo` shows.

Rows are grouped by keys and by windows of event time. A window is written once, when the watermark has passed its end. The watermark is
the newest event time, minus the allowed lateness. A record older than the watermark is not counted; the query's progress shows such
records (numRowsDroppedByWatermark, in which the records of one task, key and window count as one). The pipeline never writes a window
twice and never changes a written window, because records in a topic cannot be withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.topics import CONTINUE, Source, Target, Trigger, with_fields

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Windows:
    """The windows and aggregates. `keys` and `aggregates` are names with SQL expressions: {"product": "product"}, {"total":
    "sum(quantity)"}.

    The expressions can use the record as `record.key`, `record.timestamp` and so on. With `schema` (DDL) they can also use the fields of
    its JSON value, otherwise the columns of the record.
    """

    keys: Mapping[str, str]
    aggregates: Mapping[str, str] = field(default_factory=lambda: {"count": "count(*)"})
    size: str = "1 minute"
    slide: str = ""  # empty: windows do not overlap; shorter than size: they overlap
    lateness: str = "10 seconds"
    event_time: str = "record.timestamp"
    schema: str = ""

    def __post_init__(self) -> None:
        names = [*self.keys, *self.aggregates, "window_start", "window_end"]
        if not self.keys or not self.aggregates:
            raise ValueError("windows need at least one of `keys` and one of `aggregates`")
        if len(set(names)) != len(names):
            raise ValueError(f"each column of the result needs a name of its own: {', '.join(names)}")

    def aggregated(self, records: DataFrame) -> DataFrame:
        """One row for each key and window: window_start, window_end, the keys, the aggregates."""
        rows = with_fields(records, self.schema)
        rows = rows.withColumn("_event_time", F.expr(self.event_time).cast("timestamp")).withWatermark("_event_time", self.lateness)
        window = F.window("_event_time", self.size, self.slide or None)
        groups = rows.groupBy(window, *(F.expr(expression).alias(name) for name, expression in self.keys.items()))
        counted = groups.agg(*(F.expr(expression).alias(name) for name, expression in self.aggregates.items()))
        start, end = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
        return counted.select(start, end, *self.keys, *self.aggregates)

    def records(self, aggregated: DataFrame) -> DataFrame:
        """The result as records: the keys as text, or as JSON where there are several; all columns as JSON; the end of the window."""
        value = F.to_json(F.struct("window_start", "window_end", *self.keys, *self.aggregates), {"ignoreNullFields": "false"})
        return aggregated.select(
            self._key().cast("binary").alias("key"), value.cast("binary").alias("value"), F.col("window_end").alias("timestamp")
        )

    def _key(self) -> Column:
        if len(self.keys) == 1:
            return F.col(next(iter(self.keys))).cast("string")
        return F.to_json(F.struct(*self.keys), {"ignoreNullFields": "false"})


def start(
    spark: SparkSession,
    source: Source,
    target: Target,
    windows: Windows,
    checkpoint: str,
    trigger: Trigger = CONTINUE,
    name: str = "windows",
) -> StreamingQuery:
    """Starts the query; `checkpoint` is a directory for this query only, from which it continues after a stop."""
    result = windows.records(windows.aggregated(source.stream(spark)))
    return target.start(result, checkpoint, trigger, name)
