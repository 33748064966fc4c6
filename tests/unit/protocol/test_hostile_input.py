"""Whatever the bytes are, reading ends in a message or in MalformedMessage, and costs no memory that the sender did not pay for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import parse_request, request_frame
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.reader import ELEMENTS_MAX, Reader
from barnabas.protocol.registry import APIS
from tests.unit.protocol.instances import ALL, MESSAGES, class_of, random_message

ABSURD = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x00\x00\x00",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\xff\xff",
]
REQUESTS = [message.name for message in MESSAGES.values() if message.kind == "request"]
MEMORY_PER_BYTE = 200  # the largest object a byte of input can ask for, a list slot and an object with its fields


def read_is_safe(name: str, raw: bytes, version: int) -> bool:
    """Whether the bytes were a message; any other error than MalformedMessage fails the test."""
    try:
        parse(class_of(ALL[name]), raw, version)
    except MalformedMessage:
        return False
    return True


@pytest.mark.parametrize("name", ALL)
def test_a_message_that_is_cut_anywhere_is_refused(name: str) -> None:
    for version in ALL[name].versions:
        raw = serialize(random_message(name, version, Random(version)), version)
        for size in cuts(len(raw)):
            assert not read_is_safe(name, raw[:size], version), f"v{version} cut at {size} of {len(raw)}"


def cuts(size: int) -> Iterator[int]:
    """Every length below `size`, or a spread of them where a message carries records."""
    return iter(range(0, size, max(1, size // 300)))


@pytest.mark.parametrize("name", ALL)
def test_bytes_left_over_are_refused(name: str) -> None:
    for version in ALL[name].versions:
        raw = serialize(random_message(name, version, Random(version)), version)
        assert not read_is_safe(name, raw + b"\x00", version)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=5, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_damage_anywhere_ends_in_a_message_or_is_refused(name: str, seed: int) -> None:
    random = Random(seed)
    for version in ALL[name].versions:
        raw = bytearray(serialize(random_message(name, version, random), version))
        for _ in range(5):
            damaged = bytearray(raw)
            for _ in range(random.randint(1, 3)):
                if damaged:
                    damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
            at = random.randint(0, len(damaged))
            with_absurd_length = damaged[:at] + random.choice(ABSURD) + damaged[at:]
            read_is_safe(name, bytes(damaged), version)
            read_is_safe(name, bytes(with_absurd_length), version)


@pytest.mark.parametrize("name", REQUESTS)
def test_noise_ends_in_a_message_or_is_refused(name: str) -> None:
    random = Random(name)
    for version in ALL[name].versions:
        for size in (0, 1, 5, 30, 200):
            read_is_safe(name, random.randbytes(size), version)


@pytest.mark.parametrize("name", REQUESTS)
def test_absurd_counts_allocate_nothing(name: str) -> None:
    kind = class_of(ALL[name])
    for version in ALL[name].versions:  # what a first use caches is not what is measured
        read_is_safe(name, bytes(64), version)
    tracemalloc.start()
    try:
        for version in ALL[name].versions:
            for fill in (b"\xff", b"\x7f", b"\x01"):
                raw = fill * 64
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                try:
                    parse(kind, raw, version)
                except MalformedMessage:
                    pass
                assert tracemalloc.get_traced_memory()[1] - before < 64 * MEMORY_PER_BYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xfe\xff\xff\xff\x0f"])
def test_a_compact_length_beyond_the_end_is_refused(length: bytes) -> None:
    for read in (
        Reader.string,
        Reader.byte_string,
        Reader.records,
        Reader.nullable_string,
        Reader.nullable_byte_string,
        Reader.nullable_records,
    ):
        with pytest.raises(MalformedMessage):
            read(Reader(length + b"abc"), True)
    with pytest.raises(MalformedMessage, match="does not fit"):
        Reader(length + b"abc").array(True, 1)


def test_a_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="Varint is too long"):
        Reader(b"\xff" * 6).uvarint()
    with pytest.raises(MalformedMessage, match="are left"):
        Reader(b"\xff" * 3).uvarint()


def test_an_array_may_not_claim_more_elements_than_the_bytes_left_can_hold() -> None:
    assert Reader(b"\x00\x00\x00\x02" + bytes(12)).array(False, 6) == 2
    with pytest.raises(MalformedMessage, match="An array of 3 elements at byte 4 does not fit in the 12 bytes left"):
        Reader(b"\x00\x00\x00\x03" + bytes(12)).array(False, 6)


def test_a_message_may_not_hold_more_elements_than_any_honest_one() -> None:
    frame = (ELEMENTS_MAX + 1).to_bytes(4, "big") + bytes(ELEMENTS_MAX + 1)
    with pytest.raises(MalformedMessage, match="An array of 2000001 elements before byte 4 is more"):
        Reader(frame).array(False, 1)


def test_a_reader_does_not_look_past_its_end() -> None:
    reader = Reader(b"\x00\x01\x02\x03\x04", 1, 3)
    assert reader.int16() == 0x0102
    with pytest.raises(MalformedMessage):
        reader.int8()


@settings(max_examples=300, deadline=None, database=None)
@given(frame=st.binary(max_size=200))
def test_a_frame_of_noise_is_a_request_or_is_refused(frame: bytes) -> None:
    read_frame(frame)


@settings(max_examples=300, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_frame_is_a_request_or_is_refused(seed: int) -> None:
    random = Random(seed)
    api = random.choice(list(APIS.values()))
    version = random.choice([offered for offered in range(api.lowest_version, api.highest_version + 1) if api.is_offered(offered)])
    message = random_message(f"{api.name}Request", version, random)
    client = "" if api.request_header_version(version) == 0 else "client"
    frame = bytearray(b"".join(request_frame(message, api, version, 1, client))[4:])
    assert read_frame(bytes(frame))
    frame[random.randrange(len(frame))] = random.randrange(256)
    read_frame(bytes(frame))
    read_frame(bytes(frame[: random.randrange(len(frame))]))


def read_frame(frame: bytes) -> bool:
    try:
        request = parse_request(frame)
        if not request.is_unsupported_api_versions:
            request.message()
    except MalformedMessage:
        return False
    return True
