"""A single broker's directories become those of the first process, also where an earlier run was killed at any step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.errors import KafkaStorageError
from barnabas.layout.errors import DirectoryInUse, NotConvertible
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools.processes.resizing import adopt, is_convertible

BROKER = ("meta.properties", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown")
MACHINE = ("barnabas.db", "barnabas.db-wal", "metadata.sock")


def make(root: Path, node_id: int = 7) -> None:
    root.mkdir(exist_ok=True)
    for name in (*BROKER, *MACHINE):
        (root / name).write_text("")
    (root / "meta.properties").write_text(f"version=0\ncluster.id=c\nbroker.id={node_id}\n")
    (root / "t-0").mkdir()
    (root / "t-0" / "00000000000000000000.log").write_text("records")


def check(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {".lock", "broker-1", *MACHINE}
    assert {path.name for path in (root / "broker-1").iterdir()} == {"t-0", *BROKER}
    assert (root / "broker-1" / "t-0" / "00000000000000000000.log").read_text() == "records"


def test_the_logs_of_a_single_broker_become_those_of_the_first_process(tmp_path: Path) -> None:
    make(tmp_path / "data")
    adopt(Files(), str(tmp_path / "data"), 7)
    check(tmp_path / "data")
    adopt(Files(), str(tmp_path / "data"), 7)  # there is nothing more to do
    check(tmp_path / "data")


@pytest.mark.parametrize("steps", range(4))
def test_a_run_that_was_killed_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    class Killed(Exception):
        pass

    replace, left = os.replace, iter(range(steps))

    def replace_until_killed(source: str, target: str) -> None:
        if next(left, None) is None:
            raise Killed
        replace(source, target)

    make(tmp_path / "data")
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", replace_until_killed)  # what Files.rename calls
        with pytest.raises(Killed):
            adopt(Files(), str(tmp_path / "data"), 7)
    assert (tmp_path / "data" / "meta.properties").exists()
    adopt(Files(), str(tmp_path / "data"), 7)
    check(tmp_path / "data")


def test_the_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "data", node_id=8)
    with pytest.raises(NotConvertible, match=r"set broker\.id=8"):
        adopt(Files(), str(tmp_path / "data"), 7)


def test_a_broker_that_runs_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "data")
    lock = LogDir(Files(), str(tmp_path / "data"))
    with pytest.raises((DirectoryInUse, KafkaStorageError)):
        adopt(Files(), str(tmp_path / "data"), 7)
    lock.release()


def test_one_directory_with_its_metadata_store_is_converted() -> None:
    assert is_convertible(["/a"], "/a/barnabas.db")
    assert not is_convertible(["/a", "/b"], "/a/barnabas.db")
    assert not is_convertible(["/a"], "/m/barnabas.db")
    assert not is_convertible(["/a"], None)
