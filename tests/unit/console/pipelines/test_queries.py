"""Queries from what they publish, and their drawing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.pipelines import queries_reader
from barnabas.console.pipelines.drawing import TOPICS_DRAWN, drawing_of
from barnabas.console.pipelines.queries import BATCHES_MAX, QUERIES_MAX, Queries, StreamingQuery
from pyspark_barnabas.queries.batch_note import BatchNote, PastBatch, TopicSpan
from pyspark_barnabas.queries.identity import QueryIdentity
from pyspark_barnabas.queries.query_record import Record, read_record, sink_record, source_record
from pyspark_barnabas.subscription import QUERIES_TOPIC

PLANNED = 1_700_000_000_000


def identity(batch: int, run: str = "run-1") -> QueryIdentity:
    return QueryIdentity("q-1", run, "billing", batch)


def began(batch: int, *, rows: int = 100, past: int = 0, name: str = "orders", key: str = "s") -> Record:
    at = PLANNED + batch * 10_000
    batches = tuple(PastBatch(at - (number + 1) * 10_000, rows, 10_000) for number in range(past))
    topic = TopicSpan(name, 2, batch * rows, batch * rows + rows, None)
    return source_record(identity(batch), BatchNote(key, f"subscribe {name}", at, (topic,), 0, rows, None, batches))


def wrote(batch: int, *topics: str, after_ms: int = 700, key: str = "k") -> Record:
    at = PLANNED + batch * 10_000
    return sink_record(identity(batch), key, list(topics), True, at, at + after_ms)


def queries(*records: Record) -> Queries:
    known = Queries()
    for key, value in records:
        known.take(key.encode(), value)
    return known


def query(*records: Record) -> StreamingQuery:
    (one,) = queries(*records).by_id.values()
    return one


def test_the_topic_has_the_name_that_queries_publish_to() -> None:
    assert queries_reader.TOPIC == QUERIES_TOPIC


def test_a_batch_takes_until_its_last_task_has_ended() -> None:
    one = query(began(0), read_record(identity(0), "s", PLANNED + 300), wrote(0, "bills"), wrote(0, "bills", after_ms=900))
    assert one.last_batch is not None
    assert (one.last_batch.took_ms, one.title, one.exactly_once) == (900, "billing", True)
    assert ([topic.name for topic in one.reads], one.writes) == (["orders"], ("bills",))


def test_the_last_batches_are_known_from_one_record_too() -> None:
    one = query(began(5, past=3))
    assert [(batch.number, batch.rows, batch.interval_ms) for batch in one.batches] == [(5, 100, None)] + 3 * [(None, 100, 10_000)]
    assert one.rows_per_s == 10


def test_batches_have_a_bound_and_keep_their_times() -> None:
    records = [record for batch in range(3 * BATCHES_MAX) for record in (began(batch, past=min(batch, 5)), wrote(batch, "bills"))]
    one = query(*records)
    assert len(one.batches) == BATCHES_MAX
    assert {batch.took_ms for batch in one.batches} == {700}
    assert [batch.interval_ms for batch in one.batches[1:]] == [10_000] * (BATCHES_MAX - 1)


def test_lag_is_counted_to_the_present_end_and_unknown_for_a_topic_that_is_gone() -> None:
    one = query(began(0))
    assert one.lag({"orders": 130}) == 30
    assert one.lag({"orders": 10}) == 0
    assert one.lag({}) is None


def test_two_sources_of_a_batch_are_one_batch() -> None:
    one = query(began(0), began(0, name="users", key="other"), read_record(identity(0), "other", PLANNED + 50))
    assert [topic.name for topic in one.reads] == ["orders", "users"]
    assert len(one.batches) == 1


def test_rows_that_name_their_topics_add_up() -> None:
    assert query(wrote(0, "a"), wrote(0, "b")).writes == ("a", "b")


def test_a_record_without_a_value_forgets_its_query() -> None:
    known = queries(began(0))
    known.take(b"q-1/source/s", None)
    assert known.by_id == {}


def test_the_number_of_queries_has_a_bound_and_the_oldest_goes() -> None:
    known = Queries()
    for number in range(QUERIES_MAX + 5):
        document = json.loads(began(number)[1]) | {"queryId": f"q-{number}"}
        known.take(b"", json.dumps(document).encode())
    assert len(known.by_id) == QUERIES_MAX
    assert "q-0" not in known.by_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("batch", "topics", "plannedMs", "inputRows", "endedMs", "batches", "name", "runId", "topicsLeftOut", "arrivedPerSecond", "part")


@given(st.sampled_from([began(1, past=2)[1], wrote(1, "a")[1]]), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_a_forged_document_is_ignored_or_shown_and_never_an_error(value: bytes, changes: dict[str, Any]) -> None:
    known = Queries()
    known.take(b"k", json.dumps(json.loads(value) | changes).encode())
    for one in known.newest_first():
        drawing_of(one)
        assert one.lag({}) is None or not one.reads


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"version":2}'])
def test_what_is_no_document_is_counted(value: bytes) -> None:
    assert queries(("k", value)).refused == 1


def test_the_drawing_goes_from_topics_over_the_query_to_topics() -> None:
    drawing = drawing_of(query(began(0), wrote(0, "bills", "x" * 100)))
    assert [(box.kind, box.topic) for box in drawing.boxes] == [
        ("topic", "orders"),
        ("query", None),
        ("topic", "bills"),
        ("topic", "x" * 100),
    ]
    assert len(drawing.lines) == 3
    assert drawing.boxes[-1].label.endswith("…")
    assert all(box.right <= drawing.width and box.y + 34 <= drawing.height for box in drawing.boxes)


def test_a_drawing_of_very_many_topics_says_how_many_more_there_are() -> None:
    drawing = drawing_of(query(wrote(0, *(f"t{number:03}" for number in range(100)))))
    assert len(drawing.boxes) == TOPICS_DRAWN + 1
    assert drawing.boxes[-1].label == "and 89 more"
