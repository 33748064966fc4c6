"""Conversion between formats keeps what both can say and drops the rest, as Kafka's own conversion did in the golden logs."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import InvalidRecord, UnsupportedCompressionType
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, read_batches
from barnabas.records.builder import BatchBuilder, build
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, codec_name
from barnabas.records.control import end_txn_marker
from barnabas.records.conversion import convert, down_convert, up_convert
from barnabas.records.crc import is_valid
from barnabas.records.reader import records_of

GOLDEN = Path(__file__).parents[2] / "data" / "golden-logs" / "kafka-2.8.2" / "first"
OLD_CODECS = [NONE, GZIP, SNAPPY, LZ4]

Content = bytes | None
contents = st.none() | st.binary(max_size=40)
steps = st.tuples(st.integers(1, 5), st.integers(-1, 2**50), contents, contents)
logs = st.lists(st.tuples(st.sampled_from(OLD_CODECS), st.lists(steps, min_size=1, max_size=6)), min_size=1, max_size=4)


def log_of(batches: list[tuple[int, list[tuple[int, int, Content, Content]]]], magic: int) -> bytes:
    """A log of batches (codec, records), each record (gap to the offset before, timestamp, key, value)."""
    offset = -1
    parts = []
    for codec, records in batches:
        builder = BatchBuilder(magic, codec, offset + 1)
        for gap, timestamp, key, value in records:
            offset += gap
            builder.append_at(offset, timestamp, key, value, [("name", b"dropped")] if magic == 2 else [])
        parts.append(builder.build())
    return b"".join(parts)


def batch_of(magic: int = 2, codec: int = NONE, base_offset: int = 0, count: int = 3) -> bytes:
    builder = BatchBuilder(magic, codec, base_offset)
    for n in range(count):
        builder.append(100 + n, b"k%d" % n, b"v%d" % n, [("h", b"x")] if magic == 2 else [])
    return builder.build()


def contents_of(data: bytes) -> list[tuple[int, Content, Content]]:
    assert all(is_valid(data, batch) for batch in read_batches(data))
    return [(record.offset, record.key, record.value) for record in records_of(data)]


def offsets_of(data: bytes) -> list[int]:
    return [record.offset for record in records_of(data)]


@settings(max_examples=100)
@given(logs, st.sampled_from([(2, 1), (2, 0), (1, 0)]))
def test_down_conversion_keeps_offsets_keys_and_values(
    batches: list[tuple[int, list[tuple[int, int, Content, Content]]]], magics: tuple[int, int]
) -> None:
    from_magic, to_magic = magics
    data = log_of(batches, from_magic)
    converted = down_convert(data, to_magic)
    assert contents_of(converted) == contents_of(data)
    assert {batch.magic for batch in read_batches(converted)} == {to_magic}
    kept = [record.timestamp for record in records_of(data)] if to_magic else [-1] * len(contents_of(data))
    assert [record.timestamp for record in records_of(converted)] == kept


@settings(max_examples=100)
@given(logs, st.sampled_from([(0, 1), (0, 2), (1, 2)]))
def test_up_conversion_keeps_offsets_timestamps_keys_and_values(
    batches: list[tuple[int, list[tuple[int, int, Content, Content]]]], magics: tuple[int, int]
) -> None:
    from_magic, to_magic = magics
    data = log_of(batches, from_magic)
    converted = up_convert(data, to_magic)
    assert contents_of(converted) == contents_of(data)
    assert {batch.magic for batch in read_batches(converted)} == {to_magic}
    assert [record.timestamp for record in records_of(converted)] == [record.timestamp for record in records_of(data)]


@pytest.mark.parametrize(("old", "magic"), [("m082", 0), ("m0100", 1)])
@pytest.mark.parametrize("codec", [NONE, LZ4], ids=codec_name)
def test_a_v2_log_converts_to_the_bytes_kafka_converted_it_to(old: str, magic: int, codec: int) -> None:
    newest = (GOLDEN / f"m28-{codec_name(codec)}-0" / "00000000000000000000.log").read_bytes()
    assert down_convert(newest, magic) == (GOLDEN / f"{old}-{codec_name(codec)}-0" / "00000000000000000000.log").read_bytes()


@pytest.mark.parametrize(("old", "magic"), [("m082", 0), ("m0100", 1)])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY], ids=codec_name)
def test_a_v2_log_converts_to_the_records_kafka_converted_it_to(old: str, magic: int, codec: int) -> None:
    newest = (GOLDEN / f"m28-{codec_name(codec)}-0" / "00000000000000000000.log").read_bytes()
    kafkas = (GOLDEN / f"{old}-{codec_name(codec)}-0" / "00000000000000000000.log").read_bytes()
    assert contents_of(down_convert(newest, magic)) == contents_of(kafkas)


@pytest.mark.parametrize("codec", OLD_CODECS, ids=codec_name)
def test_the_codec_is_kept_in_both_directions(codec: int) -> None:
    assert {batch.codec for batch in read_batches(down_convert(batch_of(2, codec), 1))} == {codec}
    assert {batch.codec for batch in read_batches(up_convert(batch_of(0, codec)))} == {codec}


def test_headers_are_dropped() -> None:
    assert [record.headers for record in records_of(down_convert(batch_of(count=1), 1))] == [[]]


def test_control_batches_are_dropped() -> None:
    marker = end_txn_marker(True, 7, 0, 0, 100, 3)
    assert offsets_of(down_convert(batch_of() + marker + batch_of(base_offset=4), 1)) == [0, 1, 2, 4, 5, 6]
    assert down_convert(marker, 0) == b""


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_cannot_be_converted_down(magic: int) -> None:
    with pytest.raises(UnsupportedCompressionType, match="Down-conversion of zstandard-compressed batches is not supported"):
        down_convert(batch_of(2, ZSTD), magic)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_batch_already_old_enough_is_passed_on_untouched(magic: int) -> None:
    data = batch_of(0, GZIP) + batch_of(magic, SNAPPY, 3)
    assert down_convert(data, magic) == data


def test_converting_down_to_v2_keeps_control_batches_and_zstd() -> None:
    data = batch_of(2, ZSTD) + end_txn_marker(True, 7, 0, 0, 100, 3)
    assert down_convert(data, 2) == data


def test_records_below_the_first_offset_are_left_out_of_an_uncompressed_batch() -> None:
    assert offsets_of(down_convert(batch_of(2, NONE, 10), 1, 11)) == [11, 12]
    assert down_convert(batch_of(2, NONE, 10), 1, 13) == b""


def test_a_compressed_batch_is_kept_whole_whatever_the_first_offset() -> None:
    assert offsets_of(down_convert(batch_of(2, GZIP, 10), 1, 12)) == [10, 11, 12]


def test_a_tail_cut_short_is_left_out() -> None:
    assert offsets_of(down_convert(batch_of() + batch_of(base_offset=3)[:-1], 1)) == [0, 1, 2]


def test_log_append_time_is_kept() -> None:
    builder = BatchBuilder(2, NONE, 0, timestamp_type=LOG_APPEND_TIME, log_append_time=999)
    builder.append(5, None, b"v")
    down = down_convert(builder.build(), 1)
    for data in (down, up_convert(down)):
        assert [(record.timestamp, record.timestamp_type) for record in records_of(data)] == [(999, LOG_APPEND_TIME)]


def test_records_without_a_timestamp_have_none_after_up_conversion() -> None:
    data = up_convert(batch_of(0, GZIP))
    (batch,) = read_batches(data)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (-1, -1, CREATE_TIME)
    assert [record.timestamp_type for record in records_of(batch_of(0))] == [NO_TIMESTAMP_TYPE] * 3


def test_entries_that_stand_alone_are_gathered_in_one_batch() -> None:
    data = up_convert(batch_of(1, NONE, 0, 50) + batch_of(1, GZIP, 50, 2) + batch_of(1, NONE, 52, 3))
    assert [(batch.base_offset, batch.last_offset, batch.count) for batch in read_batches(data)] == [(0, 49, 50), (50, 51, 2), (52, 54, 3)]


def test_entries_too_far_apart_for_one_batch_are_not_gathered() -> None:
    data = batch_of(1, NONE, 0, 1) + batch_of(1, NONE, 2**31, 1)
    assert [batch.base_offset for batch in read_batches(up_convert(data))] == [0, 2**31]


def test_newer_batches_are_not_converted_up() -> None:
    data = batch_of(2, ZSTD) + batch_of(2, NONE, 3)
    assert up_convert(data, 1) == data
    assert up_convert(data, 2) == data


def test_a_leader_numbers_what_it_converts_from_its_own_end() -> None:
    records = list(records_of(batch_of(1, GZIP, 5)))
    converted = convert(records, BatchBuilder(2, ZSTD, 1000, leader_epoch=4))
    (batch,) = read_batches(converted)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.codec) == (1000, 1002, 4, ZSTD)
    assert [record.key for record in records_of(converted)] == [b"k0", b"k1", b"k2"]


def test_converting_keeps_headers_where_the_format_has_them() -> None:
    records = list(records_of(batch_of(2)))
    assert [record.headers for record in records_of(convert(records, BatchBuilder(2, GZIP)))] == [[("h", b"x")]] * 3


def test_entries_whose_offsets_do_not_grow_are_not_gathered() -> None:
    data = batch_of(0, NONE, 5, 1) + batch_of(0, NONE, 7, 1) + batch_of(0, NONE, 6, 1)
    assert [batch.base_offset for batch in read_batches(up_convert(data))] == [5, 6]


def test_a_batch_whose_offsets_do_not_grow_cannot_be_converted() -> None:
    builder = BatchBuilder(2, NONE, 0)
    builder.append(-1, None, b"a")
    builder.append(-1, None, b"b")
    data = bytearray(builder.build())
    data[61 + 8 + 3] = 0  # the second record's offset delta
    with pytest.raises(InvalidRecord, match="Cannot convert the batch at offset 0 to format v1: Illegal offset"):
        down_convert(bytes(data), 1)


def test_of_a_batch_that_unfolds_into_very_many_records_one_is_held_at_a_time() -> None:
    data = build([(0, None, b"", ())] * 10_000, codec=GZIP)
    tracemalloc.start()
    try:
        converted = down_convert(data, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(list(records_of(converted))) == 10_000
    assert peak < 2_000_000  # the bytes of the entries some times over; the records would take twice as much
