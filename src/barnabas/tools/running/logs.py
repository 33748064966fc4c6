"""The log of a broker as text or JSON, one line per event, on standard error.

Modules log through the standard library and do not import this one. Text is `time LEVEL logger message key=value …`, with the fields of
`extra` as key=value; JSON holds the same fields. One event is always one line, whatever its message contains.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

_PLAIN: Final = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {"message", "asctime"}


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Installs the handler. A command calls it once, before the first log line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a closed stderr must not cause a traceback


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:7} {record.name} {_escaped(record.getMessage())}"
        for name, value in _fields(record).items():
            line += f" {name}={_quoted(str(value))}"
        if record.exc_info:
            line += f" exception={_quoted(self.formatException(record.exc_info))}"
        return line


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _fields(record).items():
            entry.setdefault(name, value)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _PLAIN and not name.startswith("_")}


def _escaped(text: str) -> str:
    return text if text.isprintable() else "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _quoted(text: str) -> str:
    return text if text and text.isprintable() and not set(text) & set(' "=\\') else _escaped(json.dumps(text, ensure_ascii=False))
