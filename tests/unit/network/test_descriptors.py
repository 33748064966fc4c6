"""How many descriptors connections leave to others."""

from __future__ import annotations

from barnabas.network.descriptors import LOG_INTERVAL_MS, DescriptorGuard


def test_connections_leave_the_reserve_and_what_is_kept_for_files() -> None:
    guard = DescriptorGuard(100, 10, held_back=lambda: 20)
    assert guard.admits(69)
    assert not guard.admits(70)


def test_other_brokers_may_use_half_of_the_reserve() -> None:
    guard = DescriptorGuard(100, 10, held_back=lambda: 20)
    assert guard.admits(94, is_broker=True)
    assert not guard.admits(95, is_broker=True)


def test_files_beyond_their_share_are_closed_for_connections() -> None:
    closed = [3, 1, 0]
    guard = DescriptorGuard(100, 10, make_room=lambda: closed.pop(0))
    assert guard.admits(90)
    assert guard.admits(90)
    assert not guard.admits(90)


def test_without_a_limit_everybody_is_let_in() -> None:
    assert DescriptorGuard().admits(2**40)


def test_a_shortage_is_logged_once_a_minute() -> None:
    guard = DescriptorGuard(100, 10)
    assert guard.should_log(5)
    assert not guard.should_log(4 + LOG_INTERVAL_MS)
    assert guard.should_log(5 + LOG_INTERVAL_MS)
