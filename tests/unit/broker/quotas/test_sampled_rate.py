"""Rates over sampled windows: expected values are those of Kafka's RateTest and of its formulas, by hand."""

from __future__ import annotations

import pytest

from barnabas.broker.quotas.sampled_rate import SampledRate


def test_a_rate_without_values_is_zero() -> None:
    rate = SampledRate(11, 1000)
    assert rate.rate(5) == rate.simple_rate(5) == 0.0


def test_the_first_values_are_spread_over_all_windows_but_one() -> None:
    rate = SampledRate(11, 1000)
    rate.record(100, 0)
    assert rate.rate(0) == pytest.approx(100 / 10)
    assert rate.rate(500) == pytest.approx(100 / 10.5)
    assert rate.rate(1500) == pytest.approx(100 / 10.5)  # one window is complete, so that nine are added


def test_the_simple_rate_spreads_the_first_values_over_one_window() -> None:
    rate = SampledRate(11, 1000)
    rate.record(100, 0)
    assert rate.simple_rate(0) == pytest.approx(100)
    assert rate.simple_rate(1000) == pytest.approx(100)
    assert rate.simple_rate(4000) == pytest.approx(25)


def test_a_steady_rate_is_measured_as_it_is() -> None:
    rate = SampledRate(11, 1000)
    for now_ms in range(0, 60_000, 100):
        rate.record(50, now_ms)
    assert rate.rate(60_000) == pytest.approx(500, rel=0.02)
    assert rate.simple_rate(60_000) == pytest.approx(500, rel=0.02)


def test_values_stop_counting_when_all_windows_have_passed() -> None:
    rate = SampledRate(2, 1000)
    rate.record(100, 0)
    assert rate.total(1999) == 100
    assert rate.total(2000) == 0
    assert rate.simple_rate(2000) == 0


def test_a_sample_that_overlaps_the_measured_time_still_counts() -> None:
    rate = SampledRate(2, 1000)
    rate.record(1, 0)
    rate.record(2, 999)
    rate.record(4, 1000)
    rate.record(8, 2000)
    assert rate.total(2998) == 15  # the last value of the first sample is 1999 ms old
    assert rate.total(2999) == 12


def test_no_more_samples_are_kept_than_windows_and_one() -> None:
    rate = SampledRate(2, 1000)
    for window in range(10):
        rate.record(1, window * 1000)
    assert rate.total(9000) == 2  # the sample of 7000 is 2000 ms old
