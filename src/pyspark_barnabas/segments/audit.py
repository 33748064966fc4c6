"""An audit of log directories as a Spark job: every checksum, the order of offsets, every index, and whether replicas agree.

A task checks some segments (`segment_audit`) and returns rows. Spark compares segments and replicas by these rows. The result is two
tables: the segments that were checked, and the faults. Directories are only read; they may be in use by a cluster, or copies.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.segments.log_dirs import PartitionLog, find_partitions
from pyspark_barnabas.segments.segment_audit import DIGEST, DIGEST_MODULUS, FAULT, SEGMENT, AuditTask, check_segment
from pyspark_barnabas.segments.segment_ranges import log_end_offset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES_PER_TASK: Final = 128 * 1024 * 1024
SCHEMA: Final = (
    "kind string, topic string, partition int, place string, file string, what string, detail string, position long, offset long, "
    "last_offset long, batches long, records long, bytes long, digest long, replicas int"
)
_ARROW: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "topic")),
        ("partition", pa.int32()),
        *((name, pa.string()) for name in ("place", "file", "what", "detail")),
        *((name, pa.int64()) for name in ("position", "offset", "last_offset", "batches", "records", "bytes", "digest")),
        ("replicas", pa.int32()),
    ]
)
_SEGMENT_COLUMNS: Final = ("topic", "partition", "place", "file", "offset", "last_offset", "batches", "records", "bytes")
_FAULT_COLUMNS: Final = ("topic", "partition", "place", "file", "what", "detail", "position", "offset", "last_offset")


@dataclass(frozen=True)
class Audit:
    """The result. Both tables are computed once, at their first use, and cached; `close` releases the cache."""

    segments: DataFrame  # each segment that was checked: its place, offsets, batches, records and bytes
    faults: DataFrame  # the faults, each with its file and, as far as they are known, its position and offsets
    kept: DataFrame

    def close(self) -> None:
        self.kept.unpersist()


def find_logs(log_dirs: Iterable[str], topics: Sequence[str] | None = None) -> list[PartitionLog]:
    """The replicas in the directories: of all topics, internal topics included, or of the given topics."""
    return [log for log in find_partitions(log_dirs) if topics is None or log.topic in topics]


def audit(spark: SparkSession, logs: Sequence[PartitionLog]) -> Audit:
    """Audits these replicas."""
    rows = [(number, pickle.dumps(tasks)) for number, tasks in enumerate(_task_groups(logs))]
    plan = spark.createDataFrame(rows, "number int, tasks binary")
    findings = plan.repartition(max(len(rows), 1), "number").mapInArrow(_check, SCHEMA).persist()
    segments = findings.where(findings.kind == SEGMENT).select(*_SEGMENT_COLUMNS)
    faults = findings.where(findings.kind == FAULT).select(*_FAULT_COLUMNS)
    return Audit(segments, faults.unionByName(_overlaps(findings)).unionByName(_disagreements(findings)), findings)


def tasks_of(logs: Iterable[PartitionLog]) -> list[AuditTask]:
    """One task for each segment of each replica."""
    replicas: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        replicas.setdefault(TopicPartition(log.topic, log.partition), []).append(log)
    tasks: list[AuditTask] = []
    for copies in replicas.values():
        common = _common_offsets(copies) if len(copies) > 1 else None
        for log in copies:
            bases = [segment.base_offset for segment in log.segments]
            for number, segment in enumerate(log.segments):
                end = bases[number + 1] if number + 1 < len(bases) else None
                snapshots = tuple(snapshot for snapshot in log.snapshots if snapshot[0] >= (segment.base_offset if number else 0))
                snapshots = tuple(snapshot for snapshot in snapshots if end is None or snapshot[0] < end)
                tasks.append(
                    AuditTask(
                        log.topic, log.partition, log.store, log.place, segment, end is None, snapshots, common, len(copies), log.cleaned_to
                    )
                )
    return tasks


def _common_offsets(logs: Sequence[PartitionLog]) -> tuple[int, int]:
    """The offsets that all replicas must have: deleted or compacted by none, and below the smallest log end offset."""
    first = max(max(log.log_start_offset, log.cleaned_to) for log in logs)
    return first, min(log_end_offset(log) for log in logs)


def _task_groups(logs: Sequence[PartitionLog]) -> Iterator[list[AuditTask]]:
    group: list[AuditTask] = []
    size = 0
    for task in tasks_of(logs):
        if group and size + task.segment.size > BYTES_PER_TASK:
            yield group
            group, size = [], 0
        group.append(task)
        size += task.segment.size
    if group:
        yield group


def _check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on an executor; yields the rows of the segments of one task."""
    for batch in batches:
        for pickled in batch.column("tasks").to_pylist():
            for task in pickle.loads(pickled):
                columns = zip(*check_segment(task), strict=True)
                arrays = [pa.array(column, kind) for column, kind in zip(columns, _ARROW.types, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _overlaps(findings: DataFrame) -> DataFrame:
    """Segments that begin below the last offset of the segment before them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    # A file is named after its first offset, so names are in the order of the log.
    before = f.lag("last_offset").over(Window.partitionBy("place").orderBy("file"))
    segments = findings.where((findings.kind == SEGMENT) & (findings.batches > 0)).withColumn("before", before)
    detail = f.concat(f.lit("begins at offset "), f.col("offset"), f.lit(", but the segment before it ends with "), f.col("before"))
    return (
        segments.where(f.col("offset") <= f.col("before"))
        .withColumn("what", f.lit("offset order"))
        .withColumn("detail", detail)
        .select(*_FAULT_COLUMNS)
    )


def _disagreements(findings: DataFrame) -> DataFrame:
    """Ranges of offsets in which replicas have different batches."""
    from pyspark.sql import functions as f

    of_replica = (
        findings.where(findings.kind == DIGEST)
        .groupBy("topic", "partition", "place", "offset", "last_offset", "replicas")
        .agg(
            (f.sum("digest") % f.lit(DIGEST_MODULUS)).alias("digest"),
            f.sum("batches").alias("batches"),
        )
    )
    stretches = of_replica.groupBy("topic", "partition", "offset", "last_offset", "replicas").agg(
        f.countDistinct("digest", "batches").alias("different"),
        f.count("*").alias("present"),
        f.concat_ws(", ", f.sort_array(f.collect_list(f.concat_ws(": ", "place", f.concat("batches", f.lit(" batches")))))).alias("detail"),
    )
    differ = stretches.where((f.col("different") > 1) | (f.col("present") < f.col("replicas")))
    nothing = f.lit(None)
    return differ.select(
        "topic",
        "partition",
        nothing.cast("string").alias("place"),
        nothing.cast("string").alias("file"),
        f.lit("replicas").alias("what"),
        f.concat(f.lit("replicas do not have the same batches: "), "detail").alias("detail"),
        nothing.cast("long").alias("position"),
        "offset",
        "last_offset",
    )
