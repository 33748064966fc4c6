"""The rate limit: a burst, then a number per second; waiting does not allow more than a burst."""

from __future__ import annotations

from barnabas.broker.topics.creation_rate import CreationRate


def taken(rate: CreationRate, now_ms: int) -> int:
    count = 0
    while rate.take(now_ms):
        count += 1
    return count


def test_a_burst_then_a_rate() -> None:
    rate = CreationRate(burst=5, per_second=2, monotonic_ms=1_000)
    assert taken(rate, 1_000) == 5
    assert taken(rate, 1_499) == 0
    assert taken(rate, 1_500) == 1
    assert taken(rate, 3_000) == 3
    assert taken(rate, 1_000_000) == 5


def test_a_rate_of_nothing_leaves_the_burst() -> None:
    rate = CreationRate(burst=3, per_second=0, monotonic_ms=0)
    assert taken(rate, 0) == 3
    assert taken(rate, 10**9) == 0


def test_time_that_goes_back_gives_nothing() -> None:
    rate = CreationRate(burst=1, per_second=1, monotonic_ms=10_000)
    assert taken(rate, 10_000) == 1
    assert taken(rate, 0) == 0
