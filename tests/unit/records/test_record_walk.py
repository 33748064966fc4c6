"""The walk of the validator: it must agree with the reader about every batch, whole or damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord, InvalidRecord
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder, RecordTuple, build, encode_batch
from barnabas.records.reader import read_records
from barnabas.records.record_walk import walk_records, walk_start

content = st.none() | st.binary(max_size=20) | st.integers(60, 9000).map(bytes)
headers = st.lists(st.tuples(st.text("abc", max_size=3), content), max_size=3)
records = st.lists(st.tuples(st.integers(-1, 2**60), content, content, headers), min_size=1, max_size=80)

few_records = st.lists(st.tuples(st.integers(-1, 2**60), content, content, headers), min_size=1, max_size=5)


@settings(max_examples=60)
@given(records)
def test_the_walk_tells_what_the_records_tell(given_records: list[RecordTuple]) -> None:
    data = build(given_records)
    deltas = [record[0] - given_records[0][0] for record in given_records]
    without_key = sum(record[1] is None for record in given_records)
    assert walk_records(data, 61, len(data), len(given_records)) == (min(deltas), max(deltas), without_key, 0)


def test_offset_deltas_of_every_length_are_compared_with_the_place() -> None:
    data = build([(0, None, b"", ())] * 9000)
    assert walk_records(data, 61, len(data), 9000) == (0, 0, 9000, 0)


def test_offsets_with_gaps_are_misplaced_from_the_first_gap_on() -> None:
    builder = BatchBuilder()
    for offset in (0, 1, 3, 4, 100_000):
        builder.append_at(offset, 5, b"k", b"")
    data = builder.build()
    assert walk_records(data, 61, len(data), 5) == (0, 0, 0, 3)


@settings(max_examples=60)
@given(records, st.data())
def test_any_beginning_of_good_records_is_good(given_records: list[RecordTuple], draw: st.DataObject) -> None:
    body = build(given_records)[61:]
    cut = draw.draw(st.integers(0, len(body) - 1))
    walk_start(body[:cut], cut, len(given_records), len(body))


def test_a_beginning_of_zeros_is_refused() -> None:
    with pytest.raises(CorruptRecord):
        walk_start(bytes(1000), 1000, 1, 10_000)


def test_a_beginning_that_promises_a_record_too_large_is_refused() -> None:
    body = build([(0, None, bytes(5000), ())])[61:]
    walk_start(body[:100], 100, 1, 6000)
    with pytest.raises(CorruptRecord):
        walk_start(body[:100], 100, 1, 4000)


def test_a_beginning_that_goes_on_behind_the_last_record_is_refused() -> None:
    body = build([(0, None, b"", ())])[61:] + bytes(100)
    with pytest.raises(CorruptRecord):
        walk_start(body, len(body), 1, 1000)


@settings(max_examples=500)
@given(few_records, st.data())
def test_the_walk_refuses_what_the_reader_refuses_and_nothing_else(given_records: list[RecordTuple], draw: st.DataObject) -> None:
    body = bytearray(build(given_records)[61:][:300])
    for _ in range(draw.draw(st.integers(0, 3))):
        body[draw.draw(st.integers(0, len(body) - 1))] = draw.draw(st.integers(0, 255))
    count = draw.draw(st.integers(1, len(given_records)))
    assert walks(bytes(body), count) == reads(bytes(body), count)


@settings(max_examples=500)
@given(st.lists(st.sampled_from([b"\x00", b"\x01", b"\x02", b"\x0c", b"\x0e", b"\x10", b"\x80", b"\xff"]), max_size=24), st.integers(1, 3))
def test_the_walk_and_the_reader_agree_on_bytes_that_are_nearly_records(pieces: list[bytes], count: int) -> None:
    body = b"".join(pieces)
    assert walks(body, count) == reads(body, count)


@pytest.mark.parametrize("tail", [b"", b"\x00" * 40, b"\xff" * 40])
def test_what_follows_the_batch_is_never_part_of_it(tail: bytes) -> None:
    data = build([(0, b"k", b"v", ())] * 2)
    assert walk_records(data + tail, 61, len(data), 2) == (0, 0, 0, 0)
    for end in range(61, len(data)):
        with pytest.raises((CorruptRecord, InvalidRecord, IndexError)):
            walk_records(data[:end] + tail, 61, end, 2)


def walks(body: bytes, count: int) -> bool:
    try:
        walk_records(body, 0, len(body), count)
    except (CorruptRecord, InvalidRecord, IndexError):
        return False
    return True


def reads(body: bytes, count: int) -> bool:
    data = encode_batch(body, 0, 0, count - 1, 0, 0, count)
    try:
        read_records(data, read_batches(data)[0])
    except InvalidRecord:
        return False
    return True
