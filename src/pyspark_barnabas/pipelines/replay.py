"""Writes an archive back into a topic: the records of chosen days or offsets, in their order within each partition.

Key, value, headers and, by default, partition and timestamp are those of the archived record. A replay is a batch: records are written at
least once. Repeat an interrupted replay into a new topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.archive import Archive
from pyspark_barnabas.pipelines.topics import Target

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Replay:
    """The records to replay. Dates are days in UTC, both included (2026-11-16); `where` is SQL over the columns of the archive."""

    topics: Sequence[str] = ()
    first_date: str = ""
    last_date: str = ""
    where: str = ""
    keep_partitions: bool = True  # False: partitioned by key, as new records are; needed if the topic has fewer partitions
    keep_timestamps: bool = True

    def chosen(self, archived: DataFrame) -> DataFrame:
        conditions: list[Column] = []
        if self.topics:
            conditions.append(F.col("topic").isin(*self.topics))
        if self.first_date:
            conditions.append(F.col("date") >= F.lit(self.first_date).cast("date"))
        if self.last_date:
            conditions.append(F.col("date") <= F.lit(self.last_date).cast("date"))
        if self.where:
            conditions.append(F.expr(self.where))
        for condition in conditions:
            archived = archived.where(condition)
        return archived

    def records(self, archived: DataFrame, *, keep_topics: bool = False) -> DataFrame:
        """The records to write: one task writes all of a partition, in offset order."""
        columns = ["key", "value", "headers"]
        columns += ["topic"] if keep_topics else []
        columns += ["partition"] if self.keep_partitions else []
        columns += ["timestamp"] if self.keep_timestamps else []
        ordered = self.chosen(archived).repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")
        return ordered.select(*columns)


def run(spark: SparkSession, archive: Archive, target: Target, replay: Replay | None = None) -> None:
    """Writes the chosen records to the target's topic; without one, each record to the topic that it was archived from."""
    records = (replay or Replay()).records(archive.table(spark), keep_topics=not target.topic)
    target.write(records)
