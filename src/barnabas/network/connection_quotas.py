"""The connection quotas: `max.connections`, `max.connections.per.ip` with its overrides, `max.connection.creation.rate`, and the rates of
addresses.

A listener calls `admit` for each connection that it has accepted, and opens it, closes it, or keeps it waiting and accepts no other
meanwhile. This is a plain object: time, address and listener are arguments, and it neither closes nor waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from typing import Final, Protocol

from barnabas.network.config import INT_MAX, ListenerLimits, NetworkConfig

DELAY_MAX_MS: Final = 1000  # Kafka's quota window: no single connection waits longer for the rate
_NO_LIMITS: Final = ListenerLimits()


class Verdict(Enum):
    ACCEPT = "accept"
    REJECT = "reject"
    DELAY = "delay"  # open it after `delay_ms`
    WAIT = "wait"  # call `admit` again when a connection has been released
    THROTTLE = "throttle"  # close it after `delay_ms`


@dataclass(frozen=True)
class Admission:
    verdict: Verdict
    delay_ms: int = 0
    reason: str = ""


_ACCEPTED: Final = Admission(Verdict.ACCEPT)
_NO_SLOT: Final = Admission(Verdict.WAIT, reason="max.connections is reached")


class AddressRates(Protocol):
    """The connections a second that addresses may open. The broker has them from the metadata store."""

    is_in_use: bool

    def throttle_ms(self, address: str, monotonic_ms: int) -> int:
        """Counts a connection. Returns 0 if it is within the rate of its address; otherwise the time after which it is closed."""


class ConnectionQuotas:
    """Counts the connections it admitted until they are released. The inter-broker listener, if there are others, is exempt from
    `max.connections` of the broker: a broker flooded by clients must not be cut off from the cluster."""

    def __init__(self, config: NetworkConfig, inter_broker_listener: str = "", address_rates: AddressRates | None = None) -> None:
        self.total = 0
        self._address_rates = address_rates
        self._inter_broker_listener = inter_broker_listener
        self._per_listener: dict[str, int] = {}
        self._per_ip: dict[str, int] = {}
        self._listener_rates: dict[str, ConnectionRateBucket] = {}
        self._broker_rate = ConnectionRateBucket(INT_MAX)
        self.reconfigure(config)

    def reconfigure(self, config: NetworkConfig) -> None:
        """Sets new limits. Open connections stay, but `exceeded` may now be true."""
        self.max_connections = config.max_connections
        self._max_per_ip = config.max_connections_per_ip
        self._per_ip_overrides = {normalised_ip(ip): max_per_ip for ip, max_per_ip in config.max_connections_per_ip_overrides.items()}
        self._listener_limits: Mapping[str, ListenerLimits] = config.listener_limits
        self._broker_rate.rate = config.max_connection_creation_rate
        for name, bucket in self._listener_rates.items():
            bucket.rate = self._limits(name).max_connection_creation_rate

    def add_listener(self, listener: str) -> None:
        self._per_listener[listener] = 0
        self._listener_rates[listener] = ConnectionRateBucket(self._limits(listener).max_connection_creation_rate)

    def admit(self, monotonic_ms: int, ip: str, listener: str) -> Admission:
        """Decides about a new connection. Accepted and delayed connections are counted, and must be released when they end."""
        if not self.has_slot(listener):
            return _NO_SLOT
        if self._address_rates is not None and self._address_rates.is_in_use:
            throttle_ms = self._address_rates.throttle_ms(ip, monotonic_ms)
            if throttle_ms:
                return Admission(Verdict.THROTTLE, throttle_ms, "connection_creation_rate is reached")
        max_per_ip = self._per_ip_overrides.get(ip, self._max_per_ip)
        if self._per_ip.get(ip, 0) >= max_per_ip:
            return Admission(
                Verdict.REJECT,
                reason=f"Rejected connection from {ip}, address already has the configured maximum of {max_per_ip} connections: "
                "raise max.connections.per.ip or add the address to max.connections.per.ip.overrides",
            )
        self.total += 1
        self._per_ip[ip] = self._per_ip.get(ip, 0) + 1
        self._per_listener[listener] += 1
        delay_ms = self._listener_rates[listener].take(monotonic_ms)
        if not self.is_protected(listener):
            delay_ms = max(delay_ms, self._broker_rate.take(monotonic_ms))
        return Admission(Verdict.DELAY, delay_ms, "max.connection.creation.rate is reached") if delay_ms else _ACCEPTED

    def release(self, ip: str, listener: str) -> None:
        remaining = self._per_ip[ip] - 1
        if remaining:
            self._per_ip[ip] = remaining
        else:
            del self._per_ip[ip]
        self._per_listener[listener] -= 1
        self.total -= 1

    def has_slot(self, listener: str) -> bool:
        if self._per_listener[listener] >= self._limits(listener).max_connections:
            return False
        return self.is_protected(listener) or self.total < self.max_connections

    def exceeded(self, listener: str) -> bool:
        """Whether this listener should close its least recently active connection, because the inter-broker listener exceeds the limit."""
        return self.total > self.max_connections and not self.is_protected(listener)

    def connections_of(self, ip: str) -> int:
        return self._per_ip.get(ip, 0)

    def connections_on(self, listener: str) -> int:
        return self._per_listener[listener]

    def is_protected(self, listener: str) -> bool:
        """Whether it is the inter-broker listener, and not the only one."""
        return listener == self._inter_broker_listener and len(self._per_listener) > 1

    def _limits(self, listener: str) -> ListenerLimits:
        return self._listener_limits.get(listener, _NO_LIMITS)


class ConnectionRateBucket:
    """Allows `rate` a second, and a second's worth at once. A connection that finds it empty is delayed, not rejected."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._taken = 0.0
        self._as_of_ms = 0

    def take(self, monotonic_ms: int) -> int:
        """Takes one token and returns the time to wait for it, in milliseconds."""
        if self.rate >= INT_MAX:
            self._taken = 0.0
            return 0
        if self.rate <= 0:
            return DELAY_MAX_MS
        self._taken = max(0.0, self._taken - (monotonic_ms - self._as_of_ms) * self.rate / 1000) + 1
        self._as_of_ms = monotonic_ms
        delay_ms = int((self._taken - self.rate) * 1000 / self.rate + 0.5)
        if delay_ms <= DELAY_MAX_MS:
            return max(0, delay_ms)
        self._taken = self.rate * (1 + DELAY_MAX_MS / 1000)
        return DELAY_MAX_MS


def normalised_ip(ip: str) -> str:
    """One spelling for each address; an IPv4-mapped IPv6 address becomes IPv4. A host name is returned unchanged."""
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return ip
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
