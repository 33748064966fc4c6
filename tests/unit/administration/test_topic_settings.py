"""The settings of a topic that does not exist yet."""

from __future__ import annotations

import pytest

from barnabas.administration.topic_settings import COMMON_SETTINGS, common_settings, known_settings, parse_settings


def test_every_setting_says_what_it_does() -> None:
    assert [setting.name for setting in common_settings()] == list(COMMON_SETTINGS)
    assert all(setting.documentation for setting in known_settings())
    assert {setting.name: setting.default for setting in known_settings()}["retention.ms"] == "604800000"


def test_settings_are_lines_of_names_and_values() -> None:
    assert parse_settings("segment.bytes = 1000\n\nx=a=b\r\n") == {"segment.bytes": "1000", "x": "a=b"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("retention.ms", "Line 1 of the other settings is not name=value"), ("=5", "Line 1 of"), ("a=1\na=2", "a is given twice")],
)
def test_a_line_that_is_no_setting_is_refused_in_words(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_settings(text)
