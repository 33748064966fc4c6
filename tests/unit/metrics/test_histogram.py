from __future__ import annotations

import random

import pytest

from barnabas.metrics.histogram import BUCKETS_MAX, VALUE_MAX, Histogram, bucket_of, lower_bound, merged, middle, quantiles, with_zeros


def test_small_values_have_a_bucket_each() -> None:
    assert [bucket_of(value) for value in range(33)] == list(range(33))
    assert [middle(bucket) for bucket in (0, 5, 31)] == [0.0, 5.0, 31.0]


def test_buckets_follow_each_other_without_gap_up_to_the_last() -> None:
    for bucket in range(1, BUCKETS_MAX):
        assert (bucket_of(lower_bound(bucket)), bucket_of(lower_bound(bucket) - 1)) == (bucket, bucket - 1)


def test_values_beyond_the_range_count_at_its_ends() -> None:
    assert (bucket_of(-1), bucket_of(-(2**40)), bucket_of(VALUE_MAX), bucket_of(2**60)) == (0, 0, BUCKETS_MAX - 1, BUCKETS_MAX - 1)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_near_those_of_the_samples(seed: int) -> None:
    source = random.Random(seed)
    histogram = Histogram()
    samples = sorted(int(source.lognormvariate(7, 2)) for _ in range(20_000))
    for sample in samples:
        histogram.record(sample)
    levels = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
    for quantile, value in zip(levels, quantiles(histogram.counts(), levels), strict=True):
        assert value == pytest.approx(samples[int(quantile * len(samples)) - 1], rel=0.04)


def test_every_value_is_counted_in_its_bucket() -> None:
    for power in range(40):
        for value in (2**power - 1, 2**power, 2**power + 2**power // 3):
            histogram = Histogram()
            histogram.record(value)
            assert histogram.counts().index(1) == bucket_of(value)


def test_zeros_need_not_be_recorded() -> None:
    histogram = Histogram()
    histogram.record(20)
    assert quantiles(with_zeros(histogram.counts(), 4), (0.5, 0.75, 0.98)) == [0.0, 0.0, 20.0]


def test_a_histogram_without_samples_has_the_quantiles_zero() -> None:
    assert (Histogram().count, quantiles(Histogram().counts(), (0.5, 0.99))) == (0, [0.0, 0.0])


def test_quantiles_forget_samples_after_two_windows_and_the_count_does_not() -> None:
    histogram = Histogram()
    histogram.record(1000)
    histogram.rotate()
    histogram.record(10)
    assert (histogram.count, quantiles(histogram.counts(), (0.999,))[0] > 900) == (2, True)
    histogram.rotate()
    assert (histogram.count, quantiles(histogram.counts(), (0.5, 0.999))) == (2, [10.0, 10.0])
    histogram.rotate()
    assert (histogram.count, quantiles(histogram.counts(), (0.5,))) == (2, [0.0])


def test_memory_is_bounded_whatever_is_recorded() -> None:
    histogram = Histogram()
    for power in range(63):
        histogram.record(2**power)
        histogram.record(2**power - 1)
    assert len(histogram.counts()) <= BUCKETS_MAX + 32


def test_histograms_are_merged() -> None:
    small, large = Histogram(), Histogram()
    for _ in range(3):
        small.record(2)
    large.record(30)
    count, counts = merged([small, large])
    assert (count, quantiles(counts, (0.5, 0.75, 0.98))) == (4, [2.0, 2.0, 30.0])
