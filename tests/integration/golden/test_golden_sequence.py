"""Apache Kafka's own producer writes a fixed sequence to our broker: the files it leaves are those of Apache Kafka 4.2, byte for byte.

What the clock or chance decides is not compared: topic ids, timestamps that a broker gives. Kafka's DumpLogSegments then reads all of it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import broker, golden, kafka

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "java" / "Sequence.java"
KAFKA = golden.LOGS / "kafka-4.2.0"
TIMEOUT_S = 120
SETTINGS = {
    "log.retention.ms": "-1",
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.backoff.ms": "600000",  # the compacted topic is compared as it was before it was cleaned
}
WRITTEN = ["none", "gzip", "snappy", "lz4", "zstd", "recompress", "uncompress", "idem", "multi", "delrec"]
DIRECTORIES = [*(KAFKA / "first" / f"g-{name}-0" for name in WRITTEN), KAFKA / "before" / "g-compact-0"]
# Compressed again by the broker: the bytes are those of its zlib, which differ between builds of it.
OWN_ZLIB = "g-recompress-0"


def compared_files() -> Iterator[Path]:
    for directory in DIRECTORIES:
        for path in [*golden.files(directory), directory / "leader-epoch-checkpoint"]:
            if directory.name != OWN_ZLIB or path.suffix not in (".log", ".index"):
                yield path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that took the sequence and was stopped."""
    data = tmp_path_factory.mktemp("sequence") / "data"
    jars = kafka.available(kafka.prepare)
    with broker.running(data, ["--host", "127.0.0.1", *(f"--override={key}={value}" for key, value in SETTINGS.items())]) as bootstrap:
        command = kafka.source_command(jars, PROGRAM, bootstrap)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
    return data


@pytest.mark.parametrize("theirs", list(compared_files()), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_is_kafkas_to_the_byte(written: Path, theirs: Path) -> None:
    ours = written / theirs.parent.name / theirs.name
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("theirs", DIRECTORIES, ids=lambda path: path.name)
def test_there_are_no_other_files_than_kafkas(written: Path, theirs: Path) -> None:
    ours = written / theirs.name
    assert [path.name for path in golden.files(ours)] == [path.name for path in golden.files(theirs)]


def test_the_log_start_offsets_are_kafkas(written: Path) -> None:
    name = "log-start-offset-checkpoint"
    assert (written / name).read_bytes() == (KAFKA / "first" / name).read_bytes()


def test_kafkas_dump_finds_nothing_wrong_after_a_clean_stop(written: Path) -> None:
    files = [str(path) for theirs in DIRECTORIES for path in golden.files(written / theirs.name)]
    dumped = kafka.dump_log(["--deep-iteration", "--print-data-log", "--files", ",".join(files)])
    assert dumped.code == 0
    assert [line for line in dumped.out.splitlines() if line.startswith(golden.FAULTS) or "isvalid: false" in line] == []
    assert dumped.out.count("Dumping ") == len(files)
