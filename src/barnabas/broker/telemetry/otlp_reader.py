"""Reads OpenTelemetry's MetricsData, encoded with Protobuf: the content of PushTelemetry requests.

The field numbers are those of opentelemetry/proto/metrics/v1/metrics.proto. Gauges and sums have a value; a histogram or a summary becomes
two sums, its count and its sum. Unknown fields are skipped, as Protobuf readers do.

Reading is done in slices, because a push may have a million fields. A slice ends after FIELDS_PER_SLICE fields, wherever they are. Only a
point or a resource is read as a whole, and so the number of its fields is bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.errors import InvalidRecord

FIELDS_PER_SLICE: Final = 200  # about 1 µs each
FIELDS_MAX: Final = 1_000_000  # of one push: 20,000 points with ten labels each
FIELDS_PER_LEAF_MAX: Final = 1_000  # of one point or resource, and of the messages in it
ATTRIBUTES_MAX: Final = 100  # of one point or resource
POINTS_MAX: Final = 20_000  # of one push; what follows is not read
TEXT_BYTES_MAX: Final = 4_100  # the rest of a text is cut off. More than 1,024 characters remain, and no such series is kept

DELTA: Final = 1

# Wire types of Protobuf
_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5

# The fields of Metric that hold its points, and the field of the attributes in their points
_GAUGE: Final = 5
_SUM: Final = 7
_HISTOGRAM: Final = 9
_EXPONENTIAL_HISTOGRAM: Final = 10
_SUMMARY: Final = 11
_ATTRIBUTES: Final = {_GAUGE: 7, _SUM: 7, _HISTOGRAM: 9, _EXPONENTIAL_HISTOGRAM: 1, _SUMMARY: 7}

Labels = tuple[tuple[str, str], ...]


class ReceivedPoint(NamedTuple):
    """One value of one metric. `is_sum` is False for a gauge; a delta is the growth of a sum since the last push."""

    name: str
    labels: Labels
    value: float
    is_sum: bool
    is_delta: bool


@dataclass
class ReceivedPoints:
    """The points of one push, and the attributes of its resource, which identify the client."""

    points: list[ReceivedPoint] = field(default_factory=list)
    resource: dict[str, str] = field(default_factory=dict)
    dropped: int = 0  # 1 if the push has more than POINTS_MAX points: the first of the others


class _Field(NamedTuple):
    number: int
    kind: int
    value: int  # of a varint, the bits of a fixed number, or the start of the bytes
    end: int  # of the bytes


def read_metrics(data: bytes) -> Generator[None, None, ReceivedPoints]:
    """Yields after each slice and returns the points. Raises InvalidRecord for what is not MetricsData."""
    reader = _Reader(data)
    yield from reader.read()
    return reader.received


class _Reader:
    """The generators walk the messages that hold points, and yield after each slice. The other methods read a point or a resource."""

    __slots__ = ("_data", "_fields_max", "_fields_read", "_is_full", "_slice_end", "received")

    def __init__(self, data: bytes) -> None:
        self.received = ReceivedPoints()
        self._data = data
        self._is_full = False  # the push has more than POINTS_MAX points
        self._fields_read = 0
        self._fields_max = FIELDS_MAX  # less while a point or a resource is read
        self._slice_end = FIELDS_PER_SLICE  # in fields read

    def read(self) -> Generator[None, None, None]:
        """MetricsData has ResourceMetrics."""
        for field_ in self._fields(0, len(self._data)):
            if self._is_slice_over():
                yield
            if field_.number == 1 and field_.kind == _LENGTH:
                yield from self._resource_metrics(field_)

    def _resource_metrics(self, holder: _Field) -> Generator[None, None, None]:
        """ResourceMetrics have a Resource and ScopeMetrics."""
        for field_ in self._fields(holder.value, holder.end):
            if self._is_slice_over():
                yield
            if field_.number == 1 and field_.kind == _LENGTH:
                self._read_resource(field_)
            elif field_.number == 2 and field_.kind == _LENGTH:
                yield from self._scope_metrics(field_)

    def _scope_metrics(self, holder: _Field) -> Generator[None, None, None]:
        """ScopeMetrics have Metrics."""
        for field_ in self._fields(holder.value, holder.end):
            if self._is_slice_over():
                yield
            if field_.number == 2 and field_.kind == _LENGTH:
                yield from self._metric(field_)

    def _metric(self, holder: _Field) -> Generator[None, None, None]:
        """A Metric has a name, and a Gauge or another message that holds its points."""
        name = ""
        for field_ in self._fields(holder.value, holder.end):
            if self._is_slice_over():
                yield
            if field_.kind != _LENGTH:
                continue
            if field_.number == 1:
                name = _text(self._data, field_.value, field_.end)
            elif field_.number in _ATTRIBUTES:
                is_delta = False
                if field_.number not in (_GAUGE, _SUMMARY):
                    is_delta = yield from self._is_delta(field_)
                yield from self._points(field_, name, is_delta)

    def _is_delta(self, holder: _Field) -> Generator[None, None, bool]:
        """The temporality, which may follow the points that it applies to."""
        temporality = 0
        for field_ in self._fields(holder.value, holder.end):
            if self._is_slice_over():
                yield
            if field_.number == 2 and field_.kind == _VARINT:
                temporality = field_.value
        return temporality == DELTA

    def _points(self, holder: _Field, name: str, is_delta: bool) -> Generator[None, None, None]:
        is_number = holder.number in (_GAUGE, _SUM)
        names = (name,) if is_number else (f"{name}.count", f"{name}.sum")  # the points share them
        for field_ in self._fields(holder.value, holder.end):
            if self._is_slice_over():
                yield
            if field_.number != 1 or field_.kind != _LENGTH:
                continue
            self._begin_leaf()
            if is_number:
                values, labels = self._number(field_)
            else:
                values, labels = self._count_and_sum(field_, _ATTRIBUTES[holder.number])
            self._fields_max = FIELDS_MAX
            for point_name, value in zip(names, values, strict=True):
                self._add(ReceivedPoint(point_name, labels, value, holder.number != _GAUGE, is_delta))

    def _is_slice_over(self) -> bool:
        """If so, the caller yields: the next slice has begun."""
        if self._fields_read < self._slice_end:
            return False
        self._slice_end = self._fields_read + FIELDS_PER_SLICE
        return True

    def _begin_leaf(self) -> None:
        """A point or a resource follows, which is read in one slice. The caller resets `_fields_max` at its end."""
        self._fields_max = min(FIELDS_MAX, self._fields_read + FIELDS_PER_LEAF_MAX)

    def _add(self, point: ReceivedPoint) -> None:
        if len(self.received.points) < POINTS_MAX:
            self.received.points.append(point)
        else:
            self.received.dropped = 1
            self._is_full = True

    def _read_resource(self, holder: _Field) -> None:
        self._begin_leaf()
        attributes: list[tuple[str, str]] = []
        for field_ in self._fields(holder.value, holder.end):
            if field_.number == 1 and field_.kind == _LENGTH:
                self._read_attribute(field_, attributes)
        self._fields_max = FIELDS_MAX
        resource = self.received.resource
        for key, value in attributes:  # most clients repeat the resource with each metric
            if key in resource or len(resource) < ATTRIBUTES_MAX:
                resource[key] = value

    def _number(self, holder: _Field) -> tuple[tuple[float, ...], Labels]:
        labels: list[tuple[str, str]] = []
        value = 0.0
        for field_ in self._fields(holder.value, holder.end):
            if field_.number == 4 and field_.kind == _FIXED64:
                value = _as_double(field_.value)
            elif field_.number == 6 and field_.kind == _FIXED64:
                value = float(_as_signed(field_.value))
            elif field_.number == 7 and field_.kind == _LENGTH:
                self._read_attribute(field_, labels)
        return (value,), tuple(sorted(labels))

    def _count_and_sum(self, holder: _Field, attributes: int) -> tuple[tuple[float, ...], Labels]:
        """Of a point of a histogram or a summary."""
        labels: list[tuple[str, str]] = []
        count, total = 0, 0.0
        for field_ in self._fields(holder.value, holder.end):
            if field_.number == attributes and field_.kind == _LENGTH:
                self._read_attribute(field_, labels)
            elif field_.number == 4 and field_.kind == _FIXED64:
                count = field_.value
            elif field_.number == 5 and field_.kind == _FIXED64:
                total = _as_double(field_.value)
        return (float(count), total), tuple(sorted(labels))

    def _read_attribute(self, holder: _Field, attributes: list[tuple[str, str]]) -> None:
        """Adds the key and the value of a KeyValue. A value that is a list or a map is an empty text."""
        if len(attributes) >= ATTRIBUTES_MAX:
            raise _too_many_fields()
        key = value = ""
        for field_ in self._fields(holder.value, holder.end):
            if field_.number == 1 and field_.kind == _LENGTH:
                key = _text(self._data, field_.value, field_.end)
            elif field_.number == 2 and field_.kind == _LENGTH:
                value = self._any_value(field_)
        attributes.append((key, value))

    def _any_value(self, holder: _Field) -> str:
        value = ""
        for field_ in self._fields(holder.value, holder.end):
            if field_.number == 1 and field_.kind == _LENGTH:
                value = _text(self._data, field_.value, field_.end)
            elif field_.number == 2 and field_.kind == _VARINT:
                value = "true" if field_.value else "false"
            elif field_.number == 3 and field_.kind == _VARINT:
                value = str(_as_signed(field_.value))
            elif field_.number == 4 and field_.kind == _FIXED64:
                value = str(_as_double(field_.value))
        return value

    def _fields(self, at: int, end: int) -> Iterator[_Field]:
        """The fields between these places, and none after the last point that is kept."""
        data = self._data
        while at < end and not self._is_full:
            self._fields_read += 1
            if self._fields_read > self._fields_max:
                raise _too_many_fields()
            key, at = _varint(data, at, end)
            number, kind = key >> 3, key & 7
            if number == 0:
                raise InvalidRecord("The pushed metrics are not Protobuf: a field has number 0")
            if kind == _VARINT:
                value, at = _varint(data, at, end)
                yield _Field(number, kind, value, at)
            elif kind == _LENGTH:
                size, at = _varint(data, at, end)
                _check(at + size <= end)
                yield _Field(number, kind, at, at + size)
                at += size
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
                _check(at + size <= end)
                yield _Field(number, kind, int.from_bytes(data[at : at + size], "little"), at + size)
                at += size
            else:
                raise InvalidRecord(f"The pushed metrics are not Protobuf: a field has wire type {kind}")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at this place, of 64 bits, and where it ends."""
    value = shift = 0
    while True:
        _check(at < end and shift < 70)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _check(is_complete: bool) -> None:
    if not is_complete:
        raise InvalidRecord("The pushed metrics end in the middle of a field")


def _too_many_fields() -> InvalidRecord:
    return InvalidRecord("The pushed metrics have too many fields")


def _text(data: bytes, start: int, end: int) -> str:
    try:
        if end - start > TEXT_BYTES_MAX:
            return data[start : start + TEXT_BYTES_MAX].decode(errors="ignore")  # the cut may be within a character
        return data[start:end].decode()
    except UnicodeDecodeError:
        raise InvalidRecord("The pushed metrics have a text that is not UTF-8") from None


def _as_signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _as_double(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value
