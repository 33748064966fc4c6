"""Parser of sasl.jaas.config: `login.Module required option="value" …;`. Only the module name and its options are used."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from barnabas.config_def import InvalidConfig

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s="\';]+)|([=;])|\'((?:[^\'\\]|\\.)*)\')')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Jaas:
    """The module's name and its options. repr() hides the options, because passwords are among them."""

    module: str
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> Jaas:
    """Raises InvalidConfig in Kafka's words. Only one module is allowed, as in Kafka."""
    words = _words(text)
    if not words:
        raise InvalidConfig("Login module not specified in JAAS config")
    module = words[0]
    if len(words) < 2:
        raise InvalidConfig("Login module control flag not specified in JAAS config")
    if words[1].lower() not in _FLAGS:
        raise InvalidConfig(f"Invalid login module control flag '{words[1]}' in JAAS config")
    options: dict[str, str] = {}
    at = 2
    while at < len(words) and words[at] != ";":
        if at + 2 >= len(words) or words[at + 1] != "=" or words[at + 2] in ("=", ";"):
            raise InvalidConfig(_no_value(words[at], len(options)))
        options[words[at]] = words[at + 2]
        at += 3
    if at >= len(words):
        raise InvalidConfig("JAAS config entry not terminated by semi-colon")
    if at + 1 < len(words):
        raise InvalidConfig(f"JAAS config property contains {words.count(';')} login modules, should be 1 module")
    return Jaas(module, options)


def _no_value(word: str, before: int) -> str:
    """Kafka's text for the first option. A later word may be a part of a password that is not in quotation marks, and is not shown."""
    if before == 0:
        return f"Value not specified for key '{word}' in JAAS config"
    return f"Value not specified for option {before + 1} in JAAS config: put quotation marks around each value"


def _words(text: str) -> list[str]:
    words: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise InvalidConfig("JAAS config cannot be read: a quotation mark is open or stands alone")
        quoted = match[1] if match[1] is not None else match[4]
        words.append(_unescaped(quoted) if quoted is not None else match[2] or match[3])
        at = match.end()
    return words


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
