"""Numbers, times and names as pages show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.web import formats, rendering


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (999, "999"), (1_234_567, "1,234,567"), (0.25, "0.2"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_a_number_has_groups(value: float | None, text: str) -> None:
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (999_950, "1.0 MB"), (1_234_567, "1.2 MB"), (5 * 10**18, "5 EB")],
)
def test_a_size_has_its_unit(value: float | None, text: str) -> None:
    assert formats.size(value) == text


def test_rates_have_units() -> None:
    assert formats.rate(1_500) == "1.5 k records/s"
    assert formats.rate(1_500, "bytes") == "1.5 kB/s"
    assert formats.rate(None) == "–"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("retention.ms", "604800000", "7 d"),
        ("segment.bytes", "1073741824", "1.1 GB"),
        ("retention.ms", "-1", None),
        ("flush.ms", str(2**63 - 1), None),
        ("flush.messages", "100000", None),
        ("retention.ms", None, None),
        ("index.interval.bytes", "١٢٣٤", None),
    ],
)
def test_the_number_of_a_setting_has_its_unit(name: str, value: str | None, text: str | None) -> None:
    assert formats.meaning(value, name) == text


@pytest.mark.parametrize(("ms", "text"), [(None, "–"), (12, "12 ms"), (65_000, "1 min 5 s"), (7_200_000, "2 h"), (90_000_000, "1 d 1 h")])
def test_a_duration_has_its_two_largest_units(ms: float | None, text: str) -> None:
    assert formats.duration(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01 00:00:00.000 UTC"),
        (-1, "–"),
        (None, "–"),
        (2**63 - 1, f"{2**63 - 1} ms"),
        (1_700_000_000_123, "2023-11-14 22:13:20.123 UTC"),
    ],
)
def test_a_time_that_no_calendar_has_stays_a_number(ms: int | None, text: str) -> None:
    assert formats.utc(ms) == text


def test_html_in_a_name_is_text() -> None:
    assert formats.visible("<script>alert('1')</script>") == "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"


def test_what_is_invisible_or_turns_text_is_shown_by_its_code() -> None:
    shown = formats.visible("a\u202eb\x00c\u200bd")
    assert "\u202e" not in shown
    assert all(code in shown for code in ("U+202E", "U+0000", "U+200B"))
    assert 'title="right-to-left override"' in shown


def test_bytes_that_are_not_utf_8_are_shown_by_their_values() -> None:
    assert "\\xff" in formats.visible(b"a\xff")


@pytest.mark.parametrize("macro", ["refused(text)", "confirm_button('Delete', text)", "bar(0.5, text)"])
def test_errors_questions_and_labels_show_what_is_invisible(macro: str) -> None:
    template = rendering.ENVIRONMENT.from_string('{% import "macros.html" as ui with context %}{{ ui.' + macro + " }}")
    shown = template.render(text='Delete <b> "a\u202eb\x00"?', visit=None, url=None)
    assert "\u202e" not in shown
    assert "\x00" not in shown
    assert "U+202E" in shown
    assert "Delete &lt;b&gt; &#34;a" in shown


def test_emoji_stay_whole() -> None:
    assert formats.visible("👩‍👩‍👧 🇩🇪") == "👩‍👩‍👧 🇩🇪"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert "… 15 more characters" in formats.visible("x" * 25, 10)


def test_a_text_with_many_invisible_characters_is_cut_and_says_so() -> None:
    shown = formats.visible("a\x00" * 5_000)
    assert shown.count("U+0000") == formats.CODES_MAX == 1_000
    assert shown.endswith('a<span class="cut"> … 7,999 more characters</span>')
    assert "more characters" not in formats.visible("a\x00" * 1_000 + "b")


@given(st.text() | st.binary())
def test_nothing_in_a_text_becomes_markup(value: str | bytes) -> None:
    shown = formats.visible(value)
    for tag in ('<span class="code" title=', '<span class="cut">', "</span>"):
        shown = shown.replace(tag, "")
    assert "<" not in shown
    shown.encode("utf-8")
