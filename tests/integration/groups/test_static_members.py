"""Static members: one that comes back under its instance id takes up what it held, and no other member notices."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker import set_session_timeout
from tests.integration.groups.member import Member, Members, Seat
from tests.integration.groups.scenario import PARTITIONS, end_offsets, outcome_of, producing, settle, wait_until_committed

pytestmark = pytest.mark.java

SeatMaker = Callable[[str, str], Seat]
JavaClasses = Callable[[], Path]
CLASSIC = ["confluent", "java", "kafka_python", "aiokafka"]
SESSION_TIMEOUT_MS = 30_000  # in which a member starts again, also on a busy machine
CONSUMER = ["confluent", "java"]  # those that speak KIP-848's protocol


def test_a_classic_member_that_is_killed_and_comes_back_holds_what_it_held(seat: SeatMaker, java_classes: JavaClasses) -> None:
    place = seat("static-classic", "range")
    with group(place, java_classes, CLASSIC) as members, producing(place):
        for member in list(members.all):
            comes_back(members, member, member.kill)


def test_a_member_of_kip_848_that_stops_and_comes_back_holds_what_it_held(seat: SeatMaker, java_classes: JavaClasses) -> None:
    place = seat("static-consumer", "consumer")
    with group(place, java_classes, CONSUMER) as members, producing(place):
        for member in list(members.all):
            comes_back(members, member, member.stop)


@pytest.mark.parametrize("client", ["confluent", "java"])
def test_a_classic_member_is_fenced_by_another_with_its_instance_id(client: str, seat: SeatMaker, java_classes: JavaClasses) -> None:
    with group(seat(f"fenced-{client}", "range"), java_classes, [client]) as members:
        other = members.add("confluent", instance=f"{client}-1")
        members.wait("the other holds all", lambda: len(other.told.held) == PARTITIONS)
        members.wait("the first is told", lambda: any("fenced" in note.lower() for note in members.all[0].told.notes))


def comes_back(members: Members, member: Member, end: Callable[[], None]) -> None:
    before = changes_of(members, without=member)
    held = member.told.held
    end()
    back = members.add(member.client, instance=f"{member.client}-1")
    members.wait(f"{member.client} is back", lambda: back.told.held == held)
    assert changes_of(members, without=back) == before


def changes_of(members: Members, without: Member) -> dict[str, int]:
    """How often each living member was told of another assignment."""
    return {member.client: len(member.told.holds) for member in members.alive if member is not without}


@contextmanager
def group(seat: Seat, java_classes: JavaClasses, clients: list[str]) -> Generator[Members, None, None]:
    """A settled group; after the block, whatever was sent has been read, and once unless who read it was killed."""
    members = Members(seat, java_classes)
    if seat.strategy == "consumer":
        set_session_timeout(seat.bootstrap, seat.group, SESSION_TIMEOUT_MS)
    try:
        for client in clients:
            members.add(client, instance=f"{client}-1")
        settle(members, "the static members share the partitions")
        yield members
        if len(clients) > 1:
            wait_until_committed(members, seat)
            outcome = outcome_of(members.all, end_offsets(seat))
            assert (outcome.missing, outcome.repeated) == ([], [])
    finally:
        members.end()
