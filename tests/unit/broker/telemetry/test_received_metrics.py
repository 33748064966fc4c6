from __future__ import annotations

import logging

import pytest

from barnabas.broker.telemetry.otlp_reader import ReceivedPoint
from barnabas.broker.telemetry.received_metrics import LABELS_MAX, RESOURCE_LABELS_MAX, TEXT_MAX, ReceivedMetrics, Series
from barnabas.uuid import Uuid

ONE, TWO = Uuid(bytes(15) + b"1"), Uuid(bytes(15) + b"2")


def gauge(name: str, value: float, **labels: str) -> ReceivedPoint:
    return ReceivedPoint(name, tuple(sorted(labels.items())), value, False, False)


def delta(name: str, value: float) -> ReceivedPoint:
    return ReceivedPoint(name, (), value, True, True)


def total(name: str, value: float) -> ReceivedPoint:
    return ReceivedPoint(name, (), value, True, False)


def values(received: ReceivedMetrics) -> dict[tuple[str, str], float]:
    return {(series.labels["client_id"], series.name): series.value for series in received.series()}


def test_a_gauge_has_the_last_value_a_total_the_last_total_and_deltas_are_added() -> None:
    received = ReceivedMetrics()
    received.record(ONE, "app", {}, [gauge("g", 1), delta("d", 2), total("t", 5)])
    received.record(ONE, "app", {}, [gauge("g", 7), delta("d", 3), total("t", 6)])
    assert values(received) == {("app", "g"): 7, ("app", "d"): 5, ("app", "t"): 6}
    assert (received.points_received, received.points_dropped, received.series_count, received.client_count) == (6, 0, 3, 1)


def test_a_series_names_its_kind_its_labels_and_its_client() -> None:
    received = ReceivedMetrics()
    received.record(ONE, "app", {"group_id": "g1"}, [gauge("g", 1, topic="t"), delta("d", 2)])
    assert list(received.series()) == [
        Series("g", "gauge", 1, {"topic": "t", "group_id": "g1", "client_id": "app", "client_instance_id": str(ONE)}),
        Series("d", "counter", 2, {"group_id": "g1", "client_id": "app", "client_instance_id": str(ONE)}),
    ]


def test_a_client_cannot_take_the_name_of_another_by_its_labels() -> None:
    received = ReceivedMetrics()
    received.record(ONE, "app", {"client_id": "other"}, [gauge("g", 1, client_id="other", client_instance_id="x")])
    assert next(received.series()).labels == {"client_id": "app", "client_instance_id": str(ONE)}


def test_a_client_that_leaves_takes_its_series_along() -> None:
    received = ReceivedMetrics()
    for client, name in ((ONE, "one"), (TWO, "two")):
        received.record(client, name, {}, [gauge("g", 1)])
    received.forget(ONE)
    received.forget(ONE)
    assert (values(received), received.series_count, received.client_count) == ({("two", "g"): 1}, 1, 1)


def test_a_client_at_its_bound_loses_the_series_that_it_has_not_pushed_for_longest() -> None:
    received = ReceivedMetrics(series_per_client_max=2)
    received.record(ONE, "app", {}, [gauge("a", 1), gauge("b", 1)])
    received.record(ONE, "app", {}, [gauge("a", 2), gauge("c", 2)])
    assert values(received) == {("app", "a"): 2, ("app", "c"): 2}
    assert (received.series_count, received.points_dropped) == (2, 1)


def test_at_the_bound_of_all_clients_no_new_series_is_kept_and_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    received = ReceivedMetrics(series_max=2)
    with caplog.at_level(logging.WARNING):
        received.record(ONE, "one", {}, [gauge("a", 1), gauge("b", 1), gauge("c", 1)])
        received.record(TWO, "two", {}, [gauge("a", 1)])
    assert values(received) == {("one", "a"): 1, ("one", "b"): 1}
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == [
        "Clients have pushed 2 series of metrics, the most that are kept (barnabas.telemetry.series.max)"
    ]
    received.forget(ONE)
    received.record(TWO, "two", {}, [gauge("a", 1)])
    assert values(received) == {("two", "a"): 1}


def test_names_and_labels_are_bounded() -> None:
    received = ReceivedMetrics()
    resource = {f"label-{number}": "v" * (TEXT_MAX + 1) for number in range(RESOURCE_LABELS_MAX + 5)}
    received.record(ONE, "app", resource, [gauge("n" * (TEXT_MAX + 1), 1), gauge("n", 1, label="v" * TEXT_MAX), gauge("kept", 1)])
    (series,) = received.series()
    assert (series.name, received.points_dropped) == ("kept", 2)
    assert len(series.labels) == RESOURCE_LABELS_MAX + 2
    assert max(len(text) for text in series.labels.values()) == TEXT_MAX


def test_a_series_with_too_many_labels_is_not_kept() -> None:
    received = ReceivedMetrics()
    labels = {f"l{number}": "" for number in range(LABELS_MAX)}
    received.record(ONE, "app", {}, [gauge("kept", 1, **labels), gauge("dropped", 1, **labels, more="")])
    assert (values(received), received.points_dropped) == ({("app", "kept"): 1}, 1)
