"""One client that asked for its telemetry subscription: what it is to push, when it may send again, and what was counted of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.telemetry.subscriptions import Requested
from barnabas.protocol.errors import ErrorCode
from barnabas.uuid import Uuid

EXPIRY_MS_MIN: Final = 60_000
INTERVALS_UNTIL_EXPIRY: Final = 3

_FETCHES_AT_ONCE: Final = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})


class ClientInstance:
    """Kafka's ClientMetricsInstance. `attributes` are the properties of the client that subscriptions match. All times are monotonic."""

    __slots__ = (
        "attributes",
        "bytes_received",
        "connection_id",
        "expires_ms",
        "failures",
        "id",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "pushes",
        "requested",
        "throttled",
        "version",
    )

    def __init__(
        self, client_instance_id: Uuid, attributes: Mapping[str, str | None], requested: Requested, version: int, connection_id: str
    ) -> None:
        self.id = client_instance_id
        self.attributes = attributes
        self.connection_id = connection_id
        self.expires_ms = 0
        self.pushes = 0  # that were accepted
        self.bytes_received = 0  # of the accepted pushes, compressed
        self.throttled = 0  # requests that came too early
        self.failures = 0  # pushes whose content could not be read
        self.subscribe(requested, version)

    def subscribe(self, requested: Requested, version: int) -> None:
        """The subscriptions have changed. The client may fetch the new ones at once."""
        self.requested = requested
        self.version = version
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.last_get_ms: int | None = None
        self.last_push_ms: int | None = None

    def used(self, monotonic_ms: int) -> None:
        self.expires_ms = monotonic_ms + max(EXPIRY_MS_MIN, INTERVALS_UNTIL_EXPIRY * self.requested.interval_ms)

    def may_get(self, monotonic_ms: int) -> bool:
        """Once per interval, counted from the last request of either kind; at once after an error that a new subscription cures."""
        last_ms = max((moment for moment in (self.last_get_ms, self.last_push_ms) if moment is not None), default=None)
        if last_ms is not None and monotonic_ms - last_ms < self.requested.interval_ms:
            return self.last_error in _FETCHES_AT_ONCE
        self.last_get_ms = monotonic_ms
        return True

    def may_push(self, monotonic_ms: int) -> bool:
        """Once per interval. The first push after a subscription was fetched may come earlier: clients wait between half an interval and
        one and a half."""
        last_ms = self.last_push_ms
        is_first = self.last_get_ms is not None and (last_ms is None or self.last_get_ms > last_ms)
        if not is_first and last_ms is not None and monotonic_ms - last_ms < self.requested.interval_ms:
            return False
        self.last_push_ms = monotonic_ms
        return True
