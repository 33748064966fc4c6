"""What a record may be."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import IllegalArgument
from barnabas.client.producer.record import ProducerRecord, RecordMetadata


def test_only_the_topic_is_needed() -> None:
    record = ProducerRecord("t")
    assert (record.value, record.key, record.partition, record.timestamp, record.headers) == (None, None, None, None, [])


def test_headers_can_be_given_without_key_and_partition() -> None:
    assert ProducerRecord("t", b"v", headers=[("ttl", b"1")]).headers == [("ttl", b"1")]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"partition": -1}, "Invalid partition: -1. Partition number should always be non-negative or None."),
        ({"timestamp": -1}, "Invalid timestamp: -1. Timestamp should always be non-negative or None."),
    ],
)
def test_negative_partitions_and_timestamps_are_refused(fields: dict[str, int], words: str) -> None:
    with pytest.raises(IllegalArgument, match=words.replace(".", r"\.")):
        ProducerRecord("t", **fields)  # type: ignore[arg-type]


def test_a_record_without_a_topic_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="The topic must not be None"):
        ProducerRecord(None)  # type: ignore[arg-type]


def test_records_with_the_same_fields_are_equal() -> None:
    assert ProducerRecord("t", b"v", b"k", partition=1, timestamp=2) == ProducerRecord("t", b"v", b"k", partition=1, timestamp=2)
    assert ProducerRecord("t", b"v") != ProducerRecord("t", b"w")


def test_metadata_is_written_as_kafka_writes_it() -> None:
    assert str(RecordMetadata("t", 1, 42, 7)) == "t-1@42"


def test_metadata_without_a_partition_names_none() -> None:
    assert repr(RecordMetadata("t", 1, 42, 7)) == "RecordMetadata(topic='t', partition=1, offset=42, timestamp=7)"
    assert repr(RecordMetadata("t", -1, -1, -1)) == "RecordMetadata(topic='t', offset=-1, timestamp=-1)"


def test_metadata_without_an_offset_says_so() -> None:
    assert not RecordMetadata("t", 0, -1, -1).has_offset()
    assert not RecordMetadata("t", 0, -1, -1).has_timestamp()


def test_headers_may_come_as_a_dict() -> None:
    assert ProducerRecord("t", headers={"a": b"1", "b": None}).headers == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([("a", "text")], "The value of header a must be bytes or None, not 'text': encode it first"),
        (["ab"], "A header is a pair of a name and bytes, not 'ab'"),
        ([(b"a", b"1")], "A header is a pair of a name and bytes"),
        ([("a", b"1", b"2")], "A header is a pair of a name and bytes"),
    ],
)
def test_what_is_no_header_is_told_with_its_form(headers: Any, words: str) -> None:
    with pytest.raises(IllegalArgument, match=words):
        ProducerRecord("t", headers=headers)
