"""From the bytes of a message to what a person reads: JSON, Avro, Protobuf, text, a number or hexadecimal digits.

A `Decoder` is made for one topic and one way of reading. It applies the masks of the topic while it decodes, so nothing behind it ever
has the masked fields: not the filters, not the pages, not the downloads. Bounds on what is parsed keep the memory and time of one message
small; a message above them is shown as its first bytes and may be downloaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from barnabas.client.consumer.record import ConsumerRecord
from barnabas.console.messages.json_values import format_json, parse_json
from barnabas.console.messages.masks import MASKED, NO_MASKS, Masks, TopicMasks, masked
from barnabas.console.messages.registry import NotDecoded, RegistryDecoder

# How the visitor wants to see keys or values.
Reading = Literal["auto", "json", "registry", "text", "hex", "number"]
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)
# How a key, value or header is shown. "beyond": too large to be parsed; "withheld": a mask applies and the value cannot be parsed.
Form = Literal["null", "json", "avro", "protobuf", "json schema", "text", "number", "hex", "withheld"]

PARSE_BYTES_MAX: Final = 1024 * 1024
LIST_PARSE_BYTES_MAX: Final = 64 * 1024  # without a filter or a mask: only the label depends on it
SHOWN_BYTES_MAX: Final = 1024 * 1024
ORIGIN_HEADER: Final = "__barnabas.errors.topic"
REASON_HEADER: Final = "__barnabas.errors.message"
_TREES: Final = frozenset({"json", "avro", "protobuf", "json schema"})
_UNUSUAL_SHARE_MAX: Final = 0.1  # of control characters or invalid bytes in what counts as text
_CONTROLS: Final = frozenset(range(32)) - frozenset(b"\t\n\r")
_NUMBERS: Final = {2: struct.Struct(">h"), 4: struct.Struct(">i"), 8: struct.Struct(">q")}

RawRecord = ConsumerRecord[bytes, bytes]


@dataclass(frozen=True, slots=True)
class DecodedField:
    """A key, value or header. `text` is on one line if it is JSON; `data` is what filters see; `size` is in bytes, -1 for null."""

    form: Form
    text: str
    data: Any
    size: int
    note: str = ""
    is_whole: bool = True
    is_masked: bool = False

    @property
    def is_tree(self) -> bool:
        """Whether `data` is what JSON or a schema says, and `text` its JSON."""
        return self.form in _TREES

    def pretty(self) -> str:
        """The text over several lines, if it is JSON."""
        return format_json(self.data, 2) if self.is_tree else self.text


class DecodedMessage:
    """A record whose key, value and headers are decoded when they are first asked for."""

    __slots__ = ("_decoder", "_headers", "_key", "_masks", "_value", "record")

    def __init__(self, record: RawRecord, decoder: Decoder) -> None:
        self.record = record
        self._decoder = decoder
        self._masks: TopicMasks | None = None
        self._key: DecodedField | None = None
        self._value: DecodedField | None = None
        self._headers: tuple[tuple[str, DecodedField], ...] | None = None

    @property
    def shows_raw(self) -> bool:
        """See `Decoder.shows_raw`."""
        return self._decoder.shows_raw

    @property
    def masks(self) -> TopicMasks:
        """Those of the topic, and of the topic that a dead letter comes from."""
        if self._masks is None:
            self._masks = self._decoder.masks_of(self.record)
        return self._masks

    @property
    def key(self) -> DecodedField:
        """The decoded key."""
        if self._key is None:
            self._key = self._decoder.key(self)
        return self._key

    @property
    def value(self) -> DecodedField:
        """The decoded value."""
        if self._value is None:
            self._value = self._decoder.value(self)
        return self._value

    @property
    def headers(self) -> tuple[tuple[str, DecodedField], ...]:
        """The headers in their order; a name may occur more than once."""
        if self._headers is None:
            self._headers = self._decoder.headers(self)
        return self._headers


class Decoder:
    """Decodes the records of one topic. Belongs to one task or thread at a time."""

    def __init__(
        self,
        topic: str,
        *,
        masks: Masks | None = None,
        key: Reading = "auto",
        value: Reading = "auto",
        registry: RegistryDecoder | None = None,
        parse_bytes_max: int = PARSE_BYTES_MAX,
        shown_bytes_max: int = SHOWN_BYTES_MAX,
    ) -> None:
        self._topic = topic
        self._all_masks = masks or Masks()
        self._topic_masks = self._all_masks.for_topic(topic)
        self._key = key
        self._value = value
        self._registry = registry
        self._parse_bytes_max = PARSE_BYTES_MAX if self._all_masks else parse_bytes_max
        self._shown_bytes_max = shown_bytes_max

    @property
    def shows_raw(self) -> bool:
        """Whether unmasked keys and values are shown as the bytes they are, so that searching the bytes is searching what is shown."""
        return self._registry is None and {self._key, self._value} <= {"auto", "json", "text"}

    def masks_of(self, record: RawRecord) -> TopicMasks:
        """See `DecodedMessage.masks`."""
        if not self._all_masks:
            return NO_MASKS
        masks = self._topic_masks
        for name, value in record.headers:
            if name == ORIGIN_HEADER and value is not None:
                masks = masks | self._all_masks.for_topic(value.decode("utf-8", "replace"))
        return masks

    def key(self, message: DecodedMessage) -> DecodedField:
        """The key of a message."""
        return self._field(message, message.record.key, self._key, is_key=True)

    def value(self, message: DecodedMessage) -> DecodedField:
        """The value of a message."""
        return self._field(message, message.record.value, self._value, is_key=False)

    def headers(self, message: DecodedMessage) -> tuple[tuple[str, DecodedField], ...]:
        """The headers of a message. The reason of a dead letter may quote its value, so it is masked with it."""
        masks = message.masks
        decoded = []
        for name, value in message.record.headers:
            if value is not None and (masks.hides_header(name) or (name == REASON_HEADER and (masks.value or masks.key))):
                decoded.append((name, DecodedField("withheld", MASKED, MASKED, len(value), "masked", is_masked=True)))
            else:
                decoded.append((name, _plain(value, "auto", self._shown_bytes_max)))
        return tuple(decoded)

    def _field(self, message: DecodedMessage, raw: bytes | None, reading: Reading, *, is_key: bool) -> DecodedField:
        paths = message.masks.key if is_key else message.masks.value
        if raw is None:
            return _NULL
        note = ""
        if len(raw) <= self._parse_bytes_max:
            tree, note = self._tree(
                message.record, raw, "auto" if paths else reading, is_key=is_key, scalars=bool(paths) or reading == "json"
            )
            if tree is not None and (not paths or isinstance(tree[1], dict | list)):  # a bare text may be the masked field itself
                form, data, text = tree
                if paths:
                    data = masked(data, paths)
                    return DecodedField(form, format_json(data), data, len(raw), is_masked=True)
                return DecodedField(form, format_json(data) if text is None else text, data, len(raw))
        elif paths or reading in ("json", "registry"):
            note = f"larger than {self._parse_bytes_max} bytes: not parsed"
        if paths:  # a parser's own words may quote the value
            why = note if len(raw) > self._parse_bytes_max else "it cannot be parsed"
            return DecodedField("withheld", MASKED, None, len(raw), f"withheld, because a mask applies: {why}", is_masked=True)
        return _plain(raw, reading, self._shown_bytes_max, note)

    def _tree(
        self, record: RawRecord, raw: bytes, reading: Reading, *, is_key: bool, scalars: bool
    ) -> tuple[tuple[Form, Any, str | None] | None, str]:
        """Form, data, and the text if the bytes are the text; or None and a note that says why not."""
        note = ""
        if self._registry is not None and reading in ("auto", "registry"):
            try:
                decoded = self._registry.decode(self._topic, raw, record.headers, is_key)
                if decoded is not None:
                    return (decoded[0], decoded[1], None), ""
            except NotDecoded as fault:
                note = str(fault)
        if reading == "registry":
            return None, note or (
                "no schema registry is configured" if self._registry is None else "it does not begin with the id of a schema"
            )
        if reading in ("auto", "json") and (scalars or raw.lstrip()[:1] in (b"{", b"[")):
            try:
                text = raw.decode()
                return ("json", parse_json(text), text.replace("\n", " ").replace("\r", " ")), ""
            except ValueError as fault:
                if reading == "json":
                    note = f"not JSON: {fault}"[:200]
        return None, note


_NULL: Final = DecodedField("null", "", None, -1)


def _plain(raw: bytes | None, reading: Reading, shown_bytes_max: int, note: str = "") -> DecodedField:
    """Text, number or hexadecimal digits: what needs no parser."""
    if raw is None:
        return _NULL
    if reading == "number":
        number = _NUMBERS.get(len(raw))
        if number is not None:
            value = number.unpack(raw)[0]
            return DecodedField("number", str(value), value, len(raw))
        note = "a number has 2, 4 or 8 bytes"
    shown = raw[:shown_bytes_max]
    is_whole = len(shown) == len(raw)
    if reading in ("hex", "number"):
        return _hex(shown, len(raw), note, is_whole)
    text = text_of(shown if is_whole else _without_cut_character(shown), any_bytes=reading == "text")
    if text is None:
        return _hex(shown, len(raw), note, is_whole)
    return DecodedField("text", text, text, len(raw), note, is_whole)


def _hex(shown: bytes, size: int, note: str, is_whole: bool) -> DecodedField:
    text = shown.hex(" ")
    return DecodedField("hex", text, text, size, note, is_whole)


def text_of(raw: bytes, *, any_bytes: bool = False) -> str | None:
    """The bytes as text, with \\xff for bytes that are not UTF-8; None if they are more likely something else than text."""
    text = raw.decode("utf-8", "backslashreplace")
    if any_bytes or not raw:
        return text
    if 0 in raw:
        return None
    unusual = sum(map(_CONTROLS.__contains__, raw[:_SAMPLE_BYTES])) + (len(text.encode()) - len(raw)) // 3
    return text if unusual <= min(len(raw), _SAMPLE_BYTES) * _UNUSUAL_SHARE_MAX else None


_SAMPLE_BYTES: Final = 4096


def _without_cut_character(raw: bytes) -> bytes:
    """Without the first bytes of a UTF-8 character whose rest was cut off."""
    for back in range(1, min(4, len(raw)) + 1):
        if raw[-back] & 0xC0 != 0x80:
            is_cut = raw[-back] >= 0xC0 and (2 if raw[-back] < 0xE0 else 3 if raw[-back] < 0xF0 else 4) > back
            return raw[:-back] if is_cut else raw
    return raw


def header_values(headers: Iterable[tuple[str, DecodedField]]) -> dict[str, Any]:
    """Headers by name, for expressions; of several with one name the last counts, as in Kafka."""
    return {name: decoded.data for name, decoded in headers}
