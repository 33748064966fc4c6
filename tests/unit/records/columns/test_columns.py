"""Columns from batches and batches from columns: the same records as the reader and the builder see, at any size and in any format."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord, InvalidRecord, KafkaError, RecordTooLarge
from barnabas.records.batch import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    SEQUENCE_MAX,
    read_batches,
)
from barnabas.records.builder import BatchBuilder, build
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.records.columns.column_walk import HELD_BYTES_MAX, Columns
from barnabas.records.columns.columns import HEADERS_TYPE, decode, encode
from barnabas.records.control import end_txn_marker
from barnabas.records.reader import read_records

GOLDEN = Path(__file__).parents[3] / "data" / "golden-logs"
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

contents = st.none() | st.binary(max_size=40)
headers_lists = st.lists(st.tuples(st.text(max_size=8), contents), max_size=3)
timestamps = st.integers(-1, 2**63 - 1)
rows_lists: st.SearchStrategy[list[Row]] = st.lists(st.tuples(timestamps, contents, contents, headers_lists), max_size=30)


def rows_of(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    """(offset, timestamp, timestamp type, key, value, headers) of every row that `decode` gives."""
    records = decode(data, headers=True, **options).records
    records.validate(full=True)
    headers = [[(header["key"], header["value"]) for header in found or ()] for found in records["headers"].to_pylist()]
    columns = [records[name].to_pylist() for name in ("offset", "timestamp_type", "key", "value")]
    offsets, types, keys, values = columns
    return list(zip(offsets, records["timestamp"].cast(pa.int64()).to_pylist(), types, keys, values, headers, strict=True))


def rows_by_reader(data: bytes) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.timestamp_type, record.key, record.value, record.headers)
        for batch in read_batches(data)
        if not batch.is_control
        for record in read_records(data, batch)
    ]


def offsets_of(data: bytes, **options: Any) -> list[int]:
    offsets: list[int] = decode(data, **options).records["offset"].to_pylist()
    return offsets


def batch_of(values: Sequence[bytes | None], base_offset: int = 0, **options: Any) -> bytes:
    return build([(1000 + index, None, value, ()) for index, value in enumerate(values)], base_offset=base_offset, **options)


def in_transaction(producer_id: int, base_offset: int, count: int = 2) -> bytes:
    values = [b"v"] * count
    return batch_of(values, base_offset, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)


def marker(producer_id: int, base_offset: int, committed: bool) -> bytes:
    return end_txn_marker(committed, producer_id, 0, 0, 1000, base_offset)


# ---- decode


def test_a_batch_becomes_typed_columns() -> None:
    data = build([(1000, b"k", b"v", [("h", b"x")]), (1001, None, None, [])], base_offset=5, leader_epoch=7)
    records, next_offset = decode(data, headers=True, leader_epoch=True)
    assert records.schema == pa.schema(
        [
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("timestamp_type", pa.int32()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", HEADERS_TYPE),
            ("leader_epoch", pa.int32()),
        ]
    )
    second = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert records.slice(0, 1).to_pylist() == [
        {
            "offset": 5,
            "timestamp": second,
            "timestamp_type": CREATE_TIME,
            "key": b"k",
            "value": b"v",
            "headers": [{"key": "h", "value": b"x"}],
            "leader_epoch": 7,
        }
    ]
    assert next_offset == 7


def test_no_batches_give_no_rows_and_leave_the_position_where_it_was() -> None:
    records, next_offset = decode(b"", first_offset=42, headers=True, leader_epoch=True)
    assert records.num_rows == 0
    assert next_offset == 42


def test_null_and_empty_are_told_apart() -> None:
    data = build([(0, None, b"", ()), (0, b"", None, ())])
    assert decode(data).records.select(["key", "value"]).to_pylist() == [{"key": None, "value": b""}, {"key": b"", "value": None}]


@pytest.mark.parametrize("views", [False, True])
def test_contents_of_every_small_size_come_back_whole(views: bool) -> None:
    values = [bytes(range(255, 255 - size, -1)) for size in range(40)]
    assert decode(batch_of(values), views=views).records["value"].to_pylist() == values


@pytest.mark.parametrize("size", range(14))
def test_a_value_at_the_very_end_of_the_bytes_comes_back_whole(size: int) -> None:
    data = batch_of([b"\xff" * size])
    assert decode(data).records["value"].to_pylist() == [b"\xff" * size]


def test_views_point_into_the_fetched_bytes() -> None:
    data = batch_of([b"longer than twelve bytes", None], codec=NONE)
    records = decode(data, views=True).records
    assert records["value"].type == pa.binary_view()
    assert records["key"].null_count == 2
    records.validate(full=True)
    assert records["value"].to_pylist() == [b"longer than twelve bytes", None]


def test_the_headers_of_a_record_without_any_are_null() -> None:
    data = build([(0, None, b"v", []), (0, None, b"v", [("a", None), ("a", b"")])])
    assert decode(data, headers=True).records["headers"].to_pylist() == [
        None,
        [{"key": "a", "value": None}, {"key": "a", "value": b""}],
    ]


def test_a_header_name_that_is_not_utf8_shows_replacement_characters() -> None:
    data = build([(0, None, b"v", [("name", None)])]).replace(b"name", b"na\xffe")
    assert decode(data, headers=True, check_crc=False).records["headers"].to_pylist() == [[{"key": "na\ufffde", "value": None}]]


def test_with_log_append_time_every_record_has_the_time_of_its_batch() -> None:
    data = batch_of([b"a", b"b"], timestamp_type=LOG_APPEND_TIME, log_append_time=5000)
    assert [row[1:3] for row in rows_of(data)] == [(5000, LOG_APPEND_TIME)] * 2


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_and_plain_batches_stand_side_by_side(codec: int) -> None:
    long = b"a value that is too long to stand in a view"
    data = batch_of([long, b"2"]) + batch_of([b"3", long], 2, codec=codec) + batch_of([None], 4, codec=codec)
    assert decode(data).records["value"].to_pylist() == [long, b"2", b"3", long, None]


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_read_too(magic: int, codec: int) -> None:
    records = [(1000, b"k", b"v", ()), (1001, None, b"a value that is too long for a view", ())]
    data = build(records, magic=magic, codec=codec, base_offset=10) + batch_of([b"new"], 12)
    old_type = NO_TIMESTAMP_TYPE if magic == 0 else CREATE_TIME
    assert rows_of(data) == rows_by_reader(data)
    assert decode(data).records["timestamp_type"].to_pylist() == [old_type, old_type, CREATE_TIME]
    assert offsets_of(data, first_offset=11) == [11, 12]


def test_a_batch_cut_short_at_the_end_is_ignored() -> None:
    whole, torn = batch_of([b"a"]), batch_of([b"b"], 1)
    for cut in range(len(torn)):
        assert decode(whole + torn[:cut]).next_offset == 1


def test_records_outside_the_wanted_offsets_are_left_out() -> None:
    data = batch_of([b"v"] * 5) + batch_of([b"v"] * 5, 5) + batch_of([b"v"] * 5, 10)
    assert offsets_of(data, first_offset=3, end_offset=12) == list(range(3, 12))


@pytest.mark.parametrize(("end_offset", "next_offset"), [(3, 3), (5, 5), (7, 7), (8, 8), (10, 10), (100, 10)])
def test_the_next_offset_is_never_beyond_the_end_asked_for(end_offset: int, next_offset: int) -> None:
    first, second = batch_of([b"v"] * 5), batch_of([b"v"] * 2, 8)
    assert decode(first + second, end_offset=end_offset).next_offset == next_offset
    assert decode(first, end_offset=end_offset).next_offset == min(end_offset, 5)


def test_the_end_of_a_batch_counts_even_if_its_last_records_are_gone() -> None:
    builder = BatchBuilder()
    builder.append(0, b"k", b"v")
    assert decode(builder.build(last_offset=9)).next_offset == 10


def test_control_batches_never_show_but_move_the_position() -> None:
    data = in_transaction(1, 0) + marker(1, 2, committed=True)
    assert offsets_of(data) == [0, 1]
    assert decode(data).next_offset == 3
    assert decode(data, aborted=[]).next_offset == 3


def test_without_the_list_of_aborted_transactions_their_records_show() -> None:
    data = in_transaction(1, 0) + marker(1, 2, committed=False)
    assert offsets_of(data) == [0, 1]


def test_an_aborted_transaction_is_left_out_up_to_its_marker() -> None:
    data = in_transaction(1, 0) + marker(1, 2, committed=False) + in_transaction(1, 3) + marker(1, 5, committed=True)
    assert offsets_of(data, aborted=[(1, 0)]) == [3, 4]
    assert decode(data, aborted=[(1, 0)]).next_offset == 6


def test_only_the_producer_that_aborted_is_left_out() -> None:
    data = in_transaction(1, 0) + in_transaction(2, 2) + batch_of([b"v"], 4) + marker(1, 5, committed=False) + marker(2, 6, committed=True)
    assert offsets_of(data, aborted=[(1, 0)]) == [2, 3, 4]


def test_a_commit_marker_does_not_end_another_transaction_of_the_list() -> None:
    data = in_transaction(1, 0) + marker(1, 2, committed=True) + in_transaction(1, 3) + marker(1, 5, committed=False)
    assert offsets_of(data, aborted=[(1, 3)]) == [0, 1]


def test_aborted_transactions_may_be_listed_in_any_order() -> None:
    one = in_transaction(1, 0) + marker(1, 2, committed=False)
    two = in_transaction(2, 3) + marker(2, 5, committed=False)
    three = in_transaction(1, 6) + marker(1, 8, committed=False) + in_transaction(1, 9)
    listed = [(1, 6), (2, 3), (1, 0)]
    assert offsets_of(one + two + three, aborted=listed) == offsets_of(one + two + three, aborted=listed[::-1]) == [9, 10]


def test_an_aborted_transaction_of_a_single_record_is_left_out() -> None:
    assert offsets_of(in_transaction(1, 0, count=1) + batch_of([b"v"], 1), aborted=[(1, 0)]) == [1]


def test_idempotent_records_outside_transactions_show_whatever_was_aborted() -> None:
    idempotent = batch_of([b"v"], producer_id=1, producer_epoch=0, base_sequence=0)
    assert offsets_of(idempotent, aborted=[(1, 0)]) == [0]


def test_a_wrong_checksum_is_refused() -> None:
    data = bytearray(batch_of([b"value"]))
    data[-3] ^= 1
    with pytest.raises(CorruptRecord, match="Record is corrupt"):
        decode(bytes(data))
    assert decode(bytes(data), check_crc=False).records.num_rows == 1


@pytest.mark.parametrize("count", [-1, 1, 3])
def test_a_record_count_that_does_not_fit_the_records_is_refused(count: int) -> None:
    data = bytearray(batch_of([b"a", b"b"]))
    data[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(InvalidRecord):
        decode(bytes(data), check_crc=False)


def test_more_bytes_than_arrow_can_count_are_refused() -> None:
    columns = Columns(b"fetched", 0, 10, False)
    columns.held_bytes = HELD_BYTES_MAX
    assert columns.source_of(columns.sources[0]) == 0
    with pytest.raises(RecordTooLarge, match="decode fewer"):
        columns.source_of(b"decompressed")


@pytest.mark.parametrize("log", sorted(GOLDEN.rglob("*.log")), ids=lambda log: f"{log.parent.parent.name}/{log.parent.name}/{log.name}")
def test_logs_of_apache_kafka_decode_as_the_reader_reads_them(log: Path) -> None:
    data = log.read_bytes()
    assert rows_of(data) == rows_by_reader(data)


# ---- encode


def arrays_of(rows: Sequence[Row]) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Keys, values, timestamps and headers of `rows`."""
    return (
        pa.array([row[1] for row in rows], pa.binary()),
        pa.array([row[2] for row in rows], pa.binary()),
        pa.array([row[0] for row in rows], pa.int64()),
        pa.array([[{"key": name, "value": value} for name, value in row[3]] for row in rows], HEADERS_TYPE),
    )


