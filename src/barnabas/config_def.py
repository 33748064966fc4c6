"""The definition of a setting: name, type, default, allowed values, importance and description.

The tables of topic and broker settings consist of these definitions, and DescribeConfigs returns them. Values are texts, as in Java's
properties, and are rejected with Kafka's error texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Final, Protocol, Self

from barnabas.errors import KafkaError
from barnabas.kafka_version import position

SHORT_MAX: Final = 2**15 - 1
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308


class InvalidConfig(KafkaError):
    """INVALID_CONFIG, Kafka's ConfigException."""

    code = 40


class Numbered(IntEnum):
    """An enum with the numbers of the wire, in which 0 is always UNKNOWN."""

    @classmethod
    def for_id(cls, number: int) -> Self:
        """The member with a number; UNKNOWN if there is none, as in Kafka."""
        try:
            return cls(number)
        except ValueError:
            return cls(0)


class Type(Numbered):
    """The types of settings, with the numbers of DescribeConfigs. No setting here is UNKNOWN; one of a newer broker may be."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigResourceType(Numbered):
    """The kinds of resources of DescribeConfigs and AlterConfigs."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(Numbered):
    """The source of a value, with Kafka's numbers and the names that Kafka's tools print."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Validator(Protocol):
    """Checks a parsed value; raises InvalidConfig. `str` of it describes the allowed values."""

    def check(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True)
class ConfigKey:
    name: str
    type: Type
    default: Any
    validator: Validator | None
    importance: Importance
    doc: str
    # Not shown by DescribeConfigs unless it is set: Kafka's internal settings, and those of older versions of Kafka.
    hidden: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is Type.PASSWORD

    def parse(self, text: str) -> Any:
        """The typed and checked value of a text."""
        value = parse_type(self.name, text, self.type)
        if self.validator is not None:
            self.validator.check(self.name, value)
        return value


def table(keys: Iterable[ConfigKey]) -> dict[str, ConfigKey]:
    """Keys by name; a name may be defined once."""
    by_name: dict[str, ConfigKey] = {}
    for key in keys:
        assert key.name not in by_name, f"{key.name} is defined twice"
        by_name[key.name] = key
    return by_name


def invalid(name: str, value: object, message: str) -> InvalidConfig:
    shown = value_text(value) if isinstance(value, bool | float | tuple) else value
    return InvalidConfig(f"Invalid value {shown} for configuration {name}: {message}")


_COMMA: Final = re.compile(r"\s*,\s*")
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_WHOLE_NUMBER_LIMITS: Final = {Type.SHORT: SHORT_MAX, Type.INT: INT_MAX, Type.LONG: LONG_MAX}


def parse_type(name: str, text: str, kind: Type) -> Any:
    """A text as a value of a type, not yet checked. Passwords and class names are strings, lists are tuples."""
    trimmed = text.strip()
    if kind is Type.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if kind in _WHOLE_NUMBER_LIMITS:
        return _whole_number(name, text, kind)
    if kind is Type.DOUBLE:
        if not _NUMBER.fullmatch(trimmed):
            raise invalid(name, text, "Not a number of type DOUBLE")
        return float(trimmed.rstrip("fFdD") if "I" not in trimmed else trimmed)
    if kind is Type.LIST:
        # Kafka drops duplicates too, with a warning.
        return tuple(dict.fromkeys(_COMMA.split(trimmed))) if trimmed else ()
    return trimmed


def _whole_number(name: str, text: str, kind: Type) -> int:
    limit = _WHOLE_NUMBER_LIMITS[kind]
    # The length is checked first: Python rejects numbers of thousands of digits, with another text.
    if _WHOLE_NUMBER.fullmatch(text.strip()) and len(text.strip()) <= 1000 and -limit - 1 <= int(text.strip()) <= limit:
        return int(text.strip())
    raise invalid(name, text, f"Not a number of type {kind.name}")


def value_text(value: Any) -> str | None:
    """A value as Java writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    """Double.toString: plain between 0.001 and 10 million, with an exponent beyond."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:])) or '0'}"
    return f"{'-' if sign else ''}{mantissa}E{int(exponent) + len(digits) - 1}"


@dataclass(frozen=True)
class Range:
    low: float
    high: float | None = None

    def check(self, name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, "null", "Value must be non-null")
        if not value >= self.low:
            raise invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and not value <= self.high:
            raise invalid(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"


@dataclass(frozen=True)
class OneOf:
    allowed: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        if value not in self.allowed:
            raise invalid(name, value, f"String must be one of: {', '.join(self.allowed)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.allowed)}]"


@dataclass(frozen=True)
class OneOfAnyCase:
    allowed: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        if value is None or value.upper() not in self.allowed:
            raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(self.allowed)}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.allowed)}]"


@dataclass(frozen=True)
class ListOf:
    """A list of some of these values, or of any if none are named."""

    allowed: tuple[str, ...] = ()
    empty: bool = True
    null: bool = False

    def check(self, name: str, value: Any) -> None:
        if value is None:
            if not self.null:
                raise InvalidConfig(f"Configuration '{name}' values must not be null.")
            return
        if not value and not self.empty:
            raise InvalidConfig(f"Configuration '{name}' must not be empty. Valid values include: {str(self) or 'any non-empty value'}")
        for entry in value:
            if not entry:
                raise InvalidConfig(f"Configuration '{name}' values must not be empty.")
            if self.allowed:
                OneOf(self.allowed).check(name, entry)

    def __str__(self) -> str:
        return f"[{', '.join(self.allowed)}]" if self.allowed else ""


class NonEmptyString:
    def check(self, name: str, value: Any) -> None:
        if value == "":
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class GzipLevel:
    """Level 0 of gzip means no compression; Kafka rejects it."""

    def check(self, name: str, value: Any) -> None:
        if value != -1 and not 1 <= value <= 9:
            raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class KafkaVersion:
    """Accepts a version of Kafka's protocol, such as 3.9 or 3.9-IV0."""

    def check(self, name: str, value: Any) -> None:
        try:
            position(value)
        except ValueError as error:
            raise invalid(name, value, str(error)) from None
