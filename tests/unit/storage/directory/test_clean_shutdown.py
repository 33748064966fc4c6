from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.directory.clean_shutdown import CleanShutdownFile
from barnabas.storage.disk.files import Files
from tests.golden import LOGS


def test_the_marker_of_kafka_4_tells_its_broker_epoch() -> None:
    assert CleanShutdownFile(Files(), str(LOGS / "kafka-4.2.0/first")).read() == 11


def test_the_empty_marker_of_older_kafkas_counts_and_tells_nothing() -> None:
    marker = CleanShutdownFile(Files(), str(LOGS / "kafka-2.8.2/first"))
    assert marker.exists()
    assert marker.read() is None


def test_the_marker_is_written_as_kafka_writes_it(tmp_path: Path) -> None:
    CleanShutdownFile(Files(), str(tmp_path)).write(11)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == (LOGS / "kafka-4.2.0/first/.kafka_cleanshutdown").read_bytes()


def test_a_deleted_marker_is_gone_and_may_be_deleted_again(tmp_path: Path) -> None:
    marker = CleanShutdownFile(Files(), str(tmp_path))
    marker.write()
    marker.delete()
    marker.delete()
    assert not marker.exists()


@pytest.mark.parametrize("content", [b"{", b"[]", b"null", b'{"version":0}', b'{"brokerEpoch":"1"}', b"\xff", b"x" * 5000, b"[" * 4000])
def test_a_marker_that_makes_no_sense_still_counts(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    marker = CleanShutdownFile(Files(), str(tmp_path))
    assert marker.exists()
    assert marker.read() is None
