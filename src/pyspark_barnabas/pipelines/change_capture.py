"""Change data capture: turns a topic of changes into a table with the newest row of each key.

Spark's file tables cannot be updated in place. So the table has versions: a micro-batch writes the whole next version, with its changes
applied, and then a small note makes it the current one. A batch that runs again finds its note and does nothing. Readers see one version
or the next, never a mixture. If the table format can merge (Delta, Iceberg) and Spark has AutoCDC, use `declare` instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.ddl import column_types
from pyspark_barnabas.pipelines.files import Directory
from pyspark_barnabas.pipelines.topics import CONTINUE, Source, Trigger

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DECODED: Final = "_decoded"
CORRUPT: Final = "_corrupt"
SEQUENCE: Final = "_sequence"
DELETED: Final = "_deleted"
_NOTE: Final = "_version.json"
_VERSIONS: Final = "versions"


@dataclass(frozen=True)
class Changes:
    """How to read changes. Expressions are SQL over the fields of a value; `record.key` and so on are the columns of the record.

    By default a value is the whole new row as JSON of `schema`, and a record without a value deletes the row of its key. `debezium` reads
    Debezium's envelope instead: before, after and op. Changes of a key are applied in the order of their records. `sequence` (a number or a
    time) gives another order, for example if a key is in several partitions; deleted rows are then kept as marks, so that a late change
    does not restore one.
    """

    schema: str
    keys: Sequence[str]
    debezium: bool = False
    key_columns: str = ""  # with `debezium` unset: the SQL struct of the keys of a deleted row, made of `record.key`; default: its text
    sequence: str = ""
    deletes: str = ""  # a condition for a deletion, besides a missing value
    options: dict[str, str] = field(default_factory=dict)  # options of the decoder, if values are not JSON: value.format and so on

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError("name the columns that identify a row in `keys`")
        missing = set(self.keys) - set(column_types(self.schema)) if self.schema else set()
        if missing:
            raise ValueError(f"keys are columns of `schema`, and it has no {' and no '.join(sorted(missing))}")
        if self.debezium and self.deletes:
            raise ValueError("Debezium's envelope says itself what is deleted: leave `deletes` empty")

    def source(self, source: Source) -> Source:
        schema = f"before STRUCT<{self.schema}>, after STRUCT<{self.schema}>, op STRING, ts_ms BIGINT" if self.debezium else self.schema
        decoding = self.options or {"value.format": "json", "value.schema": schema}
        ours = {"value.column": DECODED, "value.columnNameOfCorruptRecord": CORRUPT}
        return replace(source, options={**source.options, **decoding, **ours})

    def rows(self, records: DataFrame) -> DataFrame:
        """Changes as rows: the columns of the table, `_sequence` and `_deleted`. A malformed record fails the query."""
        record = F.struct("key", "topic", "partition", "offset", "timestamp").alias("record")
        place = F.concat_ws("-", "topic", "partition").alias("_place")
        refused = F.concat(
            F.lit("A change cannot be decoded: offset "),
            F.col("offset").cast("string"),
            F.lit(" of "),
            place,
            F.lit(": "),
            f"{CORRUPT}.reason",
        )
        checked = records.withColumn(DECODED, F.when(F.col(CORRUPT).isNull(), F.col(DECODED)).otherwise(F.raise_error(refused)))
        rows = checked.select(record, F.col(DECODED))
        return self._of_debezium(rows) if self.debezium else self._of_rows(rows)

    def _of_debezium(self, rows: DataFrame) -> DataFrame:
        # Debezium writes a tombstone after each deletion, for compaction: the deletion is known already.
        rows = rows.where(F.col(DECODED).isNotNull())
        is_deleted = F.col(f"{DECODED}.op") == "d"
        image = F.when(is_deleted, F.col(f"{DECODED}.before")).otherwise(F.col(f"{DECODED}.after"))
        rows = rows.withColumn("_image", image)
        sequence = F.expr(self.sequence) if self.sequence else F.col("record.offset")
        return rows.select("_image.*", sequence.alias(SEQUENCE), is_deleted.alias(DELETED), F.col("record.offset").alias("_offset"))

    def _of_rows(self, rows: DataFrame) -> DataFrame:
        flat = rows.select("record", F.col(DECODED), F.col(f"{DECODED}.*"))
        is_deleted = F.col(DECODED).isNull()
        if self.deletes:
            is_deleted = is_deleted | F.coalesce(F.expr(self.deletes), F.lit(False))
        sequence = F.expr(self.sequence) if self.sequence else F.col("record.offset")
        changes = flat.select("*", sequence.alias(SEQUENCE), is_deleted.alias(DELETED), F.col("record.offset").alias("_offset"))
        if self.key_columns or len(self.keys) == 1:
            # The definitions of declarative pipelines must not ask Spark for types: they are taken from the schema, if it is given.
            kinds = column_types(self.schema) if self.schema else {column.name: column.dataType.simpleString() for column in flat.schema}
            for name in self.keys:
                changes = changes.withColumn(name, self._key(name, kinds[name]))
        return changes.drop("record", DECODED)

    def _key(self, name: str, kind: str) -> Column:
        """A key column of the row; for a record without a value it comes from the record's key."""
        of_record = F.expr(self.key_columns)[name] if self.key_columns else F.col("record.key").cast("string")
        return F.when(F.col(DECODED).isNull(), of_record.cast(kind)).otherwise(F.col(name))

    def newest(self, changes: DataFrame) -> DataFrame:
        """The table after all changes, which `rows` returned: the newest row of each key, without the deleted ones.

        While a declarative pipeline is defined its tables do not exist: so columns are dropped inside a struct, because `drop` of a
        DataFrame asks Spark for the columns.
        """
        whole = changes.select("*", F.struct(F.col("*")).alias("_row"))
        newest = F.max_by("_row", F.struct(SEQUENCE, "_offset")).alias("_newest")
        rows = whole.groupBy(*self.keys).agg(newest).where(~F.col(f"_newest.{DELETED}"))
        return rows.select(F.col("_newest").dropFields(SEQUENCE, DELETED, "_offset").alias("_newest")).select("_newest.*")


