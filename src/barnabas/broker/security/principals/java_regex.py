"""Regular expressions and replacements of java.util.regex, for rules that were written for Apache Kafka.

Python's syntax is close to Java's. What differs is translated, or refused when the rule is read: a rule must never match more names here
than in Kafka.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.config_def import InvalidConfig

_ANY: Final = r"[^\n\r\x85\u2028\u2029]"  # Java's dot; Python's also matches all line terminators but one
_TOKEN: Final = re.compile(r"\\.|\(\?<(?=[A-Za-z])|\[\^?\]?|.", re.DOTALL)
_ONLY_IN_JAVA: Final = frozenset("pPQEGXRKhHvVzcx0")  # escapes that Python does not have, or gives another meaning


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises InvalidConfig for an expression that Python cannot match as Java does."""
    parts: list[str] = []
    in_class = False
    for token in _TOKEN.findall(pattern):
        if len(token) == 2 and token[0] == "\\" and token[1] in _ONLY_IN_JAVA:
            raise _refused(pattern, f"{token} is not supported")
        if in_class:
            if token.startswith("[") or (token == "&" and parts[-1] == "&"):
                raise _refused(pattern, "a character class inside another is not supported")
            in_class = token != "]"
        elif token.startswith("["):
            in_class = True
        elif token == ".":
            token = _ANY
        elif token == "(?<":
            token = "(?P<"
        parts.append(token)
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise _refused(pattern, str(error)) from None


def replaced(pattern: re.Pattern[str], replacement: str, text: str, count: int = 0) -> str:
    """`text` with the matches replaced, the first `count` or all. Raises ValueError for a replacement that Java rejects."""
    return pattern.sub(lambda match: _expanded(match, replacement), text, count)


def _expanded(match: re.Match[str], replacement: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        at += 1
        if char == "\\":
            if at == len(replacement):
                raise ValueError("character to be escaped is missing")
            parts.append(replacement[at])
            at += 1
        elif char == "$":
            group, at = _reference(match.re, replacement, at)
            parts.append(match[group] or "")
        else:
            parts.append(char)
    return "".join(parts)


def _reference(pattern: re.Pattern[str], replacement: str, at: int) -> tuple[int | str, int]:
    """The group that `$1` or `${name}` refers to, and the position after it. Takes as many digits as there are groups."""
    if named := re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, at):
        if named[1] not in pattern.groupindex:
            raise ValueError(f"No group with name {{{named[1]}}}")
        return named[1], named.end()
    digits = 0
    while replacement[at + digits : at + digits + 1] in tuple("0123456789"):
        if digits and int(replacement[at : at + digits + 1]) > pattern.groups:
            break
        digits += 1
    if not digits:
        raise ValueError("Illegal group reference")
    group = int(replacement[at : at + digits])
    if group > pattern.groups:
        raise ValueError(f"No group {group}")
    return group, at + digits


def _refused(pattern: str, reason: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid rule: the expression `{pattern}` cannot be used here: {reason}")
