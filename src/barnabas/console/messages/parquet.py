"""Parquet files, written by a child process: pyarrow needs more memory than the whole console, and gives it back only when it ends.

The console sends records that are already filtered and masked, and passes on what the child writes. Both pipes are bounded: a slow visitor
slows down the scan.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from barnabas.console.messages.export import BYTES_MAX, DownloadTooLarge, ExportRecord, headers_text

PIECE_BYTES: Final = 64 * 1024
ERROR_BYTES_MAX: Final = 4000
LINE_BYTES_MAX: Final = 256 * 1024 * 1024
END_TIMEOUT_S: Final = 10.0


class ParquetFailed(Exception):
    """The child process has failed; the message is its last line."""


def is_available() -> bool:
    """Whether pyarrow is installed. It is not imported here."""
    return importlib.util.find_spec("pyarrow") is not None


NOT_AVAILABLE: Final = "Parquet needs the package pyarrow: pip install 'barnabas[arrow]', then start the console again"


async def write_parquet(batches: AsyncIterator[list[ExportRecord]], *, bytes_max: int = BYTES_MAX) -> AsyncGenerator[bytes, None]:
    """The Parquet file in pieces. Ends the child process in any case. Raises ParquetFailed and DownloadTooLarge."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "barnabas.console.messages.parquet_writer",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    feeding = asyncio.create_task(_feed(batches, child.stdin))
    errors = asyncio.create_task(_last_of(child.stderr))
    try:
        written = 0
        while piece := await child.stdout.read(PIECE_BYTES):
            written += len(piece)
            if written > bytes_max:
                raise DownloadTooLarge
            if feeding.done() and feeding.exception() is not None:
                break
            yield piece
        try:
            await feeding
        except (BrokenPipeError, ConnectionResetError):
            pass  # the child has ended before it read everything; its error says why
        if await asyncio.wait_for(child.wait(), END_TIMEOUT_S) != 0:
            raise ParquetFailed((await errors).strip().rpartition("\n")[2] or "the process that writes Parquet was ended")
    finally:
        feeding.cancel()
        if child.returncode is None:
            child.kill()
            await child.wait()
        await asyncio.gather(feeding, errors, return_exceptions=True)


async def _feed(batches: AsyncIterator[list[ExportRecord]], stdin: asyncio.StreamWriter) -> None:
    """Writes one line of JSON for each record. A scan that fails closes the pipe without the end line, so the child fails too."""
    try:
        async for batch in batches:
            for record in batch:
                stdin.write(_line(record))
                await stdin.drain()
        stdin.write(b"null\n")
        await stdin.drain()
    finally:
        stdin.close()


def _line(record: ExportRecord) -> bytes:
    values = (
        record.partition, record.offset, record.timestamp, record.timestamp_type, _clean(record.key.text), record.key.form,
        _clean(record.value.text), record.value.form, _clean(headers_text(record)),
    )  # fmt: skip
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _clean(text: str | None) -> str | None:
    """Without lone surrogates, which Parquet's strings cannot have."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


async def _last_of(stderr: asyncio.StreamReader) -> str:
    last = b""
    while piece := await stderr.read(ERROR_BYTES_MAX):
        last = (last + piece)[-ERROR_BYTES_MAX:]
    return last.decode("utf-8", "replace")