def test_rows_are_cut_into_batches_no_larger_than_asked() -> None:
    value = pa.array([bytes(100)] * 1000)
    batches = encode(None, value, batch_size=2000)
    assert all(1800 < len(batch) <= 2000 for batch in batches[:-1])
    assert sum(decode(batch).records.num_rows for batch in batches) == 1000


def test_a_batch_may_be_exactly_as_large_as_asked() -> None:
    value = pa.array([b"v"] * 3)
    (whole,) = encode(None, value)
    assert encode(None, value, batch_size=len(whole)) == [whole]
    assert len(encode(None, value, batch_size=len(whole) - 1)) == 2


def test_a_record_larger_than_a_batch_goes_alone() -> None:
    batches = encode(None, pa.array([b"a", bytes(500), b"b"]), batch_size=200)
    assert [decode(batch).records.num_rows for batch in batches] == [1, 1, 1]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_compression_made_too_large_is_halved(codec: int) -> None:
    noise = random.Random(1)
    value = pa.array([noise.randbytes(30) for _ in range(8)])
    (plain,) = encode(None, value)
    assert [decode(batch).records.num_rows for batch in encode(None, value, codec=codec, batch_size=len(plain))] == [4, 4]


def test_each_batch_starts_at_offset_0_unless_a_base_offset_is_given() -> None:
    value = pa.array([bytes(50)] * 10)
    assert {read_batches(batch)[0].base_offset for batch in encode(None, value, batch_size=200)} == {0}
    assert offsets_of(b"".join(encode(None, value, batch_size=200, base_offset=7))) == list(range(7, 17))


