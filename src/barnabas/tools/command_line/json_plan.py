"""Reads the small JSON files of tools, with the errors of Kafka's reader.

The result is None for a text that is not JSON, because each tool has its own message for that; a field of the wrong type is an error here.
"""

from __future__ import annotations

import json
from typing import Any, Final

from barnabas.tools.command_line.failures import ToolError

_LIMITS: Final = {"Integer": 2**31, "Long": 2**63}


class WrongJson(ToolError):
    """JsonMappingException."""

    java_name = "com.fasterxml.jackson.databind.JsonMappingException"


def parse_json(text: str) -> Any:
    """The value; None if the text is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongJson(f"Expected JSON object, received {_shown(value)}")
    return value


def as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WrongJson(f"Expected JSON array, received {_shown(value)}")
    return value


def string(fields: dict[str, Any], name: str) -> str:
    value = _field(fields, name)
    if not isinstance(value, str):
        raise WrongJson(f"Expected `String` value, received {_shown(value)}")
    return value


def integer(fields: dict[str, Any], name: str, kind: str = "Integer") -> int:
    return to_integer(_field(fields, name), kind)


def to_integer(value: Any, kind: str = "Integer") -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_LIMITS[kind] <= value < _LIMITS[kind]:
        raise WrongJson(f"Expected `{kind}` value, received {_shown(value)}")
    return value


def _field(fields: dict[str, Any], name: str) -> Any:
    if name not in fields:
        raise WrongJson(f"No such field exists: `{name}`")
    return fields[name]


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
