"""Messages as JSON, as Kafka's generated JsonConverter classes write them: for the request log.

Names, versions and types come from Kafka's schemas, which are read at the first use (6 ms). A field that the version lacks, and a tagged
field with its default, are left out. Bytes are base64. Records are never written: `recordsSizeInBytes` has their size. Fields that hold
secrets are `[hidden]`. A message of any size becomes a text of bounded size: after VALUES_MAX values a list ends with the number of
elements that are left out, and texts and bytes are cut.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from typing import Any, Final

from barnabas.protocol.generator.schema import OLD_RELEASE, RELEASE, Field, MessageSchema, join, read_release
from barnabas.protocol.message import Message
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid

VALUES_MAX: Final = 5_000  # of one message; writing them takes a few milliseconds
SIZE_MAX: Final = 4_096  # characters of a text, bytes of a value
HIDDEN: Final = "[hidden]"
# The tokens of SASL, credentials of SCRAM, and the secret of a delegation token, in whatever message.
SECRETS: Final = frozenset({"AuthBytes", "Salt", "SaltedPassword", "Hmac"})


def message_json(message: Message, version: int) -> dict[str, Any]:
    """The message as JSON of Kafka's names."""
    schema = _schema(type(message).__name__)
    return _Writer(schema, version).struct(message, schema.name)


@cache
def _schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    return read_release(RELEASE), read_release(OLD_RELEASE)


@cache
def _schema(name: str) -> MessageSchema:
    new, old = _schemas()
    return join(new.get(name), old.get(name))


class _Writer:
    def __init__(self, schema: MessageSchema, version: int) -> None:
        self._schema = schema
        self._version = version
        self._left = VALUES_MAX

    def struct(self, message: Message, name: str) -> dict[str, Any]:
        version = self._version
        node: dict[str, Any] = {}
        for field in self._schema.structs[name].fields:
            if version not in field.versions:
                continue
            value = getattr(message, field.attribute)
            if version in field.tagged and value == getattr(_default(type(message)), field.attribute):
                continue
            if isinstance(value, Records):
                node[f"{field.kafka_name}SizeInBytes"] = value.size
            elif field.name in SECRETS:
                node[field.kafka_name] = value if value is None else HIDDEN
            else:
                node[field.kafka_name] = self._value(field, value)
        return node

    def _value(self, field: Field, value: Any) -> Any:
        if not isinstance(value, list):
            return self._element(field, value)
        written: list[Any] = []
        for element in value:
            if self._left <= 0:
                written.append(f"... {len(value) - len(written)} more")
                break
            written.append(self._element(field, element))
        return written

    def _element(self, field: Field, value: Any) -> Any:
        self._left -= 1
        if isinstance(value, Message):
            return self.struct(value, field.type)
        if isinstance(value, Uuid):
            return str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            text = b64encode(value[:SIZE_MAX]).decode()
            return text if len(value) <= SIZE_MAX else f"{text}... {len(value) - SIZE_MAX} more bytes"
        if isinstance(value, str) and len(value) > SIZE_MAX:
            return f"{value[:SIZE_MAX]}... {len(value) - SIZE_MAX} more characters"
        return value


_defaults: dict[type[Message], Message] = {}  # one entry a class of messages


def _default(kind: type[Message]) -> Message:
    default = _defaults.get(kind)
    if default is None:
        default = _defaults[kind] = kind()
    return default
