"""How bytes are shown."""

import pytest

from barnabas.console.messages.decoding import Reading
from tests.unit.console.messages.records import message


@pytest.mark.parametrize(
    ("raw", "reading", "form", "text"),
    [
        (None, "auto", "null", ""),
        (b"", "auto", "text", ""),
        (b'{"a": 1.10}', "auto", "json", '{"a": 1.10}'),
        (b'{\n"a":1}', "auto", "json", '{ "a":1}'),
        (b"42", "auto", "text", "42"),
        (b"42", "json", "json", "42"),
        (b"<script>alert(1)</script>", "auto", "text", "<script>alert(1)</script>"),
        ("\u202ed\u200b 😀".encode(), "auto", "text", "\u202ed\u200b 😀"),
        (b"caf\xe9 au lait", "auto", "text", "caf\\xe9 au lait"),
        (b"\xff\xfe\xfd\xfc", "auto", "hex", "ff fe fd fc"),
        (b"\xff\xfe", "text", "text", "\\xff\\xfe"),
        (b"\0\0\0\x2a", "auto", "hex", "00 00 00 2a"),
        (b"\0\0\0\0\0\0\0\x2a", "number", "number", "42"),
        (b"\xff\xff\xff\xff", "number", "number", "-1"),
        (b"abc", "number", "hex", "61 62 63"),
        (b"abc", "hex", "hex", "61 62 63"),
        (b'{"a":', "auto", "text", '{"a":'),
        (b'{"a":', "json", "text", '{"a":'),
        (b"abc", "registry", "text", "abc"),
    ],
)
def test_values_are_shown_as_they_are(raw: bytes | None, reading: Reading, form: str, text: str) -> None:
    value = message(raw, values=reading).value
    assert (value.form, value.text) == (form, text)


def test_what_could_not_be_decoded_says_why() -> None:
    assert "not JSON" in message(b"{", values="json").value.note
    assert message(b"x", values="registry").value.note == "no schema registry is configured"


def test_a_large_value_is_cut_between_characters_and_not_parsed() -> None:
    value = message(b'{"a":"' + "é".encode() * 1000 + b'"}', parse_bytes_max=100, shown_bytes_max=101).value
    assert (value.form, value.is_whole, value.size) == ("text", False, 2008)
    assert value.text.startswith('{"a":"é') and value.text.endswith("é") and len(value.text.encode()) in (100, 101)
