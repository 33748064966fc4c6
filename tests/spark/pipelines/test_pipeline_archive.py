"""Topics archived as Parquet: every record once, whatever is interrupted, in few files after compaction."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_barnabas.pipelines.archive import Archive, FormatMissing, compact
from pyspark_barnabas.pipelines.files import Directory
from pyspark_barnabas.pipelines.topics import ONCE, Source
from tests.broker import TopicMaker
from tests.spark.queries import finish
from tests.spark.topic_contents import Sent, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENING_MS = 1_763_337_599_000  # 2025-11-16T23:59:59Z: the records go over midnight
Run = Callable[[], None]


def records(count: int, first: int = 0) -> list[Sent]:
    return [
        Sent(f"k{number}", f"v{number}", EVENING_MS + number * 500, number % 2, (("h", b"1"), ("h", None)) if number % 3 else ())
        for number in range(first, first + count)
    ]


def contents(rows: DataFrame) -> list[tuple[Any, ...]]:
    columns = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType", "headers", "date")
    return sorted((tuple(map(str, row)) for row in rows.select(*columns).collect()), key=lambda row: (row[0], row[1], int(row[2])))


def files(path: Path) -> list[str]:
    return [file.path for file in Directory(str(path)).list(recursive=True) if file.is_data and file.path.startswith("topic=")]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(str(tmp_path / "archive"), str(tmp_path / "checkpoint"))


@pytest.fixture
def topic(our_topic: TopicMaker) -> str:
    return our_topic("archived", partitions=2)


@pytest.fixture
def run(spark: SparkSession, our_broker: str, topic: str, archive: Archive) -> Run:
    def run_once() -> None:
        finish(lambda: archive.start(spark, Source(our_broker, topic), ONCE))

    return run_once


def test_records_are_archived_whole_by_topic_and_day(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, archive: Archive, tmp_path: Path
) -> None:
    topic = new_topic("whole", partitions=2)
    send(bootstrap, topic, [*records(6), Sent(None, None, EVENING_MS)])
    finish(lambda: archive.start(spark, Source(bootstrap, topic), ONCE))
    rows = archive.table(spark).orderBy("offset").where("partition = 0").collect()
    assert [(row.key, row.value) for row in rows] == [(b"k0", b"v0"), (b"k2", b"v2"), (b"k4", b"v4"), (None, None)]
    assert [[tuple(header) for header in row.headers or ()] for row in rows[:2]] == [[], [("h", b"1"), ("h", None)]]
    assert [str(row.date) for row in rows] == ["2025-11-16", "2025-11-17", "2025-11-17", "2025-11-16"]
    directories = {posixpath.dirname(path) for path in files(tmp_path / "archive")}
    assert directories == {f"topic={topic}/date=2025-11-16", f"topic={topic}/date=2025-11-17"}


def test_a_batch_that_spark_runs_again_is_not_archived_twice(
    spark: SparkSession, our_broker: str, topic: str, archive: Archive, run: Run, tmp_path: Path
) -> None:
    send(our_broker, topic, records(10))
    run()
    before, published = contents(archive.table(spark)), files(tmp_path / "archive")
    undo_commit(tmp_path / "checkpoint", 0)
    take_back(archive, published[0])  # as if the process had ended before the last move
    run()
    assert contents(archive.table(spark)) == before
    send(our_broker, topic, records(4, first=10))
    run()
    assert len(contents(archive.table(spark))) == 14


def test_compaction_leaves_the_rows_and_few_files(
    spark: SparkSession, our_broker: str, topic: str, archive: Archive, run: Run, tmp_path: Path
) -> None:
    for first in (0, 6):
        send(our_broker, topic, records(6, first))
        run()
    before, count = contents(archive.table(spark)), len(files(tmp_path / "archive"))
    done = compact(spark, archive.path)
    assert contents(archive.table(spark)) == before
    assert sum(each.files_before for each in done) == count
    assert [archived.files_after for archived in done] == [1, 1]
    assert len(files(tmp_path / "archive")) == 2
    assert compact(spark, archive.path) == []


def test_compaction_that_was_interrupted_is_finished_by_the_next(
    spark: SparkSession, our_broker: str, topic: str, archive: Archive, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(our_broker, topic, records(6))
    run()
    send(our_broker, topic, records(6, 6))
    run()
    before = contents(archive.table(spark))
    with monkeypatch.context() as patched:
        patched.setattr(Directory, "delete", fail)
        with pytest.raises(InterruptedError):
            compact(spark, archive.path, dates=["2025-11-17"])
    assert len(contents(archive.table(spark))) > len(before)  # for this moment only, rows are there twice
    assert compact(spark, archive.path, dates=[]) == []
    assert contents(archive.table(spark)) == before


def test_compaction_drops_what_a_new_checkpoint_archived_again(
    spark: SparkSession, our_broker: str, topic: str, archive: Archive, run: Run, tmp_path: Path
) -> None:
    send(our_broker, topic, records(6))
    run()
    before = contents(archive.table(spark))
    again = Archive(archive.path, str(tmp_path / "another checkpoint"))
    finish(lambda: again.start(spark, Source(our_broker, topic), ONCE))
    assert len(contents(archive.table(spark))) == 2 * len(before)
    compact(spark, archive.path)
    assert contents(archive.table(spark)) == before


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_format_that_spark_lacks_is_named_with_what_to_add(
    spark: SparkSession, our_broker: str, topic: str, tmp_path: Path, table_format: str
) -> None:
    archive = Archive(str(tmp_path / "table"), str(tmp_path / "checkpoint"), table_format)
    with pytest.raises(FormatMissing, match=f"has no {table_format}. Add a build of .* or archive as parquet"):
        archive.start(spark, Source(our_broker, topic), ONCE)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format: orc is none of parquet, delta, iceberg"):
        Archive("a", "b", "orc")


def undo_commit(checkpoint: Path, batch: int) -> None:
    """Spark takes the batch for one that did not end."""
    (checkpoint / "commits" / str(batch)).unlink()
    (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def take_back(archive: Archive, published: str) -> None:
    directory = Directory(archive.path)
    note = next(file.path for file in directory.list("_batches", recursive=True) if file.is_data)
    directory.move(published, next(old for old, new in directory.read_note(note)["moves"].items() if new == published))


def fail(*_: object) -> None:
    raise InterruptedError("as if the process had ended here")
