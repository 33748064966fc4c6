"""Messages that visitors write: what stands in a form becomes a record, and a record becomes a form to be edited and sent again.

A form holds text, and browsers change line ends in it. So a key or value that a text field cannot hold exactly is edited as hexadecimal
digits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from barnabas.client import AsyncConsumer, AsyncProducer, RecordMetadata
from barnabas.console.messages.browse import TIMEOUT_S
from barnabas.console.messages.decoding import DecodedMessage
from barnabas.console.messages.json_values import parse_json
from barnabas.errors import UnknownTopicOrPartition

Writing = Literal["text", "json", "hex", "null"]
WRITINGS: Final[tuple[Writing, ...]] = get_args(Writing)

EDITED_BYTES_MAX: Final = 256 * 1024
HEADERS_MAX: Final = 1000

Headers = Sequence[tuple[str, bytes | None]]


class DraftError(ValueError):
    """The form cannot be sent; the message says which field and why."""


@dataclass(frozen=True)
class Draft:
    """A form: texts, and how each is to be understood. `partition` is empty for the partitioner's choice."""

    key: str = ""
    key_writing: str = "text"
    value: str = ""
    value_writing: str = "text"
    headers: str = ""
    partition: str = ""


@dataclass(frozen=True)
class OutgoingMessage:
    """A message that may be sent."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None


def read_draft(draft: Draft) -> OutgoingMessage:
    """The message of a form. Raises DraftError. An empty text as a key is no key."""
    key = bytes_of(draft.key, draft.key_writing, "key")
    return OutgoingMessage(
        None if draft.key_writing != "hex" and key == b"" else key,
        bytes_of(draft.value, draft.value_writing, "value"),
        read_headers(draft.headers),
        _partition(draft.partition),
    )


def bytes_of(text: str, writing: str, field: str) -> bytes | None:
    """The bytes of one field of a form."""
    text = text.replace("\r\n", "\n")  # forms send all line ends so
    if writing == "null":
        return None
    if writing == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise DraftError(f"The {field} is not hexadecimal: write two digits for each byte, for example 00 ff 41") from None
    if writing == "json":
        try:
            parse_json(text)
        except ValueError as fault:
            raise DraftError(f"The {field} is not JSON: {fault}. Choose text to send it as it is") from None
    elif writing != "text":
        raise DraftError(f"The {field} is one of {', '.join(WRITINGS)}, not {writing[:50]!r}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DraftError(f"The {field} has half a character (a lone surrogate), which UTF-8 cannot hold") from None


def read_headers(text: str) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a form: a line `name: value` for each; `name` alone for null; or the JSON that `write_headers` makes."""
    text = text.replace("\r\n", "\n")
    if text.lstrip().startswith("["):
        return _headers_of_json(text)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > HEADERS_MAX:
        raise DraftError(f"A message sent here has at most {HEADERS_MAX} headers")
    headers: list[tuple[str, bytes | None]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not name.strip():
            raise DraftError(f"A header has a name: write name: value, not {line[:50]!r}")
        headers.append((name.strip(), value.strip().encode("utf-8", "surrogatepass") if colon else None))
    return tuple(headers)


def write_headers(headers: Headers) -> str:
    """The headers as lines; as JSON if a line cannot hold one of them."""
    lines = [name if value is None else f"{name}: {_text(value)}" for name, value in headers if value is None or _text(value) is not None]
    text = "\n".join(lines)
    try:
        if len(lines) == len(headers) and read_headers(text) == tuple(headers):
            return text
    except DraftError:
        pass
    return json.dumps([[name, _json_of(value)] for name, value in headers], ensure_ascii=False)


def draft_of(message: DecodedMessage) -> Draft:
    """The form that sends this message again. Raises DraftError for a masked message, and for one that is too large for a form."""
    record = message.record
    if message.masks:
        raise DraftError("Masks apply to this message, so it cannot be edited here: the masked fields would be lost")
    if max(len(record.key or b""), len(record.value or b"")) > EDITED_BYTES_MAX:
        raise DraftError(
            f"This message has more than {EDITED_BYTES_MAX} bytes: download it, and send it with barnabas kcat or kafka-console-producer"
        )
    key, key_writing = _editable(record.key)
    value, value_writing = _editable(record.value)
    return Draft(key, key_writing, value, value_writing, write_headers(record.headers), str(record.partition))


async def send(
    consumer: AsyncConsumer[bytes, bytes], producer: AsyncProducer[bytes, bytes], topic: str, outgoing: OutgoingMessage
) -> RecordMetadata:
    """Sends the message and waits for its acknowledgement. The topic is not created if it is not there: the consumer looks first."""
    await check_target(consumer, topic, outgoing.partition)
    return await producer.send_and_wait(topic, outgoing.value, outgoing.key, partition=outgoing.partition, headers=list(outgoing.headers))


async def check_target(consumer: AsyncConsumer[bytes, bytes], topic: str, partition: int | None) -> int:
    """The number of partitions of a topic. Raises UnknownTopicOrPartition: a producer would create the topic."""
    infos = await consumer.partitions_for(topic, TIMEOUT_S)
    if not infos:
        raise UnknownTopicOrPartition(f"There is no topic {topic!r}, or you may not see it")
    if partition is not None and partition >= len(infos):
        raise UnknownTopicOrPartition(f"The topic {topic} has no partition {partition}: it has {len(infos)}, from 0 on")
    return len(infos)


def _partition(text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or len(text.strip()) > 9:
        raise DraftError(f"The partition is a number from 0 on, or empty, not {text[:20]!r}")
    return int(text)


def _editable(raw: bytes | None) -> tuple[str, Writing]:
    if raw is None:
        return "", "null"
    text = _text(raw)
    if text is not None and bytes_of(text, "text", "value") == raw and (text or raw is None):
        return text, "text"
    return raw.hex(" "), "hex"


def _text(raw: bytes) -> str | None:
    """The text of the bytes, if a form field keeps it as it is."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if all(character >= " " or character in "\t\n" for character in text) else None


def _json_of(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def _headers_of_json(text: str) -> tuple[tuple[str, bytes | None], ...]:
    wrong = DraftError('Headers as JSON are [["name", "text"], ["other", {"hex": "00ff"}], ["without a value", null]]')
    try:
        pairs = parse_json(text)
        if len(pairs) > HEADERS_MAX:
            raise DraftError(f"A message sent here has at most {HEADERS_MAX} headers")
        return tuple((_name(name), _value(value)) for name, value in pairs)
    except DraftError:
        raise
    except (ValueError, TypeError, KeyError):
        raise wrong from None


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError
    name.encode()
    return name


def _value(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if not isinstance(value, str):
        raise TypeError
    return value.encode()
