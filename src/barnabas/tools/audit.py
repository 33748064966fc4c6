"""Verify log directories as a Spark job: every checksum, the order of offsets, every index, and whether replicas agree.

Reads directories of this broker or of Apache Kafka, in use or copied, and never writes to them. Prints a table of what was checked and one
of what is wrong; ends with 0 if nothing is, with 1 if something is, and with 2 if it could not look.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.spark.spark_home import home_set, is_local
from barnabas.tools.spark.stage_progress import showing_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_barnabas.segments.audit import Audit
    from pyspark_barnabas.segments.log_dirs import PartitionLog

FAULTLESS: Final = 0
FAULTY: Final = 1
CANNOT_LOOK: Final = 2
_COLUMNS: Final = ("topic", "partition", "place", "segments", "offset", "last_offset", "batches", "records", "bytes")
_FAULT_COLUMNS: Final = ("topic", "partition", "place", "file", "what", "position", "offset", "last_offset", "detail")


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    try:
        from pyspark_barnabas.errors import DataSourceError
        from pyspark_barnabas.segments.audit import find_logs
    except ImportError as error:
        return _cannot_look(f"{error}; an audit is a Spark job: pip install 'pyspark>=4.0' pyarrow")
    try:
        logs = find_logs(given.dirs, given.topic)
        if not logs:
            return _cannot_look(f"there are no partitions{' of these topics' if given.topic else ''} in {', '.join(given.dirs)}")
        spark = _session(given.master)
        try:
            return run(spark, logs, given)
        finally:
            spark.stop()
    except (DataSourceError, OSError) as error:
        return _cannot_look(str(error))


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas audit", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "dirs",
        nargs="+",
        metavar="DIR",
        help="log directories: paths, or addresses such as s3://…; of several brokers to compare replicas",
    )
    parser.add_argument("--topic", action="append", metavar="NAME", help="only this topic; may be given several times")
    parser.add_argument("--master", default="local[*]", help="the Spark to run on; default: this machine, local[*]")
    parser.add_argument("--output", metavar="DIR", help="write both tables there, as DIR/segments and DIR/faults")
    parser.add_argument("--format", default="parquet", choices=("parquet", "json", "csv", "orc"), help="the format of --output")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="show so many faults at most; default: 100")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for programs")
    return parser


def run(spark: SparkSession, logs: Sequence[PartitionLog], given: Namespace) -> int:
    """The audit on a Spark that is there; tells the result and gives the exit code."""
    from pyspark_barnabas.segments.audit import audit

    result = audit(spark, logs)
    try:
        with showing_stages(spark, "checking"):
            checked, faults = _found(result, given)
        return _tell(result, given, checked, faults)
    finally:
        result.close()


def _session(master: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("barnabas audit").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "8")
    with home_set() if is_local(master) else nullcontext():
        session: SparkSession = builder.master(master).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _found(result: Audit, given: Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was checked, and the first faults: this is where Spark works."""
    checked = [row.asDict() for row in _by_replica(result).collect()]
    faults = [row.asDict() for row in result.faults.orderBy("topic", "partition", "place", "file", "position").limit(given.limit).collect()]
    return checked, faults


def _tell(result: Audit, given: Namespace, checked: list[dict[str, Any]], faults: list[dict[str, Any]]) -> int:
    count = len(faults) if len(faults) < given.limit else result.faults.count()
    if given.output is not None:
        for name, table in (("segments", result.segments), ("faults", result.faults)):
            table.write.mode("overwrite").format(given.format).save(f"{given.output.rstrip('/')}/{name}")
    if given.json:
        print(json.dumps({"checked": checked, "faults": faults, "fault_count": count}, indent=2))
    else:
        _print(checked, faults, count)
    return FAULTY if count else FAULTLESS


def _by_replica(result: Audit) -> Any:
    from pyspark.sql import functions as f

    sums = [f.sum(name).alias(name) for name in ("batches", "records", "bytes")]
    return (
        result.segments.groupBy("topic", "partition", "place")
        .agg(f.count("*").alias("segments"), f.min("offset").alias("offset"), f.max("last_offset").alias("last_offset"), *sums)
        .orderBy("topic", "partition", "place")
    )


def _print(checked: list[dict[str, Any]], faults: list[dict[str, Any]], count: int) -> None:
    _print_table(_COLUMNS, checked)
    print()
    if not count:
        records = sum(row["records"] for row in checked)
        print(f"Nothing is wrong with {records} records in {sum(row['batches'] for row in checked)} batches.")
        return
    _print_table(_FAULT_COLUMNS, faults)
    more = f", the first {len(faults)} of which are shown" if count > len(faults) else ""
    print(f"\n{count} faults{more}.")


def _print_table(columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    lines = [
        [column.upper() for column in columns],
        *(["-" if row[column] is None else str(row[column]) for column in columns] for row in rows),
    ]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns) - 1)]
    for line in lines:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]))


def _cannot_look(reason: str) -> int:
    print(f"barnabas audit: {reason}", file=sys.stderr)
    return CANNOT_LOOK
