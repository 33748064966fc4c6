"""The broker's log: one event, one line, whatever the event holds."""

from __future__ import annotations

import json
import logging

from hypothesis import given
from hypothesis import strategies as st

from barnabas.tools.running.logs import JsonFormatter, TextFormatter


def record(message: str, *args: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("other.x", logging.WARNING, __file__, 1, message, args, None)
    made.created = 1_700_000_000.25
    made.__dict__.update(fields)
    return made


def failed() -> logging.LogRecord:
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        made = record("It failed")
        made.exc_info = (ValueError, error, error.__traceback__)
    return made


def test_a_text_line_has_time_level_logger_and_message() -> None:
    assert TextFormatter().format(record("There are %d", 3)) == "2023-11-14T22:13:20.250Z WARNING other.x There are 3"


def test_fields_follow_the_message() -> None:
    assert TextFormatter().format(record("Moved", topic="t", why="it was full")).endswith(' Moved topic=t why="it was full"')


def test_an_exception_stays_on_the_line() -> None:
    line = TextFormatter().format(failed())
    assert "\n" not in line
    assert "ValueError: first\\nsecond" in line


def test_json_holds_the_same() -> None:
    assert json.loads(JsonFormatter().format(record("Moved", topic="t"))) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "other.x",
        "message": "Moved",
        "topic": "t",
    }


def test_json_has_the_exception() -> None:
    assert "ValueError: first\nsecond" in json.loads(JsonFormatter().format(failed()))["exception"]


def test_a_field_never_replaces_what_every_event_has() -> None:
    assert json.loads(JsonFormatter().format(record("Moved", level="mine")))["level"] == "warning"


@given(st.text(), st.text())
def test_every_event_is_one_line_of_text(message: str, value: str) -> None:
    assert len(TextFormatter().format(record("%s", message, field=value)).splitlines()) == 1


@given(st.text(), st.text())
def test_every_event_is_one_line_of_json(message: str, value: str) -> None:
    line = JsonFormatter().format(record("%s", message, field=value))
    assert "\n" not in line
    assert json.loads(line)["message"] == message
