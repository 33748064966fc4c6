"""The file of a key or trust store, or the PEM text of a setting.

The content of a file says what it is, because Java reads a PKCS12 file also where the type is JKS, its default.
"""

from __future__ import annotations

from typing import Final

from barnabas.security.tls.settings import TlsSettings

STORE_SIZE_MAX: Final = 16 << 20

_PEM: Final = b"-----BEGIN "


def read_store_file(settings: TlsSettings, store: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            data = file.read(STORE_SIZE_MAX + 1)
    except OSError as error:
        raise settings.invalid(f"ssl.{store}.location: {location} cannot be read: {error.strerror or error}") from None
    if len(data) > STORE_SIZE_MAX:
        raise settings.invalid(f"ssl.{store}.location: {location} is larger than {STORE_SIZE_MAX} bytes, which no store is")
    return data


def is_pem(data: bytes) -> bool:
    return _PEM in data


def in_lines(text: str) -> str:
    """PEM from a properties file, in which line breaks may have become blanks."""
    if "\n" in text:
        return text
    words = text.replace("-----BEGIN ", "\n-----BEGIN ").replace("-----END ", "\n-----END ").split("\n")
    lines = []
    for word in words:
        if word.startswith("-----"):
            head, _, body = word[5:].partition("-----")
            lines += [f"-----{head}-----", *body.split()]
        else:
            lines += word.split()
    return "\n".join(lines) + "\n"
