"""Clients from the days of Kafka 0.8 to 0.10 against the broker: they write message formats v0 and v1, and are given what they can read.

kafka-python 1.4 speaks as a client of the version it is told; kafka-clients 0.9.0.1 is a real one of that age. No headers then, no
timestamps before 0.10, no zstd, and no way to ask for a time before 0.10.1.
"""

from __future__ import annotations

import pytest

from tests.broker import TopicMaker
from tests.integration.clients.client import BEGINNING, ClientMaker, Refused
from tests.integration.clients.records import MEGABYTE, START_MS, STEP_MS, Record, samples, without_headers, without_timestamps

WITHOUT_STAMPS = ["old_kafka_python-0.8.2", "old_kafka_python-0.9", "java-0.9.0.1"]
WITH_STAMPS = ["old_kafka_python-0.10.0", "old_kafka_python-0.10.1"]
OLD = WITHOUT_STAMPS + WITH_STAMPS
LARGE = {"max_message_bytes": str(2 * MEGABYTE)}


def codecs_of(name: str) -> list[str]:
    """0.8.2 knew lz4, but with a checksum that no other client computes: kafka-python refuses to write it for that age."""
    return ["none", "gzip", "snappy"] if name.endswith("0.8.2") else ["none", "gzip", "snappy", "lz4"]


EVERY_CODEC = [(name, codec) for name in OLD for codec in codecs_of(name)]


def known_to(name: str, records: list[Record]) -> list[Record]:
    plain = without_headers(records)
    return plain if name in WITH_STAMPS else without_timestamps(plain)


@pytest.mark.parametrize(("name", "codec"), EVERY_CODEC)
def test_an_old_client_reads_back_exactly_what_it_sent(name: str, codec: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    client, topic = client_named(name), new_topic(f"{name}-{codec}", **LARGE)
    sent = known_to(name, samples(nothing=False))
    client.produce(topic, codec, sent)
    assert client.consume(topic, BEGINNING, len(sent)) == sent


@pytest.mark.parametrize(("name", "codec"), EVERY_CODEC)
def test_an_old_client_reads_what_a_new_one_sent(name: str, codec: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic, sent = new_topic(f"{name}-reads-{codec}", **LARGE), samples()
    client_named("confluent").produce(topic, codec, sent)
    assert client_named(name).consume(topic, BEGINNING, len(sent)) == known_to(name, sent)


@pytest.mark.parametrize(("name", "codec"), EVERY_CODEC)
def test_a_new_client_reads_what_an_old_one_sent(name: str, codec: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic, sent = new_topic(f"{name}-sends-{codec}", **LARGE), known_to(name, samples(nothing=False))
    client_named(name).produce(topic, codec, sent)
    assert client_named("confluent").consume(topic, BEGINNING, len(sent)) == sent


@pytest.mark.parametrize("name", OLD)
def test_an_old_client_reads_on_from_an_offset_in_the_middle_of_a_batch(
    name: str, client_named: ClientMaker, new_topic: TopicMaker
) -> None:
    topic, sent = new_topic(f"{name}-offset", **LARGE), samples()
    client_named("confluent").produce(topic, "gzip", sent)
    assert client_named(name).consume(topic, "offset:150", len(sent) - 150) == known_to(name, sent[150:])


def test_a_client_of_0_10_1_reads_on_from_a_timestamp(client_named: ClientMaker, new_topic: TopicMaker) -> None:
    name = "old_kafka_python-0.10.1"
    topic, sent = new_topic(f"{name}-time", **LARGE), known_to(name, samples(nothing=False))
    client_named(name).produce(topic, "none", sent)
    between = START_MS + 120 * STEP_MS - STEP_MS // 2
    assert client_named(name).consume(topic, f"time:{between}", len(sent) - 120) == sent[120:]


@pytest.mark.parametrize("name", OLD)
def test_an_old_client_hears_that_its_record_is_larger_than_the_topic_allows(
    name: str, client_named: ClientMaker, new_topic: TopicMaker
) -> None:
    topic = new_topic(f"{name}-large", max_message_bytes="100000")
    with pytest.raises(Refused, match=r"(?i)too.?large|larger than the max"):
        client_named(name).produce(topic, "none", [Record(0, START_MS, b"k", bytes(100_001))])
