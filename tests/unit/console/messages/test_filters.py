"""What filters find."""

import re

import pytest

from barnabas.console.messages.filters import FilterError, parse_filter
from tests.unit.console.messages.records import message

VALUE = b'{"total": 120.5, "name": "Ann \\u00e9", "items": [{"price": 3}, {"price": 9}]}'


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("text", "ann", True),
        ("text", "k7", True),
        ("text", "TRACE", True),
        ("text", "Ann é", True),
        ("text", "bob", False),
        ("path", "$.total", True),
        ("path", "$.missing", False),
        ("path", "$.total > 100", True),
        ("path", "$.total>1000", False),
        ("path", "$.items[*].price == 9", True),
        ("path", "$.name contains ann", True),
        ("path", "$.name != 'Ann'", True),
        ("path", '$.total > "text"', False),
        ("expression", 'value["items"][1]["price"] == 9 and headers["trace"] == "x"', True),
        ("expression", 'key == "k7" and offset == 7 and partition == 0', True),
        ("expression", "timestamp < 5", False),
    ],
)
def test_a_filter_finds(kind: str, text: str, found: bool) -> None:
    chosen = parse_filter(kind, text)
    assert chosen is not None
    assert chosen.matches(message(VALUE, b"k7", (("trace", b"x"),))) is found


def test_a_text_is_found_across_the_slices_of_a_large_value() -> None:
    chosen = parse_filter("text", "needle")
    assert chosen is not None
    assert chosen.matches(message(b"x" * (1024 * 1024 - 3) + b"Needle" + b"x" * 100, shown_bytes_max=100))
    assert not chosen.matches(message(b"x" * 3_000_000, shown_bytes_max=100))


def test_a_text_is_searched_without_a_regular_expression_whose_time_can_be_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a regular expression")

    monkeypatch.setattr(re, "compile", refuse)
    chosen = parse_filter("text", "a" * 1999 + "B")
    assert chosen is not None
    assert chosen.matches(message(b"A" * 1_000_000 + b"b"))
    assert not chosen.matches(message(b"a" * 1_000_000))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("path", "total"),
        ("path", "$.total >"),
        ("path", "$.total is 5"),
        ("path", '$.a == "x'),
        ("expression", "1 +"),
        ("text", "x" * 3000),
        ("sql", "x"),
    ],
)
def test_a_wrong_filter_is_refused_in_words(kind: str, text: str) -> None:
    with pytest.raises(FilterError):
        parse_filter(kind, text)


def test_no_text_is_no_filter() -> None:
    assert parse_filter("expression", "  ") is None
