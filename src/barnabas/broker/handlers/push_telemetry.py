"""PushTelemetry: a client sends the metrics that its subscription asks for (KIP-714).

Version 0.
Behaviour
- the metrics are OpenTelemetry's MetricsData. They go to the registry of received metrics, by client.
- `terminating` marks the last push of a client: it may come before the interval is over, and nothing may follow it.
- a push without metrics is accepted.
Authorization: none.
Errors
- INVALID_REQUEST (a reserved instance id, or a push after the last one), THROTTLING_QUOTA_EXCEEDED (before the interval is over),
  UNKNOWN_SUBSCRIPTION_ID (the subscription has changed), UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE (telemetry.max.bytes),
  INVALID_RECORD (the metrics cannot be read, have too many fields, or decompress into more than 8 MiB).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import at_once
from barnabas.broker.telemetry.client_instance import ClientInstance
from barnabas.broker.telemetry.otlp_reader import ReceivedPoints, read_metrics
from barnabas.broker.telemetry.request_attributes import client_attributes
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.protocol.messages.push_telemetry_response import PushTelemetryResponse
from barnabas.records.codecs import compression

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

DECOMPRESSED_SIZE_MAX: Final = 8 << 20
DECOMPRESSED_AT_ONCE: Final = 4096  # compressed bytes; more are decompressed on a thread, because gzip takes 25 ms for 8 MiB


def handle(broker: Broker, request: Request[PushTelemetryRequest]) -> Reply[PushTelemetryResponse]:
    message = request.message
    instance = broker.client_metrics.begin_push(message, client_attributes(request), request.connection.id, broker.clock.monotonic_ms())
    if isinstance(instance, ErrorCode):
        return Reply.now(request, PushTelemetryResponse(error_code=int(instance)))
    if not message.metrics:
        at_once(broker.client_metrics.pushed(instance, 0, ReceivedPoints()))
        return Reply.now(request, PushTelemetryResponse())
    return Reply.awaiting(request, _receive(broker, request, instance))


async def _receive(broker: Broker, request: Request[PushTelemetryRequest], instance: ClientInstance) -> PushTelemetryResponse:
    message = request.message
    async with broker.client_metrics.reading:
        try:
            data = await _decompressed(broker, message)
            received = await broker.turns.run(read_metrics(data), request)
        except KafkaError:
            broker.client_metrics.unreadable(instance)
            return PushTelemetryResponse(error_code=int(ErrorCode.INVALID_RECORD))
        await broker.turns.run(broker.client_metrics.pushed(instance, len(message.metrics), received), request)
    return PushTelemetryResponse()


async def _decompressed(broker: Broker, message: PushTelemetryRequest) -> bytes:
    codec, data = message.compression_type, message.metrics
    if codec == compression.NONE:
        return data
    decompress = partial(compression.decompress, codec, data, limit=DECOMPRESSED_SIZE_MAX)
    if len(data) <= DECOMPRESSED_AT_ONCE:
        return decompress()
    return await asyncio.get_running_loop().run_in_executor(broker.disk_threads, decompress)
