"""Records that are streamed from a segment to a client, in pieces as the client reads them.

The fetch handler puts one into a response instead of records that are too large to be read at once; the connection reads from it. The file
is pinned until the last byte is sent, so that a slow client gets all records even if the segment is deleted in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from barnabas.storage.disk.files import AnyFile
from barnabas.storage.segments.segment import FileSlice


class SliceSource:
    """The constructor raises OSError or ValueError if the file cannot be opened."""

    __slots__ = ("_file", "_position", "_threads")

    def __init__(self, file_slice: FileSlice, threads: Executor) -> None:
        self._file = file_slice.file
        self._position = file_slice.position
        self._threads = threads
        self._file.pin()

    def read_nowait(self, at: int, size: int) -> bytes | None:
        piece = self._file.pread_nowait(size, self._position + at)
        return piece if piece is None else _whole(self._file, piece, size)

    def read_later(self, at: int, size: int, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        def done(read: asyncio.Future[bytes]) -> None:
            if read.cancelled():
                on_done(None, OSError("The reading was cancelled"))
                return
            error = read.exception()
            if error is None:
                on_done(read.result(), None)
            else:
                on_done(None, error if isinstance(error, Exception) else OSError(str(error)))

        self._file.pin()  # a second time, for the thread: the connection may close before the thread is done
        try:
            read = asyncio.get_running_loop().run_in_executor(self._threads, _read_pinned, self._file, size, self._position + at)
        except RuntimeError as error:  # the executor is closed: the broker shuts down
            self._file.unpin()
            raise OSError(str(error)) from error
        read.add_done_callback(done)

    def in_file(self, at: int, size: int) -> tuple[int, int] | None:
        descriptor = self._file.cached_descriptor(size, self._position + at)
        return None if descriptor < 0 else (descriptor, self._position + at)

    def close(self) -> None:
        self._file.unpin()


def _read_pinned(file: AnyFile, size: int, position: int) -> bytes:
    try:
        return _whole(file, file.pread(size, position), size)
    finally:
        file.unpin()


def _whole(file: AnyFile, piece: bytes, size: int) -> bytes:
    if len(piece) != size:
        raise OSError(f"{file.path} was truncated while it was being sent")
    return piece