def test_sequences_go_on_from_batch_to_batch_and_wrap() -> None:
    options: dict[str, Any] = {"producer_id": 9, "producer_epoch": 3, "transactional": True, "leader_epoch": 5}
    data = b"".join(encode(None, pa.array([bytes(50)] * 6), batch_size=190, base_sequence=SEQUENCE_MAX - 3, **options))
    headers = read_batches(data)
    assert [batch.base_sequence for batch in headers] == [SEQUENCE_MAX - 3, SEQUENCE_MAX - 1, 0]
    assert {(batch.producer_id, batch.producer_epoch, batch.is_transactional, batch.leader_epoch) for batch in headers} == {(9, 3, True, 5)}


def test_rows_without_a_timestamp_get_the_time_given() -> None:
    value = pa.array([b"a", b"b"])
    assert [row[1] for row in rows_of(encode(None, value, now_ms=77)[0])] == [77, 77]
    assert [row[1] for row in rows_of(encode(None, value, pa.array([5, None], pa.int64()), now_ms=77)[0])] == [5, 77]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_any_unit_become_milliseconds(unit: str) -> None:
    timestamp = pa.array([1000], pa.timestamp("s", tz="UTC")).cast(pa.timestamp(unit, tz="UTC"))
    assert [row[1] for row in rows_of(encode(None, pa.array([b"v"]), timestamp)[0])] == [1_000_000]


