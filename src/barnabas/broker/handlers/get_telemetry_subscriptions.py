"""GetTelemetrySubscriptions: the metrics that this client is to push, and how often (KIP-714).

Version 0.
Behaviour
- a client without an instance id gets one; it keeps it for its lifetime, also at other brokers.
- the metrics are those of all `client-metrics` subscriptions that the client matches, at the shortest of their intervals. Without a
  subscription there are none, and the client asks again after the interval.
- the listed compression types are in the order of preference. Sums are deltas since the last push.
Authorization: none.
Errors: THROTTLING_QUOTA_EXCEEDED (before the interval is over, and the subscription has not changed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.broker.telemetry.client_metrics_manager import COMPRESSION_TYPES
from barnabas.broker.telemetry.request_attributes import client_attributes
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[GetTelemetrySubscriptionsRequest]) -> Reply[GetTelemetrySubscriptionsResponse]:
    manager = broker.client_metrics
    instance = manager.get_subscription(
        request.message.client_instance_id, client_attributes(request), request.connection.id, broker.clock.monotonic_ms()
    )
    if isinstance(instance, ErrorCode):
        return Reply.now(request, GetTelemetrySubscriptionsResponse(error_code=int(instance)))
    return Reply.now(
        request,
        GetTelemetrySubscriptionsResponse(
            client_instance_id=instance.id,
            subscription_id=instance.requested.subscription_id,
            accepted_compression_types=list(COMPRESSION_TYPES),
            push_interval_ms=instance.requested.interval_ms,
            telemetry_max_bytes=manager.telemetry_max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.requested.metrics),
        ),
    )
