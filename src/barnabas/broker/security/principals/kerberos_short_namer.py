"""The rules of sasl.kerberos.principal.to.local.rules: they make a user name of a Kerberos principal.

Kafka's KerberosShortNamer. A rule is `DEFAULT`, the first component of a name in the default realm, or
`RULE:[components:format](match)s/from/to/g/[LU]`; the first that applies decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.broker.security.principals import java_regex
from barnabas.config_def import InvalidConfig
from barnabas.security.errors import AuthenticationError

SETTING: Final = "sasl.kerberos.principal.to.local.rules"

_RULE: Final = re.compile(
    r"((DEFAULT)|((RULE:\[(\d*):([^\]]*)](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?)))",
    re.ASCII,
)
_PARAMETER: Final = re.compile(r"([^$]*)(\$(\d*))?", re.ASCII)
_NAME: Final = re.compile(r"([^/@]*)(/([^/@]*))?@([^/@]*)")


class KerberosName(NamedTuple):
    """`service/host@REALM`; a plain user has neither host nor, within a realm's own programs, a realm."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> KerberosName:
        """Raises AuthenticationError."""
        match = _NAME.fullmatch(text)
        if match is not None:
            return cls(match[1], match[3], match[4])
        if "@" in text:
            raise AuthenticationError(f"Malformed Kerberos name: {text}")
        return cls(text, None, None)

    def __str__(self) -> str:
        return self.service + (f"/{self.host}" if self.host is not None else "") + (f"@{self.realm}" if self.realm is not None else "")


@dataclass(frozen=True, slots=True)
class _Rule:
    """`components` is None for DEFAULT."""

    text: str
    components: int | None = None
    format: str = ""
    match: re.Pattern[str] | None = None
    substituted: re.Pattern[str] | None = None
    substitute: str = ""
    repeats: bool = False
    case: str | None = None

    def apply(self, parameters: Sequence[str], default_realm: str) -> str | None:
        """The user name; None if the rule does not apply. `parameters` are the realm and the components of the name."""
        if self.components is None:
            result = parameters[1] if default_realm and parameters[0] == default_realm else None
        else:
            result = self._substitution(parameters)
        if result is None:
            return None
        if "/" in result or "@" in result:
            raise ValueError(f"Non-simple name {result} after auth_to_local rule {self.text}")
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _substitution(self, parameters: Sequence[str]) -> str | None:
        if len(parameters) - 1 != self.components:
            return None
        base = with_parameters(self.format, parameters)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        if self.substituted is None:
            return base
        return java_regex.replaced(self.substituted, self.substitute, base, 0 if self.repeats else 1)


class KerberosShortNamer:
    """Raises InvalidConfig for rules that are not Kafka's grammar."""

    def __init__(self, default_realm: str, rules: Sequence[str]) -> None:
        self._default_realm = default_realm
        self._rules = [_parsed(rule) for rule in rules]

    def short_name(self, name: KerberosName) -> str:
        """The user name. Raises AuthenticationError if no rule applies."""
        if name.host is None and name.realm is None:
            return name.service
        parameters = [name.realm or "", name.service, *([] if name.host is None else [name.host])]
        try:
            for rule in self._rules:
                if (result := rule.apply(parameters, self._default_realm)) is not None:
                    return result
        except ValueError as error:
            raise AuthenticationError(f"{SETTING} cannot be applied to {name}: {error}") from error
        raise AuthenticationError(f"No rules of {SETTING} apply to {name}, rules [{', '.join(rule.text for rule in self._rules)}]")


def with_parameters(form: str, parameters: Sequence[str]) -> str:
    """`form` with each $n replaced by a parameter. Raises ValueError for a number that there is not."""
    parts: list[str] = []
    for match in _PARAMETER.finditer(form):
        parts.append(match[1])
        if match[3] is None:
            continue
        if not match[3]:
            raise ValueError(f"bad format in username mapping in {form}")
        number = int(match[3])
        if number >= len(parameters):
            raise ValueError(f"index {number} from {form} is outside of the valid range 0 to {len(parameters) - 1}")
        parts.append(parameters[number])
    return "".join(parts)


def _parsed(rule: str) -> _Rule:
    match = _RULE.match(rule)
    if match is None:
        raise InvalidConfig(f"{SETTING}: Invalid rule: {rule}")
    if match.end() != len(rule):
        raise InvalidConfig(f"{SETTING}: Invalid rule: `{rule}`, unmatched substring: `{rule[match.end() :]}`")
    if match[2] is not None:
        return _Rule(rule)
    if not match[5]:
        raise InvalidConfig(f"{SETTING}: Invalid rule: `{rule}` has no number of components after [")
    return _Rule(
        rule,
        int(match[5]),
        match[6],
        None if match[8] is None else java_regex.compiled(match[8]),
        None if match[10] is None else java_regex.compiled(match[10]),
        match[11] or "",
        match[12] == "g",
        match[13],
    )
