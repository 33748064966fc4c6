# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's BrokerTopicMetrics: the traffic of each topic of which this broker has a replica, and of all topics.

An event increments the counter of its topic only. The counters of all topics are the sum of these, of the topics that are gone, and of
events without a topic here, such as a fetch of an unknown one. So no client can make a counter by making up a name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from barnabas.metrics.histogram import Histogram

# The attributes of TopicMetrics that Kafka has for each topic and for all. The others exist for all topics only.
OF_TOPICS: Final = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "failed_produces",
    "failed_fetches",
    "total_produces",
    "total_fetches",
    "produce_conversions",
    "fetch_conversions",
)
OF_ALL: Final = (
    *OF_TOPICS,
    "replication_bytes_in",
    "replication_bytes_out",
    "reassignment_bytes_in",
    "reassignment_bytes_out",
    "no_key_records",
    "invalid_magic_records",
    "invalid_crc_records",
    "invalid_sequence_records",
)


class TopicMetrics:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetch_conversions",
        "invalid_crc_records",
        "invalid_magic_records",
        "invalid_sequence_records",
        "messages_in",
        "no_key_records",
        "produce_conversions",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replicas",
        "replication_bytes_in",
        "replication_bytes_out",
        "total_fetches",
        "total_produces",
    )

    def __init__(self) -> None:
        self.replicas = 0  # of this topic on this broker
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0  # to consumers
        self.bytes_rejected = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.total_produces = 0
        self.total_fetches = 0
        self.produce_conversions = 0
        self.fetch_conversions = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        self.no_key_records = 0
        self.invalid_magic_records = 0
        self.invalid_crc_records = 0
        self.invalid_sequence_records = 0

    def add(self, other: TopicMetrics) -> None:
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.bytes_rejected += other.bytes_rejected
        self.failed_produces += other.failed_produces
        self.failed_fetches += other.failed_fetches
        self.total_produces += other.total_produces
        self.total_fetches += other.total_fetches
        self.produce_conversions += other.produce_conversions
        self.fetch_conversions += other.fetch_conversions
        self.replication_bytes_in += other.replication_bytes_in
        self.replication_bytes_out += other.replication_bytes_out
        self.reassignment_bytes_in += other.reassignment_bytes_in
        self.reassignment_bytes_out += other.reassignment_bytes_out
        self.no_key_records += other.no_key_records
        self.invalid_magic_records += other.invalid_magic_records
        self.invalid_crc_records += other.invalid_crc_records
        self.invalid_sequence_records += other.invalid_sequence_records


class Conversions:
    """Times in microseconds and temporary bytes of the requests of one API whose records were converted or compressed anew."""

    __slots__ = ("temporary_bytes", "us")

    def __init__(self) -> None:
        self.us = Histogram()
        self.temporary_bytes = Histogram()

    def record(self, took_ns: i64, temporary_bytes: i64) -> None:
        self.us.record(took_ns // 1000)
        self.temporary_bytes.record(temporary_bytes)

    def rotate(self) -> None:
        self.us.rotate()
        self.temporary_bytes.rotate()


class BrokerTopicMetrics:
    """`elsewhere` counts what belongs to no topic with a replica here. A topic is forgotten with its last replica."""

    def __init__(self) -> None:
        self.converted_produces = Conversions()
        self.converted_fetches = Conversions()
        self.elsewhere = TopicMetrics()
        self._gone = TopicMetrics()
        self._topics: dict[str, TopicMetrics] = {}

    def replica_added(self, topic: str) -> TopicMetrics:
        """The counters of a topic, for a new replica of it."""
        metrics = self._topics.get(topic)
        if metrics is None:
            metrics = self._topics[topic] = TopicMetrics()
        metrics.replicas += 1
        return metrics

    def replica_removed(self, topic: str) -> None:
        metrics = self._topics.get(topic)
        if metrics is None:
            return
        metrics.replicas -= 1
        if metrics.replicas == 0:
            del self._topics[topic]
            self._gone.add(metrics)

    def topics(self) -> list[tuple[str, TopicMetrics]]:
        return list(self._topics.items())

    def total(self, value: Callable[[TopicMetrics], int]) -> int:
        """The sum of one counter over everything."""
        return value(self._gone) + value(self.elsewhere) + sum([value(metrics) for metrics in self._topics.values()])

    def all_topics(self) -> TopicMetrics:
        """The sum of everything."""
        total = TopicMetrics()
        total.add(self._gone)
        total.add(self.elsewhere)
        for metrics in self._topics.values():
            total.add(metrics)
        return total


def value_of(name: str) -> Callable[[TopicMetrics], int]:
    """A function that reads one counter."""

    def read(metrics: TopicMetrics) -> int:
        value: int = getattr(metrics, name)
        return value

    return read
