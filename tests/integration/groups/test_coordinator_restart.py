"""The broker is killed and started again while groups live: no member notices more than a pause, and no committed offset goes back."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests import broker
from tests.integration.groups.member import Members, Seat
from tests.integration.groups.scenario import PARTITIONS, committed, end_offsets, outcome_of, producing, settle, wait_until_committed

pytestmark = pytest.mark.java

WAIT_S = 30
GROUPS = {"range": ["confluent", "java", "kafka_python"], "consumer": ["confluent", "java"]}


@pytest.mark.parametrize("strategy", GROUPS)
def test_a_group_goes_on_where_it_was_when_its_coordinator_was_killed(
    strategy: str, tmp_path: Path, java_classes: Callable[[], Path]
) -> None:
    port = free_port()
    seat = Seat(f"localhost:{port}", "restarted", "records", strategy)
    members = Members(seat, java_classes)
    try:
        with serving(tmp_path, port) as first:
            admin = AdminClient({"bootstrap.servers": seat.bootstrap})
            admin.create_topics([NewTopic(seat.topic, PARTITIONS, 1)])[seat.topic].result(WAIT_S)
            join(members, GROUPS[strategy])
            with producing(seat):
                reads = read_on(members)
            before = committed(seat)
            first.kill()
            first.wait()
            with serving(tmp_path, port):
                assert_none_went_back(before, committed(seat))
                with producing(seat):
                    read_on(members)
                wait_until_committed(members, seat)
                outcome = outcome_of(members.all, end_offsets(seat))
        assert reads > 0
        assert (outcome.missing, outcome.held_by_two, outcome.repeated) == ([], [], [])
    finally:
        members.end()


def join(members: Members, clients: Sequence[str]) -> None:
    for client in clients:
        members.add(client)
    settle(members, "the members share the partitions")


def read_on(members: Members) -> int:
    """Waits until every member has read something more, and gives how often all of them have read."""
    before = [len(member.told.reads) for member in members.all]
    members.wait("all read on", lambda: all(len(member.told.reads) > count for member, count in zip(members.all, before, strict=True)))
    return sum(len(member.told.reads) for member in members.all)


def assert_none_went_back(before: dict[int, int], after: dict[int, int]) -> None:
    assert before
    assert {partition: offset for partition, offset in before.items() if after.get(partition, -1) < offset} == {}


@contextmanager
def serving(data: Path, port: int) -> Generator[subprocess.Popen[str], None, None]:
    command = [sys.executable, "-m", "barnabas", "up", "--no-console", "--port", str(port), "--data", str(data)]
    with broker.started(command, broker.READY, broker.START_TIMEOUT_S) as (process, _):
        yield process


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])
