"""kcat against the broker: it reads what others wrote from anywhere, and others read what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker import TopicMaker
from tests.integration.clients.client import BEGINNING, ClientMaker, Refused
from tests.integration.clients.kcat import Kcat
from tests.integration.clients.records import CODECS, MEGABYTE, START_MS, STEP_MS, Record, text_samples, without_timestamps

LARGE = {"max_message_bytes": str(2 * MEGABYTE)}


@pytest.fixture
def kcat(bootstrap: str, tmp_path: Path) -> Kcat:
    return Kcat(bootstrap, tmp_path)


@pytest.mark.parametrize("codec", CODECS)
def test_what_kcat_sends_is_read_back_exactly(codec: str, kcat: Kcat, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic, sent = new_topic(f"kcat-{codec}", **LARGE), text_samples()
    for record in sent:
        kcat.produce(topic, codec, record)
    assert without_timestamps(kcat.consume(topic, BEGINNING, len(sent))) == without_timestamps(sent)
    assert without_timestamps(client_named("confluent").consume(topic, BEGINNING, len(sent))) == without_timestamps(sent)


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_reads_exactly_what_another_sent(codec: str, kcat: Kcat, client_named: ClientMaker, new_topic: TopicMaker) -> None:
    topic, sent = new_topic(f"kcat-reads-{codec}", **LARGE), text_samples()
    client_named("confluent").produce(topic, codec, sent)
    assert kcat.consume(topic, BEGINNING, len(sent)) == sent


@pytest.mark.parametrize("start", ["offset:3", f"time:{START_MS + 3 * STEP_MS}", f"time:{START_MS + 3 * STEP_MS - 1}"])
def test_kcat_reads_on_from_an_offset_and_from_a_timestamp(
    start: str, kcat: Kcat, client_named: ClientMaker, new_topic: TopicMaker
) -> None:
    topic, sent = new_topic("kcat-start", **LARGE), text_samples()
    client_named("confluent").produce(topic, "lz4", sent)
    assert kcat.consume(topic, start, len(sent) - 3) == sent[3:]


def test_kcat_hears_that_its_record_is_larger_than_the_topic_allows(kcat: Kcat, new_topic: TopicMaker) -> None:
    topic = new_topic("kcat-large", max_message_bytes="100000")
    with pytest.raises(Refused, match="Message size too large"):
        kcat.produce(topic, "none", Record(0, START_MS, b"k", bytes(100_001)))
