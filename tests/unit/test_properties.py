from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.properties import format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc:3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# a=1\n! b=2\n\n   \n  c=3", {"c": "3"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("name", {"name": ""}),
        ("=value", {"": "value"}),
        ("a==b", {"a": "=b"}),
        ("listeners=A://:9092,\\\n    B://:9093", {"listeners": "A://:9092,B://:9093"}),
        ("a=ends in two\\\\\nb=2", {"a": "ends in two\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("with\\ space\\:and\\=more=v", {"with space:and=more": "v"}),
        ("a=\\t\\n\\r\\f\\q\\u00e9", {"a": "\t\n\r\fq\u00e9"}),
        ("a=trailing space ", {"a": "trailing space "}),
        ("a=x\\\n#not a comment", {"a": "x#not a comment"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u+123"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties(text)


def test_text_is_written_as_java_writes_it() -> None:
    text = format_properties({"a b": " x=y z", "c": "#1:\t\\"}, 1_794_775_560_999)
    assert text == "#\n#Sun Nov 15 20:46:00 UTC 2026\na\\ b=\\ x\\=y z\nc=\\#1\\:\\t\\\\\n"


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))))
def test_all_properties_survive_their_text(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties, 0)) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_properties(text)
    except ValueError as e:
        assert "Malformed" in str(e)
