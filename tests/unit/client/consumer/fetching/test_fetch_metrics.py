"""What a consumer measures of its fetches, under the names of Kafka 4.2's consumer."""

from __future__ import annotations

from math import isnan

from barnabas.client.consumer.fetching.fetch_metrics import GROUP, FetchMetrics
from barnabas.client.metrics.metrics import Metrics
from barnabas.topic_partition import TopicPartition
from tests.unit.client.consumer.paper_network import PaperClock

P0 = TopicPartition("t", 0)
OF_ALL = {
    "bytes-consumed-rate",
    "bytes-consumed-total",
    "fetch-latency-avg",
    "fetch-latency-max",
    "fetch-rate",
    "fetch-size-avg",
    "fetch-size-max",
    "fetch-throttle-time-avg",
    "fetch-throttle-time-max",
    "fetch-total",
    "records-consumed-rate",
    "records-consumed-total",
    "records-lag-max",
    "records-lead-min",
    "records-per-request-avg",
}
OF_TOPICS = {
    "bytes-consumed-rate",
    "bytes-consumed-total",
    "fetch-size-avg",
    "fetch-size-max",
    "records-consumed-rate",
    "records-consumed-total",
    "records-per-request-avg",
}
OF_PARTITIONS = {
    "preferred-read-replica",
    "records-lag",
    "records-lag-avg",
    "records-lag-max",
    "records-lead",
    "records-lead-avg",
    "records-lead-min",
}


def made() -> tuple[Metrics, FetchMetrics]:
    metrics = Metrics(PaperClock(), tags={"client-id": "c"})
    return metrics, FetchMetrics(metrics, lambda _: 6, lambda _: 4, lambda _: None)


def names(metrics: Metrics, *tags: str) -> set[str]:
    return {name.name for name in metrics.all() if name.group == GROUP and set(name.tag_map) == {"client-id", *tags}}


def value(metrics: Metrics, name: str, **tags: str) -> object:
    matching = [metric for key, metric in metrics.all().items() if key.name == name and key.tag_map == {"client-id": "c"} | tags]
    return matching[0].metric_value()


def test_the_names_are_kafkas() -> None:
    metrics, fetches = made()
    fetches.retain({P0})
    fetches.consumed(P0, 3, 100)
    assert names(metrics) == OF_ALL
    assert names(metrics, "topic") == OF_TOPICS
    assert names(metrics, "topic", "partition") == OF_PARTITIONS


def test_what_is_read_is_counted_for_all_and_for_its_topic() -> None:
    metrics, fetches = made()
    fetches.fetched({"t": 500}, 20, 0)
    fetches.consumed(P0, 3, 100)
    fetches.consumed(P0, 5, 50)
    assert value(metrics, "records-consumed-total") == value(metrics, "records-consumed-total", topic="t") == 8
    assert value(metrics, "bytes-consumed-total", topic="t") == 150
    assert value(metrics, "fetch-size-max", topic="t") == 500
    assert value(metrics, "records-per-request-avg") == 4
    assert value(metrics, "records-lag-max") == 6
    assert value(metrics, "records-lead", topic="t", partition="0") == 4
    assert value(metrics, "preferred-read-replica", topic="t", partition="0") == -1


def test_what_is_not_assigned_any_more_is_not_measured_any_more() -> None:
    metrics, fetches = made()
    fetches.consumed(P0, 3, 100)
    fetches.retain(set())
    assert names(metrics, "topic") == names(metrics, "topic", "partition") == set()
    assert isnan(float(str(value(metrics, "fetch-size-max"))))
