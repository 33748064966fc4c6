"""A log directory belongs to one node of one cluster, and to one process at a time."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from barnabas.errors import InvalidMetaProperties, KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.directory import log_dir
from barnabas.storage.directory.log_dir import RESTORE_MARK, LogDir
from barnabas.storage.directory.meta_properties import MetaProperties, MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.uuid import Uuid
from tests.logged import lines_of

NOW = 1_700_000_000_000
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
ID = Uuid.from_string("uCAgmDnaQUG9e3dpbYnGiw")
OTHER_ID = Uuid.from_string("cZoKeJVrXf7C-fkkHJb9zg")


def test_a_directory_of_nobody_is_marked_with_node_cluster_and_an_id_of_its_own() -> None:
    disk = SimulatedFiles()
    assert LogDir(disk, "/data").claim(CLUSTER, 3, ID, NOW) == ID
    assert MetaPropertiesFile(disk, "/data").read() == MetaProperties(0, CLUSTER, 3, ID)


def test_a_directory_keeps_its_id_and_its_version() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    directory.meta.write(MetaProperties(1, CLUSTER, 3, ID), NOW)
    assert directory.claim(CLUSTER, 3, OTHER_ID, NOW) == ID
    assert directory.meta.read() == MetaProperties(1, CLUSTER, 3, ID)


def test_a_directory_without_an_id_gets_one() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    directory.meta.write(MetaProperties(0, CLUSTER, 3), NOW)
    assert directory.claim(CLUSTER, 3, ID, NOW) == ID
    assert directory.meta.read() == MetaProperties(0, CLUSTER, 3, ID)


def test_a_claim_that_changes_nothing_writes_nothing() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    directory.claim(CLUSTER, 3, ID, NOW)
    events = disk.events
    directory.claim(CLUSTER, 3, ID, NOW)
    assert disk.events - events == 1  # the read


def test_others_may_not_enter_a_directory_that_is_claimed(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    directory = LogDir(Files(), str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o775  # a start that fails changes nothing
    directory.claim(CLUSTER, 3, ID, NOW)
    directory.release()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o770


def test_a_directory_from_which_others_cannot_be_shut_out_is_claimed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o1777)
    directory = LogDir(Files(), str(tmp_path))
    assert directory.claim(CLUSTER, 3, ID, NOW) == ID
    directory.release()
    (line,) = lines_of(caplog, log_dir, logging.WARNING)
    assert line.startswith(f"Other users of this machine may read log directory {tmp_path}: ") and line.endswith("chmod o-rwx")


@pytest.mark.parametrize(("cluster", "node", "name"), [("another", 3, "cluster.id another"), (CLUSTER, 4, "broker.id 4")])
def test_the_directory_of_another_node_or_cluster_is_refused(cluster: str, node: int, name: str) -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    directory.claim(CLUSTER, 3, ID, NOW)
    with pytest.raises(InvalidMetaProperties, match=name):
        directory.claim(cluster, node, ID, NOW)


def test_a_directory_in_use_is_refused_with_a_word_about_who_has_it() -> None:
    disk = SimulatedFiles()
    LogDir(disk, "/data")
    with pytest.raises(KafkaStorageError, match="A Kafka instance in another process or thread is using this directory"):
        LogDir(disk, "/data")


def test_a_file_in_place_of_a_directory_is_refused() -> None:
    disk = SimulatedFiles()
    disk.open("/data", create=True)
    with pytest.raises(NotADirectoryError):
        LogDir(disk, "/data")


def test_a_directory_that_is_plainly_no_partition_is_left_out() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    for path in ("/data/orders-0", "/data/zookeeper/version-2", "/data/lost+found"):
        disk.make_dirs(path)
    disk.open("/data/zookeeper/version-2/log.1", create=True)
    assert directory.partition_dirs() == ["orders-0"]
    assert directory.other_dirs() == ["lost+found", "zookeeper"]


def test_a_partition_under_another_name_is_refused() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    disk.make_dirs("/data/orders-0.old")
    disk.open("/data/orders-0.old/00000000000000000000.log", create=True)
    with pytest.raises(KafkaStorageError, match=r"'orders-0\.old' is not in the form of topic-partition"):
        directory.partition_dirs()


def test_a_directory_that_was_restored_only_in_part_is_refused() -> None:
    disk = SimulatedFiles()
    directory = LogDir(disk, "/data")
    disk.make_dirs("/data/orders-0")
    disk.open(f"/data/{RESTORE_MARK}", create=True)
    with pytest.raises(InvalidMetaProperties, match="`barnabas restore` is writing into /data, or was interrupted"):
        directory.partition_dirs()
