"""Shortens error texts that a response cannot carry. A string has at most 32,767 bytes, and a text may repeat a name as long as that."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.message import Message
from barnabas.protocol.writer import STRING_SIZE_MAX

_TEXT: Final = "error_message"


def shorten_error_texts(response: Message) -> bool:
    """Cuts the texts that are too long, in all parts of the response. Returns whether there were any."""
    is_shortened = False
    for name in response.field_names():
        value = getattr(response, name)
        if name == _TEXT and isinstance(value, str):
            raw = value.encode()
            if len(raw) > STRING_SIZE_MAX:
                setattr(response, name, raw[:STRING_SIZE_MAX].decode(errors="ignore"))
                is_shortened = True
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, Message):
                    is_shortened |= shorten_error_texts(element)
    return is_shortened
