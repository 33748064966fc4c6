"""The fuzzer that knows the schemas: every API that is served, in every version, written field by field from its schema, then damaged.

A frame follows from its seed and number alone (and from the ids that the broker drew for its topics), so that the one that broke something
can be made again. A request is written as pieces, each with its meaning; damage may take a count, a length or a number for what it is, or
may know nothing and turn bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from struct import pack

from barnabas.broker.handlers import HANDLERS
from barnabas.protocol.generator.schema import Field, MessageSchema, Struct, load_messages
from barnabas.protocol.registry import APIS
from barnabas.uuid import Uuid
from tests.fuzz.values import INTS, Values

# Where most can go wrong gets most of the frames.
WEIGHTS = {"Produce": 5, "Fetch": 5, "CreateTopics": 2, "IncrementalAlterConfigs": 2, "ListOffsets": 2, "Metadata": 2}
SERVED = [APIS[key] for key in HANDLERS]
SCHEMAS: Mapping[str, MessageSchema] = {message.name: message for message in load_messages()}
CODED = frozenset({"CreateAcls", "DescribeAcls", "DeleteAcls"})  # a code that means nothing closes the connection, as in Kafka
CLIENT_ID = "fuzz"

WHOLE_SHARE, PIECE_SHARE = 0.6, 0.25  # the rest gets its bytes damaged
FORMATS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}
COUNTS = (0, 1, 2, 1000, 65536, 2**24, 2**31 - 1, 2**31 - 2)
NOT_UTF8 = (b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")


@dataclass(slots=True)
class Frame:
    """`data` with its size in front. `is_whole`: a request that this broker must answer, unless it has no answer."""

    number: int
    api: str
    version: int
    data: bytes
    damage: str = ""
    may_wait: bool = False
    has_no_answer: bool = False
    may_be_unknown: bool = False

    @property
    def is_whole(self) -> bool:
        return not self.damage

    def __str__(self) -> str:
        return f"frame {self.number}: {self.api} v{self.version}{', ' + self.damage if self.damage else ''}, {len(self.data)} bytes"


@dataclass(slots=True)
class _Piece:
    kind: str
    data: bytes


def make_frame(seed: int, number: int, ids: Mapping[str, Uuid]) -> Frame:
    random = Random(seed * 1_000_003 + number)
    api = random.choices(SERVED, [WEIGHTS.get(one.name, 1) for one in SERVED])[0]
    version = random.randint(api.lowest_version, api.stable_version)
    values = Values(api.name, version, random, ids)
    pieces = _header(api.key, version, number, api.request_header_version(version))
    header = len(pieces)
    message = SCHEMAS[f"{api.name}Request"]
    _Writer(message, version, values, pieces).struct(message.root)
    drawn = random.random()
    frame = Frame(number, api.name, version, b"")
    if drawn < WHOLE_SHARE or len(pieces) == header:
        frame.may_wait, frame.has_no_answer, frame.may_be_unknown = values.may_wait, values.has_no_answer, values.may_be_unknown
        # The tree refuses what cannot be a path, and Kafka answered so when offsets were kept there.
        frame.may_be_unknown |= version == 0 and api.name in ("OffsetCommit", "OffsetFetch")
        frame.may_wait |= api.name in ("JoinGroup", "SyncGroup")  # for the other members
        frame.damage = "codes at random" if api.name in CODED else ""
        frame.data = _framed(b"".join([piece.data for piece in pieces]))
    elif drawn < WHOLE_SHARE + PIECE_SHARE:
        frame.damage = _damage_a_piece(random, pieces, header, message.name, version)
        frame.data = _framed(b"".join([piece.data for piece in pieces]))
    else:
        frame.damage, frame.data = _damage_bytes(random, b"".join([piece.data for piece in pieces]))
    return frame


def _framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def _header(key: int, version: int, number: int, header_version: int) -> list[_Piece]:
    client = CLIENT_ID.encode()
    pieces = [_Piece("int16", pack(">h", key)), _Piece("int16", pack(">h", version)), _Piece("int32", pack(">i", number))]
    pieces += [_Piece("length", pack(">h", len(client))), _Piece("text", client)]
    if header_version >= 2:
        pieces.append(_Piece("tags", b"\x00"))
    return pieces


class _Writer:
    """Writes a request as pieces, with values drawn for its fields."""

    def __init__(self, message: MessageSchema, version: int, values: Values, pieces: list[_Piece]) -> None:
        self.message = message
        self.version = version
        self.values = values
        self.random = values.random
        self.pieces = pieces
        self.is_flexible = version in message.flexible

    def struct(self, struct: Struct) -> None:
        tagged: list[Field] = []
        for one in struct.fields:
            if self.version not in one.versions:
                continue
            if self.version in one.tagged:
                tagged.append(one)
            else:
                self.field(struct.name, one)
        if self.is_flexible:
            self._tags(struct.name, tagged)

    def field(self, struct: str, one: Field) -> None:
        is_null = self.version in one.nullable and self.random.random() < 0.15
        if one.is_array:
            count = -1 if is_null else self.values.count(one)
            self._size("count", count, 4)
            for _ in range(count):
                self.value(struct, one)
        elif one.is_struct and not one.nullable.is_empty and self.version in one.nullable:
            self._put("presence", b"\xff" if is_null else b"\x01")
            if not is_null:
                self.value(struct, one)
        elif is_null:
            self._size("length", -1, 4 if one.type in ("bytes", "records") else 2)
        else:
            self.value(struct, one)

    def value(self, struct: str, one: Field) -> None:
        if one.is_struct:
            self.struct(self.message.structs[one.type])
        elif one.type == "string":
            self._sized("text", self.values.text(struct, one).encode(), 2)
        elif one.type == "bytes":
            self._sized("bytes", self.values.byte_string(one), 4)
        elif one.type == "records":
            self._sized("bytes", self.values.records(), 4)
        elif one.type == "uuid":
            self._put("uuid", self.values.topic_id().value)
        elif one.type == "bool":
            self._put("bool", b"\x01" if self.random.random() < 0.5 else b"\x00")
        elif one.type == "float64":
            self._put("float64", pack(">d", self.random.random()))
        else:
            self._put(one.type, pack(FORMATS[one.type], self.values.number(one)))

    def _tags(self, struct: str, tagged: list[Field]) -> None:
        """The fields with tags that are sent, in their order, and now and then one that nobody knows."""
        sent = [one for one in tagged if self.random.random() < 0.5]
        strange = self.random.random() < 0.03
        self._put("tags", uvarint(len(sent) + strange))
        for one in sorted(sent, key=lambda field: field.tag):
            inner = _Writer(self.message, self.version, self.values, [])
            inner.field(struct, one)
            content = b"".join([piece.data for piece in inner.pieces])
            self._put("tag", uvarint(one.tag))
            self._put("length", uvarint(len(content)))
            self._put("bytes", content)
        if strange:
            self._put("tag", uvarint(77) + uvarint(3) + b"abc")

    def _sized(self, kind: str, content: bytes, width: int) -> None:
        self._size("length", len(content), width)
        self._put(kind, content)

    def _size(self, kind: str, size: int, width: int) -> None:
        self._put(kind, uvarint(size + 1) if self.is_flexible else pack(">h" if width == 2 else ">i", size))

    def _put(self, kind: str, data: bytes) -> None:
        self.pieces.append(_Piece(kind, data))


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _damage_a_piece(random: Random, pieces: list[_Piece], header: int, name: str, version: int) -> str:
    """Makes one to three pieces say what they should not."""
    is_flexible = version in SCHEMAS[name].flexible
    damage = []
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(0 if random.random() < 0.05 else header, len(pieces))
        piece = pieces[at]
        piece.data = _absurd(random, piece, is_flexible)
        damage.append(f"{piece.kind} piece {at} is {piece.data[:12].hex()}")
    return "; ".join(damage)


def _absurd(random: Random, piece: _Piece, is_flexible: bool) -> bytes:
    kind = piece.kind
    if kind in ("count", "length"):
        size = random.choice(COUNTS)
        if is_flexible:
            return random.choice((uvarint(size), uvarint(0), uvarint(1), uvarint(2**32 - 1), b"\xff" * 6, b"\x80\x80\x80\x80\x80\x01"))
        form = ">h" if len(piece.data) == 2 else ">i"
        return pack(form, random.choice((min(size, 32767) if form == ">h" else size, -1, -2, -32768)))
    if kind in FORMATS:
        return pack(FORMATS[kind], random.choice(INTS[kind]))
    if kind == "text":
        return random.choice(NOT_UTF8) + piece.data[2:]
    if kind == "tags":
        return random.choice(
            (uvarint(1), uvarint(2**31 - 1), b"\xff" * 5, b"\x01\x00\x00", b"\x02\x05\x00\x05\x00", b"\x01\x00\xff\xff\xff\xff\x0f")
        )
    if kind in ("bool", "presence"):
        return bytes([random.choice((2, 127, 128, 255, 0, 1))])
    if kind == "uuid":
        return random.choice((bytes(16), b"\xff" * 16, piece.data[:8], piece.data + b"\x00"))
    return random.choice((b"", piece.data[:-1], piece.data + b"\x00", piece.data * 2, random.randbytes(len(piece.data))))


def _damage_bytes(random: Random, body: bytes) -> tuple[str, bytes]:
    """Damage that knows nothing of what it meets."""
    kind = random.randrange(6)
    if kind == 0:
        return "cut", _framed(body[: random.randrange(len(body))])
    if kind == 1:
        return "longer", _framed(body + random.randbytes(random.choice((1, 4, 100))))
    if kind == 2:
        data = _framed(body)
        return "size lies", random.choice((-1, -(2**31), 2**31 - 1, 104857601, len(body) + 1, 104857600, 0)).to_bytes(
            4, "big", signed=True
        ) + data[4:]
    flipped = bytearray(body)
    if kind == 3:
        at = random.randrange(len(flipped) + 1)
        flipped[at:at] = random.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00", b"\xff\xff", b"\x00"))
        return f"inserted at {at}", _framed(bytes(flipped))
    for _ in range(random.choice((1, 1, 2, 8))):
        # The names that keep dangerous requests away from others must not turn into other names.
        at = random.randrange(min(len(flipped), 14)) if random.random() < 0.2 else random.randrange(len(flipped))
        flipped[at] ^= 1 << random.randrange(8)
    return "bits turned", _framed(bytes(flipped))
