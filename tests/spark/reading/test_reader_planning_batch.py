"""From where to where the tasks of a batch read, and what is refused before they begin: on both brokers, without a Spark."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client import Admin, TopicPartition
from barnabas.client.admin import RecordsToDelete
from pyspark_barnabas.errors import DataLossError, OptionError, UnknownTopicError
from tests.broker import TopicMaker
from tests.spark.reader_world import FIRST_MS, batch_reader, fill, offsets_read, planned


@pytest.fixture(scope="module")
def topic(bootstrap: str, new_topic: TopicMaker) -> str:
    """Partitions of 10, 0 and 4 records."""
    name = new_topic("planning", partitions=3)
    fill(bootstrap, name, (10, 0, 4))
    return name


@pytest.fixture(scope="module")
def cut_topic(bootstrap: str, new_topic: TopicMaker) -> str:
    """One partition with the offsets 3 to 10."""
    name = new_topic("cut", partitions=1)
    fill(bootstrap, name, (10,))
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_records({TopicPartition(name, 0): RecordsToDelete(3)}).all()
    return name


def json_of(topic: str, offsets: str) -> str:
    return f'{{"{topic}":{{{offsets}}}}}'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(0, 0, 10), (2, 0, 4)]),
        ({"startingOffsets": '"0":3,"1":-2,"2":0'}, [(0, 3, 10), (2, 0, 4)]),
        ({"endingOffsets": '"0":3,"1":-1,"2":-1'}, [(0, 0, 3), (2, 0, 4)]),
        ({"startingOffsets": '"0":3,"1":0,"2":2', "endingOffsets": '"0":4,"1":0,"2":2'}, [(0, 3, 4)]),
        ({"startingTimestamp": FIRST_MS + 2500, "startingOffsetsByTimestampStrategy": "latest"}, [(0, 3, 10), (2, 3, 4)]),
        ({"endingTimestamp": FIRST_MS + 2500}, [(0, 0, 3), (2, 0, 3)]),
        (
            {"startingOffsetsByTimestamp": f'"0":{FIRST_MS + 9000},"1":1,"2":1', "startingOffsetsByTimestampStrategy": "latest"},
            [(0, 9, 10), (2, 0, 4)],
        ),
        ({"endingOffsetsByTimestamp": f'"0":{FIRST_MS + 1000},"1":5,"2":{2**60}'}, [(0, 0, 1), (2, 0, 4)]),
        ({"minPartitions": 4}, [(0, 0, 3), (0, 3, 6), (0, 6, 10), (2, 0, 4)]),
        ({"maxRecordsPerPartition": 4}, [(0, 0, 3), (0, 3, 6), (0, 6, 10), (2, 0, 4)]),
        ({"filter": "partition = 2"}, [(2, 0, 4)]),
        ({"filter": "offset >= 2 and offset < 5"}, [(0, 2, 5), (2, 2, 4)]),
        ({"filter": f"timestamp >= {FIRST_MS + 3000}"}, [(0, 3, 10), (2, 3, 4)]),
        ({"filter": f"timestamp >= {FIRST_MS + 5000}"}, [(0, 5, 10)]),
        ({"filter": "topic = 'another'"}, []),
    ],
)
def test_ranges_follow_the_options(bootstrap: str, topic: str, options: dict[str, Any], expected: list[tuple[int, int, int]]) -> None:
    whole = {name: json_of(topic, value) if str(value).startswith('"') else value for name, value in options.items()}
    assert planned(bootstrap, {"subscribe": topic, **whole}) == expected


def test_topics_by_pattern_and_partitions_by_number(bootstrap: str, topic: str) -> None:
    assert planned(bootstrap, {"subscribePattern": f"^{topic}$"}) == [(0, 0, 10), (2, 0, 4)]
    assert planned(bootstrap, {"assign": f'{{"{topic}":[2,1]}}'}) == [(2, 0, 4)]
    assert planned(bootstrap, {"subscribePattern": "no-such-.*"}) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "no-such-topic"}, "Option 'subscribe': there is no topic no-such-topic on the cluster"),
        ({"assign": '{"TOPIC":[0,7]}'}, "Option 'assign': there is no partition TOPIC-7; topic TOPIC has 3 partitions"),
        (
            {"startingOffsets": '{"TOPIC":{"0":1}}'},
            "Option 'startingOffsets': must name all partitions that are read, but TOPIC-1, TOPIC-2",
        ),
        ({"endingOffsets": '{"TOPIC":{"0":1,"1":-1,"2":-1,"3":-1}}'}, "Option 'endingOffsets': names partitions .* do not exist: TOPIC-3"),
        ({"startingTimestamp": FIRST_MS}, "Option 'startingTimestamp': TOPIC-1 has no record at or after"),
        (
            {"startingOffsets": '{"TOPIC":{"0":11,"1":-2,"2":-2}}'},
            "Option 'startingOffsets': offset 11 of TOPIC-0 is out of range, the log has 0 to 10.*'failOnDataLoss'",
        ),
        ({"endingOffsets": '{"TOPIC":{"0":-1,"1":-1,"2":9}}'}, "Option 'endingOffsets': offset 9 of TOPIC-2 is out of range"),
        (
            {"startingTimestamp": FIRST_MS + 3000, "startingOffsetsByTimestampStrategy": "latest", "endingTimestamp": FIRST_MS},
            "Option 'endingTimestamp': TOPIC-0 would end at 0, before its start at 3 .'startingTimestamp'.",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(bootstrap: str, topic: str, options: dict[str, Any], message: str) -> None:
    whole = {name: str(value).replace("TOPIC", topic) for name, value in options.items()}
    with pytest.raises((OptionError, UnknownTopicError, DataLossError), match=message.replace("TOPIC", topic)):
        planned(bootstrap, whole if "subscribe" in whole or "assign" in whole else {"subscribe": topic, **whole})


def test_what_is_deleted_already_is_an_error_or_left_out(bootstrap: str, cut_topic: str) -> None:
    options = {"subscribe": cut_topic, "startingOffsets": json_of(cut_topic, '"0":1')}
    with pytest.raises(DataLossError, match=r"offset 1 of .* is out of range, the log has 3 to 10"):
        planned(bootstrap, options)
    assert planned(bootstrap, {**options, "failOnDataLoss": "false"}) == [(0, 3, 10)]
    assert planned(bootstrap, {"subscribe": cut_topic}) == [(0, 3, 10)]


def test_a_time_filter_is_exact_however_times_are_ordered(bootstrap: str, new_topic: TopicMaker) -> None:
    name = new_topic("disorder", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for time_ms in (1000, 5000, 2000, 9000, 3000, 500):
        producer.produce(name, b"v", timestamp=FIRST_MS + time_ms)
    assert producer.flush(30) == 0
    reader = batch_reader(bootstrap, {"subscribe": name, "filter": f"timestamp >= {FIRST_MS + 3000} and timestamp < {FIRST_MS + 9000}"})
    parts = reader.partitions()
    assert [(part.value.start, part.value.end) for part in parts] == [(1, 6)]
    assert offsets_read(reader, parts) == [(0, 1), (0, 4)]


@pytest.fixture
def open_transaction(bootstrap: str, new_topic: TopicMaker) -> Generator[str, None, None]:
    """A topic with two records, and two more of a transaction that is not decided."""
    name = new_topic("open", partitions=1)
    fill(bootstrap, name, (2,))
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(2):
        producer.produce(name, b"undecided")
    producer.flush(30)
    yield name
    producer.abort_transaction(30)


def test_undecided_records_are_not_read_unless_wanted(bootstrap: str, open_transaction: str) -> None:
    assert planned(bootstrap, {"subscribe": open_transaction}) == [(0, 0, 2)]
    assert planned(bootstrap, {"subscribe": open_transaction, "kafka.isolation.level": "read_uncommitted"}) == [(0, 0, 4)]


def test_ranges_know_the_id_of_their_topic(bootstrap: str, topic: str) -> None:
    part = batch_reader(bootstrap, {"subscribe": topic}).partitions()[0]
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert part.value.topic_id == str(admin.describe_topics([topic])[topic].topic_id)


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"kafka.bootstrap.servers": "nonsense"}, "kafka.bootstrap.servers"),
        ({"kafka.security.protocol": "CARRIER_PIGEON"}, "kafka.security.protocol"),
        ({"kafka.request.timeout.ms": "soon"}, "kafka.request.timeout.ms"),
    ],
)
def test_a_wrong_setting_of_the_client_names_its_option(bootstrap: str, settings: dict[str, str], option: str) -> None:
    with pytest.raises(OptionError) as caught:
        planned(bootstrap, {"subscribe": "t", **settings})
    assert caught.value.option == option
