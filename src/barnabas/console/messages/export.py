"""Messages as files: JSON Lines and CSV. `parquet.py` has Parquet, of the same records.

A record of a file has whole texts: JSON (or what a schema says) as JSON, UTF-8 as text, anything else in base64, and `…_form` says which.
Masks are already applied, because a record is made of a decoded message.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, get_args

from barnabas.client.consumer.record import NO_TIMESTAMP
from barnabas.console.messages.decoding import DecodedField, DecodedMessage
from barnabas.console.messages.scan import Scan

FileFormat = Literal["jsonl", "csv", "parquet"]
FILE_FORMATS: Final[tuple[FileFormat, ...]] = get_args(FileFormat)

RECORDS_DEFAULT: Final = 10_000
RECORDS_MAX: Final = 1_000_000
BYTES_MAX: Final = 2 * 1024**3
EXPORT_SHOWN_BYTES_MAX: Final = 1  # texts come from the bytes, not from what is shown
BATCH_RECORDS: Final = 500
BATCH_S: Final = 0.5
COLUMNS: Final = (
    "partition", "offset", "timestamp", "timestamp_type", "key", "key_form", "value", "value_form", "headers",
)  # fmt: skip
# What spreadsheets take for the beginning of a formula, also in full width; a tab or a line end may come before it.
_FORMULA_STARTS: Final = tuple("=+-@\t\r\n＝＋－＠|%")


class DownloadTooLarge(Exception):
    """The file has reached BYTES_MAX. The download is broken off, so that nobody takes it for whole."""


class MessagesLeftOut(Exception):
    """It took too long to read and filter some messages, so the file would not have all that is searched. The download is broken off."""


@dataclass(frozen=True, slots=True)
class Part:
    """A key, value or header: `text` is None for null and for what is withheld. `is_json`: the text is JSON."""

    form: str
    text: str | None
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """One record of a file."""

    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: Part
    value: Part
    headers: tuple[tuple[str, Part], ...]


def export_of(message: DecodedMessage) -> tuple[ExportRecord, int]:
    """The record of a file for a message, and its size in memory."""
    record = message.record
    key, value = _part(message.key, record.key), _part(message.value, record.value)
    headers = tuple((name, _part(decoded, raw)) for (name, raw), (_, decoded) in zip(record.headers, message.headers, strict=True))
    made = ExportRecord(
        record.partition,
        record.offset,
        None if record.timestamp == NO_TIMESTAMP else record.timestamp,
        str(record.timestamp_type),
        key,
        value,
        headers,
    )
    size = 500 + 2 * (len(key.text or "") + len(value.text or "") + sum(len(part.text or "") for _, part in headers))
    return made, size


def _part(decoded: DecodedField, raw: bytes | None) -> Part:
    if raw is None:
        return Part("null", None)
    if decoded.is_tree:
        return Part(decoded.form, decoded.text, is_json=True)
    if decoded.form == "withheld":
        return Part("withheld", None)
    if decoded.form == "number":
        return Part("number", decoded.text)
    try:
        return Part("text", raw.decode())
    except UnicodeDecodeError:
        return Part("base64", base64.b64encode(raw).decode())


async def records_of(scan: Scan[ExportRecord], records_max: int) -> AsyncGenerator[list[ExportRecord], None]:
    """All that the scan finds, in batches, up to `records_max`. Raises MessagesLeftOut."""
    left = min(records_max, RECORDS_MAX)
    while left > 0:
        batch = await scan.look(min(left, BATCH_RECORDS), BATCH_S)
        if scan.out_of_time:
            raise MessagesLeftOut(f"it took too long to read and filter {scan.out_of_time:,} messages")
        if batch:
            left -= len(batch)
            yield [match.item for match in batch]
        elif scan.is_finished:
            return


async def write_file(
    batches: AsyncIterator[list[ExportRecord]], file_format: FileFormat, *, bytes_max: int = BYTES_MAX
) -> AsyncGenerator[bytes, None]:
    """The file in pieces: JSON Lines or CSV. Raises DownloadTooLarge."""
    write: Callable[[list[ExportRecord]], bytes] = _csv if file_format == "csv" else _json_lines
    written = 0
    if file_format == "csv":
        yield _csv_rows([list(COLUMNS)])
    async for batch in batches:
        piece = write(batch)
        written += len(piece)
        if written > bytes_max:
            raise DownloadTooLarge
        yield piece


def time_text(timestamp_ms: int | None) -> str | None:
    """A timestamp in UTC, exact to the millisecond; a number if it is beyond the calendar."""
    if timestamp_ms is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)


def _json_lines(batch: list[ExportRecord]) -> bytes:
    return "".join(map(_json_line, batch)).encode("utf-8", "backslashreplace")


def _json_line(record: ExportRecord) -> str:
    headers = ",".join(f'{{"name":{_json(name)},"value":{_json_part(part)},"form":{_json(part.form)}}}' for name, part in record.headers)
    return (
        f'{{"partition":{record.partition},"offset":{record.offset},"timestamp":{_json(time_text(record.timestamp))},'
        f'"timestamp_type":{_json(record.timestamp_type)},"key":{_json_part(record.key)},"key_form":{_json(record.key.form)},'
        f'"value":{_json_part(record.value)},"value_form":{_json(record.value.form)},"headers":[{headers}]}}\n'
    )


def _json_part(part: Part) -> str:
    return part.text if part.is_json and part.text is not None else _json(part.text)


def _json(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def headers_text(record: ExportRecord) -> str:
    """The headers of a record as one JSON text, for a cell."""
    return json.dumps([{"name": name, "value": part.text, "form": part.form} for name, part in record.headers], ensure_ascii=False)


def _csv(batch: list[ExportRecord]) -> bytes:
    return _csv_rows(
        [
            [
                str(record.partition),
                str(record.offset),
                time_text(record.timestamp) or "",
                record.timestamp_type,
                _cell(record.key.text),
                record.key.form,
                _cell(record.value.text),
                record.value.form,
                _cell(headers_text(record) if record.headers else ""),
            ]
            for record in batch
        ]
    )


def _cell(text: str | None) -> str:
    """The text, with an apostrophe in front if a spreadsheet would run it as a formula."""
    if text is None:
        return ""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text


def _csv_rows(rows: list[list[str]]) -> bytes:
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\r\n").writerows(rows)
    return written.getvalue().encode("utf-8", "backslashreplace")
