"""Client telemetry, which needs no permission: each client sends what the cluster asks it for."""

from __future__ import annotations

from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import Case, Cell

_OTHER_SUBSCRIPTION = 1


def _push(cell: Cell) -> PushTelemetryRequest:
    """With an old subscription, so that nothing is received."""
    return PushTelemetryRequest(Uuid(cell.column.encode().ljust(16, b".")[:16]), _OTHER_SUBSCRIPTION)


CASES = (
    Case("GetTelemetrySubscriptions", (0,), lambda cell: GetTelemetrySubscriptionsRequest()),
    Case("PushTelemetry", (0,), _push),
)
