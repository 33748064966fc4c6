"""The numbers that books and courses give for log ends, high watermarks, in-sync replicas and leader epochs, each as a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.records.reader import records_of
from barnabas.storage.log_config import LogConfig
from tests.unit.broker.replicas import LAG_MS_MAX, TP, Replicas
from tests.unit.broker.replication.test_follower_fetch import Node, fetch_once, replicate


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


@pytest.fixture
def two(tmp_path: Path) -> tuple[Node, Node]:
    return Node(tmp_path / "a"), Node(tmp_path / "b")


def lead_three(replicas: Replicas, *counts: int, isr: tuple[int, ...] = (1, 2, 3)) -> None:
    """Broker 1 leads and has as many records as these together, in batches of these counts."""
    replicas.lead(replicas=(1, 2, 3), isr=isr)
    for count in counts:
        replicas.append(count, acks=1)


def visible(replicas: Replicas) -> list[int]:
    """The offsets that a consumer can read."""
    records = replicas.fetch(0).result.records
    return [] if records is None else [record.offset for record in records_of(records.read())]


def ends(replicas: Replicas) -> tuple[int, int]:
    return replicas.log().log_end_offset, replicas.log().high_watermark


def shrink(replicas: Replicas) -> None:
    """The leader leaves out who lags, and the controller agrees."""
    replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    replicas.decider.accept()


# -- the high watermark is the least log end of those in sync


def test_of_nine_records_with_a_high_watermark_of_six_the_first_six_are_visible(replicas: Replicas) -> None:
    lead_three(replicas, 6, 3)
    replicas.follow(2, 9)
    replicas.follow(3, 6)
    assert ends(replicas) == (9, 6)
    assert visible(replicas) == [0, 1, 2, 3, 4, 5]


def test_two_more_records_are_visible_as_far_as_the_slowest_follower_has_them(replicas: Replicas) -> None:
    lead_three(replicas, 1, 1, 1)
    for follower in (2, 3):
        replicas.follow(follower, 3)
    assert ends(replicas) == (3, 3)
    replicas.append(1, acks=1)
    replicas.append(1, acks=1)
    replicas.follow(2, 5)
    replicas.follow(3, 4)
    assert (*ends(replicas), visible(replicas)) == (5, 4, [0, 1, 2, 3])
    replicas.follow(3, 5)
    assert (*ends(replicas), visible(replicas)) == (5, 5, [0, 1, 2, 3, 4])


def test_without_the_slowest_of_nine_seven_and_six_the_high_watermark_is_seven(replicas: Replicas) -> None:
    lead_three(replicas, 6)
    for follower in (2, 3):
        replicas.follow(follower, 6)
    replicas.append(1, acks=1)
    replicas.pass_time(LAG_MS_MAX + 1)
    replicas.follow(2, 6)  # it is about to have the seventh, which is all there is
    replicas.append(2, acks=1)
    replicas.follow(2, 7)
    assert ends(replicas) == (9, 6)
    shrink(replicas)
    assert (sorted(replicas.partition().isr.committed), *ends(replicas)) == ([1, 2], 9, 7)


def test_with_fifteen_records_and_followers_at_three_and_four_it_is_three_one_round_later(replicas: Replicas) -> None:
    lead_three(replicas, 15)
    assert [replicas.follow(follower, 0).result.high_watermark for follower in (2, 3)] == [0, 0]
    replicas.follow(2, 3)  # it has been given three, and asks for more
    replicas.follow(3, 4)
    assert ends(replicas) == (15, 3)
    assert [replicas.follow(follower, offset).result.high_watermark for follower, offset in ((2, 3), (3, 4))] == [3, 3]


def test_the_low_watermark_is_the_least_log_start_of_all_replicas_even_of_those_out_of_sync(replicas: Replicas) -> None:
    lead_three(replicas, 5, 5, isr=(1, 2))
    replicas.follow(2, 10, log_start_offset=4)
    replicas.follow(3, 2, log_start_offset=2)
    replicas.log().increment_log_start_offset(6, "deleted")
    assert replicas.partition().low_watermark == 2
    replicas.follow(3, 6, log_start_offset=6)
    assert replicas.partition().low_watermark == 4


# -- in sync, or not


def test_a_follower_at_the_high_watermark_is_taken_in_though_it_is_behind_the_log_end(replicas: Replicas) -> None:
    lead_three(replicas, 6, 4, isr=(1, 2))
    replicas.follow(2, 6)
    assert ends(replicas) == (10, 6)
    replicas.follow(3, 5)
    assert replicas.decider.proposals == []
    replicas.follow(3, 6)
    assert [sorted(proposal[0]) for proposal in replicas.decider.proposals] == [[1, 2, 3]]


def test_who_comes_in_stands_last_and_the_others_stay_in_their_order(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3), isr=(3, 1))
    replicas.follow(2, 0)
    assert replicas.decider.proposals[0][0] == [3, 1, 2]
    replicas.decider.accept()
    replicas.append(1, acks=1)
    replicas.pass_time(LAG_MS_MAX + 1)
    replicas.follow(2, 1)
    replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    assert replicas.decider.proposals[0][0] == [1, 2]


def test_a_follower_that_fetches_but_never_reaches_the_end_is_left_out(replicas: Replicas) -> None:
    lead_three(replicas, 10)
    replicas.follow(2, 10)
    replicas.follow(3, 1)
    for _ in range(3):
        replicas.pass_time(LAG_MS_MAX // 2)
        replicas.append(10, acks=1)
        replicas.follow(2, replicas.log().log_end_offset)
        replicas.follow(3, 2)
        replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    assert [sorted(proposal[0]) for proposal in replicas.decider.proposals] == [[1, 2]]


def test_a_follower_that_stops_just_after_a_check_stays_for_one_and_a_half_times_the_lag(replicas: Replicas) -> None:
    """It is looked after every half of replica.lag.time.max.ms, and has to be behind for longer than all of it."""
    lead_three(replicas, 1)
    for follower in (2, 3):
        replicas.follow(follower, 1)
    replicas.append(1, acks=1)
    proposed = []
    for _ in range(3):
        replicas.pass_time(LAG_MS_MAX // 2)
        replicas.follow(2, 2)
        replicas.manager.shrink_isrs(replicas.clock.steady_ms)
        proposed.append(len(replicas.decider.proposals))
    assert proposed == [0, 0, 1]


def test_with_three_replicas_and_a_minimum_of_two_one_may_be_missing_and_two_may_not(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    replicas.lead(replicas=(1, 2, 3), isr=(1, 2))
    taken = replicas.append(1)
    replicas.follow(2, 1)
    assert taken.error == ErrorCode.NONE
    shrunk = replicas.append(1, timeout_ms=2 * LAG_MS_MAX)
    replicas.pass_time(LAG_MS_MAX + 1)
    shrink(replicas)
    assert replicas.append(1).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert ends(replicas) == (2, 1)  # alone it commits nothing: what was appended before is visible to nobody
    replicas.pass_time(LAG_MS_MAX)
    assert shrunk.error == ErrorCode.REQUEST_TIMED_OUT


# -- leader epochs instead of the high watermark


def test_a_restarted_follower_asks_for_the_end_of_its_epoch_and_keeps_the_second_record(two: tuple[Node, Node]) -> None:
    """Loss: had it cut itself to its high watermark of one, the record m2 would be gone when it leads."""
    a, b = two
    a.follow(0)
    b.lead(0)
    b.write(b"m1", epoch=0)
    replicate(a, b)
    b.write(b"m2", epoch=0)
    fetch_once(a, b)
    fetch_once(a, b)
    assert (a.log.log_end_offset, a.log.high_watermark, b.log.high_watermark) == (2, 1, 2)
    a.fetch.remove(TP)
    assert b.replicas.partition().last_offset_for_leader_epoch(0, 0, True) == (0, 2)
    a.lead(1)
    a.write(b"m3", epoch=1)
    assert a.values() == [b"m1", b"m2", b"m3"]
    assert a.replicas.partition().last_offset_for_leader_epoch(1, 0, True) == (0, 2)
    assert [(entry.epoch, entry.start_offset) for entry in a.log.epochs.entries] == [(0, 0), (1, 2)]


def test_the_one_that_was_ahead_drops_its_second_record_for_the_new_leaders(two: tuple[Node, Node]) -> None:
    """Divergence: both high watermarks would be two, so that neither would cut anything, with m2 here and m3 there."""
    a, b = two
    a.lead(0)
    b.follow(0)
    a.write(b"m1", epoch=0)
    replicate(b, a)
    a.write(b"m2", epoch=0)
    b.lead(1)
    b.write(b"m3", epoch=1)
    assert b.replicas.partition().last_offset_for_leader_epoch(1, 0, True) == (0, 1)
    a.follow(1)
    replicate(a, b)
    assert a.values() == b.values() == [b"m1", b"m3"]
    for node in two:
        assert (node.log.log_end_offset, node.log.high_watermark) == (2, 2)
        assert [(entry.epoch, entry.start_offset) for entry in node.log.epochs.entries] == [(0, 0), (1, 1)]


def test_an_epoch_that_the_leader_never_had_has_no_end(two: tuple[Node, Node]) -> None:
    a, _ = two
    a.lead(3)
    a.write(b"m1", epoch=3)
    assert a.replicas.partition().last_offset_for_leader_epoch(3, 9, True) == (-1, -1)


# -- what is deleted


def test_a_follower_takes_up_a_log_start_that_is_past_its_high_watermark(two: tuple[Node, Node]) -> None:
    """Records are deleted between its append and its news of the high watermark: the log start may never be past that."""
    leader, follower = two
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", b"b", b"c", epoch=0)
    fetch_once(follower, leader)
    fetch_once(follower, leader)
    assert (leader.log.high_watermark, follower.log.high_watermark) == (3, 0)
    leader.log.increment_log_start_offset(2, "deleted")
    fetch_once(follower, leader)
    assert follower.log.log_start_offset <= follower.log.high_watermark == 3
    replicate(follower, leader)
    assert (follower.log.log_start_offset, follower.log.high_watermark) == (2, 3)
