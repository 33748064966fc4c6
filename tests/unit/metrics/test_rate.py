from __future__ import annotations

import pytest

from barnabas.metrics.rate import MovingRate


def test_the_first_interval_is_the_average() -> None:
    rate = MovingRate()
    assert rate.read(100, 0) == 0
    assert rate.read(150, 10_000) == 5
    assert rate.read(150, 10_000) == 5  # no time has passed


def test_an_old_rate_fades_with_time_and_not_with_reads() -> None:
    often, seldom = MovingRate(), MovingRate()
    for rate in (often, seldom):
        rate.read(0, 0)
        rate.read(600, 60_000)
    for second in range(61, 121):
        often.read(600, second * 1000)
    assert often.read(600, 120_000) == pytest.approx(seldom.read(600, 120_000))
    assert often.read(600, 120_000) == pytest.approx(10 / 2.718, rel=0.01)
