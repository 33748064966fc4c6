"""Building batches: the sizes and bytes of the specification, Kafka's own batches rebuilt, and what a builder refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, Batch, read_batches
from barnabas.records.builder import BatchBuilder, RecordTuple, build
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import read_records, records_of
from tests import golden

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]

content = st.none() | st.binary(max_size=80)
headers = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), content), max_size=3)
records = st.lists(st.tuples(st.integers(-1, 2**48), content, content, headers), min_size=1, max_size=20)
old_records = st.lists(st.tuples(st.integers(-1, 2**48), content, content, st.just(())), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("given_records", "magic", "size"),
    [
        ([(0, b"key", b"value", ())], 2, 76),
        ([(0, None, b"value", ())], 2, 73),
        ([(0, None, b"value1", ())] * 10, 2, 191),
        ([(0, None, b"value1", ())], 2, 74),
        ([(0, b"key", b"value", ())], 0, 34),
        ([(0, b"key", b"value", ()), (0, None, b"value", ())], 0, 65),
        ([(0, b"key", b"value", ())], 1, 42),
        ([(0, None, b"value1", ())] * 10, 0, 320),
        ([(0, None, b"value1", ())] * 10, 1, 400),
    ],
)
def test_sizes_are_those_of_the_specification(given_records: list[RecordTuple], magic: int, size: int) -> None:
    assert len(build(given_records, magic=magic)) == size


def test_a_record_has_the_bytes_of_the_specification() -> None:
    assert build([(0, b"key", b"value", ())])[61:].hex() == "1c00000006" + b"key".hex() + "0a" + b"value".hex() + "00"


def test_records_of_one_payload_differ_only_in_their_offset_deltas() -> None:
    body = build([(0, b"key", b"value", ())] * 6)[61:]
    assert [body[at * 15 + 3] for at in range(6)] == [0, 2, 4, 6, 8, 10]
    assert len({body[at * 15 : at * 15 + 3] + body[at * 15 + 4 : at * 15 + 15] for at in range(6)}) == 1


@pytest.mark.parametrize("topic", ["g-none", "g-idem", "g-multi", "g-txn", "g-compact", "g-compact-txn", "g-delrec", "g-uncompress"])
def test_every_plain_batch_kafka_wrote_is_rebuilt_byte_for_byte(topic: str) -> None:
    rebuilt = 0
    for path in sorted((golden.LOGS / "kafka-4.2.0" / "first" / f"{topic}-0").glob("*.log")):
        data = path.read_bytes()
        for batch in read_batches(data):
            assert again(data, batch) == data[batch.at : batch.end]
            rebuilt += 1
    assert rebuilt > 0


@pytest.mark.parametrize("topic", ["m082-none", "m0100-none", "m0100-multi", "m0100-logappend", "m082-compact"])
def test_every_plain_old_entry_kafka_wrote_is_rebuilt_byte_for_byte(topic: str) -> None:
    for path in sorted((golden.LOGS / "kafka-2.8.2" / "first" / f"{topic}-0").glob("*.log")):
        data = path.read_bytes()
        for batch in read_batches(data):
            assert again(data, batch) == data[batch.at : batch.end]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_compressed_batch_kafka_wrote_is_rebuilt_but_for_what_the_codec_makes_of_it(codec: str) -> None:
    data = (golden.LOGS / "kafka-4.2.0" / "first" / f"g-{codec}-0" / "00000000000000000000.log").read_bytes()
    for batch in read_batches(data):
        built = again(data, batch)
        rebuilt = read_batches(built)[0]
        ensure_valid(built, rebuilt)
        assert built[21:61] == data[batch.at + 21 : batch.at + 61]
        assert read_records(built, rebuilt)[0].data == read_records(data, batch)[0].data


def again(data: bytes, batch: Batch) -> bytes:
    """The batch, built anew from the records in it."""
    records = read_records(data, batch)
    builder = BatchBuilder(
        batch.magic,
        batch.codec,
        batch.base_offset,
        timestamp_type=max(batch.timestamp_type, 0),
        log_append_time=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        leader_epoch=batch.leader_epoch,
        transactional=batch.is_transactional,
        control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
    )
    for record in records:
        builder.append_record(record)
    return builder.build(batch.last_offset)


@settings(max_examples=60)
@given(records, st.sampled_from(CODECS), st.integers(0, 2**60))
def test_any_records_survive_in_v2(given_records: list[RecordTuple], codec: int, base_offset: int) -> None:
    data = build(given_records, codec=codec, base_offset=base_offset, leader_epoch=4)
    (batch,) = read_batches(data)
    ensure_valid(data, batch)
    assert (batch.base_offset, batch.last_offset, batch.count) == (base_offset, base_offset + len(given_records) - 1, len(given_records))
    assert batch.max_timestamp == max(record[0] for record in given_records)
    contents = [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in read_records(data, batch)]
    assert contents == [(base_offset + index, *record) for index, record in enumerate(given_records)]


@settings(max_examples=60)
@given(old_records, st.sampled_from([0, 1]), st.sampled_from([NONE, GZIP, SNAPPY, LZ4]), st.integers(0, 2**60))
def test_any_records_survive_in_the_old_formats(given_records: list[RecordTuple], magic: int, codec: int, base_offset: int) -> None:
    data = build(given_records, magic=magic, codec=codec, base_offset=base_offset)
    batches = read_batches(data)
    assert len(batches) == (1 if codec else len(given_records))
    for batch in batches:
        ensure_valid(data, batch)
    contents = [(record.offset, record.timestamp, record.key, record.value) for record in records_of(data)]
    assert contents == [
        (base_offset + index, timestamp if magic else -1, key, value) for index, (timestamp, key, value, _) in enumerate(given_records)
    ]


@given(records, st.sampled_from([NONE, LZ4]))
def test_records_copied_from_another_batch_are_the_same_bytes(given_records: list[RecordTuple], codec: int) -> None:
    data = build(given_records, base_offset=7)
    builder = BatchBuilder(codec=codec, base_offset=7)
    for record in records_of(data):
        builder.append_record(record)
    copy = builder.build()
    assert next(records_of(copy)).data[-len(data) + 61 :] == data[61:]


def test_a_copied_record_can_be_given_another_offset() -> None:
    builder = BatchBuilder(base_offset=90)
    for record in records_of(build([(1, b"a", b"b", [("h", b"x")]), (2, None, None, ())])):
        builder.append_record(record, record.offset + 90)
    contents = [(record.offset, record.timestamp, record.key, record.headers) for record in records_of(builder.build())]
    assert contents == [(90, 1, b"a", [("h", b"x")]), (91, 2, None, [])]


def test_the_base_timestamp_is_the_first_records_and_the_greatest_is_kept_beside_it() -> None:
    (batch,) = read_batches(build([(50, None, b"", ()), (90, None, b"", ()), (10, None, b"", ())]))
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (50, 90, CREATE_TIME)


def test_the_log_append_time_is_the_greatest_timestamp_and_sets_its_bit() -> None:
    (batch,) = read_batches(build([(50, None, b"", ()), (90, None, b"", ())], timestamp_type=LOG_APPEND_TIME, log_append_time=70))
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (50, 70, LOG_APPEND_TIME)


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    data = build([(50, b"k", None, ())], delete_horizon_ms=900)
    (batch,) = read_batches(data)
    assert (batch.base_timestamp, batch.delete_horizon_ms, batch.max_timestamp) == (900, 900, 50)


def test_a_builder_tells_what_went_in() -> None:
    builder = BatchBuilder(base_offset=5)
    for timestamp in (3, 9, 9, 4):
        builder.append(timestamp, None, b"x")
    assert (builder.count, builder.last_offset) == (4, 8)
    assert (builder.max_timestamp, builder.offset_of_max_timestamp) == (9, 6)


def test_the_estimated_size_of_a_plain_batch_is_its_size() -> None:
    builder = BatchBuilder()
    for _ in range(9):
        builder.append(0, b"k", b"v" * 99, [("h", b"x")])
    assert builder.estimated_size == len(builder.build())


def test_the_estimated_size_of_a_compressed_batch_follows_the_ratio_seen() -> None:
    builder = BatchBuilder(codec=ZSTD)
    builder.append(0, None, bytes(1000))
    plain = int(builder.uncompressed_size) - 61
    assert builder.estimated_size == 61 + int(plain * 1.05)
    builder.estimated_ratio = 0.5
    assert builder.estimated_size == 61 + int(plain * 0.5 * 1.05)


def test_offsets_may_leave_gaps_and_the_end_of_a_batch_can_be_kept() -> None:
    builder = BatchBuilder(base_offset=100)
    builder.append_at(103, 0, b"k", b"v")
    builder.append_at(110, 0, b"l", b"v")
    data = builder.build(last_offset=120)
    (batch,) = read_batches(data)
    assert (batch.base_offset, batch.last_offset, batch.count) == (100, 120, 2)
    assert [record.offset for record in read_records(data, batch)] == [103, 110]


def test_without_records_there_is_no_batch() -> None:
    assert BatchBuilder().build() == b""


def test_building_twice_gives_the_same_bytes() -> None:
    builder = BatchBuilder(codec=GZIP)
    builder.append(0, None, b"x")
    assert builder.build() == builder.build()


def test_offsets_never_step_back() -> None:
    builder = BatchBuilder(base_offset=5)
    builder.append_at(7, 0, None, b"")
    with pytest.raises(ValueError, match="Illegal offset 7 following previous offset 7"):
        builder.append_at(7, 0, None, b"")
    with pytest.raises(ValueError, match="Illegal offset 4"):
        BatchBuilder(base_offset=5).append_at(4, 0, None, b"")


def test_an_offset_too_far_from_the_base_is_refused() -> None:
    builder = BatchBuilder()
    builder.append_at(2**31 - 1, 0, None, b"")
    with pytest.raises(ValueError, match="Maximum offset delta exceeded"):
        builder.append(0, None, b"")


def test_a_negative_timestamp_is_refused_unless_it_means_none() -> None:
    builder = BatchBuilder()
    builder.append(-1, None, b"")
    with pytest.raises(ValueError, match="Invalid negative timestamp -2"):
        builder.append(-2, None, b"")


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_have_no_headers(magic: int) -> None:
    with pytest.raises(ValueError, match=f"Magic v{magic} does not support record headers"):
        build([(0, None, b"", [("h", b"")])], magic=magic)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"transactional": True}, "Transactional records"),
        ({"control": True}, "Control records"),
        ({"codec": ZSTD}, "ZStandard compression"),
        ({"delete_horizon_ms": 5}, "Delete horizon timestamp"),
    ],
)
def test_old_formats_lack_what_came_later(options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=f"{text} (is|are) not supported for magic 1"):
        BatchBuilder(magic=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"transactional": True}, "without a valid producer ID"),
        ({"producer_id": 1}, "Invalid negative producer epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "Invalid negative sequence number"),
        ({"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "magic": 1}, "not supported for magic 1"),
    ],
)
def test_half_a_producer_is_refused(options: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        build([(0, None, b"", ())], **options)


def test_a_timestamp_type_must_be_one() -> None:
    with pytest.raises(ValueError, match="TimestampType must be set"):
        BatchBuilder(timestamp_type=-1)


def test_a_header_name_java_could_not_encode_is_written_as_java_would() -> None:
    (record,) = records_of(build([(0, None, b"", [("\ud800", b"")])]))
    assert record.headers == [("?", b"")]
