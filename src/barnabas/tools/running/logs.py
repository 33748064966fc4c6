"""The log of a broker as text or JSON, one line per event: on standard error, and with a directory in files of Kafka's names.

Modules log through the standard library and do not import this one. Text is `time LEVEL logger message key=value …`, with the fields of
`extra` as key=value; JSON holds the same fields. The logger is Kafka's name of it. One event is always one line, whatever its message
contains. Files have Kafka's layout, `[time] LEVEL message (logger)`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

from barnabas import loggers
from barnabas.loggers import kafka_name
from barnabas.tools.running.log_files import LogFiles, is_in_server_log

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

_KAFKA_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_PLAIN: Final = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {"message", "asctime"}


def configure(level: str, form: str, stream: TextIO | None = None, directory: str | None = None) -> None:
    """Installs the handlers. A command calls it once, before the first log line. Raises OSError if no files can be made in `directory`.

    With a directory, its files begin at INFO, and `level` is that of standard error, which has the lines of server.log. The log of requests
    is off until the level of its logger is changed.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    logging.raiseExceptions = False  # a closed stderr must not cause a traceback
    logging.getLogger(loggers.REQUEST).setLevel(logging.WARNING)
    if directory is None:
        root.handlers[:] = [handler]
        root.setLevel(level.upper())
        return
    files = LogFiles(directory)
    files.setFormatter(JsonFormatter() if form == "json" else KafkaFormatter())
    handler.setLevel(level.upper())
    handler.addFilter(is_in_server_log)
    root.handlers[:] = [handler, files]
    root.setLevel(min(logging.INFO, handler.level))


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {record.levelname:7} {kafka_name(record.name)} {self.text(record)}"

    def text(self, record: logging.LogRecord) -> str:
        """Message, fields and exception."""
        text = _escaped(record.getMessage())
        for name, value in _fields(record).items():
            text += f" {name}={_quoted(str(value))}"
        if record.exc_info:
            text += f" exception={_quoted(self.formatException(record.exc_info))}"
        return text


class KafkaFormatter(TextFormatter):
    """The layout of Kafka's log4j settings, `[%d] %p %m (%c)`, in local time and with Kafka's names of levels."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created)
        level = _KAFKA_LEVELS.get(record.levelname, record.levelname)
        return f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}] {level} {self.text(record)} ({kafka_name(record.name)})"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": kafka_name(record.name),
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
