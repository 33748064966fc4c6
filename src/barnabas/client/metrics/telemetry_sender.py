"""The state machine of client telemetry (KIP-714), without clock or network: which request to send next, and when.

First the client requests its subscription, then it pushes metrics at the subscription's interval. After an error it requests the
subscription again, later or never. A client that closes pushes once more, if it ever pushed. The table is Kafka's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from barnabas.client.errors import Disconnected, KafkaError, Timeout
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.protocol.messages.push_telemetry_response import PushTelemetryResponse
from barnabas.records.codecs import compression
from barnabas.uuid import Uuid

DEFAULT_PUSH_INTERVAL_MS: Final = 5 * 60 * 1000
NEVER_MS: Final = 2**31 - 1
# The first push is between half and one and a half intervals from now, so that clients that start together do not push together.
JITTER_LOWER, JITTER_UPPER = 0.5, 1.5

_log = logging.getLogger(__name__)


class ClientTelemetryState(Enum):
    SUBSCRIPTION_NEEDED = 0
    SUBSCRIPTION_IN_PROGRESS = 1
    PUSH_NEEDED = 2
    PUSH_IN_PROGRESS = 3
    TERMINATING_PUSH_NEEDED = 4
    TERMINATING_PUSH_IN_PROGRESS = 5
    TERMINATED = 6


NEXT_STATES: Final[dict[ClientTelemetryState, frozenset[ClientTelemetryState]]] = {
    ClientTelemetryState.SUBSCRIPTION_NEEDED: frozenset((ClientTelemetryState.SUBSCRIPTION_IN_PROGRESS, ClientTelemetryState.TERMINATED)),
    ClientTelemetryState.SUBSCRIPTION_IN_PROGRESS: frozenset(
        (
            ClientTelemetryState.PUSH_NEEDED,
            ClientTelemetryState.SUBSCRIPTION_NEEDED,
            ClientTelemetryState.TERMINATING_PUSH_NEEDED,
            ClientTelemetryState.TERMINATED,
        )
    ),
    ClientTelemetryState.PUSH_NEEDED: frozenset(
        (
            ClientTelemetryState.PUSH_IN_PROGRESS,
            ClientTelemetryState.SUBSCRIPTION_NEEDED,
            ClientTelemetryState.TERMINATING_PUSH_NEEDED,
            ClientTelemetryState.TERMINATED,
        )
    ),
    ClientTelemetryState.PUSH_IN_PROGRESS: frozenset(
        (
            ClientTelemetryState.PUSH_NEEDED,
            ClientTelemetryState.SUBSCRIPTION_NEEDED,
            ClientTelemetryState.TERMINATING_PUSH_NEEDED,
            ClientTelemetryState.TERMINATED,
        )
    ),
    ClientTelemetryState.TERMINATING_PUSH_NEEDED: frozenset(
        (ClientTelemetryState.TERMINATING_PUSH_IN_PROGRESS, ClientTelemetryState.TERMINATED)
    ),
    ClientTelemetryState.TERMINATING_PUSH_IN_PROGRESS: frozenset((ClientTelemetryState.TERMINATED,)),
    ClientTelemetryState.TERMINATED: frozenset(),
}
_TERMINATING: Final = frozenset(
    (ClientTelemetryState.TERMINATING_PUSH_NEEDED, ClientTelemetryState.TERMINATING_PUSH_IN_PROGRESS, ClientTelemetryState.TERMINATED)
)
_NEVER_AGAIN: Final = frozenset((ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_VERSION))
_AT_ONCE: Final = frozenset((ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
_AT_THE_NEXT_INTERVAL: Final = frozenset((ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED))


@dataclass(frozen=True)
class ClientTelemetrySubscription:
    client_instance_id: Uuid
    subscription_id: int
    push_interval_ms: int
    compression_types: tuple[int, ...]  # in the broker's order of preference, those that this client supports
    is_delta: bool
    prefixes: tuple[str, ...]  # empty: no metrics; ("*",): all metrics

    def selects(self, metric: str) -> bool:
        return self.prefixes == ("*",) or metric.startswith(self.prefixes)


class TelemetrySender:
    """`collect` returns the metrics that a subscription selects, encoded as OTLP."""

    def __init__(self, collect: Callable[[ClientTelemetrySubscription, int], bytes], random: Random) -> None:
        self.state = ClientTelemetryState.SUBSCRIPTION_NEEDED
        self.subscription: ClientTelemetrySubscription | None = None
        self.is_enabled = True
        self._collect = collect
        self._random = random
        self._interval_ms = 0
        self._last_request_ms: int | None = None

    def time_to_next_ms(self, now_ms: int) -> int:
        """The time until `next_request` returns a request; NEVER_MS while a response is pending, or after a permanent error."""
        if not self.is_enabled:
            return NEVER_MS
        if self.state is ClientTelemetryState.TERMINATING_PUSH_NEEDED:
            return 0
        if self.state not in (ClientTelemetryState.SUBSCRIPTION_NEEDED, ClientTelemetryState.PUSH_NEEDED):
            return NEVER_MS
        if self._last_request_ms is None:
            return 0
        return max(self._last_request_ms + self._interval_ms - now_ms, 0)

    def next_request(self, wall_ms: int) -> GetTelemetrySubscriptionsRequest | PushTelemetryRequest | None:
        """The next request, with metrics stamped with wall-clock time; None if there is none."""
        if self.state is ClientTelemetryState.SUBSCRIPTION_NEEDED:
            self._go(ClientTelemetryState.SUBSCRIPTION_IN_PROGRESS)
            subscription = self.subscription
            return GetTelemetrySubscriptionsRequest(
                client_instance_id=subscription.client_instance_id if subscription is not None else Uuid.ZERO
            )
        if self.state in (ClientTelemetryState.PUSH_NEEDED, ClientTelemetryState.TERMINATING_PUSH_NEEDED) and self.subscription is not None:
            is_last = self.state is ClientTelemetryState.TERMINATING_PUSH_NEEDED
            self._go(ClientTelemetryState.TERMINATING_PUSH_IN_PROGRESS if is_last else ClientTelemetryState.PUSH_IN_PROGRESS)
            return self._push(self.subscription, is_last, wall_ms)
        return None

    def _push(self, subscription: ClientTelemetrySubscription, is_last: bool, wall_ms: int) -> PushTelemetryRequest:
        codec = subscription.compression_types[0] if subscription.compression_types else compression.NONE
        data = self._collect(subscription, wall_ms)
        return PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=is_last,
            compression_type=codec,
            metrics=data if codec == compression.NONE else compression.compress(codec, data),
        )

    def subscribed(self, response: GetTelemetrySubscriptionsResponse, now_ms: int) -> None:
        if self.state in _TERMINATING:
            return
        if response.error_code:
            self._failed(response.error_code, now_ms)
            return
        if response.client_instance_id == Uuid.ZERO:
            _log.warning("The broker assigned no client instance id; no metrics are pushed")
            self._go(ClientTelemetryState.SUBSCRIPTION_NEEDED)
            self._wait(NEVER_MS, now_ms)
            return
        interval_ms = response.push_interval_ms if response.push_interval_ms > 0 else DEFAULT_PUSH_INTERVAL_MS
        self.subscription = ClientTelemetrySubscription(
            response.client_instance_id,
            response.subscription_id,
            interval_ms,
            tuple(codec for codec in response.accepted_compression_types if compression.NONE <= codec <= compression.ZSTD),
            response.delta_temporality,
            tuple(response.requested_metrics),
        )
        if self.subscription.prefixes:
            self._go(ClientTelemetryState.PUSH_NEEDED)
            interval_ms = round(self._random.uniform(JITTER_LOWER, JITTER_UPPER) * interval_ms)
        else:
            self._go(ClientTelemetryState.SUBSCRIPTION_NEEDED)  # no metrics are subscribed: request the subscription again later
        self._wait(interval_ms, now_ms)

    def pushed(self, response: PushTelemetryResponse, now_ms: int) -> None:
        if self.state in _TERMINATING:
            return
        if response.error_code:
            self._failed(response.error_code, now_ms)
            return
        assert self.subscription is not None
        self._go(ClientTelemetryState.PUSH_NEEDED)
        self._wait(self.subscription.push_interval_ms, now_ms)

    def failed(self, error: KafkaError, now_ms: int) -> None:
        """Handles a missing response: the connection was lost, or the broker does not support telemetry."""
        if self.state in _TERMINATING:
            return
        self._go(ClientTelemetryState.SUBSCRIPTION_NEEDED)
        if error.retriable or isinstance(error, Disconnected | Timeout):
            self._wait(DEFAULT_PUSH_INTERVAL_MS, now_ms)
            return
        if not isinstance(error, UnsupportedVersion):
            _log.warning("Metrics are no longer pushed: %s", error)
        self._wait(NEVER_MS, now_ms)

    def initiate_close(self) -> None:
        """After this, only the last push may be sent, and only if there is a subscription with metrics."""
        if self.subscription is None or self.state is ClientTelemetryState.SUBSCRIPTION_NEEDED or not self.is_enabled:
            if self.state not in _TERMINATING:
                self._go(ClientTelemetryState.TERMINATED)
        elif self.state not in _TERMINATING:
            self._go(ClientTelemetryState.TERMINATING_PUSH_NEEDED)

    def close(self) -> None:
        if self.state is not ClientTelemetryState.TERMINATED:
            self._go(ClientTelemetryState.TERMINATED)

    def _failed(self, code: int, now_ms: int) -> None:
        self._go(ClientTelemetryState.SUBSCRIPTION_NEEDED)
        if code in _AT_ONCE:
            self._wait(0, now_ms)
        elif code in _AT_THE_NEXT_INTERVAL:
            self._wait(self.subscription.push_interval_ms if self.subscription is not None else DEFAULT_PUSH_INTERVAL_MS, now_ms)
        else:
            if code not in _NEVER_AGAIN:
                _log.error("The broker refused telemetry with error code %d; no metrics are pushed any more", code)
            self._wait(NEVER_MS, now_ms)

    def _wait(self, interval_ms: int, now_ms: int) -> None:
        self._interval_ms, self._last_request_ms = interval_ms, now_ms
        if interval_ms == NEVER_MS:
            self.is_enabled = False

    def _go(self, state: ClientTelemetryState) -> None:
        assert state in NEXT_STATES[self.state], f"{self.state} -> {state}"
        self.state = state