@dataclass(frozen=True)
class Table:
    """A table with versions, in its own directory on any file system that Spark and Arrow support."""

    path: str

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows of the current version."""
        return self._stored(spark).where(~F.col(DELETED)).drop(DELETED, SEQUENCE)

    def apply(self, changes: DataFrame, keys: Sequence[str], batch: int, query: str, *, remembers_deletes: bool = False) -> bool:
        """Writes the next version; returns False if the table contains this batch of this query already. The checkpoint identifies a
        query."""
        directory = Directory(self.path)
        note = self._note(directory)
        if note is not None and note["query"] == query and note["batch"] >= batch:
            return False
        merged = self._merged(changes, keys, None if note is None else directory.spark_path(note["version"]))
        if not remembers_deletes:
            merged = merged.where(~F.col(DELETED))
        version = f"{_VERSIONS}/{batch:012d}-{uuid.uuid4().hex}"
        merged.write.parquet(directory.spark_path(version))
        directory.write_note(
            _NOTE, {"version": version, "batch": batch, "query": query, "before": None if note is None else note["version"]}
        )
        self._forget_old(directory)
        return True

    def _stored(self, spark: SparkSession) -> DataFrame:
        directory = Directory(self.path)
        note = self._note(directory)
        if note is None:
            raise FileNotFoundError(f"there is no table in {self.path} yet: no batch of changes has been written")
        return spark.read.parquet(directory.spark_path(note["version"]))

    def _merged(self, changes: DataFrame, keys: Sequence[str], version: str | None) -> DataFrame:
        """The rows of a version with the changes applied: the newest row of each key."""
        rows = changes.withColumn("_is_change", F.lit(1))
        if version is not None:
            stored = (
                changes.sparkSession.read.parquet(version).withColumn("_offset", F.lit(-1).cast("long")).withColumn("_is_change", F.lit(0))
            )
            rows = rows.unionByName(stored, allowMissingColumns=True)
        names = [name for name in rows.columns if name not in keys]
        # Of changes with the same sequence the later record wins, and any change wins over the stored row.
        newest = F.max_by(F.struct(*names), F.struct(F.col(SEQUENCE), F.col("_is_change"), F.col("_offset")))
        return rows.groupBy(*keys).agg(newest.alias("_newest")).select(*keys, "_newest.*").drop("_is_change", "_offset")

    def _note(self, directory: Directory) -> dict[str, Any] | None:
        if not directory.exists(_NOTE):
            return None
        note: dict[str, Any] = directory.read_note(_NOTE)
        return note

    def _forget_old(self, directory: Directory) -> None:
        """Deletes all versions except the current one and the one before it, which readers may still use."""
        note = self._note(directory)
        assert note is not None
        kept = {note["version"], note["before"]}
        versions = {"/".join(file.path.split("/")[:2]) for file in directory.list(_VERSIONS, recursive=True)}
        for version in sorted(versions - kept):
            directory.delete_all(version)


def start(
    spark: SparkSession, source: Source, table: Table, changes: Changes, checkpoint: str, trigger: Trigger = CONTINUE, name: str = "changes"
) -> StreamingQuery:
    """Starts the query that keeps the table up to date."""
    rows = changes.rows(changes.source(source).stream(spark))

    def write(batch: DataFrame, number: int) -> None:
        table.apply(batch, list(changes.keys), number, checkpoint, remembers_deletes=bool(changes.sequence))

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).queryName(name)
    return writer.trigger(**trigger).start()


def has_auto_cdc() -> bool:
    """Whether the Spark in use has AutoCDC: 4.2 and later, with Spark Declarative Pipelines."""
    try:
        from pyspark.pipelines import create_auto_cdc_flow  # noqa: F401
    except ImportError:
        return False
    return True


def declare(target: str, changes_view: str, changes: Changes, **table: Any) -> None:
    """Declares, within a Spark Declarative Pipeline, a table `target` that AutoCDC keeps up to date from the view `changes_view`.

    The view's rows are those of `Changes.rows`. The table's format must be one that can merge; `table` are further arguments of
    create_streaming_table, such as format="delta".
    """
    if not has_auto_cdc():
        raise RuntimeError("This Spark has no AutoCDC (pyspark.pipelines.create_auto_cdc_flow, from 4.2 on): use change_capture.start")
    from pyspark import pipelines as dp

    dp.create_streaming_table(target, **table)
    dp.create_auto_cdc_flow(
        target=target,
        source=changes_view,
        keys=list(changes.keys),
        sequence_by=f"struct({SEQUENCE}, _offset)",
        apply_as_deletes=DELETED,
        except_column_list=[SEQUENCE, DELETED, "_offset"],
        stored_as_scd_type=1,
    )
