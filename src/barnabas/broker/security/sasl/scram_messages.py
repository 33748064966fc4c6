"""The messages of a SCRAM client (RFC 5802), parsed. Extensions that the broker does not know are ignored.

Channel binding is not supported: the GS2 header is `n,` with or without an authorization id.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.security.sasl.mechanism import SaslFailure

_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^\x00,]+)*"
_FIRST: Final = re.compile(rf"(n,(?:a=({_NAME}))?,)(n=({_NAME}),r=({_PRINTABLE})({_EXTENSIONS}))")
_FINAL: Final = re.compile(rf"(c=([A-Za-z0-9+/=]+),r=({_PRINTABLE}){_EXTENSIONS}),p=([A-Za-z0-9+/=]+)")


@dataclass(frozen=True)
class ClientFirst:
    """`bare` is the message without its GS2 header, as both sides sign it."""

    gs2_header: str
    authorization_id: str
    bare: str
    username: str
    nonce: str
    extensions: dict[str, str]

    @classmethod
    def parse(cls, message: bytes) -> ClientFirst:
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise SaslFailure("Invalid SCRAM client first message format")
        extensions = dict(pair.split("=", 1) for pair in match[6].split(",")[1:])
        return cls(match[1], _name(match[2] or ""), match[3], _name(match[4]), match[5], extensions)

    @property
    def is_token(self) -> bool:
        return self.extensions.get("tokenauth", "").lower() == "true"


@dataclass(frozen=True)
class ClientFinal:
    channel_binding: bytes
    nonce: str
    without_proof: str
    proof: bytes = field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> ClientFinal:
        match = _FINAL.fullmatch(_text(message))
        if match is None:
            raise SaslFailure("Invalid SCRAM client final message format")
        try:
            binding, proof = (base64.b64decode(text, validate=True) for text in (match[2], match[4]))
        except binascii.Error:
            raise SaslFailure("Invalid SCRAM client final message format: not base64") from None
        return cls(binding, match[3], match[1], proof)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslFailure("Invalid SCRAM message: not UTF-8") from None


def _name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")
