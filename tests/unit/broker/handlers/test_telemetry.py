from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.handlers.push_telemetry import DECOMPRESSED_AT_ONCE, DECOMPRESSED_SIZE_MAX
from barnabas.broker.telemetry.client_metrics_manager import PUSHES_READ_AT_ONCE, ClientMetricsManager
from barnabas.broker.telemetry.received_metrics import ReceivedMetrics
from barnabas.client.metrics.otlp import DELTA, Point, metrics_data
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.protocol.messages.push_telemetry_response import PushTelemetryResponse
from barnabas.records.codecs import compression
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import a_broker, ask

MAX_BYTES = 1 << 20


def broker(**configs: str) -> Broker:
    manager = ClientMetricsManager(ReceivedMetrics(), MAX_BYTES, Random(1))
    if configs:
        manager.subscriptions.update("one", {name.replace("_", "."): text for name, text in configs.items()})
    return a_broker(client_metrics=manager, disk_threads=ThreadPoolExecutor(1))


def get(running: Broker, client: Uuid = Uuid.ZERO) -> GetTelemetrySubscriptionsResponse:
    return asyncio.run(ask(running, GetTelemetrySubscriptionsRequest(client), GetTelemetrySubscriptionsResponse, 0))


def push(running: Broker, given: GetTelemetrySubscriptionsResponse, data: bytes, codec: int = compression.NONE) -> ErrorCode:
    request = PushTelemetryRequest(given.client_instance_id, given.subscription_id, False, codec, data)
    code = asyncio.run(ask(running, request, PushTelemetryResponse, 0)).error_code
    return next(error for error in ErrorCode if error == code)


def test_a_client_is_told_what_to_push() -> None:
    given = get(broker(metrics="org.apache.kafka.producer.", interval_ms="60000", match="client_id=test,client_source_port=50000"))
    assert given == GetTelemetrySubscriptionsResponse(
        client_instance_id=given.client_instance_id,
        subscription_id=given.subscription_id,
        accepted_compression_types=[4, 3, 1, 2],
        push_interval_ms=60_000,
        telemetry_max_bytes=MAX_BYTES,
        delta_temporality=True,
        requested_metrics=["org.apache.kafka.producer."],
    )
    assert given.client_instance_id != Uuid.ZERO


def test_a_client_that_no_subscription_matches_gets_an_id_and_no_metrics() -> None:
    given = get(broker(metrics="*", match="client_software_name=librdkafka"))
    assert (given.error_code, given.requested_metrics, given.push_interval_ms) == (0, [], 300_000)
    assert given.client_instance_id != Uuid.ZERO


def test_an_early_request_gets_the_error_and_nothing_else() -> None:
    running = broker(metrics="*")
    given = get(running)
    assert get(running, given.client_instance_id) == GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [1, 3000])
def test_pushed_metrics_are_received_in_every_compression(codec: int, count: int) -> None:
    running = broker(metrics="*")
    points = [Point(f"metric-{number}", number, 1, {"topic": str(hash(str(number)))}, 1, DELTA) for number in range(count)]
    data = metrics_data(points, {"client_rack": "r"})
    pushed = data if codec == compression.NONE else compression.compress(codec, data)
    assert (len(pushed) > DECOMPRESSED_AT_ONCE) == (count > 1)
    assert push(running, get(running), pushed, codec) is ErrorCode.NONE
    assert {series.name: series.value for series in running.client_metrics.received.series()} == {
        f"metric-{number}": number for number in range(count)
    }
    (instance,) = running.client_metrics.instances()
    assert (instance.pushes, instance.bytes_received) == (1, len(pushed))


def test_a_push_without_metrics_is_accepted() -> None:
    running = broker(metrics="*")
    assert push(running, get(running), b"", compression.ZSTD) is ErrorCode.NONE
    assert running.client_metrics.instances()[0].pushes == 1


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (compression.NONE, b"no metrics"),
        (compression.ZSTD, b"no zstd"),
        (compression.GZIP, compression.compress(compression.GZIP, b"no metrics")),
        (compression.GZIP, compression.compress(compression.GZIP, bytes(DECOMPRESSED_SIZE_MAX + 1))),
        (compression.ZSTD, compression.compress(compression.ZSTD, bytes(DECOMPRESSED_SIZE_MAX + 1))),
    ],
)
def test_what_cannot_be_read_is_an_invalid_record(codec: int, data: bytes) -> None:
    running = broker(metrics="*")
    assert push(running, get(running), data, codec) is ErrorCode.INVALID_RECORD
    assert running.client_metrics.instances()[0].failures == 1


def test_a_push_that_is_refused_gets_its_error() -> None:
    running = broker(metrics="*")
    given = get(running)
    assert push(running, given, bytes(MAX_BYTES + 1)) is ErrorCode.TELEMETRY_TOO_LARGE
    assert push(running, given, b"") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    given.client_instance_id = Uuid.ZERO
    assert push(running, given, b"") is ErrorCode.INVALID_REQUEST


def test_a_push_is_read_when_few_others_are() -> None:
    running = broker(metrics="*")
    given = get(running)
    request = PushTelemetryRequest(given.client_instance_id, given.subscription_id, metrics=metrics_data([Point("m", 1, 1, {})], {}))

    async def use() -> None:
        for _ in range(PUSHES_READ_AT_ONCE):
            await running.client_metrics.reading.acquire()
        pushing = asyncio.ensure_future(ask(running, request, PushTelemetryResponse, 0))
        for _ in range(20):
            await asyncio.sleep(0)
        assert running.client_metrics.received.series_count == 0
        running.client_metrics.reading.release()
        assert (await pushing).error_code == ErrorCode.NONE
        assert running.client_metrics.received.series_count == 1

    asyncio.run(use())
