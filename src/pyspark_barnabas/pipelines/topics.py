"""Sources and targets of the ready-made pipelines: the options that all pipelines share.

Everything goes through `format("barnabas")`, so that its documented options work in pipelines too. The pipelines only add addresses,
topics and the delivery guarantee to the user's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT: Final = "barnabas"
Trigger = Mapping[str, Any]  # arguments of DataStreamWriter.trigger: {"availableNow": True}, {"processingTime": "5 seconds"}
CONTINUE: Final[Trigger] = {"processingTime": "0 seconds"}
ONCE: Final[Trigger] = {"availableNow": True}


@dataclass(frozen=True)
class Source:
    """Topics to read: names with commas between them, or a pattern (Java's syntax). A stream begins with the oldest record."""

    servers: str
    topics: str = ""
    pattern: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.topics) == bool(self.pattern):
            raise ValueError("name the topics to read in one of `topics` and `pattern`")

    def settings(self) -> dict[str, str]:
        chosen = {"subscribe": self.topics} if self.topics else {"subscribePattern": self.pattern}
        return {"startingOffsets": "earliest", **chosen, **self.options, "kafka.bootstrap.servers": self.servers}

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.format(FORMAT).options(**self.settings()).load()

    def table(self, spark: SparkSession) -> DataFrame:
        """The present records of the topics."""
        return spark.read.format(FORMAT).options(**self.settings()).load()


@dataclass(frozen=True)
class Target:
    """A topic to write to; if `topic` is empty, each row has its topic in the column `topic`.

    With a prefix for transactional ids each record is written exactly once; without, at least once. A prefix belongs to one query: two
    queries with the same prefix fence each other.
    """

    servers: str
    topic: str = ""
    transactional_id_prefix: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def settings(self, *, streaming: bool) -> dict[str, str]:
        settings = {**self.options, "kafka.bootstrap.servers": self.servers}
        if self.topic:
            settings["topic"] = self.topic
        if self.transactional_id_prefix and streaming:
            settings |= {"exactlyOnce": "true", "transactionalIdPrefix": self.transactional_id_prefix}
        return settings

    def writer(self, rows: DataFrame, checkpoint: str, trigger: Trigger = CONTINUE, name: str = "") -> DataStreamWriter:
        writer = rows.writeStream.format(FORMAT).options(**self.settings(streaming=True), checkpointLocation=checkpoint)
        return (writer.queryName(name) if name else writer).outputMode("append").trigger(**trigger)

    def start(self, rows: DataFrame, checkpoint: str, trigger: Trigger = CONTINUE, name: str = "") -> StreamingQuery:
        return self.writer(rows, checkpoint, trigger, name).start()

    def write(self, rows: DataFrame) -> None:
        """Writes a table, at least once."""
        rows.write.format(FORMAT).options(**self.settings(streaming=False)).mode("append").save()


def with_fields(records: DataFrame, schema: str) -> DataFrame:
    """The fields of JSON values as columns, and the record itself as the column `record`; a value that does not fit gives nulls.

    `schema` is Spark's DDL: "product string, quantity int". If it is empty, the columns of the record stay, beside `record`. The
    function does not ask Spark for column names, which the definitions of declarative pipelines must not do.
    """
    record = F.struct(F.col("*")).alias("record")
    if not schema:
        return records.select(record, "*")
    fields = F.from_json(F.col("value").cast("string"), schema)
    return records.select(record, fields.alias("_fields")).select("record", "_fields.*")
