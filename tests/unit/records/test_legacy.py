"""Message formats v0 and v1: the sizes and rules of the specification, and every record that Apache Kafka 2.8 wrote in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.errors import CorruptRecord, InvalidRecord, KafkaError
from barnabas.records import legacy
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, Batch, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, codec_name, compress
from barnabas.records.crc import is_valid

GOLDEN = Path(__file__).parents[2] / "data" / "golden-logs" / "kafka-2.8.2" / "first"
OLD_TOPICS = sorted(path.name for path in GOLDEN.glob("m0*"))
TIMESTAMP_TYPES = {"NoTimestampType": NO_TIMESTAMP_TYPE, "CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}

Content = bytes | None
contents = st.none() | st.binary(max_size=60)
message_sets = st.lists(st.tuples(st.integers(-1, 2**63 - 1), contents, contents), min_size=1, max_size=20)


def entry(magic: int, offset: int = 0, timestamp: int = -1, attributes: int = 0, key: Content = None, value: Content = b"value") -> bytes:
    out = BytesWriter()
    legacy.write_entry(out, magic, offset, timestamp, attributes, key, value)
    return out.getvalue()


def wrapper(magic: int, offset: int, inner: bytes, timestamp: int = -1, codec: int = GZIP, attributes: int = 0) -> bytes:
    return entry(magic, offset, timestamp, attributes | codec, None, compress(codec, inner, magic))


def only_batch(data: bytes) -> Batch:
    (batch,) = read_batches(data)
    return batch


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in legacy.read_records(data, only_batch(data))]


def test_a_v0_entry_with_key_and_value_takes_34_bytes() -> None:
    assert len(entry(0, key=b"key")) == 34


def test_a_v0_entry_without_key_takes_31_bytes_and_65_after_the_first() -> None:
    assert len(entry(0)) == 31
    assert len(entry(0, key=b"key") + entry(0, 1)) == 65


def test_a_v1_entry_takes_8_bytes_more_for_its_timestamp() -> None:
    assert len(entry(1, timestamp=1, key=b"key")) == 42


def test_ten_records_of_six_bytes_take_320_bytes_in_v0_and_400_in_v1() -> None:
    for magic, size in ((0, 320), (1, 400)):
        builder = BatchBuilder(magic)
        for _ in range(10):
            builder.append(1, None, b"value1")
        assert len(builder.build()) == size


@settings(max_examples=100)
@given(message_sets, st.sampled_from([0, 1]), st.sampled_from([NONE, GZIP, SNAPPY, LZ4]), st.integers(0, 2**40))
def test_any_records_survive_build_and_read(messages: list[tuple[int, Content, Content]], magic: int, codec: int, base_offset: int) -> None:
    builder = BatchBuilder(magic, codec, base_offset)
    for timestamp, key, value in messages:
        builder.append(timestamp, key, value)
    data = builder.build()
    batches = read_batches(data)
    assert all(is_valid(data, batch) for batch in batches)
    assert len(batches) == (1 if codec else len(messages))
    records = [record for batch in batches for record in legacy.read_records(data, batch)]
    assert [(record.key, record.value) for record in records] == [(key, value) for _, key, value in messages]
    assert [record.timestamp for record in records] == [timestamp if magic else -1 for timestamp, _, _ in messages]
    assert [record.offset for record in records] == list(range(base_offset, base_offset + len(messages)))
    assert legacy.base_offset(data, batches[0]) == base_offset


@settings(max_examples=200)
@given(st.data(), st.sampled_from([0, 1]), st.sampled_from([NONE, GZIP, SNAPPY, LZ4]))
def test_damaged_entries_end_in_an_error_of_kafka_or_in_records_inside_the_data(data: st.DataObject, magic: int, codec: int) -> None:
    inner = entry(magic, 0, 5, key=b"a", value=b"first") + entry(magic, 1, 6, value=b"second")
    damaged = bytearray(inner)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    log = wrapper(magic, 1, bytes(damaged), 6, codec) if codec else bytes(damaged)
    try:
        for batch in read_batches(log):
            for record in legacy.read_records(log, batch):
                assert len(record.key or b"") <= len(record.data)
                assert record.value_at + max(0, record.value_size) <= len(record.data)
    except KafkaError:
        pass


def test_the_inner_offsets_of_v0_are_absolute() -> None:
    data = wrapper(0, 42, entry(0, 40) + entry(0, 42))
    assert offsets(data) == [40, 42]
    assert legacy.base_offset(data, only_batch(data)) == 40


def test_the_inner_offsets_of_v1_count_back_from_the_wrapper() -> None:
    data = wrapper(1, 1030, b"".join(entry(1, n, n) for n in range(6)), 5)
    assert offsets(data) == list(range(1025, 1031))
    assert legacy.base_offset(data, only_batch(data)) == 1025


def test_the_inner_offsets_of_v1_keep_the_gaps_of_compaction() -> None:
    assert offsets(wrapper(1, 107, entry(1, 2) + entry(1, 5) + entry(1, 7))) == [102, 105, 107]


def test_a_v1_wrapper_at_offset_zero_leaves_the_inner_offsets_as_they_are() -> None:
    assert offsets(wrapper(1, 0, entry(1, 0) + entry(1, 1) + entry(1, 2))) == [0, 1, 2]


def test_a_v1_wrapper_below_its_last_inner_offset_is_invalid() -> None:
    with pytest.raises(InvalidRecord, match="wrapper offset '1' is less than the last inner message offset '2' and it is not zero"):
        offsets(wrapper(1, 1, entry(1, 0) + entry(1, 2)))


def test_create_time_is_that_of_each_inner_record() -> None:
    data = wrapper(1, 1, entry(1, 0, 100) + entry(1, 1, 90), 100)
    records = legacy.read_records(data, only_batch(data))
    assert [(record.timestamp, record.timestamp_type) for record in records] == [(100, CREATE_TIME), (90, CREATE_TIME)]


def test_log_append_time_of_the_wrapper_overrides_the_inner_timestamps() -> None:
    data = wrapper(1, 1, entry(1, 0, 100) + entry(1, 1, 90), 777, attributes=0x08)
    records = legacy.read_records(data, only_batch(data))
    assert [(record.timestamp, record.timestamp_type) for record in records] == [(777, LOG_APPEND_TIME)] * 2


def test_the_wrapper_built_from_v1_records_carries_the_last_offset_and_the_largest_timestamp() -> None:
    builder = BatchBuilder(1, LZ4, 10)
    for timestamp in (5, 9, 7):
        builder.append(timestamp, None, b"v")
    data = builder.build()
    batch = only_batch(data)
    assert (batch.last_offset, batch.max_timestamp, batch.codec) == (12, 9, LZ4)
    inner = legacy.wrapped_entries(data, batch)
    assert [(one.base_offset, one.max_timestamp, one.codec) for one in read_batches(inner)] == [(0, 5, 0), (1, 9, 0), (2, 7, 0)]


def test_the_wrapper_built_with_log_append_time_carries_it() -> None:
    builder = BatchBuilder(1, GZIP, 0, timestamp_type=LOG_APPEND_TIME, log_append_time=123)
    builder.append(5, None, b"v")
    batch = only_batch(builder.build())
    assert (batch.max_timestamp, batch.timestamp_type) == (123, LOG_APPEND_TIME)


def test_an_inner_record_with_a_wrong_checksum_is_corrupt() -> None:
    inner = bytearray(entry(1, 0, 5))
    inner[-1] ^= 1
    with pytest.raises(CorruptRecord, match=r"Record is corrupt \(stored crc = \d+, computed crc = \d+\)"):
        offsets(wrapper(1, 0, bytes(inner)))


def test_an_inner_record_of_another_format_is_invalid() -> None:
    with pytest.raises(InvalidRecord, match="Compressed message magic 0 does not match wrapper magic 1"):
        offsets(wrapper(1, 0, entry(0)))


def test_an_inner_record_may_not_be_compressed() -> None:
    with pytest.raises(InvalidRecord, match="Inner messages must not be compressed"):
        offsets(wrapper(1, 0, wrapper(1, 0, entry(1))))


def test_a_wrapper_without_records_is_invalid() -> None:
    with pytest.raises(InvalidRecord, match="Found invalid compressed record set with no inner records"):
        offsets(wrapper(1, 0, b""))


def test_a_wrapper_without_a_value_is_invalid() -> None:
    with pytest.raises(InvalidRecord, match="Found invalid compressed record set with null value"):
        offsets(entry(1, 0, attributes=GZIP, value=None))


def test_zstd_has_no_place_in_the_old_formats() -> None:
    with pytest.raises(InvalidRecord, match="Invalid wrapper compressionType"):
        offsets(wrapper(1, 0, entry(1), codec=ZSTD))


def test_a_last_inner_record_cut_short_is_left_out_as_kafka_does() -> None:
    assert offsets(wrapper(0, 8, entry(0, 7) + entry(0, 8)[:-1])) == [7]


def test_an_inner_record_smaller_than_any_is_corrupt() -> None:
    with pytest.raises(CorruptRecord, match="smaller than minimum record overhead"):
        offsets(wrapper(0, 0, bytes(8) + b"\x00\x00\x00\x0d" + bytes(13)))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_size_that_reaches_past_the_entry_is_corrupt(magic: int) -> None:
    data = bytearray(entry(magic, 3, key=b"key"))
    key_size_at = 18 if magic == 0 else 26
    for at in (key_size_at, key_size_at + 7):
        damaged = data.copy()
        damaged[at : at + 4] = (1000).to_bytes(4, "big")
        with pytest.raises(CorruptRecord, match="The message at offset 3"):
            legacy.read_records(bytes(damaged), only_batch(bytes(damaged)))


def test_a_wrapper_that_unfolds_past_the_limit_is_corrupt() -> None:
    data = wrapper(1, 0, entry(1, value=bytes(100_000)))
    with pytest.raises(CorruptRecord, match="gzip: more than 5000 bytes"):
        legacy.read_records(data, only_batch(data), 5000)


def test_writing_refuses_what_the_formats_do_not_know() -> None:
    with pytest.raises(ValueError, match="Invalid magic value 2"):
        entry(2)
    with pytest.raises(ValueError, match="Invalid message timestamp -2"):
        entry(1, timestamp=-2)


def dumped_records(topic: str) -> list[dict[str, str]]:
    """What Kafka's own dump printed of each record."""
    pattern = re.compile(
        r"\| offset: (?P<offset>\d+) isValid: true crc: (?P<crc>\d+) keySize: (?P<key_size>-?\d+) valueSize: (?P<value_size>-?\d+) "
        r"(?P<type>\w+): (?P<timestamp>-?\d+) baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) .* "
        r"batchSize: (?P<size>\d+) magic: (?P<magic>\d) compressType: (?P<codec>\w+) position: (?P<position>\d+) .*?isvalid: true"
        r"(?: key: (?P<key>\S*))?(?: payload: (?P<payload>.*))?$"
    )
    matches = [pattern.match(line) for line in (GOLDEN / topic / "DUMP.txt").read_text().splitlines() if line.startswith("| offset")]
    assert matches
    return [match.groupdict("") for match in matches if match]


