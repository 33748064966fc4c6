"""JSON as Kafka's Jackson writes it, and strict readers for it.

Another program may have written a znode: everything is checked, and a mismatch raises CorruptZNode with the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.metadata.paths import SENSITIVE_ROOT_PATHS

_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


class CorruptZNode(ValueError):
    """The data of a znode is not what Kafka writes there."""

    def __init__(self, path: str, fault: str, data: bytes | None) -> None:
        is_sensitive = path.startswith(SENSITIVE_ROOT_PATHS)
        shown = "null" if data is None else "a secret" if is_sensitive else repr(data[:200])
        super().__init__(f"The znode {path} is damaged or from a newer version: {fault}. It holds {shown}")
        self.path = path


def encode(value: Mapping[str, object]) -> bytes:
    """No spaces, keys in their order, UTF-8; control characters with uppercase hex digits, as Jackson writes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if "\\u" in text:
        text = _ESCAPE.sub(lambda match: "\\u" + match.group()[2:].upper() if match.group()[1] == "u" else match.group(), text)
    return text.encode()


class JsonObject:
    """A JSON object from a znode, with typed fields."""

    __slots__ = ("_data", "_fields", "_path")

    def __init__(self, path: str, data: bytes | None, fields: dict[str, object]) -> None:
        self._path = path
        self._data = data
        self._fields = fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._field(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fault(f"{key} is not an integer")
        return value

    def long_text(self, key: str) -> int:
        """A number written as a string, as Kafka writes 64-bit numbers."""
        text = self.text(key)
        if not re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII):
            raise self.fault(f"{key} is not a number in a string")
        return int(text)

    def text(self, key: str) -> str:
        value = self._field(key)
        if not isinstance(value, str):
            raise self.fault(f"{key} is not a string")
        return value

    def optional_text(self, key: str) -> str | None:
        return None if self._fields.get(key) is None else self.text(key)

    def integers(self, key: str) -> tuple[int, ...]:
        value = self._field(key)
        if not isinstance(value, list) or not all(isinstance(element, int) and not isinstance(element, bool) for element in value):
            raise self.fault(f"{key} is not a list of integers")
        return tuple(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._field(key)
        if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
            raise self.fault(f"{key} is not a list of strings")
        return tuple(value)

    def nested(self, key: str) -> JsonObject:
        value = self._field(key)
        if not isinstance(value, dict):
            raise self.fault(f"{key} is not an object")
        return JsonObject(self._path, self._data, value)

    def optional_nested(self, key: str) -> JsonObject:
        """Empty if the field is missing or null."""
        return JsonObject(self._path, self._data, {}) if self._fields.get(key) is None else self.nested(key)

    def objects(self, key: str) -> list[JsonObject]:
        value = self._field(key)
        if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
            raise self.fault(f"{key} is not a list of objects")
        return [JsonObject(self._path, self._data, element) for element in value]

    def fault(self, text: str) -> CorruptZNode:
        return CorruptZNode(self._path, text, self._data)

    def _field(self, key: str, default: object = None) -> object:
        value = self._fields.get(key, default)
        if value is None:
            raise self.fault(f"{key} is missing")
        return value


def decode(path: str, data: bytes | None) -> JsonObject:
    if not data:
        raise CorruptZNode(path, "it is empty", data)
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise CorruptZNode(path, f"it is not JSON ({error})", data) from error
    if not isinstance(value, dict):
        raise CorruptZNode(path, "it is not a JSON object", data)
    return JsonObject(path, data, value)


def decode_number(path: str, data: bytes | None) -> int:
    """The content of a znode that is only a decimal number."""
    if data is None or not re.fullmatch(rb"-?[0-9]{1,19}", data):
        raise CorruptZNode(path, "it is not a decimal number", data)
    return int(data)
