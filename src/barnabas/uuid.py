"""Kafka's 128-bit identifiers of topics and log directories.

On the wire and in a `Uuid` they are 16 bytes; in files and in tool output they are 22 characters of URL-safe base64 without padding.
The caller passes the random source, so that a simulated cluster gives its topics the same ids in every run.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Final

UUID_SIZE: Final = 16
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_TEXT_SIZE_MAX: Final = 24


@dataclass(frozen=True, slots=True)
class Uuid:
    value: bytes

    ZERO: ClassVar[Uuid]  # no id
    METADATA_TOPIC_ID: ClassVar[Uuid]

    def __post_init__(self) -> None:
        if len(self.value) != UUID_SIZE:
            raise ValueError(f"A Uuid has {UUID_SIZE} bytes, not {len(self.value)}")

    def __str__(self) -> str:
        return urlsafe_b64encode(self.value).rstrip(b"=").decode("ascii")

    @classmethod
    def from_string(cls, text: str) -> Uuid:
        """The id written as base64, padded or not; raises ValueError for any other text."""
        if len(text) > _TEXT_SIZE_MAX:
            raise ValueError(f"Input string with prefix `{text[:_TEXT_SIZE_MAX]}` is too long to be decoded as a base64 UUID")
        if not _TEXT.fullmatch(text):
            raise ValueError(f"Input string `{text}` is not a base64-encoded UUID of {UUID_SIZE} bytes")
        return cls(urlsafe_b64decode(text[:22] + "=="))

    @classmethod
    def random(cls, random: Random) -> Uuid:
        """A new version 4 id that is not reserved and whose text does not begin with `-`, as an option of a command line does."""
        while True:
            value = bytearray(random.randbytes(UUID_SIZE))
            value[6] = value[6] & 0x0F | 0x40
            value[8] = value[8] & 0x3F | 0x80
            uuid = cls(bytes(value))
            if not str(uuid).startswith("-"):
                return uuid


Uuid.ZERO = Uuid(bytes(UUID_SIZE))
Uuid.METADATA_TOPIC_ID = Uuid(bytes(UUID_SIZE - 1) + b"\x01")
