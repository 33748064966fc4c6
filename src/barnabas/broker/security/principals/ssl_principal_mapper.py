"""The rules of ssl.principal.mapping.rules: they make a user name of the distinguished name in a certificate.

Kafka's SslPrincipalMapper. A rule is `DEFAULT`, the whole name, or `RULE:pattern/replacement/[LU]`; the first that matches decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.broker.security.principals import java_regex
from barnabas.config_def import InvalidConfig
from barnabas.security.errors import AuthenticationError

SETTING: Final = "ssl.principal.mapping.rules"

_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSER: Final = re.compile(_RULE)
_BACK_REFERENCE: Final = re.compile(r"\$([0-9]+)")


class _Rule(Protocol):
    def apply(self, name: str) -> str | None:
        """None if the rule does not match the name."""


@dataclass(frozen=True, slots=True)
class _WholeName:
    def apply(self, name: str) -> str | None:
        return name

    def __str__(self) -> str:
        return "DEFAULT"


@dataclass(frozen=True, slots=True)
class _Replacement:
    """`case` is L or U: the result in lower or upper case."""

    text: str
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if not self.pattern.fullmatch(name):
            return None
        result = java_regex.replaced(self.pattern, _with_literal_references(self.replacement, self.pattern.groups), name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def __str__(self) -> str:
        return f"RULE:{self.text}/{self.replacement}" + (f"/{self.case}" if self.case else "")


class SslPrincipalMapper:
    """Raises InvalidConfig for rules that are not Kafka's grammar."""

    def __init__(self, rules: str) -> None:
        self._rules = [rule for match in _SPLITTER.finditer(rules.strip()) if (rule := _parsed(match[1])) is not None]

    def name(self, distinguished_name: str) -> str:
        """The user name. Raises AuthenticationError if no rule matches."""
        try:
            for rule in self._rules:
                if (name := rule.apply(distinguished_name)) is not None:
                    return name
        except ValueError as error:
            raise AuthenticationError(f"{SETTING} cannot be applied to {distinguished_name}: {error}") from error
        raise AuthenticationError(f"No rules of {SETTING} apply to {distinguished_name}, rules {self}")

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self._rules))}]"


def _parsed(rule: str) -> _Rule | None:
    """None for an empty rule, which Kafka ignores."""
    match = _PARSER.match(rule)
    if match is None or match.end() != len(rule):
        unmatched = rule if match is None else rule[match.end() :]
        raise InvalidConfig(f"{SETTING}: Invalid rule: `{rule}`, unmatched substring: `{unmatched}`")
    if match[1] is not None:
        return _WholeName()
    if match[2] is None:
        return None
    return _Replacement(match[2], java_regex.compiled(match[2]), match[4], match[6])


def _with_literal_references(replacement: str, groups: int) -> str:
    """`$4` with three groups is the text `$4`, and `$12` with three groups is group 1 and the text `2`."""
    if groups == 0:
        return replacement
    value = replacement
    for match in _BACK_REFERENCE.finditer(replacement):
        group = int(match[1])
        while group > groups and group >= 10:
            group //= 10
        if group > groups and not match[1].startswith("0"):
            value = f"{value[: match.start()]}\\{value[match.start() :]}"
    return value
