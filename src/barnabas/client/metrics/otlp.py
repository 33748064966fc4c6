"""OpenTelemetry's MetricsData encoded with Protobuf: the content of PushTelemetry requests (KIP-714), and of a broker's push.

Only what these need is supported: gauges and monotonic sums, with text attributes. The field numbers are those
of opentelemetry/proto/metrics/v1/metrics.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

DELTA: Final = 1
CUMULATIVE: Final = 2

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2


@dataclass(frozen=True)
class Point:
    """One value of one metric. A sum has the start time of its count, and a temporality; both are 0 for a gauge."""

    name: str
    value: float | int
    time_ms: int
    attributes: Mapping[str, str]
    start_ms: int = 0
    temporality: int = 0


def metrics_data(points: Iterable[Point], resource: Mapping[str, str]) -> bytes:
    """All points as metrics of one resource, whose attributes identify the client."""
    written = b"".join(_bytes(2, _metric(point)) for point in points)
    if not written:
        return b""
    about = b"".join(_bytes(1, _attribute(key, value)) for key, value in resource.items())
    return _bytes(1, _bytes(1, about) + _bytes(2, written))


def metric_of(name: str, description: str, points: Sequence[Point]) -> bytes:
    """One metric of several points, which are either gauges or sums, encoded. It must have a point."""
    return _bytes(1, name.encode()) + _bytes(2, description.encode()) + _data(points)


def export_request(metrics: Iterable[bytes], resource: Mapping[str, str], scope: str) -> bytes:
    """An ExportMetricsServiceRequest of encoded metrics; `scope` names the program that measures."""
    about = b"".join(_bytes(1, _attribute(key, value)) for key, value in resource.items())
    written = b"".join(_bytes(2, metric) for metric in metrics)
    return _bytes(1, _bytes(1, about) + _bytes(2, _bytes(1, _bytes(1, scope.encode())) + written))


def _metric(point: Point) -> bytes:
    return _bytes(1, point.name.encode()) + _data((point,))


def _data(points: Sequence[Point]) -> bytes:
    """The field gauge or sum of a metric."""
    data_points = b"".join([_bytes(1, _data_point(point)) for point in points])
    temporality = points[0].temporality
    if temporality:
        return _bytes(7, data_points + _key(2, _VARINT) + _varint(temporality) + _key(3, _VARINT) + _varint(1))
    return _bytes(5, data_points)


def _data_point(point: Point) -> bytes:
    start = _key(2, _FIXED64) + struct.pack("<Q", point.start_ms * 1_000_000) if point.start_ms else b""
    time = _key(3, _FIXED64) + struct.pack("<Q", point.time_ms * 1_000_000)
    if isinstance(point.value, int) and -(2**63) <= point.value < 2**63:
        value = _key(6, _FIXED64) + struct.pack("<q", point.value)
    else:
        value = _key(4, _FIXED64) + struct.pack("<d", point.value)
    return start + time + value + b"".join(_bytes(7, _attribute(key, text)) for key, text in point.attributes.items())


def _attribute(key: str, text: str) -> bytes:
    return _bytes(1, key.encode()) + _bytes(2, _bytes(1, text.encode()))


def _bytes(field: int, data: bytes) -> bytes:
    return _key(field, _LENGTH) + _varint(len(data)) + data


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
