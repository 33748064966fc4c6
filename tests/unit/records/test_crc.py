"""Checksums: known values, what each format covers, and that damage is found."""

from __future__ import annotations

import os
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord
from barnabas.records.batch import Batch, read_batches
from barnabas.records.builder import build
from barnabas.records.crc import batch_crc, crc32, crc32c, ensure_valid, extend_crc32c, is_valid
from tests import golden

CHECK = b"123456789"


def test_crc32c_is_castagnolis() -> None:
    assert crc32c(b"__" + CHECK + b"__", 2, 11) == 0xE3069283


def test_crc32_is_zlibs() -> None:
    assert crc32(b"__" + CHECK + b"__", 2, 11) == 0xCBF43926


@pytest.mark.parametrize("size", [0, 1, 131072, 131073, 400_001])
def test_long_ranges_have_the_checksum_of_the_whole(size: int) -> None:
    data = os.urandom(size + 7)
    assert crc32c(data, 3, 3 + size) == google_crc32c.value(data[3 : 3 + size])


def test_a_checksum_can_be_continued() -> None:
    assert extend_crc32c(crc32c(CHECK, 0, 4), CHECK, 4, 9) == crc32c(CHECK, 0, 9)


@pytest.mark.parametrize("directory", golden.partitions(), ids=golden.name)
def test_every_batch_kafka_wrote_is_valid(directory: Path) -> None:
    for path in golden.files(directory):
        if path.suffix == ".log":
            data = path.read_bytes()
            for batch in read_batches(data):
                ensure_valid(data, batch)
                assert is_valid(data, batch)


def test_offset_and_leader_epoch_are_not_covered() -> None:
    data, batch = a_batch()
    for position in (*range(8), *range(12, 16)):
        assert is_valid(flipped(data, position), batch)


@given(st.integers(21, 100), st.integers(0, 7))
def test_any_bit_from_the_attributes_on_is_covered(position: int, bit: int) -> None:
    data, batch = a_batch()
    with pytest.raises(CorruptRecord):
        ensure_valid(flipped(data, position, bit), batch)


def test_the_error_names_both_checksums() -> None:
    data, batch = a_batch()
    damaged = flipped(data, 61)
    with pytest.raises(CorruptRecord) as refusal:
        ensure_valid(damaged, batch)
    assert str(refusal.value) == f"Record is corrupt (stored crc = {batch.crc}, computed crc = {batch_crc(damaged, batch)})"


def test_a_batch_smaller_than_its_header_is_refused() -> None:
    data, batch = a_batch()
    batch.size = 60
    with pytest.raises(CorruptRecord, match="smaller than the minimum allowed overhead 61"):
        ensure_valid(data, batch)


def test_a_batch_that_goes_on_behind_the_data_is_refused() -> None:
    data, batch = a_batch()
    with pytest.raises(CorruptRecord, match="runs past the end"):
        ensure_valid(data[:-1], batch)


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_entry_is_covered_from_its_magic_byte_on(magic: int) -> None:
    data = build([(5 if magic else -1, b"key", b"value", ())], magic=magic)
    batch = read_batches(data)[0]
    ensure_valid(data, batch)
    for position in range(16, len(data)):
        assert not is_valid(flipped(data, position), batch)


def a_batch() -> tuple[bytes, Batch]:
    data = build([(1, b"key", b"value" * 10, ())])
    return data, read_batches(data)[0]


def flipped(data: bytes, position: int, bit: int = 0) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :]
