from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptCheckpoint, InconsistentTopicId
from barnabas.storage.directory.partition_metadata import PartitionMetadata, PartitionMetadataFile
from barnabas.storage.disk.files import Files
from barnabas.uuid import Uuid
from tests.golden import LOGS

TOPIC_ID = Uuid.from_string("jX5GglsRRQqaz-c3me35uA")
OTHER_ID = Uuid.from_string("cZoKeJVrXf7C-fkkHJb9zg")


def metadata_file(tmp_path: Path, content: bytes | None = None) -> PartitionMetadataFile:
    path = tmp_path / "partition.metadata"
    if content is not None:
        path.write_bytes(content)
    return PartitionMetadataFile(Files(), str(path))


@pytest.mark.parametrize("path", sorted(LOGS.glob("*/*/*/partition.metadata")), ids=lambda p: p.parent.name)
def test_kafkas_files_are_written_back_byte_for_byte(tmp_path: Path, path: Path) -> None:
    topic_id = PartitionMetadataFile(Files(), str(path)).read().topic_id
    ours = metadata_file(tmp_path)
    ours.record(topic_id)
    ours.maybe_flush()
    assert Path(ours.path).read_bytes() == path.read_bytes()


def test_the_file_has_two_lines_and_no_final_newline(tmp_path: Path) -> None:
    file = metadata_file(tmp_path)
    file.record(TOPIC_ID)
    file.maybe_flush()
    assert Path(file.path).read_bytes() == b"version: 0\ntopic_id: jX5GglsRRQqaz-c3me35uA"
    assert file.read() == PartitionMetadata(0, TOPIC_ID)


def test_a_recorded_id_waits_for_the_flush(tmp_path: Path) -> None:
    file = metadata_file(tmp_path)
    file.record(TOPIC_ID)
    assert not file.exists()
    file.maybe_flush()
    assert file.exists()


def test_an_id_is_flushed_once(tmp_path: Path) -> None:
    file = metadata_file(tmp_path)
    file.record(TOPIC_ID)
    file.maybe_flush()
    file.delete()
    file.maybe_flush()
    assert not file.exists()


def test_another_id_before_the_flush_is_refused(tmp_path: Path) -> None:
    file = metadata_file(tmp_path)
    file.record(TOPIC_ID)
    file.record(TOPIC_ID)
    with pytest.raises(InconsistentTopicId, match=f"Tried to record topic ID {OTHER_ID} to file but had already recorded {TOPIC_ID}"):
        file.record(OTHER_ID)


def test_a_file_follows_its_renamed_directory(tmp_path: Path) -> None:
    file = metadata_file(tmp_path)
    file.moved_to("/elsewhere/orders-0")
    assert file.path == "/elsewhere/orders-0/partition.metadata"


def test_a_later_version_is_read(tmp_path: Path) -> None:
    assert metadata_file(tmp_path, f"version: 3\ntopic_id: {TOPIC_ID}\nmore: 1\n".encode()).read() == PartitionMetadata(3, TOPIC_ID)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "None at line 1"),
        (b"version: 0", "None at line 2"),
        (b"version: zero\ntopic_id: x", "'version: zero' at line 1"),
        (b"version: -1\ntopic_id: x", "'version: -1' at line 1"),
        (b"version 0\ntopic_id: x", "'version 0' at line 1"),
        (b"version: 0\ntopic_id: short", "'topic_id: short' at line 2"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "Invalid topic ID"),
        (b"version: 0\ntopic_id: " + b"x" * 5000, "more than the 4096 bytes"),
        (b"\xff", "not text"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = metadata_file(tmp_path, content)
    with pytest.raises(CorruptCheckpoint, match=complaint) as raised:
        file.read()
    assert file.path in str(raised.value)


@given(st.binary(max_size=60))
def test_random_bytes_are_never_taken_for_metadata(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = metadata_file(tmp_path_factory.getbasetemp(), content)
    with pytest.raises(CorruptCheckpoint):
        file.read()
