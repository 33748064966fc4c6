"""kafkajs, the JavaScript client, sends; it consumes in groups alone, so that another client reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker import TopicMaker
from tests.integration.clients.client import BEGINNING, ClientMaker, Refused
from tests.integration.clients.records import CODECS, MEGABYTE, START_MS, Record, samples


@pytest.mark.parametrize("codec", CODECS)
def test_what_kafkajs_sends_is_read_back_exactly(codec: str, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic = new_topic(f"kafkajs-{codec}", max_message_bytes=str(4 * MEGABYTE))
    # It keeps headers in an object: one name once, in any order it likes.
    sent = [replace(record, headers=tuple(sorted(dict(record.headers).items()))) for record in samples(nothing=False)]
    client_named("kafkajs").produce(topic, codec, sent)
    read = client_named("confluent").consume(topic, BEGINNING, len(sent))
    assert [replace(record, headers=tuple(sorted(record.headers))) for record in read] == sent


def test_kafkajs_hears_that_its_record_is_larger_than_the_topic_allows(client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic = new_topic("kafkajs-large", max_message_bytes="100000")
    with pytest.raises(Refused, match="larger than the max message size"):
        client_named("kafkajs").produce(topic, "none", [Record(0, START_MS, b"k", bytes(100_001))])
