"""The distinguished name of a certificate as text: RFC 2253, character for character as Java's X500Principal.getName writes it.

ACLs and mapping rules name clients by this text, so it must be that of Apache Kafka. OpenSSL's own text differs in order and escapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_CONTEXT_0: Final = 0xA0  # the version, which certificates of version 1 leave out
_OBJECT_IDENTIFIER: Final = 0x06
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})  # UTF8, Printable, T61, IA5, General, Universal, BMP
_KEYWORDS: Final = {  # the attribute types that RFC 2253 names; any other is written as numbers, with its value in hexadecimal
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')


class _Element(NamedTuple):
    """`encoded` is the whole element: tag, length and content."""

    tag: int
    content: bytes
    encoded: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate, which OpenSSL has parsed before. Raises ValueError for anything else."""
    to_be_signed = next(_elements(next(_elements(certificate)).content))
    fields = list(_elements(to_be_signed.content))
    if fields[0].tag == _CONTEXT_0:
        del fields[0]
    return name_text(fields[4].content)  # after serial number, signature algorithm, issuer and validity


def name_text(name: bytes) -> str:
    """Of the content of a DER Name. The most specific part comes first, so the order of the encoding is reversed."""
    parts = ["+".join(_attribute(attribute.content) for attribute in _elements(part.content)) for part in _elements(name)]
    return ",".join(reversed(parts))


def _attribute(encoded: bytes) -> str:
    identifier, value = _elements(encoded)
    if identifier.tag != _OBJECT_IDENTIFIER:
        raise ValueError("An attribute of a distinguished name has no object identifier")
    numbers = _dotted(identifier.content)
    keyword = _KEYWORDS.get(numbers)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or numbers}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    inner = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    left = len(inner) - len(inner.lstrip(" \r"))
    right = max(len(inner.rstrip(" \r")), left)
    return "".join(f"\\{char}" for char in inner[:left]) + inner[left:right] + "".join(f"\\{char}" for char in inner[right:])


def _dotted(identifier: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in identifier:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _elements(data: bytes) -> Iterator[_Element]:
    """The DER elements that follow each other. Raises ValueError where a length exceeds the data."""
    start = 0
    while start < len(data):
        header = data[start : start + 2]
        at = start + 2
        size = header[-1]
        if size & 0x80:
            octets = size & 0x7F
            size = int.from_bytes(data[at : at + octets], "big")
            at += octets
        if len(header) < 2 or at + size > len(data):
            raise ValueError("A DER element is cut off")
        yield _Element(data[start], data[at : at + size], data[start : at + size])
        start = at + size
