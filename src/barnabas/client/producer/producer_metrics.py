"""The metrics of a producer under Kafka's names: groups `producer-metrics` and `producer-topic-metrics`.

The sender reports batches, never records: numbers of records are taken from a batch's counts.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.client.metrics.metrics import Avg, CumulativeSum, Metrics, Rate, Sensor
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.buffer_pool import BufferPool

GROUP = "producer-metrics"
TOPIC_GROUP = "producer-topic-metrics"
_NS_PER_MS = 1_000_000


class ProducerMetrics:
    def __init__(self, metrics: Metrics, pool: BufferPool, in_flight: Callable[[], int], metadata_age_s: Callable[[], float]) -> None:
        self.metrics = metrics
        self._topics: dict[str, _TopicMetrics] = {}
        self.batch_size = self._average_and_max("batch-size", "bytes sent per partition per-request")
        self.compression = self._average("compression-rate", "compression rate of record batches")
        self.queue_time = self._average_and_max("record-queue-time", "time in ms record batches spent in the send buffer")
        self.request_latency = self._average_and_max("request-latency", "request latency in ms")
        self.throttle_time = self._average_and_max("produce-throttle-time", "time in ms a request was throttled by a broker")
        self.record_size = self._average_and_max("record-size", "record size")
        self.records_per_request = self._average("records-per-request", "number of records per request")
        self.sent = self._meter("record-send", "records sent")
        self.retried = self._meter("record-retry", "retried record sends")
        self.failed = self._meter("record-error", "record sends that resulted in errors")
        self.split = self._meter("batch-split", "batch splits")
        self.exhausted = self._meter("buffer-exhausted", "record sends that are dropped due to buffer exhaustion")
        self.wait_ratio = self._wait_ratio()
        self.times = {
            name: self._time(name)
            for name in (
                "flush",
                "txn-init",
                "txn-begin",
                "txn-send-offsets",
                "txn-commit",
                "txn-abort",
                "metadata-wait",
                "bufferpool-wait",
            )
        }
        self._gauge("requests-in-flight", "The current number of in-flight requests awaiting a response.", in_flight)
        self._gauge("metadata-age", "The age in seconds of the current producer metadata being used.", metadata_age_s)
        self._gauge("buffer-total-bytes", "The maximum amount of buffer memory the client can use.", lambda: pool.total)
        self._gauge("buffer-available-bytes", "The total amount of buffer memory that is not being used.", lambda: pool.available)
        self._gauge("waiting-threads", "The number of user threads blocked waiting for buffer memory.", lambda: pool.waiting)

    def request_sent(self, batches: list[ProducerBatch], now_ms: int) -> None:
        records = 0
        for batch in batches:
            records += int(batch.count)
            topic = self._topic(batch.topic_partition.topic)
            topic.records.record(int(batch.count), now_ms)
            topic.bytes.record(int(batch.size), now_ms)
            self.batch_size.record(int(batch.size), now_ms)
            self.queue_time.record(int(batch.drained_ms - batch.created_ms), now_ms)
            self.record_size.record(int(batch.max_record_size), now_ms)
            if batch.is_compressed:
                ratio = batch.compression_ratio()
                topic.compression.record(ratio, now_ms)
                self.compression.record(ratio, now_ms)
            else:
                topic.compression.record(1.0, now_ms)
                self.compression.record(1.0, now_ms)
        self.sent.record(records, now_ms)
        self.records_per_request.record(records, now_ms)

    def batch_retried(self, batch: ProducerBatch, now_ms: int) -> None:
        self.retried.record(int(batch.count), now_ms)
        self._topic(batch.topic_partition.topic).retries.record(int(batch.count), now_ms)

    def batch_failed(self, batch: ProducerBatch, now_ms: int) -> None:
        self.failed.record(int(batch.count), now_ms)
        self._topic(batch.topic_partition.topic).errors.record(int(batch.count), now_ms)

    def waited(self, call: str, milliseconds: int) -> None:
        """The time spent in a call that waits, such as `flush` or `txn-commit`."""
        self.times[call].record(milliseconds * _NS_PER_MS)
        if call == "bufferpool-wait":
            self.wait_ratio.record(milliseconds / 1000)

    def _topic(self, topic: str) -> _TopicMetrics:
        metrics = self._topics.get(topic)
        if metrics is None:
            metrics = self._topics[topic] = _TopicMetrics(self.metrics, topic)
        return metrics

    def _average_and_max(self, stem: str, quantity: str) -> Sensor:
        name = self.metrics.metric_name
        return self.metrics.average_and_max(
            f"producer.{stem}",
            name(f"{stem}-avg", GROUP, f"The average {quantity}."),
            name(f"{stem}-max", GROUP, f"The maximum {quantity}."),
        )

    def _average(self, stem: str, quantity: str) -> Sensor:
        return _average(self.metrics, f"producer.{stem}", f"{stem}-avg", GROUP, quantity)

    def _meter(self, stem: str, quantity: str) -> Sensor:
        name = self.metrics.metric_name
        return self.metrics.meter(
            f"producer.{stem}",
            name(f"{stem}-rate", GROUP, f"The average number of {quantity} per second."),
            name(f"{stem}-total", GROUP, f"The total number of {quantity}."),
        )

    def _time(self, stem: str) -> Sensor:
        sensor = f"producer.{stem}-time"
        name = self.metrics.metric_name(f"{stem}-time-ns-total", GROUP, f"Total time in nanoseconds producer has spent in {stem}.")
        self.metrics.add(sensor, name, CumulativeSum())
        return self.metrics.sensor(sensor)

    def _wait_ratio(self) -> Sensor:
        name = self.metrics.metric_name("bufferpool-wait-ratio", GROUP, "The fraction of time an appender waits for space allocation.")
        self.metrics.add("producer.bufferpool-wait-ratio", name, Rate(self.metrics.samples, self.metrics.window_ms))
        return self.metrics.sensor("producer.bufferpool-wait-ratio")

    def _gauge(self, name: str, description: str, measure: Callable[[], object]) -> None:
        self.metrics.gauge(self.metrics.metric_name(name, GROUP, description), measure)


class _TopicMetrics:
    def __init__(self, metrics: Metrics, topic: str) -> None:
        def meter(stem: str, quantity: str) -> Sensor:
            return metrics.meter(
                f"producer.topic.{topic}.{stem}",
                metrics.metric_name(f"{stem}-rate", TOPIC_GROUP, f"The average number of {quantity} per second for a topic.", topic=topic),
                metrics.metric_name(f"{stem}-total", TOPIC_GROUP, f"The total number of {quantity} for a topic.", topic=topic),
            )

        self.records = meter("record-send", "records sent")
        self.bytes = meter("byte", "bytes sent")
        self.retries = meter("record-retry", "retried record sends")
        self.errors = meter("record-error", "record sends that resulted in errors")
        quantity = "compression rate of record batches for a topic"
        self.compression = _average(metrics, f"producer.topic.{topic}.compression", "compression-rate", TOPIC_GROUP, quantity, topic=topic)


def _average(metrics: Metrics, sensor: str, name: str, group: str, quantity: str, **tags: str) -> Sensor:
    metrics.add(sensor, metrics.metric_name(name, group, f"The average {quantity}.", **tags), Avg(metrics.samples, metrics.window_ms))
    return metrics.sensor(sensor)
