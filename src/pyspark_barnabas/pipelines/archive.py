"""Archives topics as tables on a file system, partitioned by topic and date, each record once.

For Parquet, a micro-batch is first written to a directory that readers ignore, then a note lists its files, then the files are moved to
their place. A batch that Spark runs again finds the note and only finishes the moves, so that no crash loses or doubles a record. A reader
may see some files of a batch before the others. `compact` merges many small files into few large ones in the same way. Delta and Iceberg
commit by themselves.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pyspark_barnabas.pipelines.files import ArchiveFile, Directory
from pyspark_barnabas.pipelines.topics import CONTINUE, Source, Trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARQUET: Final = "parquet"
TABLE_FORMATS: Final = ("delta", "iceberg")
PARTITIONED_BY: Final = ("topic", "date")
# The columns of a table; `date` is the day of `timestamp` in UTC.
SCHEMA: Final = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key:string,value:binary>>, topic string, date date"
)
SMALL_BYTES: Final = 128 * 1024 * 1024
_STAGING: Final = "_staging"
_BATCHES: Final = "_batches"
_COMPACTIONS: Final = "_compactions"
_DAY_MICROS: Final = 86_400_000_000


class FormatMissing(RuntimeError):
    """Spark lacks this table format; the message names the package to add."""


@dataclass(frozen=True)
class Compacted:
    """The result of compacting one day of one topic."""

    directory: str
    files_before: int
    files_after: int
    bytes_before: int


@dataclass(frozen=True)
class Archive:
    """The table: `path` is a directory for Parquet, a path or table name for Delta and a table name for Iceberg."""

    path: str
    checkpoint: str
    format: str = PARQUET
    options: Mapping[str, str] = field(default_factory=dict)  # of Spark's writer: compression, …

    def __post_init__(self) -> None:
        if self.format not in (PARQUET, *TABLE_FORMATS):
            raise ValueError(f"format: {self.format} is none of {', '.join((PARQUET, *TABLE_FORMATS))}")

    def start(self, spark: SparkSession, source: Source, trigger: Trigger = CONTINUE, name: str = "archive") -> StreamingQuery:
        """Starts the query. A new checkpoint archives everything again; `compact` drops the duplicates."""
        rows = archived(source_with_headers(source).stream(spark))
        writer = rows.writeStream.queryName(name).trigger(**trigger).option("checkpointLocation", self.checkpoint)
        if self.format == PARQUET:
            return writer.foreachBatch(partial(write_batch, self)).start()
        writer = writer.format(self.format).options(**self.options).outputMode("append").partitionBy(*PARTITIONED_BY)
        try:
            is_path = "/" in self.path
            return writer.start(self.path) if is_path else writer.toTable(self.path)
        except Exception as error:  # Spark's exception, or that of the JVM through Py4J, depending on the version of Spark
            raise _explained(error, self.format, spark.version) from error

    def table(self, spark: SparkSession) -> DataFrame:
        """The archive so far."""
        if self.format != PARQUET:
            reader = spark.read.format(self.format)
            return reader.load(self.path) if "/" in self.path else spark.read.table(self.path)
        return spark.read.schema(SCHEMA).parquet(self.path)


def source_with_headers(source: Source) -> Source:
    return Source(source.servers, source.topics, source.pattern, {**source.options, "includeHeaders": "true"})


def archived(records: DataFrame) -> DataFrame:
    """The rows of the source as rows of the archive."""
    day = F.floor(F.unix_micros("timestamp") / F.lit(_DAY_MICROS)).cast("int")
    names = [name.strip().split(" ")[0] for name in SCHEMA.replace("<key:string,value:binary>", "").split(",")]
    return records.withColumn("date", F.date_from_unix_date(day)).select(*names)


def write_batch(archive: Archive, rows: DataFrame, batch_id: int) -> None:
    """Publishes one micro-batch, or finishes an interrupted publication."""
    directory = Directory(archive.path)
    # The query's id, which stays the same after restarts and differs for every checkpoint.
    query = str(Directory(archive.checkpoint).read_note("metadata")["id"])
    notes = f"{_BATCHES}/{query}"
    note = f"{notes}/{batch_id}.json"
    if not directory.exists(note):
        staged = f"{_STAGING}/{query}"
        directory.delete_all(staged)
        rows.write.partitionBy(*PARTITIONED_BY).options(**archive.options).mode("overwrite").parquet(directory.spark_path(staged))
        moves = _moves(directory.list(staged, recursive=True), staged, f"{query}-{batch_id:010d}")
        directory.write_note(note, {"moves": moves})
    _finish_moves(directory, directory.read_note(note)["moves"])
    for earlier in directory.list(notes):  # this batch runs only if the earlier ones are committed
        if earlier.is_data and int(earlier.name.removesuffix(".json")) < batch_id:
            directory.delete(earlier.path)


def compact(
    spark: SparkSession, path: str, *, small_bytes: int = SMALL_BYTES, dates: Sequence[str] | None = None, files_min: int = 2
) -> list[Compacted]:
    """Rewrites files smaller than `small_bytes` into files of about that size, day by day, and drops duplicate rows.

    It is safe while the query writes, and again after a crash. For a moment readers may see rows twice; they never miss any. Only one call
    may run at a time. `dates` (2026-11-16) limits it to those days; a day with fewer than `files_min` small files is left unchanged.
    """
    directory = Directory(path)
    for unfinished in directory.list(_COMPACTIONS):
        if unfinished.is_data:
            _finish_compaction(directory, unfinished.path)
    done = []
    for leaf, files in _leaves(directory):
        small = [file for file in files if file.size < small_bytes]
        if len(small) >= files_min and (dates is None or leaf.rpartition("date=")[2] in dates):
            done.append(_compact_leaf(spark, directory, leaf, small, small_bytes))
    return done


def _leaves(directory: Directory) -> Iterable[tuple[str, list[ArchiveFile]]]:
    files = [file for file in directory.list(recursive=True) if file.is_data and file.path.startswith("topic=")]
    return [(leaf, list(inside)) for leaf, inside in groupby(files, key=lambda file: posixpath.dirname(file.path))]


def _compact_leaf(spark: SparkSession, directory: Directory, leaf: str, small: Sequence[ArchiveFile], size: int) -> Compacted:
    number = uuid.uuid4().hex
    staged = f"{_STAGING}/compaction-{number}"
    total = sum(file.size for file in small)
    rows = spark.read.schema(SCHEMA).parquet(*(directory.spark_path(file.path) for file in small)).drop(*PARTITIONED_BY).dropDuplicates()
    ordered = rows.repartitionByRange(max(1, round(total / size)), "partition", "offset").sortWithinPartitions("partition", "offset")
    ordered.write.mode("overwrite").parquet(directory.spark_path(staged))
    fresh = [file for file in directory.list(staged) if file.is_data]
    moves = {file.path: f"{leaf}/compacted-{number}-{count:05d}.parquet" for count, file in enumerate(fresh)}
    note = f"{_COMPACTIONS}/{number}.json"
    directory.write_note(note, {"moves": moves, "replaced": [file.path for file in small], "staged": staged})
    _finish_compaction(directory, note)
    return Compacted(leaf, len(small), len(fresh), total)


def _finish_compaction(directory: Directory, note: str) -> None:
    steps = directory.read_note(note)
    _finish_moves(directory, steps["moves"])
    for path in steps["replaced"]:
        directory.delete(path)
    directory.delete_all(steps["staged"])
    directory.delete(note)


def _moves(files: Iterable[ArchiveFile], staged: str, stem: str) -> dict[str, str]:
    """Source and target of each file: the directories of topic and date stay, the name contains the query and the batch."""
    moves = {}
    for count, file in enumerate(file for file in files if file.is_data):
        leaf = posixpath.dirname(posixpath.relpath(file.path, staged))
        suffix = file.name.partition(".")[2]
        moves[file.path] = f"{leaf}/{stem}-{count:05d}.{suffix}"
    return moves


def _finish_moves(directory: Directory, moves: Mapping[str, str]) -> None:
    for old, new in moves.items():
        if directory.exists(old):
            directory.move(old, new)


def _explained(error: Exception, table_format: str, version: str) -> Exception:
    if "Failed to find the data source" not in str(error):
        return error
    packages = {"delta": "io.delta:delta-spark_2.13", "iceberg": "org.apache.iceberg:iceberg-spark-runtime"}
    return FormatMissing(
        f"format: this Spark {version} has no {table_format}. Add a build of {packages[table_format]} for Spark {version} with "
        f"spark.jars.packages, where there is one, or archive as {PARQUET}"
    )
