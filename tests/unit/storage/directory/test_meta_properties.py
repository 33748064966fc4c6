from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import InvalidMetaProperties
from barnabas.storage.directory.meta_properties import MetaProperties, MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.uuid import Uuid
from tests.golden import LOGS

ZOOKEEPER = MetaProperties(0, "GJgbVD27Q5mnbFAPsF86-Q", 0)
KRAFT = MetaProperties(1, "MkU3OEVBNTcwNTJENDM2Qg", 1, Uuid.from_string("cZoKeJVrXf7C-fkkHJb9zg"))


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type, misc]


def meta_file(tmp_path: Path, content: str) -> MetaPropertiesFile:
    (tmp_path / "meta.properties").write_bytes(content.encode("utf-8", "surrogateescape"))
    return MetaPropertiesFile(Files(), str(tmp_path))


@pytest.mark.parametrize(
    ("log_dir", "expected", "written_ms"),
    [
        ("kafka-2.8.2/first", ZOOKEEPER, ms(2026, 11, 15, 20, 9, 47)),
        ("kafka-4.2.0/first", KRAFT, ms(2026, 11, 15, 20, 46, 0)),
    ],
)
def test_kafkas_files_are_read_and_written_byte_for_byte(tmp_path: Path, log_dir: str, expected: MetaProperties, written_ms: int) -> None:
    assert MetaPropertiesFile(Files(), str(LOGS / log_dir)).read() == expected
    MetaPropertiesFile(Files(), str(tmp_path)).write(expected, written_ms)
    assert (tmp_path / "meta.properties").read_bytes() == (LOGS / log_dir / "meta.properties").read_bytes()


def test_an_unused_directory_has_none(tmp_path: Path) -> None:
    assert MetaPropertiesFile(Files(), str(tmp_path)).read() is None


def test_version_0_may_leave_everything_open(tmp_path: Path) -> None:
    assert meta_file(tmp_path, "").read() == MetaProperties(0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("version=2\n", "Unknown meta.properties version number 2"),
        ("version=one\n", "Unable to read version as a base-10 number."),
        ("version=1\ncluster.id=c\n", "Failed to find node.id"),
        ("version=1\nnode.id=1\n", "cluster.id was not found."),
        ("version=1\nnode.id=x\ncluster.id=c\n", "Unable to read node.id as a base-10 number."),
        ("version=0\nbroker.id=1_0\n", "Unable to read broker.id as a base-10 number."),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=x\n", "Unable to read directory.id as a Uuid"),
        ("cluster.id=\\uxyz\n", "Malformed"),
        ("#" * 70_000, "more than the 65536 bytes"),
        ("\udcff", "not text"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(InvalidMetaProperties, match=complaint) as raised:
        meta_file(tmp_path, content).read()
    assert f"{tmp_path}/meta.properties" in str(raised.value)


@given(st.binary(max_size=80))
def test_any_bytes_are_properties_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.getbasetemp()
    (directory / "meta.properties").write_bytes(content)
    try:
        MetaPropertiesFile(Files(), str(directory)).read()
    except InvalidMetaProperties as e:
        assert "meta.properties" in str(e)
