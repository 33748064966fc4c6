"""Builds the config of the network layer from the broker's config: at the start, and again when a connection limit changes."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.listeners import config_prefix
from barnabas.config_def import InvalidConfig
from barnabas.endpoint import EndPoint
from barnabas.network.config import INT_MAX, ListenerLimits, NetworkConfig
from barnabas.network.connection_quotas import normalised_ip


def network_config(config: BrokerConfig) -> NetworkConfig:
    return NetworkConfig(
        socket_request_max_bytes=config.number("socket.request.max.bytes"),
        socket_send_buffer_bytes=config.number("socket.send.buffer.bytes"),
        socket_receive_buffer_bytes=config.number("socket.receive.buffer.bytes"),
        socket_listen_backlog_size=config.number("socket.listen.backlog.size"),
        queued_max_requests=config.number("queued.max.requests"),
        queued_max_request_bytes=config.number("queued.max.request.bytes"),
        receiving_max_bytes=config.number("barnabas.requests.receiving.max.bytes"),
        connections_max_idle_ms=config.number("connections.max.idle.ms"),
        max_connections=config.number("max.connections"),
        max_connections_per_ip=config.number("max.connections.per.ip"),
        max_connections_per_ip_overrides=_by_address(config.max_connections_per_ip_overrides),
        max_connection_creation_rate=config.number("max.connection.creation.rate"),
        listener_limits={listener.listener_name: _limits(config, listener) for listener in config.broker_listeners},
        authentication_timeout_ms=config.number("barnabas.connection.authentication.timeout.ms"),
    )


def _by_address(overrides: Mapping[str, int]) -> dict[str, int]:
    """The overrides with host names resolved to IP addresses, because a connection only has an address. Resolved once, when called."""
    counts: dict[str, int] = {}
    for host, count in overrides.items():
        try:
            for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                counts[normalised_ip(str(address[0]))] = count
        except OSError as error:
            raise InvalidConfig(f"The host {host} in max.connections.per.ip.overrides is not known: {error}") from error
    return counts


def _limits(config: BrokerConfig, listener: EndPoint) -> ListenerLimits:
    """Limits that are set with the listener's prefix. The settings without a prefix limit all listeners together."""
    prefix = config_prefix(listener.listener_name)
    return ListenerLimits(
        config.number(f"{prefix}max.connections") if config.is_set(f"{prefix}max.connections") else INT_MAX,
        config.number(f"{prefix}max.connection.creation.rate") if config.is_set(f"{prefix}max.connection.creation.rate") else INT_MAX,
        config.for_listener(listener.listener_name, "sasl.server.max.receive.size") if listener.security_protocol.uses_sasl else None,
    )
