"""How long to wait before the next try."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.network.backoff import ExponentialBackoff


def test_doubles_up_to_the_limit_without_jitter() -> None:
    backoff = ExponentialBackoff(100, 1000, jitter=0)
    assert [backoff.backoff_ms(attempts) for attempts in range(6)] == [100, 200, 400, 800, 1000, 1000]


def test_a_limit_below_the_first_wait_is_the_wait() -> None:
    backoff = ExponentialBackoff(500, 100)
    assert {backoff.backoff_ms(attempts) for attempts in range(5)} == {100}
    assert ExponentialBackoff(0, 0).backoff_ms(3) == 0


@given(st.integers(1, 5000), st.integers(1, 60000), st.integers(0, 2**63), st.integers())
def test_stays_within_a_fifth_and_never_passes_the_limit(initial: int, limit: int, attempts: int, seed: int) -> None:
    wait = ExponentialBackoff(initial, limit, random=Random(seed)).backoff_ms(attempts)
    plain = min(min(initial, limit) * 2 ** min(attempts, 64), max(limit, 0))
    assert int(0.8 * min(plain, limit)) - 1 <= wait <= min(1.2 * plain + 1, limit)
