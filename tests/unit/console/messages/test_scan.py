"""Scans of a real broker's topics: order, bounds, cursors, filters."""

import asyncio
import time
from dataclasses import replace

import pytest

from barnabas.client import Admin, AsyncConsumer, AsyncProducer, TopicPartition
from barnabas.client.admin import RecordsToDelete
from barnabas.client.producer.partitioners import partition_for_key
from barnabas.console.messages import scan
from barnabas.console.messages.browse import KeyIsMasked, MessageQuery, open_scan, read_offsets
from barnabas.console.messages.decoding import DecodedMessage, Decoder
from barnabas.console.messages.export import MessagesLeftOut, export_of, records_of
from barnabas.console.messages.filters import parse_filter
from barnabas.console.messages.masks import Masks, parse_masks
from barnabas.console.messages.rows import Row, row_of
from barnabas.console.messages.scan import Examiner
from barnabas.errors import UnknownTopicOrPartition
from barnabas.testing import EmbeddedBroker
from tests.unit.console.messages.reading import looked, number, produce, with_consumer
from tests.unit.console.messages.records import record

COUNT = 3000


@pytest.fixture(scope="module")
def now() -> int:
    return round(time.time() * 1000) - 10_000_000


@pytest.fixture(scope="module")
def numbers(broker: EmbeddedBroker, now: int) -> str:
    """COUNT messages with the values 0, 1, 2 …, a second apart, over three partitions; partition 2 has only each tenth."""
    topic = broker.create_topic("console-numbers", 3)
    places = [2 if value % 10 == 0 else value % 2 for value in range(COUNT)]
    produce(broker, topic, [(place, now + value * 1000, b"k%d" % (value % 50), b"%d" % value) for value, place in enumerate(places)])
    return topic


