"""A message as a row of a list, or as a whole: plain texts, bounded in size, already masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.client.consumer.record import NO_TIMESTAMP
from barnabas.console.messages.decoding import DecodedField, DecodedMessage

PREVIEW_CHARACTERS: Final = 500
KEY_PREVIEW_CHARACTERS: Final = 120
HEADERS_SHOWN_MAX: Final = 100
DETAIL_CHARACTERS_MAX: Final = 512 * 1024
LIST_SHOWN_BYTES_MAX: Final = 4 * PREVIEW_CHARACTERS
ROW_BYTES: Final = 1000  # of a row without its texts


@dataclass(frozen=True, slots=True)
class RowField:
    """A key, value or header as shown. `size` is in bytes, -1 for null; `is_cut` says that the text is only the beginning."""

    form: str
    text: str
    size: int
    note: str
    is_cut: bool
    is_masked: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A message of a list."""

    partition: int
    offset: int
    timestamp: int | None  # in ms; None if the message has none
    timestamp_type: str
    key: RowField
    value: RowField
    headers: tuple[tuple[str, RowField], ...]
    header_count: int


def row_of(message: DecodedMessage) -> tuple[Row, int]:
    """The row with short texts, and its size in memory."""
    return _row(message, KEY_PREVIEW_CHARACTERS, PREVIEW_CHARACTERS, pretty=False)


def detail_of(message: DecodedMessage) -> Row:
    """The whole message, up to DETAIL_CHARACTERS_MAX for each part, with JSON over several lines."""
    return _row(message, DETAIL_CHARACTERS_MAX, DETAIL_CHARACTERS_MAX, pretty=True)[0]


def _row(message: DecodedMessage, key_max: int, value_max: int, *, pretty: bool) -> tuple[Row, int]:
    record = message.record
    key = _field(message.key, key_max, pretty)
    value = _field(message.value, value_max, pretty)
    headers = tuple(
        (name[:KEY_PREVIEW_CHARACTERS] if not pretty else name, _field(one, value_max, pretty))
        for name, one in message.headers[:HEADERS_SHOWN_MAX]
    )
    row = Row(
        record.partition,
        record.offset,
        None if record.timestamp == NO_TIMESTAMP else record.timestamp,
        str(record.timestamp_type),
        key,
        value,
        headers,
        len(record.headers),
    )
    texts = len(key.text) + len(value.text) + sum(len(name) + len(one.text) for name, one in headers)
    return row, ROW_BYTES + 4 * texts


def _field(decoded: DecodedField, characters_max: int, pretty: bool) -> RowField:
    text = decoded.pretty() if pretty else decoded.text
    is_cut = len(text) > characters_max or not decoded.is_whole
    return RowField(decoded.form, text[:characters_max], decoded.size, decoded.note, is_cut, decoded.is_masked)
