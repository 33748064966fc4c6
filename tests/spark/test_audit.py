"""`barnabas audit` on a real Spark: what spans segments and replicas, and the command itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.tools import audit as audit_tool
from pyspark_barnabas.segments.audit import audit, find_logs
from tests.golden import LOGS
from tests.jvm import spark_environment
from tests.unit.spark.segments.test_segment_audit import damage, written
from tests.unit.storage.logs import batch, file_name

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

FIRST = LOGS / "kafka-4.2.0" / "first"
LOG = f"orders-0/{file_name(0, '.log')}"


def faults(spark: SparkSession, *directories: Path) -> list[Row]:
    report = audit(spark, find_logs(map(str, directories)))
    try:
        return report.faults.orderBy("file", "position").collect()
    finally:
        report.close()


def test_replicas_that_differ_are_found_and_others_are_not(spark: SparkSession, tmp_path: Path) -> None:
    one, other = written(tmp_path / "a"), written(tmp_path / "b", segment_bytes=500)
    assert faults(spark, one, other) == []
    path = one / LOG
    content = path.read_bytes()
    path.write_bytes(content.replace(batch([b"7"], offset=7)[57:], batch([b"8"], offset=7)[57:]))
    crc = batch([b"8"], offset=7)[17:21]
    damage(path, 7 * len(batch([b"7"])) + 17, crc)
    (fault,) = faults(spark, one, other)
    assert (fault.what, fault.offset) == ("replicas", 0)
    assert str(one) in fault.detail
    assert str(other) in fault.detail


def test_a_replica_that_lacks_a_segment_and_segments_that_overlap_are_found(spark: SparkSession, tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", segment_bytes=500), written(tmp_path / "b", segment_bytes=500)
    segments = sorted((one / "orders-0").glob("*.log"))
    segments[1].write_bytes(segments[0].read_bytes() + segments[1].read_bytes())
    for path in (one / "orders-0").glob("*index"):
        path.unlink()
    faults_found = faults(spark, one, other)
    assert {fault.what for fault in faults_found} == {"replicas", "offset order"}


def test_the_result_is_printed_as_tables_with_a_code_that_says_whether_all_is_well(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = written(tmp_path / "logs")
    given = Namespace(limit=10, output=None, format="parquet", json=False)
    assert audit_tool.run(spark, find_logs([str(directory)]), given) == audit_tool.FAULTLESS
    printed = capsys.readouterr().out
    assert f"orders  0          {directory}/orders-0  1         0       19" in printed
    assert "Nothing is wrong with 20 records in 20 batches." in printed
    damage(directory / LOG, 65, b"\xff")
    assert audit_tool.run(spark, find_logs([str(directory)]), given) == audit_tool.FAULTY
    printed = capsys.readouterr().out
    assert "stored crc" in printed
    assert "1 faults." in printed


def test_the_command_tells_programs_what_it_found(tmp_path: Path) -> None:
    shutil.copytree(FIRST, tmp_path / "logs")
    damage(tmp_path / "logs" / "g-txn-0" / file_name(0, ".log"), 70, b"\xff\xff")
    output = tmp_path / "out"
    environment = {**os.environ, **spark_environment()}
    command = [sys.executable, "-m", "barnabas", "audit", str(tmp_path / "logs"), "--master", "local[1]", "--json", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 1, done.stderr
    (fault,) = json.loads(done.stdout)["faults"]
    assert (fault["topic"], fault["what"], fault["file"]) == ("g-txn", "batch", file_name(0, ".log"))
    assert list((output / "faults").glob("*.parquet"))


def test_directories_that_are_none_are_refused_before_a_spark_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit_tool.main(["/no/such/place"]) == audit_tool.CANNOT_LOOK
    assert "'/no/such/place' is no directory" in capsys.readouterr().err
    assert audit_tool.main([str(tmp_path)]) == audit_tool.CANNOT_LOOK
    assert "no partitions" in capsys.readouterr().err
