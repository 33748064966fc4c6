"""Copies and links of a backup, its manifest, and the errors of bad directories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.errors import InvalidMetaProperties
from barnabas.storage.directory.log_dir import RESTORE_MARK, LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools.backups import tree_dump
from barnabas.tools.backups.copying import Copier
from barnabas.tools.backups.manifest import BrokerCopy, LogDirCopy, Manifest, read_manifest
from barnabas.tools.command_line.failures import ToolError


def test_a_copy_ends_at_its_size_and_a_link_shares_the_file(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"0123456789")
    copier = Copier()
    copier.copy(str(tmp_path / "source"), str(tmp_path / "copy"), 4)
    copier.link(str(tmp_path / "source"), str(tmp_path / "link"), 10)
    assert (tmp_path / "copy").read_bytes() == b"0123"
    assert (tmp_path / "link").samefile(tmp_path / "source")
    assert (copier.copied, copier.linked) == (4, 10)


def test_a_file_that_became_shorter_is_not_copied_in_part(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"0123")
    with pytest.raises(EOFError):
        Copier().copy(str(tmp_path / "source"), str(tmp_path / "copy"), 9)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    manifest = Manifest("cluster", 17, [BrokerCopy(1, [LogDirCopy("/data", "broker-1/log-dir-0")], 3, 99)], store="/data/barnabas.db")
    manifest.write(str(tmp_path))
    assert read_manifest(str(tmp_path)) == manifest


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["restore", "{nothing}"],
            "{nothing} is no backup: it has no manifest.json. Name a directory that `barnabas backup` has completed",
        ),
        (["restore", "{full}", "--broker", "7"], "--broker 7: the backup has the brokers 1"),
        (["restore", "{full}"], "{data} has data: stop its broker and move the directory away, or name another directory with --data"),
        (
            ["restore", "{full}", "--data", "{new}", "--zookeeper", "localhost:1"],
            "--zookeeper: {full} has no tree of ZooKeeper, its metadata are in barnabas.db; leave the option out",
        ),
        (["backup", "{full}"], "{full} is not empty: name a new directory, or remove what an interrupted backup has left there"),
    ],
)
def test_bad_directories_are_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    names = {name: str(tmp_path / name) for name in ("nothing", "full", "data", "new")}
    for name in ("nothing", "full", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "meta.properties").write_text("broker.id=1\n")
    (tmp_path / "full/broker-1/log-dir-0").mkdir(parents=True)
    (tmp_path / "full/broker-1/log-dir-0/meta.properties").write_text("broker.id=1\n")
    copy = BrokerCopy(1, [LogDirCopy(names["data"], "broker-1/log-dir-0")], 0, 0)
    Manifest("cluster", 17, [copy], store=f"{names['data']}/barnabas.db").write(names["full"])
    assert cli.main([argument.format(**names) for argument in arguments]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == text.format(**names)
    assert not (tmp_path / "new").exists()


def test_a_restore_into_one_directory_with_data_writes_to_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup, free, used = tmp_path / "backup", tmp_path / "free", tmp_path / "used"
    for number in (0, 1):
        (backup / f"broker-1/log-dir-{number}").mkdir(parents=True)
        (backup / f"broker-1/log-dir-{number}/meta.properties").write_text("broker.id=1\n")
    used.mkdir()
    (used / "meta.properties").write_text("broker.id=2\n")
    copy = BrokerCopy(1, [LogDirCopy(str(free), "broker-1/log-dir-0"), LogDirCopy(str(used), "broker-1/log-dir-1")], 0, 0)
    Manifest("cluster", 17, [copy]).write(str(backup))
    assert cli.main(["restore", str(backup), "--broker", "1"]) == 1
    assert f"{used} has data: stop its broker" in capsys.readouterr().err
    assert not free.exists()
    assert {path.name: path.read_text() for path in used.iterdir()} == {"meta.properties": "broker.id=2\n"}


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ("broker-1/log-dir-0/meta.properties", "broker-1/log-dir-0/meta.properties is missing"),
        (
            "broker-1/log-dir-0/orders-0/00000000000000000000.log",
            "the segments of broker 1 have 3 bytes, and had 7 when the backup was taken",
        ),
    ],
)
def test_a_backup_that_has_lost_files_is_not_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: str, text: str) -> None:
    backup, target = tmp_path / "backup", tmp_path / "target"
    log = backup / "broker-1/log-dir-0/orders-0"
    log.mkdir(parents=True)
    (backup / "broker-1/log-dir-0/meta.properties").write_text("broker.id=1\n")
    (log / "00000000000000000000.log").write_bytes(b"1234")
    (log / "00000000000000000004.log").write_bytes(b"567")
    Manifest("cluster", 17, [BrokerCopy(1, [LogDirCopy(str(target), "broker-1/log-dir-0")], 1, 7)]).write(str(backup))
    (backup / lost).unlink()
    assert cli.main(["restore", str(backup), "--broker", "1"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"{backup} is damaged: {text}. Restore from another backup"
    assert not target.exists()


def backup_of_a_cluster(tmp_path: Path) -> Path:
    """Of one broker with two log directories, one of which exists now."""
    backup = tmp_path / "backup"
    for number in (0, 1):
        (backup / f"broker-1/log-dir-{number}/orders-{number}").mkdir(parents=True)
        (backup / f"broker-1/log-dir-{number}/meta.properties").write_text("broker.id=1\n")
        (backup / f"broker-1/log-dir-{number}/orders-{number}/00000000000000000000.log").write_bytes(b"1234")
    copies = [LogDirCopy(str(tmp_path / name), f"broker-1/log-dir-{number}") for number, name in enumerate(("first", "second"))]
    Manifest("cluster", 17, [BrokerCopy(1, copies, 2, 8)], zookeeper="localhost:1/old").write(str(backup))
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / ".lock").touch()
    return backup


def refuses_to_start(path: Path) -> bool:
    directory = LogDir(Files(), str(path))
    try:
        directory.partition_dirs()
    except InvalidMetaProperties:
        return True
    finally:
        directory.release()
    return False


def test_a_restore_that_fails_leaves_nothing_and_no_broker_starts_meanwhile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, first, second = backup_of_a_cluster(tmp_path), tmp_path / "first", tmp_path / "second"
    refused: list[bool] = []

    def fail(path: str, address: str) -> int:
        refused.extend([refuses_to_start(first), refuses_to_start(second)])
        raise ToolError("the ensemble is gone")

    monkeypatch.setattr(tree_dump, "require_empty_tree", lambda address: None)
    monkeypatch.setattr(tree_dump, "load_tree", fail)
    arguments = ["restore", str(backup), "--zookeeper", "localhost:1/new"]
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "the ensemble is gone"
    assert refused == [True, True]
    assert [[path.name for path in directory.iterdir()] for directory in (first, second)] == [[".lock"], [".lock"]]
    monkeypatch.setattr(tree_dump, "load_tree", lambda path, address: 3)
    assert cli.main(arguments) == 0
    assert "3 znodes in localhost:1/new" in capsys.readouterr().out
    for number, path in enumerate((first, second)):
        assert not refuses_to_start(path)
        assert (path / f"orders-{number}" / "00000000000000000000.log").read_bytes() == b"1234"


def test_one_broker_is_restored_without_the_metadata_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup = backup_of_a_cluster(tmp_path)
    manifest = replace(read_manifest(str(backup)), zookeeper=None, store=str(tmp_path / "barnabas.db"))
    manifest.write(str(backup))
    assert cli.main(["restore", str(backup), "--broker", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"The metadata store is not restored with --broker; it is in {backup}/store"


def test_what_a_killed_restore_has_left_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup = backup_of_a_cluster(tmp_path)
    (tmp_path / "first" / RESTORE_MARK).touch()
    assert cli.main(["restore", str(backup), "--broker", "1"]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path / 'first'} has what a restore has left that was killed, or still runs: remove what is in it, or name another directory "
        "with --data\n"
    )
    assert not (tmp_path / "second").exists()
