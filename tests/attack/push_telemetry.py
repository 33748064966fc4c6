"""Pushes of client metrics that unfold into 8 MB of tiny messages and fields, at each level of OpenTelemetry's MetricsData."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.records.codecs import compression
from benchmarks.wire import Client
from tests.attack.wire import address, frame, send

TIMES = 3  # each shape, by a client and a connection of its own
SIZE = (8 << 20) - 1000  # decompressed; the broker takes 8 MiB
VERSION = 0


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    with Client(*address(bootstrap)) as client:
        frames = [_push(client, compression.compress(compression.GZIP, data)) for data in _shapes() for _ in range(TIMES)]
    yield
    await send(bootstrap, frames, connections=len(frames))


def _shapes() -> list[bytes]:
    """Empty ResourceMetrics; attributes of a resource; points of a gauge, and of a histogram with a long name; labels and unknown fields of
    a point; points with many labels."""
    many = _filled(_message(1, b""))
    labels = b"".join(_message(7, _message(1, b"%d" % number)) for number in range(99))
    return [
        many,
        _message(1, _message(1, many)),
        _metric(_message(5, many)),
        _metric(_message(1, bytes(SIZE // 2)) + _message(9, many[: SIZE // 2])),
        _metric(_message(5, _message(1, _filled(_message(7, b""))))),
        _metric(_message(5, _message(1, _filled(b"\x40\x01")))),
        _metric(_message(5, _filled(_message(1, labels)))),
    ]


def _push(client: Client, metrics: bytes) -> bytes:
    given = client.ask(GetTelemetrySubscriptionsRequest(), VERSION)
    return frame(PushTelemetryRequest(given.client_instance_id, given.subscription_id, False, compression.GZIP, metrics), VERSION)


def _filled(content: bytes) -> bytes:
    return content * (SIZE // len(content))


def _metric(content: bytes) -> bytes:
    return _message(1, _message(2, _message(2, content)))


def _message(number: int, content: bytes) -> bytes:
    """A field of Protobuf with this number that is a message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80]) + _varint(value >> 7)
