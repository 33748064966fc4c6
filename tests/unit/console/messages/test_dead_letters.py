"""Dead letters: grouped by reason, and sent back once."""

import asyncio
import time

import pytest

from barnabas.client import AsyncConsumer, AsyncProducer
from barnabas.console.messages.browse import MessageQuery
from barnabas.console.messages.dead_letters import (
    SENT_AGAIN,
    LetterFilter,
    LetterNotSent,
    LetterOutcome,
    SentLetters,
    by_reason,
    letter_of,
    parse_places,
    send_again,
)
from barnabas.console.messages.decoding import DecodedMessage, RawRecord
from barnabas.console.messages.scan import SCAN_SETTINGS
from barnabas.testing import EmbeddedBroker
from tests.unit.console.messages.reading import looked
from tests.unit.console.messages.records import message

AT = round(time.time() * 1000) - 60_000


def headers(topic: str, reason: str = "a: it is a text", partition: str = "1") -> list[tuple[str, bytes | None]]:
    facts = {"message": reason, "format": "json", "topic": topic, "partition": partition, "offset": "17"}
    return [("own", b"x"), *((f"__barnabas.errors.{name}", fact.encode()) for name, fact in facts.items())]


def test_reasons_that_differ_only_in_numbers_and_quotes_are_one() -> None:
    texts = ["at character 5: 'x'", "at character 77: 'y'", "it has 3 columns, not 2", "at character 9: ''"]
    letters = [letter_of(message(headers=tuple(headers("orders", text))))[0] for text in texts]
    reasons = by_reason(letters)
    assert [(reason.text, reason.count) for reason in reasons] == [("at character #: '…'", 3), ("it has 3 columns, not 2", 1)]
    assert (letters[0].topic, letters[0].partition, letters[0].offset) == ("orders", 1, 17)


@pytest.mark.parametrize("texts", [[], ["0"], ["a:b"], ["0:-1"], ["0:1;drop"], ["0:1"] * 3 + [f"0:{n}" for n in range(2000)]])
def test_places_that_no_form_has_are_refused(texts: list[str]) -> None:
    with pytest.raises(LetterNotSent):
        parse_places(texts)


def sent_back(
    broker: EmbeddedBroker, topic: str, places: list[tuple[int, int]], sent: SentLetters, *, repeat: bool = False
) -> list[LetterOutcome]:
    async def send() -> list[LetterOutcome]:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        async with AsyncConsumer({**settings, **SCAN_SETTINGS}) as consumer, AsyncProducer(settings) as producer:
            return await send_again(consumer, producer, topic, places, sent, "local", repeat=repeat)

    return asyncio.run(send())


def records(broker: EmbeddedBroker, topic: str) -> list[RawRecord]:
    def make(one: DecodedMessage) -> tuple[RawRecord, int]:
        return one.record, 1

    return looked(broker, MessageQuery(topic, start="beginning"), 100, make=make)[0]


def test_a_letter_goes_back_once_with_its_own_key_value_time_and_headers(broker: EmbeddedBroker) -> None:
    origin, dead = broker.create_topic("console-origin", 2), broker.create_topic("console-dead")

    async def write() -> None:
        async with AsyncProducer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            await producer.send(dead, b"bad", b"k", timestamp=AT, headers=headers(origin))
            await producer.send(dead, b"no letter", b"k", timestamp=AT)
            await producer.send(dead, None, None, timestamp=AT, headers=headers(origin, partition="9"))
            await producer.send(dead, b"forged", None, timestamp=AT, headers=headers("__consumer_offsets"))
            await producer.send(dead, b"lost", None, timestamp=AT, headers=headers("console-no-such-topic"))
            await producer.send(dead, b"own", None, timestamp=AT, headers=headers(dead))

    asyncio.run(write())
    letters, _, _ = looked(broker, MessageQuery(dead, filter=LetterFilter()), 100, make=letter_of)
    assert sorted(letter.place for letter in letters) == ["0:0", "0:2", "0:3", "0:4", "0:5"]

    sent = SentLetters()
    places = [(0, offset) for offset in range(7)]
    outcomes = sent_back(broker, dead, places, sent)
    assert [outcome.problem.split(":")[0].split(" ")[0] for outcome in outcomes] == [
        "",
        "it",
        "",
        "__consumer_offsets",
        "console-no-such-topic",
        "it",
        "it",
    ]
    assert "no longer" in outcomes[6].problem

    back = {record.value: record for record in records(broker, origin)}
    assert set(back) == {b"bad", None}
    letter = back[b"bad"]
    assert (letter.partition, letter.key, letter.timestamp) == (1, b"k", AT)
    assert letter.headers == (("own", b"x"), (SENT_AGAIN, f"{dead}-0@0".encode()))

    again = sent_back(broker, dead, [(0, 0)], sent)
    assert "already sent" in again[0].problem and len(records(broker, origin)) == 2
    assert sent_back(broker, dead, [(0, 0)], sent, repeat=True)[0].problem == "" and len(records(broker, origin)) == 3