def test_what_is_finer_than_a_millisecond_is_dropped() -> None:
    timestamp = pa.array([1_234_567], pa.timestamp("us"))
    assert [row[1] for row in rows_of(encode(None, pa.array([b"v"]), timestamp)[0])] == [1234]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_keys_and_values_may_be_of_any_text_or_binary_type(kind: pa.DataType) -> None:
    column = pa.array(["one", None, "three"], pa.string()).cast(kind)
    assert decode(encode(column, column)[0]).records["key"].to_pylist() == [b"one", None, b"three"]
    assert decode(encode(column, column)[0]).records["value"].to_pylist() == [b"one", None, b"three"]


def test_slices_and_chunks_are_encoded_like_whole_arrays() -> None:
    rows: list[Row] = [(index, b"k%d" % index, b"v%d" % index, [("h", b"%d" % index)] * (index % 3)) for index in range(20)]
    chunks = [pa.chunked_array([column.slice(3, 4), column.slice(7, 9)]) for column in arrays_of(rows)]
    assert encode(*chunks) == encode(*arrays_of(rows[3:16])) == encode(*(column.slice(3, 13) for column in arrays_of(rows)))


def test_no_rows_make_no_batches() -> None:
    assert encode(*arrays_of([])) == []
    assert encode(None, pa.chunked_array([], pa.binary())) == []


def test_null_headers_are_no_headers_even_where_arrow_keeps_something_behind_the_null() -> None:
    elements = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], HEADERS_TYPE.value_type)
    headers = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), elements, mask=pa.array([True, False]))
    assert [row[5] for row in rows_of(encode(None, pa.array([b"v", b"v"]), None, headers)[0])] == [[], [("b", b"2")]]


@pytest.mark.parametrize("element", [None, {"key": None, "value": b"v"}])
def test_a_header_without_a_name_is_refused(element: Any) -> None:
    with pytest.raises(ValueError, match="Invalid null header key found in headers"):
        encode(None, pa.array([b"v"]), None, pa.array([[element]], HEADERS_TYPE))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rows of key do not fit 1 rows of value"):
        encode(pa.array([b"a", b"b"]), pa.array([b"v"]))


def test_the_widest_span_of_timestamps_comes_back() -> None:
    timestamp = pa.array([-1, 2**63 - 1, 0, 2**62])
    assert [row[1] for row in rows_of(encode(None, pa.array([b"v"] * 4), timestamp)[0])] == timestamp.to_pylist()


