"""`--processes`: several broker processes of one machine under one parent, on its own metadata store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from barnabas.tools.command_line.exit_codes import ExitCode
from tests.machine import DEADLINE_S, Machine, Records, is_running, until

KILLS = int(os.environ.get("BARNABAS_PROCESS_KILLS", "3"))


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine, None, None]:
    """On any free ports."""
    made = Machine(tmp_path, "up", "--port", "0", "--host", "127.0.0.1", "--no-console", "--data", str(tmp_path / "data"))
    yield made
    made.close()


def test_a_child_that_is_killed_under_load_loses_nothing_and_returns(machine: Machine) -> None:
    machine.start("--processes", "3", "--log-level", "info")
    assert machine.nodes == [1, 2, 3]
    records = Records()
    records.create(machine)
    producer = records.producer(machine)
    records.write(producer)
    for kill in range(KILLS):
        node = kill % 3 + 1
        killed = machine.kill_child(node)
        records.write(producer)  # needs the broker that was killed: it leads two of the partitions
        assert machine.children()[node] != killed
    records.check(machine)
    assert machine.stop() == 0
    log = machine.log.read_text()
    assert log.count("it ended by signal 9. It starts again in") == KILLS
    stopped = re.findall(r"\[BrokerServer id=(\d)\] (shutting down|shut down completed) node_id=\1", log)[-6:]
    assert stopped == [(node, what) for node in "321" for what in ("shutting down", "shut down completed")]


def test_children_stop_cleanly_when_their_parent_is_killed(machine: Machine, tmp_path: Path) -> None:
    machine.start("--processes", "2")
    records = Records()
    records.create(machine)
    records.write(records.producer(machine))
    children = machine.kill_parent()
    until(lambda: not any(map(is_running, children)), "the children end")
    assert all((tmp_path / "data" / f"broker-{node}" / ".kafka_cleanshutdown").exists() for node in (1, 2))
    machine.start("--processes", "2")
    records.check(machine)
    assert machine.stop() == 0


def test_data_grows_and_shrinks_with_the_number_of_processes(machine: Machine, tmp_path: Path) -> None:
    records = Records()
    machine.start()
    records.create(machine)
    records.write(records.producer(machine))
    cluster_id = machine.cluster_id
    assert machine.stop() == 0
    for processes in (3, 2, 1):
        machine.start("--processes", str(processes))
        assert (machine.nodes, machine.cluster_id) == (list(range(1, processes + 1)), cluster_id)
        records.write(records.producer(machine))
        records.check(machine)
        if processes == 3:
            machine.kill_all()  # what was not stopped cleanly is first started as it was
        else:
            assert machine.stop() == 0
    assert not (tmp_path / "data" / "broker-1").exists()


def test_a_start_that_cannot_work_is_one_line_and_the_exit_code_of_its_reason(machine: Machine, tmp_path: Path) -> None:
    machine.start("--processes", "2")
    port = machine.bootstrap.rpartition(":")[2]
    taken = up(tmp_path / "other", str(int(port) - 1))
    assert taken.returncode == ExitCode.ADDRESS_UNAVAILABLE
    assert re.search(r"^barnabas: node [12]: ", taken.stderr, re.MULTILINE)
    assert up(tmp_path / "data", "0").returncode == ExitCode.DIRECTORY_IN_USE
    assert machine.stop() == 0


def up(data: Path, port: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "up", "--port", port, "--host", "127.0.0.1", "--no-console", "--processes", "2"]
    return subprocess.run([*command, "--data", str(data)], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
