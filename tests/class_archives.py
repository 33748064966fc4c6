"""Writes archives of classes (Java's class-data sharing) into the user's cache: one for Apache Kafka's jars, one for Spark's.

    python -m tests.class_archives

With one a JVM starts in half the time; tests/jvm.py says where it is. What has an archive is left as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import jvm, kafka, kafka_server
from tests.jvm import SHORT_LIVED, SILENT

ROOT = Path(__file__).parents[1]
KAFKA_PROGRAM = ROOT / "tests/data/KafkaClasses.java"
SPARK_PROGRAM = "tests.spark_classes"
TIMEOUT_S = 600


def write_kafka_archive() -> None:
    """From a broker of Apache Kafka, its tools and its clients, in one JVM."""
    jars = kafka.prepare()
    with _new_archive(jars) as archive, tempfile.TemporaryDirectory() as directory:
        if archive is not None:
            properties, bootstrap = kafka_server.prepared(Path(directory))
            program = [kafka.QUIET, "-Xmx512m", "-cp", f"{jars}/*", str(KAFKA_PROGRAM), str(properties), bootstrap]
            _run(["java", *SHORT_LIVED, SILENT, _written_to(archive), *program])


def write_spark_archive() -> None:
    jars = jvm.spark_jars()
    if jars is None:
        return
    with _new_archive(jars) as archive, tempfile.TemporaryDirectory() as directory:
        if archive is not None:
            # Not JDK_JAVA_OPTIONS: the launcher is a JVM, too, and must not write the archive.
            options = {"SPARK_SUBMIT_OPTS": " ".join([*SHORT_LIVED, SILENT, _written_to(archive)])}
            _run([sys.executable, "-m", SPARK_PROGRAM, directory], options)


@contextmanager
def _new_archive(jars: Path) -> Generator[Path | None, None, None]:
    """Where a JVM is to write the archive, which is put in place afterwards; None if there is one."""
    place = jvm.archive_of(jars)
    if place.exists():
        yield None
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as directory:
        archive = Path(directory, place.name)
        yield archive
        if archive.exists():
            archive.rename(place)


def _written_to(archive: Path) -> str:
    return f"-XX:ArchiveClassesAtExit={archive}"


def _run(command: Sequence[str], options: Mapping[str, str] | None = None) -> None:
    environment = {**os.environ, **(options or {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        print(f"JVMs start without an archive of their classes: {done.stderr.strip()[-500:]}", file=sys.stderr)


if __name__ == "__main__":
    try:
        write_kafka_archive()
        write_spark_archive()
    except (kafka.Unavailable, subprocess.TimeoutExpired, OSError) as problem:
        print(f"JVMs start without an archive of their classes: {problem}", file=sys.stderr)