def test_a_negative_timestamp_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid negative timestamp -2"):
        encode(None, pa.array([b"v"]), pa.array([-2]))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"transactional": True}, "without a valid producer ID"),
        ({"producer_id": 1, "base_sequence": 0}, "Invalid negative producer epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "Invalid negative sequence number"),
        ({"codec": 5}, "Unknown compression type id: 5"),
    ],
)
def test_what_no_batch_can_say_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode(None, pa.array([b"v"]), **options)


# ---- properties


@given(rows_lists, st.sampled_from(CODECS), st.integers(70, 2000))
def test_what_is_encoded_comes_back_from_decode(rows: list[Row], codec: int, batch_size: int) -> None:
    data = b"".join(encode(*arrays_of(rows), codec=codec, batch_size=batch_size, base_offset=3))
    assert rows_of(data) == [(3 + index, row[0], CREATE_TIME, row[1], row[2], row[3]) for index, row in enumerate(rows)]


@given(rows_lists, st.sampled_from(CODECS), st.integers(70, 2000))
def test_encoded_batches_have_the_bytes_of_the_builder(rows: list[Row], codec: int, batch_size: int) -> None:
    options: dict[str, Any] = {"codec": codec, "producer_id": 5, "producer_epoch": 1, "transactional": True}
    at = 0
    for batch in encode(*arrays_of(rows), batch_size=batch_size, base_sequence=0, **options):
        count = read_batches(batch)[0].count
        assert batch == build(rows[at : at + count], base_sequence=at, **options)
        assert len(batch) <= batch_size or count == 1
        at += count
        if codec == NONE and at < len(rows):
            assert len(build(rows[at - count : at + 1], base_sequence=0, **options)) > batch_size
    assert at == len(rows)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches of every format and codec, one after another as in a log."""
    log = b""
    offset = draw(st.integers(0, 1000))
    for rows in draw(st.lists(rows_lists.filter(bool), max_size=4)):
        magic = draw(st.sampled_from([2, 2, 2, 1, 0]))
        codec = draw(st.sampled_from(CODECS[: -1 if magic < 2 else None]))
        log_append_time = draw(st.none() | st.integers(0, 2**40))
        options: dict[str, Any] = {}
        if log_append_time is not None and magic > 0:
            options = {"timestamp_type": LOG_APPEND_TIME, "log_append_time": log_append_time}
        if magic < 2:
            rows = [(row[0], row[1], row[2], []) for row in rows]
        log += build(rows, magic=magic, codec=codec, base_offset=offset, **options)
        offset += len(rows) + draw(st.integers(0, 3))
    return log


@given(logs())
def test_decode_sees_what_the_reader_sees(log: bytes) -> None:
    assert rows_of(log) == rows_by_reader(log)


@given(logs(), st.data())
def test_any_range_of_offsets_is_that_part_of_all_rows(log: bytes, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, 1200))
    end = data.draw(st.integers(first, 1300))
    assert rows_of(log, first_offset=first, end_offset=end) == [row for row in rows_by_reader(log) if first <= row[0] < end]


@given(logs(), st.data())
def test_any_cut_leaves_the_rows_of_the_batches_before_it(log: bytes, data: st.DataObject) -> None:
    cut = log[: data.draw(st.integers(0, len(log)))]
    assert rows_of(cut) == rows_by_reader(cut)


@settings(max_examples=200)
@given(logs().filter(bool), st.data())
def test_a_flipped_bit_is_found_or_changes_nothing_but_offsets(log: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log) - 1))
    flipped = bytearray(log)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    whole = [row[1:] for row in rows_by_reader(log)]
    try:
        rows_read = [row[1:] for row in rows_of(bytes(flipped), first_offset=-(2**63))]
    except (CorruptRecord, InvalidRecord):
        return
    # Neither the base offset nor the length of a batch is under its checksum: a larger length looks like a batch cut short.
    assert rows_read == whole[: len(rows_read)]


@settings(max_examples=200)
@given(logs().filter(bool), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_without_checksums_garbage_ends_in_an_error_or_in_rows_that_the_reader_sees_too(log: bytes, changes: list[tuple[int, int]]) -> None:
    garbage = bytearray(log)
    for at, byte in changes:
        garbage[at % len(log)] = byte
    data = bytes(garbage)
    try:
        rows = rows_of(data, check_crc=False, first_offset=-(2**63))
    except KafkaError:
        return
    assert [row[3:] for row in rows] == [row[3:] for row in rows_by_reader(data)]
