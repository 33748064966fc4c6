from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.network.idle_connections import IdleConnections


def test_a_connection_is_idle_after_the_full_time_and_not_before() -> None:
    idle: IdleConnections[str] = IdleConnections(100)
    idle.active("a", 50)
    assert idle.expired(149) == []
    assert idle.expired(150) == ["a"]


def test_a_sign_of_life_starts_the_time_anew() -> None:
    idle: IdleConnections[str] = IdleConnections(100)
    idle.active("a", 0)
    idle.active("a", 90)
    assert idle.expired(100) == []


def test_the_next_look_is_due_when_the_quietest_expires() -> None:
    idle: IdleConnections[str] = IdleConnections(100)
    idle.active("a", 0)
    idle.active("b", 10)
    idle.active("a", 20)
    assert idle.next_expiry_ms() == 110


def test_without_connections_nothing_is_due() -> None:
    assert IdleConnections[str](100).next_expiry_ms() is None


def test_a_negative_time_never_expires() -> None:
    idle: IdleConnections[str] = IdleConnections(-1)
    idle.active("a", 0)
    assert idle.expired(1 << 60) == []
    assert idle.next_expiry_ms() is None


def test_a_closed_connection_is_forgotten() -> None:
    idle: IdleConnections[str] = IdleConnections(100)
    idle.active("a", 0)
    idle.remove("a")
    assert (len(idle), idle.expired(1000)) == (0, [])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=100), st.integers(0, 200))
def test_exactly_the_quiet_ones_expire_the_quietest_first(events: list[tuple[int, int]], later_ms: int) -> None:
    idle: IdleConnections[int] = IdleConnections(100)
    last: dict[int, int] = {}
    now_ms = 0
    for connection, pause_ms in events:
        now_ms += pause_ms
        idle.active(connection, now_ms)
        last.pop(connection, None)
        last[connection] = now_ms
    now_ms += later_ms
    assert idle.expired(now_ms) == [connection for connection, at in last.items() if at + 100 <= now_ms]
