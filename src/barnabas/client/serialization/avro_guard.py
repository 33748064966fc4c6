"""Reads Avro with fastavro, whose reader recurses in C without a bound: a schema that contains itself and some KB of bytes end the process.

A schema whose values have a bounded depth is read at once. With any other one, the bytes are walked through first, without recursion, and
are refused if they nest too deep.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import fastavro

DEPTH_MAX: Final = 1_000  # of records, arrays and maps: fastavro takes up to 2 KB of stack for each, of 8 MB
STATIC_DEPTH_MAX: Final = 200  # a schema that allows more depth is walked
_KNOWN_MAX: Final = 1_000
_FIXED_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_VARINT_BYTES_MAX: Final = 10

_Named = dict[str, Any]
_known: dict[int, tuple[Any, _Named | None]] = {}  # by the id of a parsed schema, which is kept: its named types if it must be walked


class MalformedAvro(ValueError):
    """The bytes are no datum of the schema, or one that nests too deep."""


def read_datum(data: bytes, writer: Any, reader: Any = None) -> Any:
    """The datum that was written with the parsed schema `writer`, resolved to `reader`. Raises MalformedAvro, and what fastavro raises."""
    named = _named_if_deep(writer)
    if named is not None:
        _walk(writer, named, data)
    return fastavro.schemaless_reader(io.BytesIO(data), writer, reader)


def is_deep(writer: Any) -> bool:
    """Whether values of a parsed schema can nest without a bound, or very deep."""
    return _named_if_deep(writer) is not None


def _named_if_deep(writer: Any) -> _Named | None:
    known = _known.get(id(writer))
    if known is None:
        named = _named_types(writer)
        known = writer, named if _is_unbounded(writer, named) else None
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[id(writer)] = known
    return known[1]


def _named_types(schema: Any) -> _Named:
    """Records, enums and fixed types by their full names, as fastavro writes them into a parsed schema."""
    named: _Named = {}
    todo = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, dict) and one.get("type") in ("record", "error", "enum", "fixed"):
            named[one["name"]] = one
        todo += _parts(one)
    return named


def _parts(schema: Any) -> list[Any]:
    """The schemas that a schema is made of."""
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, dict):
        return []
    kind = schema["type"]
    if kind in ("record", "error"):
        return [field["type"] for field in schema["fields"]]
    if kind == "array":
        return [schema["items"]]
    if kind == "map":
        return [schema["values"]]
    return [] if isinstance(kind, str) else [kind]


def _is_unbounded(schema: Any, named: _Named) -> bool:
    try:
        _height(schema, named, {}, 0)
    except _Unbounded:
        return True
    return False


class _Unbounded(Exception):
    pass


def _height(schema: Any, named: _Named, heights: dict[str, int | None], level: int) -> int:
    """How deep a schema's values can nest. `heights` has those of named types, and None for those that contain this one."""
    if level > STATIC_DEPTH_MAX:
        raise _Unbounded
    name: str | None = None
    if isinstance(schema, str):
        if schema not in named:
            return 0
        name, schema = schema, named[schema]
    elif isinstance(schema, dict) and "name" in schema:
        name = schema["name"]
    if name is not None and name in heights:
        known = heights[name]
        if known is None:
            raise _Unbounded
        return known
    if name is not None:
        heights[name] = None
    height = 0
    for part in _parts(schema):
        height = max(height, _height(part, named, heights, level + 1))
    height += 1
    if name is not None:
        heights[name] = height
    if level + height > STATIC_DEPTH_MAX:
        raise _Unbounded
    return height


def _walk(schema: Any, named: Mapping[str, Any], data: bytes) -> None:
    """Passes over one datum. Raises MalformedAvro."""
    source = _Source(data)
    containers: list[Iterator[Any]] = [iter((schema,))]
    while containers:
        part = next(containers[-1], _END)
        if part is _END:
            containers.pop()
            continue
        inner = _passed(part, named, source)
        if inner is not None:
            containers.append(inner)
            if len(containers) > DEPTH_MAX:
                raise MalformedAvro(f"the value nests more than {DEPTH_MAX:,} levels deep")


_END: Final = object()


def _passed(schema: Any, named: Mapping[str, Any], source: _Source) -> Iterator[Any] | None:
    """Passes over a value that has no parts. Of a record, array or map: the schemas of its parts, one after the other."""
    while True:
        if isinstance(schema, list):
            index = source.number()
            if not 0 <= index < len(schema):
                raise MalformedAvro(f"there is no branch {index} in a union of {len(schema)}")
            schema = schema[index]
            continue
        kind = schema["type"] if isinstance(schema, dict) else schema
        if not isinstance(kind, str):
            schema = kind
        elif kind in ("record", "error"):
            return (field["type"] for field in schema["fields"])
        elif kind == "array":
            return _elements(source, (schema["items"],))
        elif kind == "map":
            return _elements(source, ("string", schema["values"]))
        elif kind in named and not isinstance(schema, dict):
            schema = named[kind]
        else:
            _pass_leaf(schema, kind, source)
            return None


def _pass_leaf(schema: Any, kind: str, source: _Source) -> None:
    if kind in _FIXED_SIZES:
        source.skip(_FIXED_SIZES[kind])
    elif kind in ("bytes", "string"):
        source.skip(source.number())
    elif kind == "fixed":
        source.skip(schema["size"])
    elif kind in ("int", "long", "enum"):
        source.number()
    else:
        raise MalformedAvro(f"the schema has the unknown type {kind[:100]}")


def _elements(source: _Source, parts: tuple[Any, ...]) -> Iterator[Any]:
    """The parts of an array or map, element after element, in blocks."""
    while (count := source.number()) != 0:
        if count < 0:
            count = -count
            source.number()  # the size of the block
        if count > source.left:
            raise MalformedAvro(f"a block of {count:,} elements, and {source.left:,} bytes are left")
        for _ in range(count):
            yield from parts


class _Source:
    """Bytes and a position in them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def skip(self, size: int) -> None:
        if not 0 <= size <= self.left:
            self._ended()
        self._position += size

    def number(self) -> int:
        """A zigzag number of variable length."""
        number = 0
        for index in range(_VARINT_BYTES_MAX):
            if not self.left:
                self._ended()
            byte = self._data[self._position]
            self._position += 1
            number |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise MalformedAvro("a number has more than 10 bytes")

    def _ended(self) -> NoReturn:
        raise MalformedAvro("the bytes end within the value")
