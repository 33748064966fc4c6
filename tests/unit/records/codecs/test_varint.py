"""Zigzag varints: the vectors of the specification (with its errata put right) and the guards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from barnabas.errors import CorruptRecord
from barnabas.records.codecs.varint import read_varint, read_varlong, size_of_varint, size_of_varlong, write_varint, write_varlong

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

VECTORS = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-2, "03"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),  # two bytes: the source of the specification says one, wrongly
    (65, "8201"),
    (8191, "fe7f"),
    (8192, "808001"),
    (300, "d804"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
LONG_VECTORS = [
    (2**31, "8080808010"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "encoded"), VECTORS)
def test_an_int32_has_the_bytes_of_the_specification(value: int, encoded: str) -> None:
    assert written(write_varint, value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(("value", "encoded"), VECTORS + LONG_VECTORS)
def test_an_int64_has_the_bytes_of_the_specification(value: int, encoded: str) -> None:
    assert written(write_varlong, value).hex() == encoded
    assert read_varlong(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("value", "size"), [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1000012, 3), (1048575, 3), (1048576, 4), (2**31 - 1, 5)]
)
def test_sizes_step_up_where_the_specification_says(value: int, size: int) -> None:
    assert size_of_varint(value) == size_of_varlong(value) == size


def test_the_size_of_an_int64_is_taken_from_all_64_bits() -> None:
    assert size_of_varlong(2**32) == 5
    assert size_of_varlong(2**63 - 1) == size_of_varlong(-(2**63)) == 10


@given(INT32)
def test_an_int32_survives(value: int) -> None:
    encoded = written(write_varint, value)
    assert read_varint(b"\xff" + encoded, 1) == (value, 1 + len(encoded))
    assert size_of_varint(value) == len(encoded)


@given(INT64)
def test_an_int64_survives(value: int) -> None:
    encoded = written(write_varlong, value)
    assert read_varlong(b"\xff" + encoded, 1) == (value, 1 + len(encoded))
    assert size_of_varlong(value) == len(encoded)


def test_an_int32_that_does_not_end_in_five_bytes_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="too long"):
        read_varint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_an_int64_that_does_not_end_in_ten_bytes_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="too long"):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


@pytest.mark.parametrize("cut", [b"", b"\x80", b"\x80\x80\x80\x80"])
def test_an_integer_cut_short_is_refused(cut: bytes) -> None:
    with pytest.raises(CorruptRecord, match="past the end"):
        read_varint(cut, 0)
    with pytest.raises(CorruptRecord, match="past the end"):
        read_varlong(cut, 0)


def test_bits_an_int32_has_no_room_for_are_dropped_as_kafka_drops_them() -> None:
    assert read_varint(bytes.fromhex("feffffff7f"), 0) == (2**31 - 1, 5)


def test_an_integer_may_be_padded_as_long_as_it_ends_in_time() -> None:
    assert read_varint(bytes.fromhex("8280808000"), 0) == (1, 5)
    assert read_varlong(bytes.fromhex("82808080808080808000"), 0) == (1, 10)


@given(st.binary(max_size=12))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_varint, read_varlong):
        try:
            _, after = read(data, 0)
        except CorruptRecord:
            continue
        assert 0 < after <= len(data)


def written(write: Callable[[BytesWriter, int], None], value: int) -> bytes:
    out = BytesWriter()
    write(out, value)
    return out.getvalue()
