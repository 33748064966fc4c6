"""How tools print: Kafka's plain text into a pipe or a file, colour on a terminal, JSON with --json.

A script must see exactly what Kafka's tool prints. Therefore colour is used only if stdout is a terminal and NO_COLOR is not set, and
progress is shown only on a terminal's stderr.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from barnabas.tools.command_line.options import Option
from barnabas.tools.command_line.progress import RedrawnLine

JSON: Final = Option("json", "Print the result as one JSON document, for programs. (Not in Kafka.)")

Colour = Literal["bold", "red", "green", "yellow", "dim"]
_CODES: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}
_AFTER_S: Final = 2.0
_REDRAW_S: Final = 0.5


def on_terminal() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: Colour) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if on_terminal() else text


def heading(text: str) -> str:
    """A line of column names."""
    return coloured(text, "bold")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, default=str))


def compact_json(value: Any) -> str:
    """JSON as Jackson writes it, without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def java_split(text: str, pattern: str) -> list[str]:
    """Java's String.split: trailing empty strings are dropped."""
    words = re.split(pattern, text)
    while len(words) > 1 and not words[-1]:
        words.pop()
    return words


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Kafka's table: columns padded to the longest value, a tab after each."""
    widths = [max(len(row[index]) for row in (headers, *rows)) for index in range(len(headers))]
    for number, row in enumerate((headers, *rows)):
        line = "".join(f"{value:{width}}\t" for value, width in zip(row, widths, strict=True))
        print(heading(line) if number == 0 else line)


class Waiting:
    """A line on stderr while a call takes longer than two seconds, only on a terminal. `why` returns the reason for the wait."""

    def __init__(self, what: str, why: Callable[[], str] = str) -> None:
        self._what = what
        self._why = why
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        began = time.monotonic()
        waited = self._over.wait(_AFTER_S)
        line = RedrawnLine()
        while not waited:
            line.show(self._text(time.monotonic() - began))
            waited = self._over.wait(_REDRAW_S)
        line.clear()

    def _text(self, waited_s: float) -> str:
        why = self._why()
        return f"waiting for {self._what}, {waited_s:.0f} s" + (f": {why}" if why else "")
