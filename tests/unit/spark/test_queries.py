"""What queries publish about themselves: records, and a publisher that no query can notice."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any, cast

import jsonschema
import pytest

from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.connections import Client
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.queries import publisher as publisher_module
from pyspark_barnabas.queries import task_reports
from pyspark_barnabas.queries.batch_note import BATCHES_MAX, TOPICS_MAX, BatchHistory
from pyspark_barnabas.queries.identity import BATCH, DESCRIPTION, QUERY, RUN, QueryIdentity, identity_of
from pyspark_barnabas.queries.publisher import KEYS_MAX, REFUSED_PAUSE_MS, Publisher
from pyspark_barnabas.queries.query_record import Record, read_record, sink_record, source_record
from pyspark_barnabas.read.ranges import OffsetRange, RangePartition
from pyspark_barnabas.read.read_options import ReadOptions
from pyspark_barnabas.subscription import QUERIES_TOPIC, Subscription
from pyspark_barnabas.write.write_options import WriteOptions
from tests.documentation import ROOT

PAGE = ROOT / "docs" / "spark" / "queries.md"
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDENTITY = QueryIdentity("q-1", "run-1", "bills", 7)
SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


class Properties:
    """A task with these local properties."""

    def __init__(self, **properties: str) -> None:
        self._properties = properties

    def getLocalProperty(self, key: str) -> str | None:
        return self._properties.get(key)


def test_a_note_has_the_sums_of_each_topic_with_the_largest_first() -> None:
    note = BatchHistory("key", "subscribe a, b").begins({A0: 1, A1: 2, B0: 0}, {A0: 4, A1: 2, B0: 50}, {A0: 9, A1: 3, B0: 50}, 2.5)
    assert [(one.name, one.partitions, one.start, one.end, one.latest) for one in note.topics] == [("b", 1, 0, 50, 50), ("a", 2, 3, 6, 12)]
    assert (note.rows, note.arrived_per_s, note.batches) == (53, 2.5, ())


def test_a_batch_ends_when_spark_plans_again_and_is_in_the_notes_that_follow() -> None:
    history = BatchHistory("key", "subscribe a")
    first = history.begins({A0: 0}, {A0: 10}, None, None)
    history.ended()
    history.ended()
    second = history.begins({A0: 10}, {A0: 15}, None, None)
    assert [(one.planned_ms, one.rows) for one in second.batches] == [(first.planned_ms, 10)]
    for start in range(3 * BATCHES_MAX):
        last = history.begins({A0: start}, {A0: start + 1}, None, None)
    assert len(last.batches) == BATCHES_MAX


def test_a_note_names_a_bounded_number_of_topics_but_counts_all_rows() -> None:
    partitions = [TopicPartition(f"t{number}", 0) for number in range(3 * TOPICS_MAX)]
    note = BatchHistory("key", "all").begins(dict.fromkeys(partitions, 0), dict.fromkeys(partitions, 2), None, None)
    assert (len(note.topics), note.topics_left_out, note.rows) == (TOPICS_MAX, 2 * TOPICS_MAX, 6 * TOPICS_MAX)


def test_a_range_takes_its_note_to_the_task() -> None:
    note = BatchHistory("key", "subscribe a").begins({A0: 0}, {A0: 1}, None, None)
    partition = pickle.loads(pickle.dumps(RangePartition(OffsetRange("a", 0, 0, 1), "key", note)))
    assert (partition.note, partition.source_key, partition.range.end) == (note, "key", 1)


def test_a_task_has_the_name_id_and_run_of_its_query() -> None:
    description = "bills\nid = q-1\nrunId = run-1\nbatch = 7"
    task = Properties(**{QUERY: "q-1", BATCH: "7", RUN: "run-1", DESCRIPTION: description})
    assert identity_of(task) == IDENTITY


@pytest.mark.parametrize("description", ["\nid = q-1\nrunId = r", "my own words", ""])
def test_a_query_without_a_name_has_none(description: str) -> None:
    identity = identity_of(Properties(**{QUERY: "q-1", BATCH: "7", DESCRIPTION: description}))
    assert identity is not None
    assert identity.name is None


def test_outside_of_a_micro_batch_there_is_no_identity() -> None:
    assert identity_of(None) is identity_of(Properties()) is identity_of(Properties(**{QUERY: "q"})) is None


def test_each_source_and_sink_of_a_query_has_one_key_that_outlives_the_run() -> None:
    note = BatchHistory("s1", "subscribe a").begins({A0: 0}, {A0: 1}, {A0: 5}, 1.0)
    restarted = QueryIdentity("q-1", "run-2", "bills", 8)
    keys = [source_record(IDENTITY, note)[0], read_record(IDENTITY, "s1", 5)[0], sink_record(IDENTITY, "k1", [], True, 1, 2)[0]]
    assert keys == ["q-1/source/s1", "q-1/read/s1", "q-1/sink/k1"]
    assert source_record(restarted, note)[0] == keys[0]


def test_the_records_have_the_fields_of_the_documented_schema() -> None:
    history = BatchHistory("s1", "subscribe a")
    history.begins({A0: 0}, {A0: 1}, {A0: 5}, 1.0)
    documents = [
        json.loads(record[1])
        for record in (
            source_record(IDENTITY, history.begins({A0: 1}, {A0: 2}, {A0: 5}, 1.0)),
            read_record(IDENTITY, "s1", 5),
            sink_record(IDENTITY, "k1", ["x"], True, 1, 2),
        )
    ]
    schema = json.loads(PAGE.read_text().split("```json\n")[-1].split("```")[0])
    jsonschema.Draft202012Validator.check_schema(schema)
    for document in documents:
        jsonschema.validate(document, schema)
        properties = schema["oneOf"][["source", "read", "sink"].index(document["kind"])]["properties"]
        assert set(document) == set(schema["properties"]) | set(properties)


class Loop:
    """A client whose loop is that of the test."""

    def __init__(self) -> None:
        self.clock = self
        self.now = 0

    def monotonic_ms(self) -> int:
        return self.now

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        asyncio.get_running_loop().call_soon(callback, *arguments)


def published(records: Sequence[Record], *errors: Exception) -> tuple[list[list[Record]], Publisher, Loop]:
    """What is sent of records that are published at once; the first sends fail with these errors."""
    sent: list[list[Record]] = []
    failures = list(errors)

    async def send(several: Sequence[Record]) -> None:
        if failures:
            raise failures.pop(0)
        sent.append(list(several))

    async def run() -> tuple[Publisher, Loop]:
        loop = Loop()
        one = Publisher(cast(Client, loop), send)
        for record in records:
            one.publish(record)
        while one._task is None:
            await asyncio.sleep(0)
        await one._task
        return one, loop

    one, loop = asyncio.run(run())
    return sent, one, loop


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "PAUSE_S", 0)
    monkeypatch.setattr(publisher_module, "RETRY_S", 0)


def test_of_records_with_one_key_only_the_newest_is_sent() -> None:
    sent, _, _ = published([("a", b"1"), ("b", b"1"), ("a", b"2")])
    assert sent == [[("a", b"2"), ("b", b"1")]]


def test_the_keys_that_wait_are_bounded() -> None:
    sent, _, _ = published([(str(number), b"") for number in range(3 * KEYS_MAX)])
    assert len(sent[0]) == KEYS_MAX


def test_a_topic_that_is_being_created_is_waited_for() -> None:
    sent, _, _ = published([("a", b"1")], error_for(ErrorCode.LEADER_NOT_AVAILABLE), error_for(ErrorCode.LEADER_NOT_AVAILABLE))
    assert sent == [[("a", b"1")]]


@pytest.mark.parametrize("error", [error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED), ValueError("a mistake of ours")])
def test_a_cluster_that_refuses_is_left_alone(error: Exception) -> None:
    sent, one, loop = published([("a", b"1")], error)
    assert sent == []
    loop.now = REFUSED_PAUSE_MS - 1
    one._take(("a", b"2"))
    assert one._waiting == {}


def test_a_task_without_a_query_publishes_nothing_and_a_client_that_cannot_start_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no client")

    monkeypatch.setattr("pyspark_barnabas.connections._cache.acquire", broken)
    options = WriteOptions.of({**SERVERS, "topic": "t"}, streaming=True)
    task_reports.wrote(options, ["t"], 0)
    monkeypatch.setattr(task_reports, "identity_of", lambda _: IDENTITY)
    task_reports.wrote(options, ["t"], 0)


def test_it_is_on_for_streams_and_can_be_turned_off() -> None:
    options = {**SERVERS, "subscribe": "a"}
    assert ReadOptions.of(options, streaming=True).publish
    assert not ReadOptions.of(options, streaming=False).publish
    assert not ReadOptions.of({**options, "publishProgress": "false"}, streaming=True).publish
    assert not WriteOptions.of({**SERVERS, "topic": "t", "publishProgress": "false"}, streaming=True).publish
    with pytest.raises(OptionError, match="publishProgress"):
        ReadOptions.of({**options, "publishProgress": "perhaps"}, streaming=False)


def test_a_query_does_not_follow_its_own_progress() -> None:
    assert Subscription(pattern=".*").chosen([QUERIES_TOPIC, "orders"]) == ["orders"]
    assert not Subscription(pattern=".*").includes(TopicPartition(QUERIES_TOPIC, 0))
    assert not ReadOptions.of({**SERVERS, "subscribe": QUERIES_TOPIC}, streaming=True).publish
