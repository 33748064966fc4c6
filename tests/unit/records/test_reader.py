"""Reading records: what they say, that nothing is copied early, and every way a batch can lie about its insides."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.errors import CorruptRecord, InvalidRecord
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, Batch, read_batches
from barnabas.records.builder import build, encode_batch
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.records.codecs.varint import write_varint
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import read_records, records_of
from barnabas.records.record import Record
from tests import golden

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
SIMPLE = bytes.fromhex("1c00000006 6b6579 0a 76616c7565 00")  # the record of the specification: key, value, no headers


def test_the_record_of_the_specification_is_read() -> None:
    (record,) = read(SIMPLE)
    assert (record.offset, record.timestamp, record.timestamp_type, record.sequence) == (10, 1000, CREATE_TIME, -1)
    assert (record.key, record.value, record.headers) == (b"key", b"value", [])


def test_null_and_empty_are_two_things() -> None:
    data = build([(0, None, b"", [("a", None), ("b", b"")])])
    (record,) = records_of(data)
    assert (record.key, record.value) == (None, b"")
    assert (record.has_key, record.has_value) == (False, True)
    assert record.headers == [("a", None), ("b", b"")]


def test_any_negative_size_is_null() -> None:
    (record,) = read(a_record("00 00 00 05 05 00"))
    assert (record.key_size, record.value_size) == (-1, -1)


def test_a_record_is_only_positions_until_it_is_asked() -> None:
    data = build([(0, b"key", b"value", ())])
    (record,) = records_of(data)
    assert record.data is data
    assert data[record.key_at : record.key_at + record.key_size] == b"key"


def test_the_broker_timestamp_takes_the_place_of_each_records_own() -> None:
    data = build([(1, None, b"a", ()), (2, None, b"b", ())], timestamp_type=LOG_APPEND_TIME, log_append_time=77)
    assert [(record.timestamp, record.timestamp_type) for record in records_of(data)] == [(77, LOG_APPEND_TIME)] * 2


def test_deltas_count_from_the_delete_horizon_where_it_stands_in_the_base_timestamp() -> None:
    data = build([(50, b"k", None, ()), (60, b"l", None, ())], delete_horizon_ms=1000)
    assert [record.timestamp for record in records_of(data)] == [50, 60]


def test_sequences_wrap_to_zero() -> None:
    data = build([(0, None, b"", ())] * 3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert [record.sequence for record in records_of(data)] == [2**31 - 2, 2**31 - 1, 0]


def test_a_header_name_that_is_not_utf8_is_read_with_replacements_as_java_does() -> None:
    (record,) = read(a_record("00 00 00 01 01 02 02 ff 01"))
    assert record.headers == [("\ufffd", None)]


def test_a_batch_without_records_is_empty() -> None:
    data = encode_batch(b"", 0, 5, 9, -1, -1, 0)
    assert read_records(data, read_batches(data)[0]) == []


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_body_is_read_where_it_unfolds(codec: int) -> None:
    data = build([(i, b"k%d" % i, b"v" * 100, ()) for i in range(50)], codec=codec)
    assert [(record.offset, record.key) for record in records_of(data)] == [(i, b"k%d" % i) for i in range(50)]


def test_an_unknown_codec_is_corrupt() -> None:
    data = encode_batch(SIMPLE, 5, 0, 0, 0, 0, 1)
    with pytest.raises(CorruptRecord, match="Unknown compression type id: 5"):
        read_records(data, read_batches(data)[0])


def test_a_body_that_unfolds_beyond_the_limit_is_refused() -> None:
    data = build([(0, None, bytes(1_000_000), ())], codec=GZIP)
    with pytest.raises(CorruptRecord, match="more than 10000 bytes"):
        read_records(data, read_batches(data)[0], limit=10_000)


def test_a_header_that_promises_more_bytes_than_there_are_is_corrupt() -> None:
    data = build([(0, None, b"x", ())])
    batch = read_batches(data)[0]
    with pytest.raises(CorruptRecord, match="does not fit"):
        read_records(data[:-1], batch)


FAULTS: list[tuple[str, bytes, int, str]] = [
    ("fewer records than counted", SIMPLE, 2, "Incorrect declared batch size, premature EOF reached"),
    ("more records than counted", SIMPLE * 2, 1, "Incorrect declared batch size, records still remaining in file"),
    ("a negative count", SIMPLE, -1, "Found invalid record count -1 in magic v2 batch"),
    (
        "a size behind the end",
        bytes.fromhex("3a") + SIMPLE[1:],
        1,
        "expected 29 bytes in record payload, but instead the buffer",
    ),
    ("a size too small", bytes.fromhex("1a") + SIMPLE[1:], 1, "expected to read 13 bytes in record payload, but instead read 14"),
    ("a negative size", bytes.fromhex("01") + SIMPLE[1:], 1, "expected to read -1 bytes in record payload, but instead read 14"),
    ("a huge size", bytes.fromhex("feffffff0f") + SIMPLE[1:], 1, "expected 2147483647 bytes"),
    ("a size that never ends", b"\xff" * 6 + SIMPLE, 1, "premature EOF reached"),
    ("a size cut short", b"\xff", 1, "premature EOF reached"),
    ("an empty body", b"", 1, "premature EOF reached"),
    ("a timestamp delta that never ends", b"\x1e\x00" + b"\xff" * 14, 1, "Found invalid record structure"),
    ("an offset delta that never ends", b"\x1e\x00\x00" + b"\xff" * 13, 1, "Found invalid record structure"),
    ("a key behind the end", bytes.fromhex("0c 00 00 00 7e 00 00"), 1, "Found invalid record structure"),
    ("a huge key", bytes.fromhex("12 00 00 00 feffffff0f 00"), 1, "Found invalid record structure"),
    ("a value behind the end", bytes.fromhex("0c 00 00 00 01 7e 00"), 1, "Found invalid record structure"),
    ("a record cut after its value", bytes.fromhex("0a 00 00 00 01 01"), 1, "Found invalid record structure"),
    ("a negative header count", bytes.fromhex("0c 00 00 00 01 01 01"), 1, "Found invalid number of record headers -1"),
    ("a huge header count", bytes.fromhex("14 00 00 00 01 01 feffffff0f"), 1, "2147483647 is larger than the remaining size of the buffer"),
    ("a null header name", bytes.fromhex("10 00 00 00 01 01 02 01 01"), 1, "Invalid negative header key size -1"),
    ("a header name behind the end", bytes.fromhex("10 00 00 00 01 01 02 7e 61"), 1, "Found invalid record structure"),
    ("a header value behind the end", bytes.fromhex("12 00 00 00 01 01 02 02 61 7e"), 1, "Found invalid record structure"),
    ("a header without a value", bytes.fromhex("10 00 00 00 01 01 02 02 61"), 1, "Found invalid record structure"),
]


@pytest.mark.parametrize(("body", "count", "text"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_batch_is_refused_for(body: bytes, count: int, text: str, codec: int) -> None:
    with pytest.raises(InvalidRecord, match=text):
        read(body, count, codec)


@pytest.mark.parametrize("body", [pytest.param(fault[1], id=fault[0]) for fault in FAULTS if "huge" in fault[0]])
def test_nothing_is_allocated_for(body: bytes) -> None:
    data = encode_batch(body, 0, 10, 2**31 + 8, 1000, 1000, 2**31 - 1)
    batch = read_batches(data)[0]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecord):
            read_records(data, batch)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_bytes_of_the_next_batch_are_never_taken_for_those_of_this_one() -> None:
    short = encode_batch(bytes.fromhex("0c 00 00 00 7e 00"), 0, 0, 0, 0, 0, 1)
    data = short + build([(0, None, b"x" * 200, ())])
    with pytest.raises(InvalidRecord):
        read_records(data, read_batches(data)[0])


def test_the_records_of_many_batches_come_in_order() -> None:
    old = build([(1, b"a", b"b", ())], magic=1, base_offset=3)
    data = old + build([(2, None, b"c", ())], base_offset=4) + build([(3, None, b"d", ())], codec=ZSTD, base_offset=5)
    assert [(record.offset, record.timestamp, record.value) for record in records_of(data)] == [(3, 1, b"b"), (4, 2, b"c"), (5, 3, b"d")]


def test_a_tail_cut_short_is_left_out() -> None:
    whole = build([(0, None, b"a", ())])
    assert [record.value for record in records_of(whole + whole[:-1])] == [b"a"]


@given(st.binary(max_size=60), st.integers(0, 12), st.sampled_from([NONE, LZ4]))
def test_any_body_is_read_or_refused(body: bytes, count: int, codec: int) -> None:
    try:
        records = read(body, count, codec)
    except (InvalidRecord, CorruptRecord):
        return
    for record in records:
        assert record.key_size == len(record.key or b"") or record.key is None
        assert record.value_size == len(record.value or b"") or record.value is None
        assert len(record.headers) == record.header_count


FLIPPABLE = {
    codec: build(
        [(1000 + i, b"key%d" % i if i % 2 else None, b"value" * i, [("h", b"x"), ("n", None)][: i % 3]) for i in range(6)], codec=codec
    )
    for codec in CODECS
}


@settings(max_examples=300)
@given(st.sampled_from(CODECS), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_found_by_the_checksum_or_changes_only_what_it_does_not_cover(codec: int, place: int, mask: int) -> None:
    data = FLIPPABLE[codec]
    position = place % len(data)
    damaged = data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]
    try:
        batches = read_batches(damaged)
        for batch in batches:
            ensure_valid(damaged, batch)
    except CorruptRecord:
        return
    # The base offset and the leader epoch belong to the broker, and a length that grows makes the batch one still to come.
    assert position < 8 or 12 <= position < 16 or not batches


@settings(max_examples=300)
@given(st.sampled_from(CODECS), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_behind_a_blind_checksum_is_read_or_refused(codec: int, place: int, mask: int) -> None:
    data = FLIPPABLE[codec]
    position = 17 + place % (len(data) - 17)
    damaged = data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]
    try:
        for record in records_of(damaged):
            assert record.key is None or record.value is None or record.headers is not None
    except (InvalidRecord, CorruptRecord):
        pass


@pytest.mark.parametrize("directory", golden.partitions("4.2.0"), ids=golden.name)
def test_the_offsets_kafka_wrote_grow(directory: Path) -> None:
    for path in golden.files(directory):
        if path.suffix == ".log":
            offsets = [record.offset for record in records_of(path.read_bytes())]
            assert offsets == sorted(set(offsets))


def read(body: bytes, count: int = 1, codec: int = NONE) -> list[Record]:
    """The records of a batch with this body, at base offset 10 and base timestamp 1000; more bytes follow, as in a log."""
    data = encode_batch(compress(codec, body), codec, 10, 10 + max(count - 1, 0), 1000, 1000, count)
    batch: Batch = read_batches(data)[0]
    return read_records(data + b"\x00" * 64, batch)


def a_record(body: str) -> bytes:
    content = bytes.fromhex(body)
    out = BytesWriter()
    write_varint(out, len(content))
    return out.getvalue() + content
