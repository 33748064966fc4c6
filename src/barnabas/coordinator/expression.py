"""Compiles regular expressions that clients send (RE2), with bounds on the time that compiling and matching can take.

RE2 is linear in the text and in its program, but the program is as large as the expression demands: `(a?){1000}`, twenty times, has 80,000
instructions and needs 2 s for one topic name. Compiling has no bound of its own either: the parser expands Unicode classes and repetitions
before `max_mem` counts, and holds the GIL meanwhile (`\\pL`, 8,000 times: 4.7 s). So `compile_expression` checks the text first, then the
size of the program.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import re2

LENGTH_MAX: Final = 4_096  # characters
PROGRAM_SIZE_MAX: Final = 2_000  # instructions. The slowest such program takes 10 ms for a name of 249 characters
UNICODE_CLASSES_MAX: Final = 16  # \p and \P; each takes up to 0.3 ms to parse
MATCH_MEMORY_MAX: Final = 256 * 1024  # bytes of the program and its automaton; RE2's module caches 128 of them

_REPETITION: Final = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_TOO_LARGE: Final = "expression is too large"


class Expression(Protocol):
    @property
    def programsize(self) -> int: ...

    def fullmatch(self, text: str, /) -> object | None: ...


class ExpressionError(ValueError):
    """The text is not a regular expression, or is larger than the bounds allow. The message is that of the Java library Kafka uses."""


def compile_expression(text: str, program_size_max: int = PROGRAM_SIZE_MAX) -> Expression:
    """Raises ExpressionError. Takes at most a few milliseconds, whatever the text is."""
    if len(text) > LENGTH_MAX or _repetitions(text) > program_size_max or _unicode_classes(text) > UNICODE_CLASSES_MAX:
        raise ExpressionError(_TOO_LARGE)
    try:
        compiled: Expression = re2.compile(text, _OPTIONS)
    except re2.error as error:
        raise ExpressionError(_reason(error)) from error
    if compiled.programsize > program_size_max:
        raise ExpressionError(_TOO_LARGE)
    return compiled


def _repetitions(text: str) -> int:
    """The number of copies that all counted repetitions demand. The program is never much smaller than this."""
    return sum(max(int(least), int(most or 0)) for least, most in _REPETITION.findall(text))


def _unicode_classes(text: str) -> int:
    return text.count("\\p") + text.count("\\P")


def _reason(error: Exception) -> str:
    """The message of the Java library Kafka uses for this error of RE2."""
    detail = error.args[0]
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return next((reason for start, reason in _REASONS.items() if text.startswith(start)), text)


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # no caller reads groups, and they cost instructions and a second pass
    options.max_mem = MATCH_MEMORY_MAX
    return options


_OPTIONS: Final = _options()

_REASONS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",  # the Java library's message
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid UTF-8": "invalid UTF-8",
    "pattern too large": _TOO_LARGE,
}
