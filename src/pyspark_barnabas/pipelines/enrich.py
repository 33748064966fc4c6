"""Joins a stream with a compacted topic: each record gets the current row of its key in the table topic.

The row of a key is its newest record; a record without a value deletes it. The table topic is read from its beginning to its current end:
for every micro-batch, so that a batch sees all rows written before it began, with records written at least once; or, for records written
exactly once, when the query starts, which suits runs that end (`availableNow`). The table must fit a broadcast or a shuffle; a compacted
topic keeps little more than one record for each key. A malformed record fails the query, because it would be joined as if it were empty;
`route` removes such records beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.topics import CONTINUE, Source, Target, Trigger

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DECODED: Final = "_decoded"


@dataclass(frozen=True)
class Enrichment:
    """`key` is the key to look up: SQL over the fields of a record's value, `record.key` and so on, compared as text with the table's
    keys."""

    schema: str  # of the stream's JSON values, as DDL
    table_schema: str  # of the table's
    key: str = "cast(record.key as string)"
    name: str = "enriched"  # the field of the result with the table's row
    keeps_unmatched: bool = True  # with a null in that field; otherwise such records are dropped

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("the table's row needs a `name` in the result")

    def rows(self, records: DataFrame) -> DataFrame:
        """Decoded records with the columns record, the fields of the value, and `_lookup`."""
        record = F.struct("key", "topic", "partition", "offset", "timestamp").alias("record")
        rows = records.select(record, F.col(f"{DECODED}.*"))
        return rows.withColumn("_lookup", F.expr(self.key).cast("string"))

    def table(self, records: DataFrame) -> DataFrame:
        """The newest row of each key of the table topic, without deleted ones."""
        newest = F.max_by(DECODED, "offset")
        latest = records.groupBy(F.col("key").cast("string").alias("_key"), "topic", "partition").agg(newest.alias(self.name))
        return latest.where(F.col(self.name).isNotNull()).select("_key", self.name)

    def joined(self, stream: DataFrame, table: DataFrame) -> DataFrame:
        how = "left" if self.keeps_unmatched else "inner"
        return self.rows(stream).join(self.table(table), F.col("_lookup") == F.col("_key"), how).drop("_key", "_lookup")

    def records(self, joined: DataFrame) -> DataFrame:
        """The result as records: the unchanged key, the fields and the table's row as JSON, and the time of the record.

        The method does not ask Spark for column names, which the definitions of declarative pipelines must not do.
        """
        value: Column = F.to_json(F.struct(F.col("*")).dropFields("record"), {"ignoreNullFields": "false"})
        return joined.select(
            F.col("record.key").alias("key"), value.cast("binary").alias("value"), F.col("record.timestamp").alias("timestamp")
        )


def decoding(source: Source, schema: str) -> Source:
    """The source with its JSON values decoded into a separate column; a value that does not fit fails the query."""
    ours = {"value.format": "json", "value.schema": schema, "value.column": DECODED, "value.mode": "failfast"}
    return replace(source, options={**source.options, **ours})


def start(
    spark: SparkSession,
    source: Source,
    table: Source,
    target: Target,
    enrichment: Enrichment,
    checkpoint: str,
    trigger: Trigger = CONTINUE,
    name: str = "enrich",
) -> StreamingQuery:
    """Starts the query; `table` is the compacted topic.

    Spark plans the static side of a stream join once for a query. So a table that is read again for every batch is joined in foreachBatch,
    which does not work with a transactional sink.
    """
    stream = decoding(source, enrichment.schema).stream(spark)
    tables = decoding(table, enrichment.table_schema)
    if target.transactional_id_prefix:
        rows = enrichment.joined(stream, tables.table(spark))
        return target.start(enrichment.records(rows), checkpoint, trigger, name)

    def write(batch: DataFrame, _: int) -> None:
        target.write(enrichment.records(enrichment.joined(batch, tables.table(batch.sparkSession))))

    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).queryName(name)
    return writer.trigger(**trigger).start()
