# Compiled by mypyc: src/compiled.toml lists this module.
"""Splits the bytes of a peer into frames: four bytes of size, then as many bytes.

A connection feeds it the received bytes in the receive buffer of the loop, takes the whole frames, and lets it copy the rest before that
buffer is reused; most of a large frame is received directly into its final place. The size is checked before a byte of the frame is kept,
and memory grows only with the bytes received.
"""

from __future__ import annotations

from io import SEEK_CUR, BytesIO
from struct import Struct
from typing import Final

SIZE_PREFIX: Final = 4
REQUEST_BOUND: Final = "socket.request.max.bytes"

# A frame that misses at least this many bytes is received in place: below, a copy is cheaper than a system call of its own.
IN_PLACE_MIN: Final = 65536

# Grow the buffer to at most 4× the bytes received: few steps for a real frame, and a forged length cannot force a large allocation.
ROOM_FACTOR: Final = 4

_size_at = Struct(">i").unpack_from


class InvalidFrame(Exception):
    """A size that no request may have. The rest of the stream cannot be parsed, so the connection is closed."""


class FrameReader:
    """`bound` is the setting of `max_bytes`."""

    __slots__ = ("_at", "_bound", "_data", "_end", "_max_bytes", "_missing", "_partial", "_room")

    def __init__(self, max_bytes: int, bound: str = REQUEST_BOUND) -> None:
        self._max_bytes = max_bytes
        self._bound = bound
        self._data: memoryview | bytes = b""
        self._at = 0
        self._end = 0
        # A frame that has not arrived completely. BytesIO returns its bytes without another copy.
        self._partial: BytesIO | None = None
        self._missing = 0
        self._room: memoryview | None = None  # the free part of the partial frame, to receive into

    @property
    def unread(self) -> int:
        """The number of bytes received and not taken, including those of a frame that is received in place."""
        fed = self._end - self._at
        if self._partial is not None and (self._room is not None or self._missing == 0):
            return fed + self._partial.tell()
        return fed

    @property
    def held(self) -> int:
        """The bytes of memory that an incomplete frame holds, including the free room."""
        if self._partial is None:
            return 0
        return self._partial.tell() + (0 if self._room is None else len(self._room))

    def room(self) -> memoryview | None:
        """The buffer for the next bytes of the stream, to be followed by `received`; None: any buffer, to be followed by `feed`."""
        if self._missing < IN_PLACE_MIN:
            return None if self._missing == 0 else self._room
        if self._room is None and self._partial is not None:
            self._room = self._make_room(self._partial)
        return self._room

    def received(self, size: int) -> bool:
        """The buffer from `room` has received `size` bytes. Returns whether the frame is complete; it may be taken once the buffer is
        released."""
        room, partial = self._room, self._partial
        assert room is not None and partial is not None
        partial.seek(size, SEEK_CUR)
        self._missing -= size
        self._room = room[size:] if size < len(room) else None
        return self._missing == 0

    def feed(self, data: memoryview) -> None:
        """Feeds the next bytes of the stream. They are not copied: take the frames, then call `keep_rest`."""
        if self._at < self._end:
            joined = bytes(self._data[self._at :]) + data
            self._data, self._end = joined, len(joined)
        else:
            self._data, self._end = data, len(data)
        self._at = 0

    def next_frame(self) -> bytes | None:
        """The next whole frame without its size, or None when more bytes are needed; raises InvalidFrame."""
        if self._partial is not None:
            return self._finish_partial(self._partial)
        body = self._at + SIZE_PREFIX
        if body > self._end:
            return None
        size: int = _size_at(self._data, self._at)[0]
        if not 0 <= size <= self._max_bytes:
            raise InvalidFrame(_complaint(size, self._max_bytes, self._bound))
        self._at = body + size
        if self._at <= self._end:
            return bytes(self._data[body : self._at])
        self._partial = BytesIO()
        self._partial.write(self._data[body:])
        self._missing = self._at - self._end
        self._at = self._end
        return None

    def keep_rest(self) -> None:
        """Copies the unread bytes, because the buffer that was fed is about to be overwritten."""
        if self._at == self._end:
            self._data = b""
            self._at = self._end = 0
        elif isinstance(self._data, memoryview):
            self._data = bytes(self._data[self._at :])
            self._at, self._end = 0, len(self._data)

    def raise_bound(self, max_bytes: int) -> None:
        """The peer is authenticated: socket.request.max.bytes applies from the next frame on."""
        self._max_bytes, self._bound = max_bytes, REQUEST_BOUND

    def clear(self) -> None:
        self._data, self._at, self._end = b"", 0, 0
        self._partial, self._missing, self._room = None, 0, None

    def _make_room(self, partial: BytesIO) -> memoryview:
        received = partial.tell()
        room = min(self._missing, ROOM_FACTOR * received + IN_PLACE_MIN)
        partial.seek(received + room - 1)
        partial.write(b"\0")
        partial.seek(received)
        return partial.getbuffer()[received:]

    def _finish_partial(self, partial: BytesIO) -> bytes | None:
        if self._room is not None:
            return None
        taken = min(self._missing, self._end - self._at)
        partial.write(self._data[self._at : self._at + taken])
        self._at += taken
        self._missing -= taken
        if self._missing:
            return None
        self._partial = None
        return partial.getvalue()


_HTTP_METHODS: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC")
_TLS_HANDSHAKE: Final = b"\x16\x03"


def _complaint(size: int, max_bytes: int, bound: str) -> str:
    """The error in Kafka's words, and the fix."""
    start = size.to_bytes(SIZE_PREFIX, "big", signed=True)
    if start in _HTTP_METHODS:
        return f"Invalid receive (size = {size}): it begins with {start.decode()!r} like HTTP; this port speaks Kafka's protocol"
    if start.startswith(_TLS_HANDSHAKE):
        return (
            f"Invalid receive (size = {size}): this is the beginning of TLS on a listener without it; "
            "set security.protocol of the client to that of the listener, or connect to a listener with SSL"
        )
    if size < 0:
        return f"Invalid receive (size = {size}): the peer does not speak Kafka's protocol; check what connects to this port"
    return f"Invalid receive (size = {size} larger than {max_bytes}): send smaller requests, or raise {bound}"