def test_the_newest_come_first_and_a_cursor_goes_on_until_nothing_is_left(broker: EmbeddedBroker, numbers: str) -> None:
    query, seen = MessageQuery(numbers), []
    for _ in range(COUNT // 700 + 1):
        values, cursor, _ = looked(broker, query, 700, make=number)
        seen += values
        query = replace(query, cursor=cursor)
    assert seen == list(reversed(range(COUNT)))
    assert cursor is None


def test_from_the_beginning(broker: EmbeddedBroker, numbers: str) -> None:
    first, cursor, _ = looked(broker, MessageQuery(numbers, start="beginning"), 1000, make=number)
    second, _, _ = looked(broker, MessageQuery(numbers, start="beginning", cursor=cursor), 1000, make=number)
    assert first + second == list(range(2000))


def test_by_time_and_by_offset(broker: EmbeddedBroker, numbers: str, now: int) -> None:
    assert looked(broker, MessageQuery(numbers, start="time", timestamp_ms=now + 1_500_500), 3, make=number)[0] == [1501, 1502, 1503]
    assert looked(broker, MessageQuery(numbers, start="time", timestamp_ms=now + 10**9), 3, make=number)[0] == []
    at_offset = MessageQuery(numbers, start="offset", offset=-2)
    assert looked(broker, at_offset, 10, make=number)[0] == [2980, 2990, 2996, 2997, 2998, 2999]
    of_partition = MessageQuery(numbers, start="offset", offset=100, partitions=frozenset((2,)))
    assert looked(broker, of_partition, 2, make=number)[0] == [1000, 1010]


def test_by_key_only_the_partition_of_the_key_is_read(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-keys", 8)
    at = round(time.time() * 1000)
    place = int(partition_for_key(b"k7", 8))
    elsewhere = (place + 1) % 8
    produce(broker, topic, [(place, at, b"k7", b"1"), (place, at, b"k8", b"2"), (elsewhere, at, b"k7", b"3"), (place, at, b"k7", b"4")])
    assert looked(broker, MessageQuery(topic, key=b"k7"), 10, make=number)[0] == [4, 1]
    assert looked(broker, MessageQuery(topic, key=b"k7", partitions=frozenset((elsewhere,))), 10, make=number)[0] == [3]
    with pytest.raises(KeyIsMasked):
        looked(broker, MessageQuery(topic, key=b"k7"), 10, make=number, masks=Masks(parse_masks([{"mask": "$", "part": "key"}])))


def test_a_filter_looks_through_everything_when_it_has_the_time(broker: EmbeddedBroker, numbers: str) -> None:
    query = MessageQuery(numbers, filter=parse_filter("text", "99"), value_reading="json")
    values, cursor, _ = looked(broker, query, 10_000, make=number)
    assert values == [value for value in reversed(range(COUNT)) if "99" in str(value)]
    assert cursor is None


def test_without_time_it_says_how_far_it_looked_and_goes_on_from_there(broker: EmbeddedBroker, numbers: str) -> None:
    query, looked_at, pages = MessageQuery(numbers, filter=parse_filter("expression", "offset == -1")), 0, 0
    while True:
        values, cursor, _ = looked(broker, query, 10, make=number, time_s=0.001)
        assert values == []
        pages += 1
        if cursor is None:
            break
        assert cursor.looked > looked_at
        looked_at = cursor.looked
        query = replace(query, cursor=cursor)
    assert pages > 1 and looked_at < COUNT


def test_gaps_of_a_transactional_topic_and_its_isolation(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-transactions")

    async def write() -> None:
        async with AsyncProducer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "console-test"}) as producer:
            await producer.init_transactions()
            for value in range(30):
                producer.begin_transaction()
                await producer.send_and_wait(topic, b"%d" % value)
                await (producer.commit_transaction() if value % 3 else producer.abort_transaction())

    asyncio.run(write())
    assert looked(broker, MessageQuery(topic), 100, make=number)[0] == list(reversed(range(30)))
    committed = looked(broker, MessageQuery(topic, isolation="read_committed"), 100, make=number)[0]
    assert committed == [value for value in reversed(range(30)) if value % 3]
    forwards = MessageQuery(topic, start="beginning", isolation="read_committed")
    assert looked(broker, forwards, 5, make=number)[0] == [1, 2, 4, 5, 7]


def test_deleted_messages_are_skipped(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-deleted")
    at = round(time.time() * 1000)
    produce(broker, topic, [(0, at, None, b"%d" % value) for value in range(100)])
    _, cursor, _ = looked(broker, MessageQuery(topic, start="beginning"), 10, make=number)
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_records({TopicPartition(topic, 0): RecordsToDelete.before_offset(60)}).all()
    assert looked(broker, MessageQuery(topic, start="beginning", cursor=cursor), 3, make=number)[0] == [60, 61, 62]
    assert looked(broker, MessageQuery(topic), 100, make=number)[0] == list(reversed(range(60, 100)))


def test_large_values_are_rows_of_a_small_size(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-large", max_message_bytes=3_000_000)
    at = round(time.time() * 1000)
    large = {"max.request.size": 3_000_000, "buffer.memory": 40_000_000}
    produce(broker, topic, [(0, at, None, b"x" * 2_500_000) for _ in range(12)] + [(0, at, b"k", None)], **large)
    sizes: list[int] = []

    def make(message: DecodedMessage) -> tuple[Row, int]:
        row, size = row_of(message)
        sizes.append(size)
        return row, size

    rows, _, _ = looked(broker, MessageQuery(topic), 20, make=make)
    assert [row.value.size for row in rows] == [-1, *[2_500_000] * 12]
    assert [row.value.form for row in rows] == ["null", *["text"] * 12]
    assert all(row.value.is_cut and len(row.value.text) == 500 for row in rows[1:]) and max(sizes) < 10_000


def test_an_empty_topic_and_one_that_is_not_there(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("console-empty", 2)
    assert looked(broker, MessageQuery(topic), 10, make=number) == ([], None, [])
    with pytest.raises(UnknownTopicOrPartition):
        looked(broker, MessageQuery("console-not-there"), 10, make=number)
    with pytest.raises(UnknownTopicOrPartition, match="no partition 9"):
        looked(broker, MessageQuery(topic, partitions=frozenset((9,))), 10, make=number)


def test_single_messages_are_read_by_their_places(broker: EmbeddedBroker, numbers: str) -> None:
    places = [(2, 5), (0, 0), (2, 0), (2, 10**9), (1, 700)]
    records = with_consumer(broker, MessageQuery(numbers), lambda consumer: read_offsets(consumer, numbers, places))
    assert {place: record.value for place, record in records.items()} == {(2, 5): b"50", (2, 0): b"0", (0, 0): b"2", (1, 700): b"1401"}


def test_the_messages_of_one_poll_have_a_bound_of_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "EXAMINE_S_MAX", 0.0)
    examiner: Examiner[int] = Examiner(Decoder("orders"), None, lambda message: (message.record.offset, 1))
    assert [found.item for found in examiner.examine([record(offset=offset) for offset in range(100)])] == [0]
    assert examiner.out_of_time == 99


def test_a_file_in_which_messages_would_be_missing_is_broken_off(
    broker: EmbeddedBroker, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "EXAMINE_S_MAX", 0.0)

    async def download(consumer: AsyncConsumer[bytes, bytes]) -> None:
        opened = await open_scan(consumer, MessageQuery(numbers), export_of, masks=Masks(()), registry=None)
        async for _ in records_of(opened, 1_000):
            pass

    with pytest.raises(MessagesLeftOut, match="took too long"):
        with_consumer(broker, MessageQuery(numbers), download)
