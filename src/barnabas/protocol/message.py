# Compiled by mypyc: src/compiled.toml lists this module.
"""The base of every message of the protocol: a plain object with typed fields that reads itself from bytes and writes itself to them.

The classes in `messages/` and `coordinator_records/` are generated and derive from `Message`. One class covers all versions of its API, so
a handler need not know the version; only `read` and `write` decide which fields a version has.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, TypeVar, cast

from mypy_extensions import i64, mypyc_attr

from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer

EMPTY: Final[list[Any]] = []  # the default argument that means "a new empty list"; never stored, never changed
# The tokens of SASL, the credentials of SCRAM and the secret of a delegation token. repr() hides them, because it may be logged.
_SECRETS: Final = frozenset({"auth_bytes", "salt", "salted_password", "hmac"})

M = TypeVar("M", bound="Message")


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """A message, or a structure inside one. Two are equal if their fields are."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def read(reader: Reader, version: i64) -> Message:
        """The message of this class at the reader's position; raises MalformedMessage."""
        raise NotImplementedError

    def write(self, writer: Writer, version: i64) -> None:
        """Appends the message; raises UnsupportedVersion if a field that is set and may not be ignored does not exist in `version`."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.field_names())

    def __repr__(self) -> str:
        kind = type(self).__name__
        fields = ", ".join([f"{name}={'[hidden]' if _is_secret(kind, name) else repr(getattr(self, name))}" for name in self.field_names()])
        return f"{kind}({fields})"

    def field_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = type(self).FIELDS
        return names


def parse(kind: type[M], data: bytes, version: int) -> M:
    """The message in `data`; raises MalformedMessage, also if bytes are left over."""
    reader = Reader(data, 0, len(data))
    message = kind.read(reader, version)
    reader.finish()
    assert isinstance(message, kind)
    return message


def serialize(message: Message, version: int) -> bytes:
    """The bytes of a message in one piece. A response with records is sent by `framing` instead, which does not copy them."""
    writer = Writer()
    message.write(writer, version)
    return b"".join(cast("list[bytes | memoryview]", writer.buffers()))


def _is_secret(kind: str, field: str) -> bool:
    """The value of a setting counts as a secret, because it may be a password."""
    return field in _SECRETS or (field == "value" and kind == "AlterableConfig")


def unknown_version(name: str, version: i64, lowest: int, highest: int) -> UnsupportedVersion:
    return UnsupportedVersion(f"{name} has the versions {lowest} to {highest}, not {version}")


def not_in_version(field: str, version: i64) -> UnsupportedVersion:
    return UnsupportedVersion(f"Attempted to write a non-default {field} at version {version}")


def null_not_allowed(field: str, version: i64) -> UnsupportedVersion:
    return UnsupportedVersion(f"Attempted to write a null {field} at version {version}, where it may not be null")
