"""The subscriptions to client metrics, and what they ask of one client.

A subscription is a `client-metrics` config: prefixes of metric names, an interval, and patterns that the client has to match. A client
pushes the metrics of all subscriptions that it matches, at the shortest of their intervals.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.broker.config.client_metrics import CLIENT_METRICS_CONFIGS, parse_patterns, validate_client_metrics
from barnabas.coordinator.expression import Expression
from barnabas.errors import KafkaError
from barnabas.records.crc import crc32c
from barnabas.uuid import Uuid

INTERVAL_MS_DEFAULT: Final = 300_000
ALL_METRICS: Final = "*"
ATTRIBUTE_LENGTH_MAX: Final = 1_024  # characters. A longer attribute matches no pattern, so that matching stays short

_log = logging.getLogger(__name__)


class ClientMetricsSubscription(NamedTuple):
    metrics: frozenset[str]
    interval_ms: int
    patterns: Mapping[str, Expression]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        return all(_is_match(pattern, attributes.get(name)) for name, pattern in self.patterns.items())


class Requested(NamedTuple):
    """What a client is to push: the prefixes in order, and the interval. `subscription_id` changes when one of them does."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


class ClientMetricsSubscriptions:
    """`version` grows with each change, so that a client's `Requested` is computed again only when it may differ."""

    def __init__(self) -> None:
        self.version = 0
        self._by_name: dict[str, ClientMetricsSubscription] = {}

    def update(self, name: str, properties: Mapping[str, str]) -> None:
        """Applies the configs of a subscription; without configs it is removed. Invalid configs, which only another broker can have
        written, are logged and remove it too."""
        subscription = _parsed(name, properties) if properties else None
        if subscription is not None:
            self._by_name[name] = subscription
        elif self._by_name.pop(name, None) is None:
            return
        self.version += 1

    def requested(self, client_instance_id: Uuid, attributes: Mapping[str, str | None]) -> Requested:
        matching = [subscription for subscription in self._by_name.values() if subscription.matches(attributes)]
        names = frozenset[str]().union(*(subscription.metrics for subscription in matching))
        metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
        interval_ms = min([INTERVAL_MS_DEFAULT, *(subscription.interval_ms for subscription in matching)])
        return Requested(metrics, interval_ms, _subscription_id(metrics, interval_ms, client_instance_id))


def _parsed(name: str, properties: Mapping[str, str]) -> ClientMetricsSubscription | None:
    try:
        validate_client_metrics(name, properties)
        values = {key: CLIENT_METRICS_CONFIGS[key].parse(text) for key, text in properties.items()}
        patterns = parse_patterns(values.get("match", ()))
    except KafkaError as error:
        _log.error("The client metrics subscription %s is not used: %s", name, error)
        return None
    return ClientMetricsSubscription(frozenset(values.get("metrics", ())), values.get("interval.ms", INTERVAL_MS_DEFAULT), patterns)


def _is_match(pattern: Expression, attribute: str | None) -> bool:
    return attribute is not None and len(attribute) <= ATTRIBUTE_LENGTH_MAX and pattern.fullmatch(attribute) is not None


def _subscription_id(metrics: Iterable[str], interval_ms: int, client_instance_id: Uuid) -> int:
    """Kafka's: the CRC-32C of the metrics and the interval, combined with the hash of the client instance id. The metrics are sorted, so
    that all brokers compute the same id."""
    text = f"[{', '.join(metrics)}]{interval_ms}".encode()
    most, least = (int.from_bytes(client_instance_id.value[at : at + 8], "big") for at in (0, 8))
    both = most ^ least
    mixed = int(crc32c(text, 0, len(text))) ^ (both >> 32) ^ both
    return int.from_bytes((mixed & 0xFFFFFFFF).to_bytes(4, "big"), "big", signed=True)
