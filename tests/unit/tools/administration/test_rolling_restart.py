"""The decisions of `barnabas restart --rolling`, and how it notices that a broker has ended."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.tools.administration.rolling_restart import (
    ReplicaSet,
    RestartedBroker,
    check_command,
    command_for,
    not_in_sync,
    parse_ids,
    restart_order,
)
from barnabas.tools.command_line.failures import BadArgument, ToolError
from barnabas.tools.connecting.process_watch import ProcessWatch
from barnabas.tools.restart import RollingRestart

BROKERS = [RestartedBroker(number, f"host-{number}", 9092) for number in (3, 1, 2)]


def test_brokers_restart_by_id_and_the_controller_last() -> None:
    assert [broker.id for broker in restart_order(BROKERS, 1, None)] == [2, 3, 1]
    assert [broker.id for broker in restart_order(BROKERS, None, None)] == [1, 2, 3]
    assert [broker.id for broker in restart_order(BROKERS, 2, [3, 2])] == [3, 2]


def test_an_unknown_broker_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadArgument, match=r"there is no broker 9 \(--brokers\); the brokers are 1, 2, 3"):
        restart_order(BROKERS, 1, [1, 9])


def test_placeholders_are_the_brokers_and_quoted_for_the_shell() -> None:
    assert command_for("ssh {host} restart {id} {port} ${HOME} '{ print }'", BROKERS[1]) == "ssh host-1 restart 1 9092 ${HOME} '{ print }'"
    assert command_for("ssh {host}", RestartedBroker(1, "a; rm b", 1)) == "ssh 'a; rm b'"


@pytest.mark.parametrize(("command", "text"), [("ssh {hots}", r"\{hots\}, which is no placeholder"), (" ", "--command is empty")])
def test_a_wrong_command_is_refused(command: str, text: str) -> None:
    with pytest.raises(BadArgument, match=text):
        check_command(command)


def test_ids_are_numbers_with_commas() -> None:
    assert parse_ids("3, 1,3") == [3, 1]
    with pytest.raises(BadArgument, match=r"--brokers takes ids with commas between them, as in 1,2,3, not 1;2"):
        parse_ids("1;2")


def test_partitions_that_are_not_in_sync_are_named() -> None:
    full = ReplicaSet("t-0", (1, 2), (2, 1))
    assert not_in_sync([full]) == ""
    assert not_in_sync([full, ReplicaSet("t-1", (1, 2), (1,)), ReplicaSet("u-0", (1,), (1,), has_leader=False)]) == "t-1, u-0"
    assert not_in_sync([ReplicaSet(f"t-{number}", (1, 2), ()) for number in range(7)]).endswith("t-4 and 2 more")


def test_a_process_that_is_back_at_once_has_ended_all_the_same() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        watch = ProcessWatch("127.0.0.1", port)
        assert not watch.look(0.0)
        accepted, _ = first.accept()
        assert not watch.look(0.1)
        accepted.close()
    with socket.create_server(("127.0.0.1", port)):
        assert watch.look(0.2)
        assert watch.look(9.0)
    watch.close()


def test_a_connection_is_renewed_before_a_broker_may_close_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = ProcessWatch("127.0.0.1", server.getsockname()[1])
        assert not watch.look(0.0)
        old, _ = server.accept()
        assert not watch.look(2.5)
        old.close()
        assert not watch.look(2.6)
        watch.close()


def test_an_address_where_nothing_listens_has_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert ProcessWatch("127.0.0.1", port).look(0.0)


def test_a_command_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    restart = RollingRestart(cast("Any", None), f"{{ sleep 600; true; }} >{fifo} & wait", 1, None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = ProcessWatch("127.0.0.1", server.getsockname()[1])
        with pytest.raises(ToolError, match="The command for broker 3 did not end within 1 s"):
            restart._run_command(BROKERS[0], watch, time.monotonic() + 1)
        watch.close()
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end of the file: no process has it open for writing
    os.close(reader)
