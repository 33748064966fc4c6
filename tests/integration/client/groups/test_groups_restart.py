"""The broker is killed and started again while groups of our consumers live: they notice no more than a pause, and nothing goes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.groups.member import Members, Seat
from tests.integration.groups.scenario import PARTITIONS, committed, end_offsets, outcome_of, producing, wait_until_committed
from tests.integration.groups.test_coordinator_restart import assert_none_went_back, free_port, join, read_on, serving

WAIT_S = 30


def no_java() -> Path:
    raise AssertionError("no member of these groups is Java's")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "consumer"])
def test_a_group_goes_on_where_it_was_when_its_coordinator_was_killed(strategy: str, tmp_path: Path) -> None:
    port = free_port()
    seat = Seat(f"localhost:{port}", "restarted", "records", strategy)
    members = Members(seat, no_java)
    try:
        with serving(tmp_path, port) as first:
            admin = AdminClient({"bootstrap.servers": seat.bootstrap})
            admin.create_topics([NewTopic(seat.topic, PARTITIONS, 1)])[seat.topic].result(WAIT_S)
            join(members, ["barnabas", "barnabas_async"])
            with producing(seat):
                read_on(members)
            before = committed(seat)
            first.kill()
            first.wait()
            with serving(tmp_path, port):
                assert_none_went_back(before, committed(seat))
                with producing(seat):
                    read_on(members)
                wait_until_committed(members, seat)
                outcome = outcome_of(members.all, end_offsets(seat))
        assert (outcome.missing, outcome.held_by_two, outcome.repeated) == ([], [], [])
    finally:
        members.end()
