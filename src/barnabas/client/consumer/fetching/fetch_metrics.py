"""The fetch metrics of a consumer under Kafka's names (group consumer-fetch-manager-metrics).

Values are recorded once per fetch, when it is consumed, and not once per poll. The lag of a partition is computed when the metric is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import nan
from typing import Final

from barnabas.client.metrics.metrics import Avg, Max, MetricName, Metrics, Min, Sensor, Stat
from barnabas.topic_partition import TopicPartition

GROUP: Final = "consumer-fetch-manager-metrics"

Distance = Callable[[TopicPartition], int | None]


class FetchMetrics:
    """`lag_of` and `lead_of` return the distance of a position to the end and to the start of the log, or None; `replica_of` returns the
    replica that is fetched from if it is not the leader."""

    def __init__(self, metrics: Metrics, lag_of: Distance, lead_of: Distance, replica_of: Distance) -> None:
        self._metrics = metrics
        self._clock = metrics.clock
        self._lag_of = lag_of
        self._lead_of = lead_of
        self._replica_of = replica_of
        name = metrics.metric_name
        self._records = metrics.meter("records-consumed", name("records-consumed-rate", GROUP), name("records-consumed-total", GROUP))
        self._bytes = metrics.meter("bytes-consumed", name("bytes-consumed-rate", GROUP), name("bytes-consumed-total", GROUP))
        self._fetches = metrics.meter("fetches", name("fetch-rate", GROUP), name("fetch-total", GROUP), counting=True)
        self._sizes = metrics.average_and_max("fetch-size", name("fetch-size-avg", GROUP), name("fetch-size-max", GROUP))
        self._latency = metrics.average_and_max("fetch-latency", name("fetch-latency-avg", GROUP), name("fetch-latency-max", GROUP))
        self._throttle = metrics.average_and_max(
            "fetch-throttle-time", name("fetch-throttle-time-avg", GROUP), name("fetch-throttle-time-max", GROUP)
        )
        metrics.add("records-per-request", name("records-per-request-avg", GROUP), Avg(metrics.samples, metrics.window_ms))
        self._per_request = metrics.sensor("records-per-request")
        metrics.add("records-lag", name("records-lag-max", GROUP), Max(metrics.samples, metrics.window_ms))
        self._lag = metrics.sensor("records-lag")
        metrics.add("records-lead", name("records-lead-min", GROUP), Min(metrics.samples, metrics.window_ms))
        self._lead = metrics.sensor("records-lead")
        self._of_partition: dict[TopicPartition, tuple[Sensor, Sensor]] = {}
        self._of_topic: dict[str, _TopicSensors] = {}

    def fetched(self, sizes: Mapping[str, int], latency_ms: float, throttle_ms: int) -> None:
        """Records a response with the given number of bytes of each topic."""
        now_ms = self._clock.monotonic_ms()
        self._fetches.record(1, now_ms)
        self._sizes.record(sum(sizes.values()), now_ms)
        for topic, size in sizes.items():
            self._topic(topic).sizes.record(size, now_ms)
        self._latency.record(latency_ms, now_ms)
        self._throttle.record(throttle_ms, now_ms)

    def consumed(self, partition: TopicPartition, records: int, size: int) -> None:
        """Records that the fetched data of a partition is consumed."""
        now_ms = self._clock.monotonic_ms()
        self._records.record(records, now_ms)
        self._per_request.record(records, now_ms)
        self._bytes.record(size, now_ms)
        topic = self._topic(partition.topic)
        topic.records.record(records, now_ms)
        topic.per_request.record(records, now_ms)
        topic.bytes.record(size, now_ms)
        lag_sensor, lead_sensor = self._sensors(partition)
        lag, lead = self._lag_of(partition), self._lead_of(partition)
        if lag is not None:
            self._lag.record(lag, now_ms)
            lag_sensor.record(lag, now_ms)
        if lead is not None:
            self._lead.record(lead, now_ms)
            lead_sensor.record(lead, now_ms)

    def retain(self, partitions: set[TopicPartition]) -> None:
        """Removes the metrics of partitions that are no longer assigned."""
        for partition in [partition for partition in list(self._of_partition) if partition not in partitions]:
            del self._of_partition[partition]
            for metric in ("records-lag", "records-lead"):
                self._metrics.remove_sensor(f"{partition}.{metric}")
                self._metrics.remove(self._metrics.metric_name(metric, GROUP, **_tags(partition)))
            self._metrics.remove(self._metrics.metric_name("preferred-read-replica", GROUP, **_tags(partition)))
        for partition in partitions:
            self._sensors(partition)
        for topic in [topic for topic in list(self._of_topic) if topic not in {partition.topic for partition in partitions}]:
            self._of_topic.pop(topic).remove(self._metrics)

    def _topic(self, topic: str) -> _TopicSensors:
        sensors = self._of_topic.get(topic)
        if sensors is None:
            sensors = self._of_topic[topic] = _TopicSensors(self._metrics, topic)
        return sensors

    def _sensors(self, partition: TopicPartition) -> tuple[Sensor, Sensor]:
        sensors = self._of_partition.get(partition)
        if sensors is None:
            window = (self._metrics.samples, self._metrics.window_ms)
            replica_name = self._metrics.metric_name("preferred-read-replica", GROUP, **_tags(partition))
            self._metrics.gauge(replica_name, lambda: -1 if (replica := self._replica_of(partition)) is None else replica)
            sensors = self._of_partition[partition] = (
                self._partition_sensor(partition, "records-lag", "max", Max(*window), self._lag_of),
                self._partition_sensor(partition, "records-lead", "min", Min(*window), self._lead_of),
            )
        return sensors

    def _partition_sensor(self, partition: TopicPartition, metric: str, extreme: str, stat: Stat, now: Distance) -> Sensor:
        metrics, sensor, tags = self._metrics, f"{partition}.{metric}", _tags(partition)
        metrics.gauge(metrics.metric_name(metric, GROUP, **tags), lambda: nan if (distance := now(partition)) is None else float(distance))
        metrics.add(sensor, metrics.metric_name(f"{metric}-avg", GROUP, **tags), Avg(metrics.samples, metrics.window_ms))
        metrics.add(sensor, metrics.metric_name(f"{metric}-{extreme}", GROUP, **tags), stat)
        return metrics.sensor(sensor)


class _TopicSensors:
    """The sensors of one topic."""

    def __init__(self, metrics: Metrics, topic: str) -> None:
        def name(metric: str) -> MetricName:
            return metrics.metric_name(metric, GROUP, topic=topic)

        self._names = tuple(f"topic.{topic}.{quantity}" for quantity in ("records", "bytes", "sizes", "per-request"))
        records, size, sizes, per_request = self._names
        self.records = metrics.meter(records, name("records-consumed-rate"), name("records-consumed-total"))
        self.bytes = metrics.meter(size, name("bytes-consumed-rate"), name("bytes-consumed-total"))
        self.sizes = metrics.average_and_max(sizes, name("fetch-size-avg"), name("fetch-size-max"))
        metrics.add(per_request, name("records-per-request-avg"), Avg(metrics.samples, metrics.window_ms))
        self.per_request = metrics.sensor(per_request)

    def remove(self, metrics: Metrics) -> None:
        for name in self._names:
            metrics.remove_sensor(name)


def _tags(partition: TopicPartition) -> dict[str, str]:
    return {"topic": partition.topic, "partition": str(partition.partition)}
