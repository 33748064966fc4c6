"""The validator: what a leader takes as it is, what it changes, what it refuses and in which words."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cramjam import snappy
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.errors import (
    CorruptRecord,
    InvalidMagic,
    InvalidOffsetOrSequence,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    RecordTooLarge,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, MAGIC_V2, Batch, read_batches
from barnabas.records.builder import BatchBuilder, build, encode_batch
from barnabas.records.codecs.compression import FIRST_LOOK, GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.records.control import end_txn_marker
from barnabas.records.crc import crc32, crc32c, ensure_valid
from barnabas.records.legacy import write_entry
from barnabas.records.reader import read_records, records_of
from barnabas.records.validation.long_validation import LongValidation, placed, validate_whole
from barnabas.records.validation.validator import CLIENT, COORDINATOR, RAFT_LEADER, REPLICATION, Validated, ValidationRules, validate
from tests import golden

NOW = 1_700_000_000_000
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
PRODUCER = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 4}
WHERE = "topic-0"


class Way:
    """How `check` validates: in one call, or as the broker does with what takes longer than a turn of its loop. The outcome is the same."""

    in_steps = False


@pytest.fixture(params=["in one call", "in steps"], autouse=True)
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    Way.in_steps = request.param == "in steps"
    yield
    Way.in_steps = False


def check(data: bytes, base_offset: int = 100, origin: int = CLIENT, now_ms: int = NOW, **rules: Any) -> Validated:
    how = ValidationRules(topic_partition=WHERE, **rules)
    if Way.in_steps and how.target_magic == MAGIC_V2:  # all that a broker has
        return placed(LongValidation(data, 0, len(data), now_ms, 7, origin, how).finish(), base_offset, 7)
    return validate_whole(data, 0, len(data), base_offset, now_ms, 7, origin, how)


def output(validated: Validated) -> bytes:
    return b"".join(validated.buffers)


def batch_of(count: int = 3, codec: int = NONE, **options: Any) -> bytes:
    return build([(NOW + i, b"k%d" % i, b"v" * 20, [("h", b"x")]) for i in range(count)], codec=codec, **options)


def refusal(data: bytes, error: type[KafkaError], **options: Any) -> str:
    with pytest.raises(error) as raised:
        check(data, **options)
    assert type(raised.value) is error
    return str(raised.value)


def seal(data: bytes) -> bytes:
    """A v2 batch whose header or body was changed by hand, with a checksum to match."""
    return data[:17] + int(crc32c(data, 21, len(data))).to_bytes(4, "big") + data[21:]


def patched(data: bytes, at: int, content: bytes) -> bytes:
    return seal(data[:at] + content + data[at + len(content) :])


# -- a batch that suits the topic --


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_suits_keeps_its_bytes_but_for_offset_and_epoch(codec: int) -> None:
    data = batch_of(codec=codec, **PRODUCER)
    validated = check(data)
    assert output(validated) == (100).to_bytes(8, "big") + data[8:12] + (7).to_bytes(4, "big") + data[16:]
    assert (validated.size, validated.last_offset, validated.size_changed, validated.converted_count) == (len(data), 102, False, 0)


def test_the_rest_of_the_batch_is_not_copied() -> None:
    data = b"request header" + batch_of()
    validated = validate(data, 14, len(data), 100, NOW, 7, CLIENT, ValidationRules())
    stamp, rest = validated.buffers
    assert len(stamp) == 16
    assert isinstance(rest, memoryview)
    assert rest.obj is data


def test_the_batch_is_described_as_it_will_stand_in_the_log() -> None:
    validated = check(b"".join([batch_of(codec=ZSTD, **PRODUCER)]))
    (batch,) = validated.batches
    (stored,) = read_batches(output(validated))
    assert vars_of(batch) == vars_of(stored)
    assert (batch.at, batch.base_offset, batch.last_offset, batch.leader_epoch) == (0, 100, 102, 7)


def test_the_greatest_timestamp_stands_at_the_last_offset_of_its_batch() -> None:
    data = build([(NOW + 5, None, b"", ()), (NOW + 9, None, b"", ()), (NOW, None, b"", ())])
    validated = check(data)
    assert (validated.max_timestamp, validated.offset_of_max_timestamp, validated.log_append_time) == (NOW + 9, 102, -1)


def test_records_without_timestamps_have_no_greatest() -> None:
    validated = check(build([(-1, None, b"", ())] * 2), before_max_ms=1000)
    assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (-1, -1)


def test_a_wrong_greatest_timestamp_is_put_right() -> None:
    data = batch_of()
    lying = patched(data, 35, (NOW + 500).to_bytes(8, "big"))
    stored = output(check(lying))
    assert stored[16:] == data[16:]
    ensure_valid(stored, read_batches(stored)[0])


def test_a_plain_batch_costs_no_memory_and_a_compressed_one_what_it_unfolds_into() -> None:
    assert check(batch_of()).temporary_bytes == 0
    assert check(batch_of(codec=LZ4)).temporary_bytes == len(batch_of())


def test_a_tail_cut_short_is_left_out() -> None:
    data = batch_of()
    assert check(data + data[:-1]).size == len(data)


def test_attributes_kafka_does_not_know_pass_untouched() -> None:
    data = patched(batch_of(), 21, b"\x80\x80")
    assert output(check(data))[16:] == data[16:]


# -- timestamps --


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_stamped_on_the_header_alone(codec: int) -> None:
    data = batch_of(codec=codec)
    validated = check(data, timestamp_type=LOG_APPEND_TIME, now_ms=NOW + 77)
    stored = output(validated)
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert (batch.timestamp_type, batch.max_timestamp, batch.base_timestamp) == (LOG_APPEND_TIME, NOW + 77, NOW)
    assert stored[61:] == data[61:]
    assert vars_of(validated.batches[0]) == vars_of(batch)
    assert (validated.max_timestamp, validated.offset_of_max_timestamp, validated.log_append_time) == (NOW + 77, 102, NOW + 77)


def test_with_log_append_time_the_timestamps_of_producers_do_not_matter() -> None:
    check(build([(0, None, b"", ()), (NOW * 2, None, b"", ())]), timestamp_type=LOG_APPEND_TIME, before_max_ms=1)


def test_a_producer_may_not_claim_log_append_time_there() -> None:
    data = build([(NOW, b"k", b"val", ())], timestamp_type=LOG_APPEND_TIME, log_append_time=NOW)
    with pytest.raises(InvalidTimestamp) as raised:
        check(data, timestamp_type=LOG_APPEND_TIME)
    assert raised.value.record_errors == [
        (
            0,
            f"Invalid timestamp type in message Record(offset=0, timestamp={NOW}, key=1 bytes, value=3 bytes). "
            "Producer should not set timestamp type to LogAppendTime.",
        )
    ]


def test_with_create_time_a_claim_of_log_append_time_is_undone() -> None:
    data = build([(NOW - 5, b"k", b"v", ())], timestamp_type=LOG_APPEND_TIME, log_append_time=NOW)
    stored = output(check(data))
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert (batch.timestamp_type, batch.max_timestamp) == (CREATE_TIME, NOW)


def test_a_claim_of_log_append_time_without_a_time_is_refused() -> None:
    data = build([(-1, b"k", b"v", ())], timestamp_type=LOG_APPEND_TIME, log_append_time=-1)
    refusal(data, InvalidTimestamp)


@pytest.mark.parametrize("codec", [NONE, SNAPPY])
def test_timestamps_out_of_range_are_listed(codec: int) -> None:
    data = build([(NOW + moved, b"k", b"v", ()) for moved in (0, -1001, 2001, -1000, 2000)], codec=codec)
    with pytest.raises(InvalidTimestamp) as raised:
        check(data, before_max_ms=1000, after_max_ms=2000)
    assert str(raised.value) == "One or more records have been rejected due to invalid timestamp"
    assert [index for index, _ in raised.value.record_errors] == [1, 2]
    assert raised.value.record_errors[0][1] == (
        f"Timestamp {NOW - 1001} of message with offset 1 is out of range. The timestamp should be within [{NOW - 1000}, {NOW + 2000}]"
    )


def test_an_hour_ahead_is_the_default_limit_and_the_past_has_none() -> None:
    check(build([(0, None, b"", ()), (NOW + 3_600_000, None, b"", ())]))
    refusal(build([(NOW + 3_600_001, None, b"", ())]), InvalidTimestamp)


@pytest.mark.parametrize("base_timestamp", [2**63 - 1, -(2**63), 2**61])
def test_timestamps_that_overflow_are_refused(base_timestamp: int) -> None:
    data = patched(batch_of(), 27, base_timestamp.to_bytes(8, "big", signed=True))
    refusal(data, InvalidTimestamp)
    refusal(data, InvalidTimestamp, timestamp_type=LOG_APPEND_TIME)


# -- what is wrong with a batch --


def test_nothing_at_all_is_refused() -> None:
    assert refusal(b"", InvalidRecord) == "Record batch has no batches at all"
    assert refusal(batch_of()[:-1], InvalidRecord) == "Record batch has no batches at all"


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_one_append_is_one_batch(codec: int) -> None:
    assert refusal(batch_of(codec=codec) * 2, InvalidRecord) == "Compressed outer record has more than one batch"


def test_a_compressed_old_set_is_one_wrapper() -> None:
    wrapper = build([(NOW, b"k", b"v", ())], magic=1, codec=GZIP)
    plain = build([(NOW, b"k", b"v", ())], magic=1)
    for data in (wrapper + wrapper, plain + wrapper):
        assert refusal(data, InvalidRecord, target_magic=1) == "Compressed outer record has more than one batch"


def test_a_wrong_checksum_is_corrupt() -> None:
    data = batch_of()
    damaged = data[:-1] + b"\xff"
    stored = int.from_bytes(data[17:21], "big")
    assert refusal(damaged, CorruptRecord) == f"Record is corrupt (stored crc = {stored}) in topic partition topic-0."


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    data = batch_of()
    assert f"Invalid magic {magic}" in refusal(data[:16] + bytes([magic]) + data[17:], CorruptRecord)


def test_a_length_below_every_header_is_corrupt() -> None:
    data = batch_of()
    refusal(data[:8] + (10).to_bytes(4, "big") + data[12:], CorruptRecord)


def test_old_and_new_formats_do_not_mix() -> None:
    data = build([(NOW, b"k", b"v", ())], magic=1) + build([(-1, b"k", b"v", ())], magic=0)
    assert refusal(data, InvalidMagic) == "Batch magic 0 is not the same as the first batch's magic byte 1 in topic partition topic-0"


def test_a_batch_larger_than_the_topic_takes_is_refused_unless_it_is_replicated() -> None:
    data = batch_of()
    size = len(data)
    assert refusal(data, RecordTooLarge, max_message_bytes=size - 1) == (
        f"The record batch size in the append to topic-0 is {size} bytes which exceeds the maximum configured value of {size - 1}."
    )
    check(data, max_message_bytes=size)
    check(data, max_message_bytes=10, origin=REPLICATION)


def test_a_client_counts_from_offset_0() -> None:
    data = batch_of(base_offset=5)
    assert refusal(data, InvalidRecord) == "The baseOffset of the record batch in the append to topic-0 should be 0, but it is 5"
    assert check(data, origin=COORDINATOR).batches[0].base_offset == 100


def test_a_raft_leader_sets_the_epoch_itself() -> None:
    assert "did not set the batch epoch correctly" in refusal(batch_of(leader_epoch=6), InvalidRecord, origin=RAFT_LEADER)
    check(batch_of(leader_epoch=7), origin=RAFT_LEADER)


@pytest.mark.parametrize(
    ("delta", "count", "text"),
    [
        (-2, 3, "Batch has an invalid offset range: [0, -2]"),
        (0, 0, "Invalid reported count for record batch: 0"),
        (2, -3, "Invalid reported count for record batch: -3"),
        (5, 3, "Inconsistent batch offset range [0, 5] and count of records 3"),
    ],
)
@pytest.mark.parametrize("origin", [CLIENT, COORDINATOR])
def test_offsets_and_count_must_agree(delta: int, count: int, text: str, origin: int) -> None:
    data = batch_of()
    lying = patched(patched(data, 23, delta.to_bytes(4, "big", signed=True)), 57, count.to_bytes(4, "big", signed=True))
    assert refusal(lying, InvalidOffsetOrSequence, origin=origin) == f"{text} in topic partition topic-0"


def test_only_the_broker_writes_control_records() -> None:
    marker = end_txn_marker(True, 9, 1, 0, NOW)
    assert refusal(marker, InvalidRecord) == "Clients are not allowed to write control records in topic partition topic-0"
    assert output(check(marker, origin=COORDINATOR))[16:] == marker[16:]


@pytest.mark.parametrize("codec", CODECS)
def test_a_marker_is_never_compressed(codec: int) -> None:
    marker = end_txn_marker(False, 9, 1, 0, NOW)
    assert output(check(marker, origin=COORDINATOR, codec=codec))[16:] == marker[16:]


def test_an_idempotent_client_sends_a_sequence() -> None:
    data = patched(batch_of(**PRODUCER), 53, (-1).to_bytes(4, "big", signed=True))
    assert (
        refusal(data, InvalidOffsetOrSequence) == "Invalid sequence number -1 in record batch with producerId 9 in topic partition topic-0"
    )
    check(data, origin=COORDINATOR)


def test_a_transaction_has_a_producer() -> None:
    data = patched(batch_of(), 21, b"\x00\x10")
    assert "without a valid producer ID" in refusal(data, InvalidRecord)


@pytest.mark.parametrize(("transactional", "text"), [(True, "Transactional"), (False, "Idempotent")])
def test_producer_state_does_not_fit_in_an_old_format(transactional: bool, text: str) -> None:
    data = build([(NOW, b"k", b"v", ())], transactional=transactional, **PRODUCER)
    assert refusal(data, UnsupportedForMessageFormat, target_magic=1) == f"{text} records cannot be used with magic version 1"


def test_headers_do_not_fit_in_an_old_format() -> None:
    assert refusal(batch_of(), UnsupportedForMessageFormat, target_magic=1) == "Magic v1 does not support record headers"


def test_an_unknown_codec_is_refused() -> None:
    assert refusal(patched(batch_of(), 21, b"\x00\x05"), InvalidRecord) == "Unknown compression type id: 5"


def test_zstd_needs_format_v2() -> None:
    text = "ZStandard compression is not supported for magic 1"
    assert refusal(batch_of(codec=ZSTD), UnsupportedCompressionType, target_magic=1) == text
    assert refusal(build([(NOW, b"k", b"v", ())], magic=1), UnsupportedCompressionType, target_magic=1, codec=ZSTD) == text
    old = bytearray(build([(NOW, b"k", b"v", ())], magic=1))
    old[17] = ZSTD
    old[12:16] = int(crc32(bytes(old), 16, len(old))).to_bytes(4, "big")
    assert refusal(bytes(old), UnsupportedCompressionType) == text


def test_a_body_that_is_not_what_its_codec_says_is_corrupt() -> None:
    refusal(encode_batch(b"not gzip", GZIP, 0, 0, NOW, NOW, 1), CorruptRecord)


# -- what is wrong with records --


SIMPLE = bytes.fromhex("1c00000006 6b6579 0a 76616c7565 00")
FAULTS = [
    ("fewer records than counted", SIMPLE, 2, "premature EOF"),
    ("more records than counted", SIMPLE * 2, 1, "records still remaining"),
    ("a size behind the end", b"\x3a" + SIMPLE[1:], 1, "Invalid record size: expected 29"),
    ("a size too small", b"\x1a" + SIMPLE[1:], 1, "Invalid record size: expected to read 13"),
    ("a negative size", b"\x01" + SIMPLE[1:], 1, "Invalid record size"),
    ("a huge key", bytes.fromhex("12 00 00 00 feffffff0f 00"), 1, "Found invalid record structure"),
    ("a value behind the end", bytes.fromhex("0c 00 00 00 01 7e 00"), 1, "Found invalid record structure"),
    ("a negative header count", bytes.fromhex("0c 00 00 00 01 01 01"), 1, "Found invalid number of record headers"),
    ("a null header name", bytes.fromhex("10 00 00 00 01 01 02 01 01"), 1, "Invalid negative header key size"),
    ("nothing", b"", 1, "premature EOF"),
]


@pytest.mark.parametrize(("body", "count", "text"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_a_batch_is_refused_for(body: bytes, count: int, text: str, codec: int) -> None:
    data = encode_batch(compress(codec, body), codec, 0, count - 1, NOW, NOW, count)
    assert text in refusal(data + b"more", InvalidRecord)


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_compacted_topic_wants_keys(codec: int) -> None:
    data = build([(NOW, key, b"v", ()) for key in (b"a", None, b"", None, None, None)], codec=codec)
    assert check(data, compacted=False).last_offset == 105
    with pytest.raises(InvalidRecord) as raised:
        check(data, compacted=True)
    text = "Compacted topic cannot accept message without key in topic partition topic-0"
    assert raised.value.record_errors == [(index, text) for index in (1, 3, 4, 5)]
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index in (1, 3, 4))
    assert str(raised.value) == (
        "One or more records have been rejected due to 4 record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def test_a_bad_timestamp_beside_a_missing_key_makes_it_a_timestamp_error() -> None:
    with pytest.raises(InvalidTimestamp) as raised:
        check(build([(NOW, None, b"", ()), (NOW * 2, b"k", b"", ())]), compacted=True)
    assert [index for index, _ in raised.value.record_errors] == [0, 1]


@pytest.mark.parametrize("codec", [NONE, SNAPPY])
def test_offset_deltas_out_of_order_are_written_anew(codec: int) -> None:
    body = bytes.fromhex("0e 00 00 02 01 02 61 00" + "0e 00 00 02 01 02 62 00")
    data = encode_batch(compress(codec, body), codec, 0, 1, NOW, NOW, 2, 9, 1, 4)
    validated = check(data)
    stored = output(validated)
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert [(record.offset, record.value) for record in read_records(stored, batch)] == [(100, b"a"), (101, b"b")]
    assert (batch.codec, batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.leader_epoch) == (codec, 9, 1, 4, 7)
    assert (validated.size_changed, validated.converted_count) == (True, 2)


def test_a_control_batch_out_of_order_is_refused() -> None:
    marker = end_txn_marker(True, 9, 1, 0, NOW)
    assert "consecutive offsets" in refusal(patched(marker, 64, b"\x02"), InvalidRecord, origin=COORDINATOR)


# -- another codec --


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", CODECS)
def test_the_topic_decides_the_codec(source: int, target: int) -> None:
    data = batch_of(count=5, codec=source, transactional=True, **PRODUCER)
    validated = check(data, codec=target)
    stored = output(validated)
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert batch.codec == target
    assert contents(stored) == [(offset + 100, *rest) for offset, *rest in contents(data)]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (9, 1, 4, True)
    assert (validated.last_offset, validated.max_timestamp, validated.offset_of_max_timestamp) == (104, NOW + 4, 104)
    assert validated.size_changed == (source != target)
    assert validated.converted_count == (0 if source == target else 5)


@pytest.mark.parametrize("timestamp_type", [CREATE_TIME, LOG_APPEND_TIME])
@pytest.mark.parametrize("first_delta", [0, 3])
def test_recompressing_gives_the_bytes_a_builder_gives(timestamp_type: int, first_delta: int) -> None:
    data = batch_of()
    if first_delta:  # a batch no builder of Kafka's makes: it counts from a time before its first record
        builder = BatchBuilder(delete_horizon_ms=NOW - first_delta)
        for record in records_of(data):
            builder.append_record(record)
        data = patched(builder.build(), 21, b"\x00\x00")
    built = batch_of(codec=GZIP, base_offset=100, leader_epoch=7, timestamp_type=timestamp_type, log_append_time=NOW + 9)
    assert output(check(data, codec=GZIP, timestamp_type=timestamp_type, now_ms=NOW + 9)) == built


def test_the_level_is_the_topics() -> None:
    data = build([(NOW, None, bytes(range(256)) * 40, ())])
    assert output(check(data, codec=ZSTD, level=19))[61:] == compress(ZSTD, data[61:], level=19)


def test_a_batch_grown_too_large_is_refused() -> None:
    data = build([(NOW, None, bytes(5000), ())], codec=ZSTD)
    grown = 61 + 2 + 7 + 5000
    text = refusal(data, RecordTooLarge, codec=NONE, max_message_bytes=1000)
    assert text == f"Message batch size is {grown} bytes in append to partition topic-0 which exceeds the maximum configured size of 1000."


def test_a_negative_timestamp_passes_only_where_nothing_is_rebuilt() -> None:
    data = patched(build([(0, None, b"", ())]), 27, (-5).to_bytes(8, "big", signed=True))
    check(data)
    assert refusal(data, InvalidTimestamp, codec=GZIP) == "Invalid negative timestamp -5"


# -- other formats --


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("source", [0, 1, 2])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_records_are_converted_to_the_format_of_the_topic(source: int, target: int, codec: int) -> None:
    data = build([(NOW + i, b"k%d" % i, b"v", ()) for i in range(4)], magic=source, codec=codec)
    validated = check(data, target_magic=target)
    stored = output(validated)
    for batch in read_batches(stored):
        assert batch.magic == target
        ensure_valid(stored, batch)
    timestamps = [NOW + i if source and target else -1 for i in range(4)]
    assert contents(stored) == [(100 + i, timestamps[i], b"k%d" % i, b"v", []) for i in range(4)]
    assert (validated.last_offset, validated.size) == (103, len(stored))
    assert validated.max_timestamp == max(timestamps)
    assert [vars_of(batch) for batch in validated.batches] == [vars_of(batch) for batch in read_batches(stored)]


def test_old_plain_entries_keep_all_but_their_offsets() -> None:
    data = build([(NOW + (7 - i), b"k", b"v", ()) for i in range(3)], magic=1)
    validated = check(data, target_magic=1)
    assert output(validated) == build([(NOW + (7 - i), b"k", b"v", ()) for i in range(3)], magic=1, base_offset=100)
    assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (NOW + 7, 100)
    assert (validated.size_changed, validated.converted_count, validated.temporary_bytes) == (False, 0, 0)


def test_an_old_wrapper_that_suits_keeps_its_value() -> None:
    data = build([(NOW + i, b"k", b"v", ()) for i in range(3)], magic=1, codec=LZ4)
    validated = check(data, target_magic=1)
    assert output(validated) == (102).to_bytes(8, "big") + data[8:]
    assert (validated.max_timestamp, validated.offset_of_max_timestamp, validated.size_changed) == (NOW + 2, 102, False)


@pytest.mark.parametrize("codec", [NONE, SNAPPY])
def test_log_append_time_in_format_v1_goes_on_every_outer_entry(codec: int) -> None:
    data = build([(NOW + i, b"k", b"v", ()) for i in range(3)], magic=1, codec=codec)
    validated = check(data, target_magic=1, timestamp_type=LOG_APPEND_TIME, now_ms=NOW + 50)
    stored = output(validated)
    for batch in read_batches(stored):
        ensure_valid(stored, batch)
        assert batch.timestamp_type == LOG_APPEND_TIME
    assert [(record.offset, record.timestamp) for record in records_of(stored)] == [(100 + i, NOW + 50) for i in range(3)]
    assert (validated.max_timestamp, validated.log_append_time) == (NOW + 50, NOW + 50)
    assert validated.offset_of_max_timestamp == (102 if codec else 100)
    assert len(stored) == len(data)


def test_log_append_time_has_no_place_in_format_v0() -> None:
    data = build([(-1, b"k", b"v", ())] * 2, magic=0)
    validated = check(data, target_magic=0, timestamp_type=LOG_APPEND_TIME)
    assert output(validated) == build([(-1, b"k", b"v", ())] * 2, magic=0, base_offset=100)
    assert (validated.max_timestamp, validated.offset_of_max_timestamp) == (-1, -1)


def test_a_v0_wrapper_is_written_anew_because_its_inner_offsets_are_absolute() -> None:
    data = build([(-1, b"k%d" % i, b"v", ()) for i in range(3)], magic=0, codec=GZIP)
    validated = check(data, target_magic=0)
    assert output(validated) == build([(-1, b"k%d" % i, b"v", ()) for i in range(3)], magic=0, codec=GZIP, base_offset=100)
    assert validated.size_changed


def test_a_v1_wrapper_with_wrong_inner_offsets_is_written_anew() -> None:
    data = wrapper_of([(0, b"a"), (0, b"b"), (5, b"c")])
    validated = check(data, target_magic=1)
    assert [(record.offset, record.value) for record in records_of(output(validated))] == [(100, b"a"), (101, b"b"), (102, b"c")]
    assert validated.size_changed


def test_an_inner_entry_may_not_be_compressed_again() -> None:
    assert refusal(wrapper_of([(0, b"a")], attributes=GZIP), InvalidRecord, target_magic=1) == "Inner messages must not be compressed"


def test_plain_old_entries_are_wrapped_where_the_topic_compresses() -> None:
    data = build([(NOW + i, b"k", b"v", ()) for i in range(3)], magic=1)
    validated = check(data, target_magic=1, codec=GZIP)
    assert output(validated) == build([(NOW + i, b"k", b"v", ()) for i in range(3)], magic=1, codec=GZIP, base_offset=100)
    assert (validated.offset_of_max_timestamp, validated.converted_count) == (102, 3)


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_old_records_obey_the_rules_of_the_topic_too(codec: int) -> None:
    data = build([(NOW, None, b"v", ())], magic=1, codec=codec)
    assert "without key" in refusal(data, InvalidRecord, target_magic=1, compacted=True)
    refusal(build([(NOW * 2, None, b"v", ())], magic=1, codec=codec), InvalidTimestamp, target_magic=1)


def test_an_old_batch_that_claims_log_append_time_is_refused_where_the_broker_sets_it() -> None:
    data = build([(NOW, b"k", b"v", ())], magic=1, timestamp_type=LOG_APPEND_TIME, log_append_time=NOW)
    refusal(data, InvalidTimestamp, target_magic=1, timestamp_type=LOG_APPEND_TIME)


# -- what Apache Kafka made of the same input --


def test_log_append_time_gives_the_bytes_of_kafka() -> None:
    offset = 0
    for sent, stored in zip(sent_batches("4.2.0", "g-none"), stored_batches("4.2.0", "g-logappend"), strict=True):
        now_ms = read_batches(stored)[0].max_timestamp
        rules = ValidationRules(timestamp_type=LOG_APPEND_TIME)
        validated = validate(sent, 0, len(sent), offset, now_ms, 0, CLIENT, rules)
        assert output(validated) == stored
        offset = validated.last_offset + 1


def test_decompressing_gives_the_bytes_of_kafka() -> None:
    assert appended(sent_batches("4.2.0", "g-lz4"), codec=NONE) == b"".join(stored_batches("4.2.0", "g-uncompress"))


def test_recompressing_gives_the_records_and_headers_of_kafka() -> None:
    ours = appended(sent_batches("4.2.0", "g-none"), codec=GZIP)
    theirs = b"".join(stored_batches("4.2.0", "g-recompress"))
    assert contents(ours) == contents(theirs)
    for our, their in zip(read_batches(ours), read_batches(theirs), strict=True):
        assert ours[our.at + 21 : our.at + 61] == theirs[their.at + 21 : their.at + 61]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("target", "prefix"), [(0, "m082"), (1, "m0100")])
def test_converting_down_gives_what_kafka_wrote(target: int, prefix: str, codec: str) -> None:
    sent = [without_headers(data) for data in sent_batches("2.8.2", f"m28-{codec}")]
    ours = appended(sent, target_magic=target)
    theirs = b"".join(stored_batches("2.8.2", f"{prefix}-{codec}"))
    assert contents(ours) == contents(theirs)
    assert [(batch.base_offset, batch.attributes, batch.max_timestamp) for batch in read_batches(ours)] == [
        (batch.base_offset, batch.attributes, batch.max_timestamp) for batch in read_batches(theirs)
    ]
    if codec == "none":
        assert ours == theirs


# -- properties --


content = st.none() | st.binary(max_size=60)
records = st.lists(
    st.tuples(st.integers(-1, NOW + 1000), content, content, st.lists(st.tuples(st.text("ab", max_size=3), content), max_size=2)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=80)
@given(
    records,
    st.sampled_from(CODECS),
    st.sampled_from([None, *CODECS]),
    st.sampled_from([CREATE_TIME, LOG_APPEND_TIME]),
    st.integers(0, 2**60),
)
def test_whatever_is_taken_stands_in_the_log_as_it_was_sent(
    sent: list[Any], source: int, target: int | None, timestamp_type: int, base_offset: int
) -> None:
    data = build(sent, codec=source)
    validated = check(data, base_offset, codec=target, timestamp_type=timestamp_type)
    stored = output(validated)
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert vars_of(validated.batches[0]) == vars_of(batch)
    assert (batch.base_offset, batch.last_offset) == (base_offset, validated.last_offset)
    assert (validated.size, validated.max_timestamp) == (len(stored), batch.max_timestamp)
    timestamps = [NOW] * len(sent) if timestamp_type == LOG_APPEND_TIME else [record[0] for record in sent]
    assert contents(stored) == [(base_offset + i, timestamps[i], *record[1:]) for i, record in enumerate(sent)]


SENT = {codec: batch_of(6, codec) for codec in CODECS}


@settings(max_examples=300)
@given(st.sampled_from(CODECS), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_belongs_to_the_broker(codec: int, place: int, mask: int) -> None:
    data = SENT[codec]
    position = place % len(data)
    damaged = data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]
    try:
        validated = check(damaged)
    except (CorruptRecord, InvalidRecord):
        return
    assert 12 <= position < 16  # the leader epoch, which is stamped anyway
    assert output(validated) == output(check(data))


@settings(max_examples=400)
@given(st.sampled_from(CODECS), st.integers(0, 10_000), st.binary(min_size=1, max_size=9), st.sampled_from([None, NONE, LZ4]))
def test_a_damaged_batch_with_a_matching_checksum_is_refused_or_stands_readable(
    codec: int, place: int, damage: bytes, target: int | None
) -> None:
    data = SENT[codec]
    position = 21 + place % (len(data) - 21 - len(damage))
    try:
        stored = output(check(patched(data, position, damage), codec=target))
    except (CorruptRecord, InvalidRecord, InvalidTimestamp):
        return
    (batch,) = read_batches(stored)
    ensure_valid(stored, batch)
    assert [record.offset for record in read_records(stored, batch)] == list(range(100, batch.last_offset + 1))


@settings(max_examples=300)
@given(st.binary(max_size=150), st.sampled_from([0, 1, 2]))
def test_garbage_is_refused(garbage: bytes, magic: int) -> None:
    data = garbage[:16] + bytes([magic]) + garbage[17:]
    with pytest.raises((CorruptRecord, InvalidRecord, UnsupportedCompressionType)):
        check(data, target_magic=magic)


def contents(data: bytes) -> list[tuple[Any, ...]]:
    return [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in records_of(data)]


def vars_of(batch: Batch) -> tuple[int, ...]:
    return (
        batch.at,
        batch.size,
        batch.magic,
        batch.attributes,
        batch.crc,
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.count,
    )


def wrapper_of(inner: list[tuple[int, bytes]], attributes: int = 0) -> bytes:
    entries = BytesWriter()
    for offset, value in inner:
        write_entry(entries, 1, offset, NOW, attributes, b"k", value)
    out = BytesWriter()
    write_entry(out, 1, inner[-1][0], NOW, GZIP, None, compress(GZIP, entries.getvalue(), 1))
    return out.getvalue()


def stored_batches(version: str, topic: str) -> list[bytes]:
    path: Path = golden.LOGS / f"kafka-{version}" / "first" / f"{topic}-0" / "00000000000000000000.log"
    data = path.read_bytes()
    return [data[batch.at : batch.end] for batch in read_batches(data)]


def sent_batches(version: str, topic: str) -> list[bytes]:
    """What the producer had sent: the stored batches before the broker stamped offset and epoch on them."""
    return [bytes(8) + stored[8:12] + b"\xff" * 4 + stored[16:] for stored in stored_batches(version, topic)]


def without_headers(data: bytes) -> bytes:
    """The golden producer sent the same records to topics with an old format, without the headers they have no room for."""
    return build([(record.timestamp, record.key, record.value, ()) for record in records_of(data)], codec=read_batches(data)[0].codec)


def appended(batches: list[bytes], **rules: Any) -> bytes:
    log = b""
    offset = 0
    for data in batches:
        validated = validate(data, 0, len(data), offset, NOW, 0, CLIENT, ValidationRules(**rules))
        log += output(validated)
        offset = validated.last_offset + 1
    return log


# -- what unfolds into much


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(codec: int, body: bytes, count: int = 1) -> bytes:
    return bytes(encode_batch(compress(codec, body), codec, 0, count - 1, NOW, NOW, count, -1, -1, -1, -1))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_that_holds_no_records_is_refused_before_it_is_opened(codec: int) -> None:
    data = bomb(codec, bytes(32 * FIRST_LOOK))
    message = "Invalid record size: expected to read 0 bytes in record payload, but instead read 6"
    assert peak_bytes(lambda: message in refusal(data, InvalidRecord, max_message_bytes=10_000_000)) < 5 * FIRST_LOOK
    assert message in refusal(data, InvalidRecord, max_message_bytes=10_000_000)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_with_more_records_than_it_says_is_refused_before_it_is_opened(codec: int) -> None:
    one = build([(NOW, None, b"", ())])[61:]
    data = bomb(codec, one * (FIRST_LOOK // len(one) + 1))
    message = refusal(data, InvalidRecord, max_message_bytes=10_000_000)
    assert message == "Incorrect declared batch size, records still remaining in file"


@pytest.mark.parametrize("codec", CODECS[1:])
def test_records_that_unfold_into_more_than_a_first_look_are_taken(codec: int) -> None:
    for records in ([(NOW, b"k", bytes(3 * FIRST_LOOK), ())], [(NOW, b"k", b"v" * 1000, ())] * 5000):
        data = build(records, codec=codec)
        validated = check(data, max_message_bytes=10_000_000)
        assert [record.value for record in records_of(output(validated))] == [record[2] for record in records]


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("more", [-30, -12, -11, -10, -9, -1, 0, 1, 12, 65536])
def test_records_about_as_large_as_a_first_look_are_taken(codec: int, more: int) -> None:
    records = [(NOW, b"k", b"v", ()), (NOW, None, bytes(FIRST_LOOK + more), ())]
    validated = check(build(records, codec=codec), max_message_bytes=10_000_000)
    assert [record.value for record in records_of(output(validated))] == [record[2] for record in records]


def test_one_block_of_snappy_without_a_frame_is_taken_whatever_its_size() -> None:
    """As librdkafka and kafkajs send it: there is no beginning to look at but all of it."""
    body = build([(NOW, None, bytes(FIRST_LOOK + 100), ())])[61:]
    data = bytes(encode_batch(bytes(snappy.compress_raw(body)), SNAPPY, 0, 0, NOW, NOW, 1, -1, -1, -1, -1))
    assert [len(record.value or b"") for record in records_of(output(check(data, max_message_bytes=10_000_000)))] == [FIRST_LOOK + 100]


def test_a_batch_is_held_open_once_while_its_records_are_looked_at_one_by_one() -> None:
    size = 8 * FIRST_LOOK
    data = build([(NOW, None, bytes(size), ())], codec=GZIP)
    assert peak_bytes(lambda: refusal(data, InvalidRecord, compacted=True)) < 3.5 * size


def test_of_very_many_bad_records_the_first_are_told() -> None:
    with pytest.raises(InvalidRecord) as raised:
        check(build([(NOW, None, b"", ())] * 11_000), compacted=True)
    assert len(raised.value.record_errors) == 10_000


def test_a_wrapper_of_very_many_entries_is_not_kept_as_so_many_records() -> None:
    out = BytesWriter()
    for _ in range(8_000):
        write_entry(out, 1, 0, NOW, 0, None, b"")
    inner = out.getvalue()
    wrapper = BytesWriter()
    write_entry(wrapper, 1, 0, NOW, GZIP, None, compress(GZIP, inner, 1))
    data = wrapper.getvalue()
    assert peak_bytes(lambda: check(data)) < 5 * len(inner)
    assert check(data).last_offset == 100 + 7_999
