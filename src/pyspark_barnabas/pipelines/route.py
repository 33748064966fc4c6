"""Clean, validate and route: each record goes to the topic that its content selects, and a faulty one to a dead-letter topic.

Values are decoded in the source. A record that cannot be decoded, fails a check or fits no route becomes a dead letter: its own key,
bytes and headers, plus headers with the reason and the origin. All records are written by one sink, so that with a prefix for
transactional ids each record is written exactly once, to a route or as a dead letter; none is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.topics import CONTINUE, Source, Target, Trigger
from pyspark_barnabas.values.dead_letters import PREFIX as ERRORS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DECODED: Final = "_decoded"
CORRUPT: Final = "_corrupt"
RECORD: Final = "record"
_KEPT: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


@dataclass(frozen=True)
class Routes:
    """The rules for a record. All expressions are SQL over the fields of its value; the record itself is `record.topic`, `record.key` and
    so on.

    `clean` replaces or adds fields, in order. All `checks` must be true for the cleaned record; the name of a check is the reason in the
    dead letter. The first of `routes` whose condition is true gives the topic, otherwise `otherwise`, if it is set.
    """

    dead_letters: str
    schema: str = ""  # of JSON values, as DDL; empty: the options of the source define the decoding
    clean: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""

    def __post_init__(self) -> None:
        if not self.dead_letters:
            raise ValueError("name the topic for `dead_letters`: records that are wrong must go somewhere")
        if not self.routes and not self.otherwise:
            raise ValueError("name at least one topic in `routes` or `otherwise`")
        if self.dead_letters in self.routes or self.dead_letters == self.otherwise:
            raise ValueError(f"'{self.dead_letters}' is the topic of dead letters: send other records to another topic")

    def source(self, source: Source) -> Source:
        """The source with values decoded in addition to their bytes, and with headers."""
        given = {name.lower() for name in source.options}
        if bool(self.schema) == ("value.format" in given):
            raise ValueError("say how values are decoded in one place: `schema` for JSON, or value.format among the source's options")
        decoding = {"value.format": "json", "value.schema": self.schema} if self.schema else {}
        ours = {"includeHeaders": "true", "value.column": DECODED, "value.columnNameOfCorruptRecord": CORRUPT}
        return replace(source, options={**source.options, **decoding, **ours})

    def routed(self, records: DataFrame) -> DataFrame:
        """Records of this source as rows for the sink: key, value, headers, timestamp and target topic."""
        kept = F.struct(*_KEPT).alias(RECORD)
        rows = records.select(kept, F.col(CORRUPT), F.col(DECODED), F.col(f"{DECODED}.*"))
        for name, expression in self.clean.items():
            rows = rows.withColumn(name, F.expr(expression))
        # Without column names: the definitions of declarative pipelines must not ask Spark for them.
        rows = rows.withColumn("_fields", F.struct(F.col("*")).dropFields(RECORD, CORRUPT, DECODED))
        rows = rows.withColumn("_wrong", self._wrong()).withColumn("_route", self._route())
        reason = F.coalesce(F.col("_wrong"), F.when(F.col("_route").isNull(), F.lit("no route: no condition is true of it")))
        rows = rows.withColumn("_reason", reason)
        is_dead = F.col("_reason").isNotNull()
        cleaned = F.to_json(F.col("_fields")).cast("binary") if self.clean else F.col("record.value")
        return rows.select(
            F.col("record.key").alias("key"),
            F.when(is_dead, F.col("record.value")).otherwise(cleaned).alias("value"),
            F.when(is_dead, _with_errors()).otherwise(F.col("record.headers")).alias("headers"),
            F.col("record.timestamp").alias("timestamp"),
            F.when(is_dead, F.lit(self.dead_letters)).otherwise(F.col("_route")).alias("topic"),
        )

    def _wrong(self) -> Column:
        """The first fault of the record, or null."""
        fault = F.when(F.col(CORRUPT).isNotNull(), F.concat(F.lit("malformed: "), F.col(f"{CORRUPT}.reason")))
        fault = fault.when(F.col(DECODED).isNull(), F.lit("malformed: there is no value"))
        for name, condition in self.checks.items():
            fault = fault.when(~F.coalesce(F.expr(condition), F.lit(False)), F.lit(f"check: {name}"))
        return fault

    def _route(self) -> Column:
        target: Column = F.lit(self.otherwise or None).cast("string")
        for topic, condition in reversed(list(self.routes.items())):
            target = F.when(F.coalesce(F.expr(condition), F.lit(False)), F.lit(topic)).otherwise(target)
        return target


def _with_errors() -> Column:
    """The record's headers, followed by those with the error."""
    facts = {"message": "_reason", "topic": "record.topic", "partition": "record.partition", "offset": "record.offset"}
    ours = F.array(
        *(
            F.struct(F.lit(ERRORS + name).alias("key"), F.col(column).cast("string").cast("binary").alias("value"))
            for name, column in facts.items()
        )
    )
    return F.concat(F.coalesce(F.col("record.headers"), F.array().cast("array<struct<key:string,value:binary>>")), ours)


def start(
    spark: SparkSession, source: Source, target: Target, routes: Routes, checkpoint: str, trigger: Trigger = CONTINUE, name: str = "route"
) -> StreamingQuery:
    """Starts the query. `target` has no topic, because each row has one."""
    if target.topic:
        raise ValueError("the target of routes has no topic of its own; name it in `otherwise`")
    rows = routes.routed(routes.source(source).stream(spark))
    return target.start(rows, checkpoint, trigger, name)
