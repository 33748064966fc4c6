"""Cursors survive the address of a page."""

import base64
import zlib

import pytest

from barnabas.console.messages.cursor import CHARACTERS_MAX, Cursor, parse_cursor


@pytest.mark.parametrize("positions", [{}, {0: 0}, {3: 2**63 - 1, 0: 5}, {number: number * 1_000_003 for number in range(500)}])
def test_a_cursor_is_read_as_it_was_written(positions: dict[int, int]) -> None:
    cursor = Cursor(positions, 100_000_000)
    assert parse_cursor(str(cursor)) == cursor
    assert len(str(cursor)) <= CHARACTERS_MAX


def test_a_cursor_that_no_address_can_have_is_not_offered() -> None:
    assert Cursor(dict.fromkeys(range(8_000), 0)).address_text() is not None
    for cursor in (Cursor(dict.fromkeys(range(9_000), 0)), Cursor({number: number**5 for number in range(2_000)})):
        assert cursor.address_text() is None


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "€",
        "AAAA",
        "a" * (CHARACTERS_MAX + 1),
        base64.urlsafe_b64encode(zlib.compress(b"\0" * 10_000_000)).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"\0" * 16_385)).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"\xff" * 100)).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"\1\2")).decode(),
    ],
)
def test_a_damaged_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="damaged"):
        parse_cursor(text)
