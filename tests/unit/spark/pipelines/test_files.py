"""The files around an archive: notes that are whole, moves that can be finished, listings that know data from the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_barnabas.pipelines.archive import _finish_moves, _moves
from pyspark_barnabas.pipelines.files import ArchiveFile, Directory
from pyspark_barnabas.pipelines.topics import Source, Target


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "{}/"])
def test_a_directory_may_be_a_path_or_a_uri(tmp_path: Path, form: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.parquet").write_bytes(b"123")
    assert Directory(form.format(tmp_path)).list(recursive=True) == [ArchiveFile("a/one.parquet", 3)]


def test_a_directory_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path / "none"))
    assert directory.list(recursive=True) == []
    directory.delete_all("x")
    directory.delete("y")
    assert not directory.exists("y")


def test_a_note_is_read_as_it_was_written_and_can_be_written_again(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    notes: list[dict[str, dict[str, str]]] = [{"moves": {"a": "b"}}, {"moves": {}}]
    for value in notes:
        directory.write_note("notes/1.json", value)
        assert directory.read_note("notes/1.json") == value
    assert [file.name for file in directory.list("notes")] == ["1.json"]


def test_a_note_that_was_not_finished_is_no_data(tmp_path: Path) -> None:
    (tmp_path / ".1.json.unfinished").write_text("{")
    assert not any(file.is_data for file in Directory(str(tmp_path)).list())


def test_deleting_a_file_takes_its_checksum_along(tmp_path: Path) -> None:
    for name in ("part.parquet", ".part.parquet.crc"):
        (tmp_path / name).touch()
    Directory(str(tmp_path)).delete("part.parquet")
    assert list(tmp_path.iterdir()) == []


def test_published_files_are_named_by_query_and_batch_and_keep_their_leaf() -> None:
    staged = [ArchiveFile("_staging/q/topic=a/date=2026-11-16/part-0.snappy.parquet", 5), ArchiveFile("_staging/q/_SUCCESS", 0)]
    assert _moves(staged, "_staging/q", "q-0000000007") == {staged[0].path: "topic=a/date=2026-11-16/q-0000000007-00000.snappy.parquet"}


def test_moves_can_be_finished_any_number_of_times(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    moves = {"staged/1": "t/one", "staged/2": "t/two"}
    (tmp_path / "staged").mkdir()
    for path in moves:
        (tmp_path / path).write_text(path)
    directory.move("staged/1", "t/one")  # where a process ended
    for _ in range(2):
        _finish_moves(directory, moves)
        assert {path.name: path.read_text() for path in (tmp_path / "t").iterdir()} == {"one": "staged/1", "two": "staged/2"}


def test_a_source_reads_from_the_beginning_unless_told_otherwise() -> None:
    assert Source("h:1", "a,b").settings() == {"kafka.bootstrap.servers": "h:1", "subscribe": "a,b", "startingOffsets": "earliest"}
    pattern = Source("h:1", pattern="a.*", options={"startingOffsets": "latest"}).settings()
    assert pattern == {"kafka.bootstrap.servers": "h:1", "subscribePattern": "a.*", "startingOffsets": "latest"}


@pytest.mark.parametrize("names", [{}, {"topics": "a", "pattern": "a.*"}])
def test_a_source_has_topics_or_a_pattern(names: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one of `topics` and `pattern`"):
        Source("h:1", **names)


def test_a_target_with_a_prefix_is_exactly_once_in_streams() -> None:
    target = Target("h:1", "t", transactional_id_prefix="p")
    once = {"exactlyOnce": "true", "transactionalIdPrefix": "p"}
    assert target.settings(streaming=True) == {"kafka.bootstrap.servers": "h:1", "topic": "t", **once}
    assert target.settings(streaming=False) == {"kafka.bootstrap.servers": "h:1", "topic": "t"}
