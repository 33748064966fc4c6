from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.network.frames import FrameReader, InvalidFrame


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def frames_of(segments: list[bytes], max_bytes: int = 1 << 20) -> list[bytes]:
    """Feeds the segments through one reused buffer, which is overwritten after each as the loop's is."""
    reader = FrameReader(max_bytes)
    buffer = bytearray(max([len(segment) for segment in segments], default=0))
    frames_read = []
    for segment in segments:
        buffer[: len(segment)] = segment
        reader.feed(memoryview(buffer)[: len(segment)])
        while (frame := reader.next_frame()) is not None:
            frames_read.append(frame)
        reader.keep_rest()
        buffer[:] = b"\xee" * len(buffer)
    return frames_read


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=12), st.data())
def test_any_split_of_a_stream_gives_the_same_frames(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(framed(body) for body in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    segments = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert frames_of(segments) == bodies


class Loop:
    """Receives a stream as an event loop does: where it is told to, no more than fits, holding the buffer while it tells of it."""

    def __init__(self, stream: bytes) -> None:
        self.reader = FrameReader(1 << 24)
        self.found: list[bytes] = []
        self.largest_room = 0
        self._stream = stream
        self._at = 0
        self._buffer = bytearray(100_000)

    def receive(self, wanted: int) -> None:
        room = self.reader.room()
        target = memoryview(self._buffer) if room is None else room
        size = min(wanted, len(target), len(self._stream) - self._at)
        with memoryview(target) as held:
            held[:size] = self._stream[self._at : self._at + size]
            self._at += size
            if room is None:
                self.reader.feed(held[:size])
                self.take()
                self.reader.keep_rest()
            else:
                self.largest_room = max(self.largest_room, len(room))
                self.reader.received(size)

    def take(self) -> None:
        while (frame := self.reader.next_frame()) is not None:
            self.found.append(frame)


@settings(deadline=None)
@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=4), st.lists(st.integers(1, 150_000), min_size=200, max_size=200))
def test_large_frames_are_received_in_place_and_are_the_same(sizes: list[int], pieces: list[int]) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    loop = Loop(b"".join(framed(body) for body in bodies))
    for piece in pieces:
        loop.receive(piece)
    while len(loop.found) < len(bodies):
        loop.receive(150_000)
        loop.take()
    assert loop.found == bodies
    assert loop.reader.unread == 0


def test_room_is_made_for_a_multiple_of_what_has_come_and_not_for_what_was_announced() -> None:
    loop = Loop(struct.pack(">i", 1 << 24) + bytes(10))
    loop.receive(14)
    room = loop.reader.room()
    assert room is not None
    assert len(room) < 70_000


def test_a_frame_that_is_received_in_place_counts_as_unread() -> None:
    loop = Loop(framed(bytes(300_000)))
    loop.receive(100_000)
    assert loop.reader.unread == 0
    loop.receive(100_000)
    assert loop.largest_room > 0
    assert loop.reader.unread == 199_996


@settings(deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12), st.data())
def test_frames_taken_late_or_one_at_a_time_are_the_same(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(framed(body) for body in bodies)
    reader = FrameReader(1 << 20)
    frames_read = []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, 50))
        reader.feed(memoryview(bytearray(stream[at : at + size])))
        at += size
        for _ in range(data.draw(st.integers(0, 3))):
            frame = reader.next_frame()
            if frame is not None:
                frames_read.append(frame)
        reader.keep_rest()
    while (frame := reader.next_frame()) is not None:
        frames_read.append(frame)
    assert frames_read == bodies
    assert reader.unread == 0


def test_a_frame_that_comes_byte_by_byte_is_whole() -> None:
    stream = framed(b"hello") + framed(b"") + framed(b"world")
    assert frames_of([bytes([byte]) for byte in stream]) == [b"hello", b"", b"world"]


def test_the_largest_frame_allowed_passes() -> None:
    assert frames_of([framed(b"x" * 100)], max_bytes=100) == [b"x" * 100]


def test_a_frame_one_byte_too_large_is_refused_before_it_has_come() -> None:
    with pytest.raises(InvalidFrame, match=r"size = 101 larger than 100.*raise socket\.request\.max\.bytes"):
        frames_of([struct.pack(">i", 101)], max_bytes=100)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidFrame, match=r"Invalid receive \(size = -1\)"):
        frames_of([struct.pack(">i", -1)])


def test_http_is_told_that_this_is_not_its_port() -> None:
    with pytest.raises(InvalidFrame, match=r"'GET ' like HTTP"):
        frames_of([b"GET / HTTP/1.1\r\n\r\n"])


def test_tls_on_a_plain_listener_is_told_so() -> None:
    with pytest.raises(InvalidFrame, match=r"beginning of TLS.*security\.protocol"):
        frames_of([b"\x16\x03\x01\x02\x00\x01"])


def test_whole_frames_before_a_bad_one_are_given_first() -> None:
    reader = FrameReader(100)
    reader.feed(memoryview(framed(b"good") + struct.pack(">i", -5)))
    assert reader.next_frame() == b"good"
    with pytest.raises(InvalidFrame):
        reader.next_frame()


def test_a_large_announcement_alone_takes_no_memory() -> None:
    reader = FrameReader(1 << 30)
    reader.feed(memoryview(struct.pack(">i", 1 << 30) + b"x"))
    assert reader.next_frame() is None
    reader.keep_rest()
    assert reader.unread == 0
    assert reader._partial is not None and reader._partial.__sizeof__() < 1000


def test_nothing_of_the_receive_buffer_is_kept_when_all_was_read() -> None:
    buffer = bytearray(framed(b"one"))
    reader = FrameReader(100)
    reader.feed(memoryview(buffer))
    assert reader.next_frame() == b"one"
    reader.keep_rest()
    buffer.extend(b"grows only when no view of it is left")
