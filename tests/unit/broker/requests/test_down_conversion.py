from __future__ import annotations

import pytest

from barnabas.broker.requests.down_conversion import OVERFLOW, SLICE_BYTES, DownConversion, magic_for
from barnabas.errors import CorruptRecord, UnsupportedCompressionType
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import GZIP, NONE, ZSTD
from barnabas.records.control import end_txn_marker
from barnabas.records.reader import records_of


def batch(base_offset: int, count: int = 1, *, size: int = 100, codec: int = NONE, magic: int = 2) -> bytes:
    builder = BatchBuilder(magic, codec, base_offset)
    for index in range(count):
        builder.append(1000 + index, b"key", b"v" * size)
    return builder.build()


def convert(data: bytes, magic: int = 1, first_offset: int = 0) -> bytes:
    conversion = DownConversion(data, magic, first_offset)
    for _ in conversion.slices():
        pass
    return conversion.converted


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in records_of(data)]


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, None), (18, None)])
def test_each_version_has_its_format(version: int, magic: int | None) -> None:
    assert magic_for(version) == magic


def test_batches_are_converted_one_by_one() -> None:
    converted = convert(batch(0) + batch(1) + batch(2))
    assert [batch_read.magic for batch_read in read_batches(converted)] == [1, 1, 1]
    assert offsets(converted) == [0, 1, 2]


def test_a_compressed_batch_keeps_its_codec() -> None:
    converted = convert(batch(0, 5, codec=GZIP))
    assert [found.codec for found in read_batches(converted)] == [GZIP]
    assert offsets(converted) == [0, 1, 2, 3, 4]


def test_a_batch_that_is_old_enough_stays_as_it_is() -> None:
    data = batch(0, magic=0)
    assert convert(data) == data


def test_no_more_is_given_than_was_read() -> None:
    data = b"".join(batch(offset, 3, size=10) for offset in range(0, 30, 3))
    converted = convert(data)
    assert 0 < len(converted) <= len(data)
    assert offsets(converted) == list(range(len(offsets(converted))))


def test_the_first_batch_is_given_however_large_it_becomes() -> None:
    data = batch(0, 10, size=1)
    converted = convert(data)
    assert len(converted) > len(data)
    assert offsets(converted) == list(range(10))


def test_what_lies_before_the_offset_asked_for_is_left_out() -> None:
    assert offsets(convert(batch(0, 5), first_offset=3)) == [3, 4]


def test_a_tail_that_was_cut_is_left_out() -> None:
    assert offsets(convert(batch(0, 1, size=1000) + batch(1, 1, size=1000)[:-1])) == [0]


@pytest.mark.parametrize("data", [batch(0)[:50], end_txn_marker(True, 1, 0, 0, 1000, 0)], ids=["a cut batch", "a marker"])
def test_where_nothing_can_be_given_the_consumer_learns_that_there_is_something(data: bytes) -> None:
    assert convert(data) == OVERFLOW


def test_nothing_stays_nothing() -> None:
    assert convert(b"") == b""


def test_zstd_is_refused() -> None:
    with pytest.raises(UnsupportedCompressionType):
        convert(batch(0, codec=ZSTD))


def test_what_comes_before_a_batch_that_cannot_be_converted_is_given() -> None:
    assert offsets(convert(batch(0, size=1000) + batch(1, codec=ZSTD))) == [0]


def test_damage_is_told_when_it_comes_first() -> None:
    damaged = b"\x00" * 8 + (10_000).to_bytes(4, "big", signed=True) + b"\x00" * 4 + b"\x09" + b"\x00" * 20_000
    with pytest.raises(CorruptRecord):
        convert(damaged)
    assert offsets(convert(batch(0, size=30_000) + damaged)) == [0]


def test_there_is_a_pause_after_every_slice() -> None:
    data = b"".join(batch(offset, size=SLICE_BYTES // 2) for offset in range(8))
    assert len(list(DownConversion(data, 1, 0).slices())) == 4
