"""Frames as the tests read them: in one piece."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.slices import Streamed


def joined(buffers: Iterable[bytes | bytearray | memoryview | Streamed]) -> bytes:
    """The bytes of a frame whose parts are all in memory."""
    whole = bytearray()
    for buffer in buffers:
        assert not isinstance(buffer, Streamed)
        whole += buffer
    return bytes(whole)
