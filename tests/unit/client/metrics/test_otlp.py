"""What we write as OpenTelemetry's metrics is what OpenTelemetry's own classes read."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from barnabas.client.metrics.otlp import CUMULATIVE, DELTA, Point, metrics_data

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
POINTS = st.builds(
    Point,
    name=TEXTS,
    value=st.floats() | st.integers(-(2**63), 2**63 - 1),
    time_ms=st.integers(0, 2**43),
    attributes=st.dictionaries(TEXTS, TEXTS, max_size=3),
    start_ms=st.integers(0, 2**43),
    temporality=st.sampled_from((0, DELTA, CUMULATIVE)),
)


@given(st.lists(POINTS, min_size=1), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_opentelemetry_reads_what_we_write(points: list[Point], resource: dict[str, str]) -> None:
    (read,) = MetricsData.FromString(metrics_data(points, resource)).resource_metrics
    assert {attribute.key: attribute.value.string_value for attribute in read.resource.attributes} == resource
    (scope,) = read.scope_metrics
    for point, metric in zip(points, scope.metrics, strict=True):
        assert metric.name == point.name
        assert metric.WhichOneof("data") == ("sum" if point.temporality else "gauge")
        (number,) = metric.sum.data_points if point.temporality else metric.gauge.data_points
        assert (number.time_unix_nano, number.start_time_unix_nano) == (point.time_ms * 1_000_000, point.start_ms * 1_000_000)
        assert {attribute.key: attribute.value.string_value for attribute in number.attributes} == point.attributes
        if isinstance(point.value, int):
            assert number.as_int == point.value
        else:
            assert number.as_double == point.value or math.isnan(number.as_double) == math.isnan(point.value)
        if point.temporality:
            assert (metric.sum.aggregation_temporality, metric.sum.is_monotonic) == (point.temporality, True)


def test_temporalities_have_their_numbers() -> None:
    assert AggregationTemporality.Name(DELTA) == "AGGREGATION_TEMPORALITY_DELTA"
    assert AggregationTemporality.Name(CUMULATIVE) == "AGGREGATION_TEMPORALITY_CUMULATIVE"


def test_no_points_are_no_bytes() -> None:
    assert metrics_data([], {"client_rack": "a"}) == b""
