"""The metrics of traffic by topic: kafka.server BrokerTopicMetrics. The series without a topic is that of all topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.broker.exposition.observed import Observed
from barnabas.broker.metrics.topic_metrics import OF_TOPICS, TopicMetrics, value_of
from barnabas.metrics.registry import Family, Kind, Series

# Kafka's name, the attribute of TopicMetrics, and the meaning.
_METERS: Final = (
    ("MessagesInPerSec", "messages_in", "Records appended by producers and coordinators."),
    ("BytesInPerSec", "bytes_in", "Bytes of records appended by producers and coordinators, as they were received."),
    ("BytesOutPerSec", "bytes_out", "Bytes of records sent to consumers."),
    ("BytesRejectedPerSec", "bytes_rejected", "Bytes of batches that were larger than max.message.bytes."),
    ("TotalProduceRequestsPerSec", "total_produces", "Appends of producers and coordinators, one for each partition of a request."),
    ("FailedProduceRequestsPerSec", "failed_produces", "Appends that failed unexpectedly."),
    ("TotalFetchRequestsPerSec", "total_fetches", "Reads of consumers and followers, one for each partition and each look at its log."),
    ("FailedFetchRequestsPerSec", "failed_fetches", "Reads that failed unexpectedly."),
    ("ProduceMessageConversionsPerSec", "produce_conversions", "Records of producers that were converted to another format."),
    ("FetchMessageConversionsPerSec", "fetch_conversions", "Records that were converted for consumers with an older format."),
    ("ReplicationBytesInPerSec", "replication_bytes_in", "Bytes fetched from leaders by the followers on this broker."),
    ("ReplicationBytesOutPerSec", "replication_bytes_out", "Bytes sent to followers."),
    ("ReassignmentBytesInPerSec", "reassignment_bytes_in", "Bytes fetched by replicas that a reassignment adds here."),
    ("ReassignmentBytesOutPerSec", "reassignment_bytes_out", "Bytes sent to replicas that a reassignment adds."),
    ("NoKeyCompactedTopicRecordsPerSec", "no_key_records", "Records without a key, of producers of compacted topics."),
    ("InvalidMagicNumberRecordsPerSec", "invalid_magic_records", "Batches of producers with several formats in one request."),
    ("InvalidMessageCrcRecordsPerSec", "invalid_crc_records", "Batches of producers whose checksum was wrong."),
    (
        "InvalidOffsetOrSequenceRecordsPerSec",
        "invalid_sequence_records",
        "Batches of producers whose offsets do not fit their number of records, or whose sequence number is negative.",
    ),
)


def topic_families(observed: Observed) -> list[Family]:
    return [
        Family(
            "kafka.server",
            "BrokerTopicMetrics",
            name,
            Kind.METER,
            meaning,
            _reader(observed, attribute),
            ("topic",) if attribute in OF_TOPICS else (),
        )
        for name, attribute, meaning in _METERS
    ]


def _reader(observed: Observed, attribute: str) -> Callable[[], Iterator[Series]]:
    value, is_of_topics = value_of(attribute), attribute in OF_TOPICS

    def read() -> Iterator[Series]:
        counters = observed.broker.replica_manager.host.topic_metrics
        yield (("",) if is_of_topics else ()), counters.total(value)
        if is_of_topics:
            yield from _of_each(counters.topics(), value)

    return read


def _of_each(topics: list[tuple[str, TopicMetrics]], value: Callable[[TopicMetrics], int]) -> Iterator[Series]:
    for topic, metrics in topics:
        yield (topic,), value(metrics)
