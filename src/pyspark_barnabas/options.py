"""Parses the options of Spark, with errors that name the option and the fix.

Spark's dictionary ignores the case of names; messages use the documented name. `kafka.X` is the setting X of Kafka's clients and is passed
to them unchanged.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark_barnabas.errors import OptionError

KAFKA: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"
PUBLISH: Final = "publishProgress"
FIRST_ANSWER_MS: Final = 10_000  # timeout for a cluster that has never answered, unless an option sets it

_OFFSETS: Final = "Set the option 'startingOffsets' to 'earliest' or 'latest' instead. The query keeps track of its offsets itself"
_TYPED: Final = "Keys and values are binary columns; cast or decode them with DataFrame operations, or set the option 'value.format'"
REFUSED_FOR_READING: Final = {
    "auto.offset.reset": _OFFSETS,
    "key.deserializer": _TYPED,
    "value.deserializer": _TYPED,
    "enable.auto.commit": "Offsets are committed when a batch is finished, to the group of 'kafka.group.id'",
    "interceptor.classes": "Interceptors of consumers change or drop records behind the query's back; transform the DataFrame instead",
}
REFUSED_FOR_WRITING: Final = {
    "key.serializer": "Keys are written as they are; serialize them with DataFrame operations",
    "value.serializer": "Values are written as they are; serialize them with DataFrame operations",
    "interceptor.classes": "Interceptors of producers change records behind the query's back; transform the DataFrame instead",
}

# Spark itself adds these to the options of a source or sink.
_SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname", "outputmode", "batchid"})

_UNITS_MS: Final = {
    "ms": 1,
    "msec": 1,
    "millisecond": 1,
    "s": 1000,
    "sec": 1000,
    "second": 1000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hr": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_DURATION: Final = re.compile(r"\s*(\d+)\s*([a-zA-Z]*)\s*")


def client_settings(options: Mapping[str, str], refused: Mapping[str, str] = REFUSED_FOR_READING) -> dict[str, str]:
    """The settings `kafka.*` under Kafka's names, for all clients, including the address of the cluster."""
    settings = {name[len(KAFKA) :].lower(): value for name, value in options.items() if name.lower().startswith(KAFKA)}
    for name, reason in refused.items():
        if name in settings:
            raise OptionError(KAFKA + name, f"is not supported. {reason}.")
    if not settings.get("bootstrap.servers", "").strip():
        raise OptionError(BOOTSTRAP, "must be set to the addresses of some brokers, such as 'host1:9092,host2:9092'.")
    return settings


def refuse_unknown(options: Mapping[str, str], known: Iterable[str], use: str) -> None:
    """Raises OptionError for an unknown option that is neither `kafka.*` nor Spark's own; `use` is 'reading' or 'writing'."""
    names = {name.lower(): name for name in known}
    for option in options:
        lower = option.lower()
        if lower in names or lower in _SPARKS_OWN or lower.startswith((KAFKA, "spark.")):
            continue
        near = difflib.get_close_matches(lower, names, n=1)
        hint = f"Did you mean '{names[near[0]]}'?" if near else f"Settings of Kafka's clients begin with '{KAFKA}'."
        raise OptionError(option, f"is not known in {use}. {hint}")


def given(options: Mapping[str, str], name: str) -> str | None:
    """The value of an option without surrounding blanks; None if it is not set."""
    value = options.get(name)
    return None if value is None else str(value).strip()


def text(options: Mapping[str, str], name: str, default: str) -> str:
    value = given(options, name)
    if value is None:
        return default
    if not value:
        raise OptionError(name, "must not be empty.")
    return value


def choice(options: Mapping[str, str], name: str, default: str, allowed: Iterable[str]) -> str:
    """One of the allowed words, in lower case."""
    value = text(options, name, default).lower()
    words = list(allowed)
    if value not in words:
        raise OptionError(name, f"must be one of {', '.join(words)}, but it is '{value}'.")
    return value


def boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    value = given(options, name)
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise OptionError(name, f"must be 'true' or 'false', but it is '{value}'.")
    return value.lower() == "true"


def integer(options: Mapping[str, str], name: str, default: int | None = None, *, least: int = 1, most: int = 2**63 - 1) -> int | None:
    value = given(options, name)
    if value is None:
        return default
    if not re.fullmatch(r"[+-]?\d{1,19}", value) or not least <= int(value) <= most:
        bounds = f"from {least} on" if most >= 2**31 else f"from {least} to {most}"
        raise OptionError(name, f"must be a whole number {bounds}, but it is '{value}'.")
    return int(value)


def duration_ms(options: Mapping[str, str], name: str, default: int) -> int:
    """A time in milliseconds: a number, or a number with a unit, such as '15m' or '30 seconds'."""
    value = given(options, name)
    if value is None:
        return default
    match = _DURATION.fullmatch(value)
    unit = match[2].lower() if match is not None else ""
    factor = _UNITS_MS.get(unit) or _UNITS_MS.get(unit.removesuffix("s")) or (1 if not unit else None)
    if match is None or factor is None:
        raise OptionError(name, f"must be a time such as '500ms', '30s' or '15m', but it is '{value}'.")
    return int(match[1]) * factor


def json_object(name: str, value: str, example: str) -> dict[str, Any]:
    """A JSON object without repeated names."""
    try:
        parsed = json.loads(value, object_pairs_hook=_without_twins)
    except ValueError as error:
        raise OptionError(name, f"must be JSON such as {example}, but it is '{value}': {error}.") from None
    if not isinstance(parsed, dict):
        raise OptionError(name, f"must be a JSON object such as {example}, but it is '{value}'.")
    return parsed


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    options = dict(pairs)
    if len(options) != len(pairs):
        raise ValueError("a name stands twice")
    return options