def segments(topic: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((GOLDEN / topic).glob("*.log"))]


def read_as_dumped(data: bytes) -> list[dict[str, str]]:
    """The fields of `dumped_records`, read from a segment."""
    names = {number: name for name, number in TIMESTAMP_TYPES.items()}
    records_found = []
    for batch in read_batches(data):
        assert is_valid(data, batch)
        entries = read_batches(legacy.wrapped_entries(data, batch)) if batch.codec else [batch]
        for record, one in zip(legacy.read_records(data, batch), entries, strict=True):
            records_found.append(
                {
                    "offset": str(record.offset),
                    "crc": str(one.crc),
                    "key_size": str(record.key_size),
                    "value_size": str(record.value_size),
                    "type": names[record.timestamp_type],
                    "timestamp": str(record.timestamp),
                    "base_offset": str(legacy.base_offset(data, batch)),
                    "last_offset": str(batch.last_offset),
                    "size": str(batch.size),
                    "magic": str(batch.magic),
                    "codec": codec_name(batch.codec).upper(),
                    "position": str(batch.at),
                    "key": (record.key or b"").decode(),
                    "payload": (record.value or b"").decode(),
                }
            )
    return records_found


@pytest.mark.parametrize("topic", OLD_TOPICS)
def test_every_record_reads_as_kafka_dumped_it(topic: str) -> None:
    assert [record for data in segments(topic) for record in read_as_dumped(data)] == dumped_records(topic)


@pytest.mark.parametrize("topic", OLD_TOPICS)
def test_entries_written_again_have_kafkas_bytes(topic: str) -> None:
    for data in segments(topic):
        for batch in read_batches(data):
            inner = legacy.wrapped_entries(data, batch) if batch.codec else data[batch.at : batch.end]
            out = BytesWriter()
            for one in read_batches(inner):
                (record,) = legacy.read_records(inner, one)
                legacy.write_entry(out, one.magic, one.base_offset, one.max_timestamp, one.attributes, record.key, record.value)
            assert out.getvalue() == inner


@pytest.mark.parametrize("topic", ["m082-lz4-0", "m0100-lz4-0"])
def test_wrappers_built_again_have_kafkas_bytes(topic: str) -> None:
    (data,) = segments(topic)
    for batch in read_batches(data):
        records = legacy.read_records(data, batch)
        builder = BatchBuilder(batch.magic, batch.codec, records[0].offset)
        for record in records:
            builder.append_at(record.offset, record.timestamp, record.key, record.value)
        assert builder.build() == data[batch.at : batch.end]
