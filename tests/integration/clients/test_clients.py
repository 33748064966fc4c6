"""Today's clients against the broker: whatever one of them sends, with whatever codec, it and every other reads back exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker import TopicMaker
from tests.integration.clients.client import BEGINNING, ClientMaker, Refused
from tests.integration.clients.records import CODECS, MEGABYTE, START_MS, STEP_MS, Record, samples

CLIENTS = ["confluent", "kafka_python", "aiokafka", "java-4.2.0", "java-2.8.2"]
LARGE = {"max_message_bytes": str(2 * MEGABYTE)}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_back_exactly_what_it_sent(name: str, codec: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    client, topic = client_named(name), new_topic(f"{name}-{codec}", **LARGE)
    sent = samples(client.sends_nothing)
    client.produce(topic, codec, sent)
    assert client.consume(topic, BEGINNING, len(sent)) == sent


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_on_from_an_offset_in_the_middle_of_a_batch(name: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    client, topic = client_named(name), new_topic(f"{name}-offset", **LARGE)
    sent = samples(client.sends_nothing)
    client.produce(topic, "gzip", sent)
    assert client.consume(topic, "offset:150", len(sent) - 150) == sent[150:]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_on_from_a_timestamp(name: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    client, topic = client_named(name), new_topic(f"{name}-time", **LARGE)
    sent = samples(client.sends_nothing)
    client.produce(topic, "none", sent)
    between = START_MS + 120 * STEP_MS - STEP_MS // 2
    assert client.consume(topic, f"time:{between}", len(sent) - 120) == sent[120:]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_hears_that_its_record_is_larger_than_the_topic_allows(
    name: str, client_named: ClientMaker, new_topic: TopicMaker
) -> None:
    client, topic = client_named(name), new_topic(f"{name}-large", max_message_bytes="100000")
    fits, does_not = (Record(0, START_MS, b"k", bytes(size)) for size in (99_000, 100_001))
    client.produce(topic, "none", [fits])
    with pytest.raises(Refused, match=r"(?i)too.?large"):
        client.produce(topic, "none", [does_not])
    assert client.consume(topic, BEGINNING, 1) == [fits]


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_client_reads_what_all_the_others_sent(reader: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic = new_topic(f"{reader}-reads-all", **LARGE)
    expected: list[Record] = []
    for writer, codec in zip(CLIENTS, CODECS, strict=True):
        client = client_named(writer)
        sent = samples(client.sends_nothing)[:20]
        client.produce(topic, codec, sent)
        expected += [replace(one, offset=len(expected) + one.offset) for one in sent]
    assert client_named(reader).consume(topic, BEGINNING, len(expected)) == expected
