"""The settings of the network layer, taken from those of the broker. Read at the start, and again when limits of connections change."""

from __future__ import annotations

from barnabas.broker.config import BrokerConfig
from barnabas.network.config import INT_MAX, ListenerLimits, NetworkConfig


def network_config(config: BrokerConfig) -> NetworkConfig:
    return NetworkConfig(
        socket_request_max_bytes=config.number("socket.request.max.bytes"),
        socket_send_buffer_bytes=config.number("socket.send.buffer.bytes"),
        socket_receive_buffer_bytes=config.number("socket.receive.buffer.bytes"),
        socket_listen_backlog_size=config.number("socket.listen.backlog.size"),
        queued_max_requests=config.number("queued.max.requests"),
        queued_max_request_bytes=config.number("queued.max.request.bytes"),
        connections_max_idle_ms=config.number("connections.max.idle.ms"),
        max_connections=config.number("max.connections"),
        max_connections_per_ip=config.number("max.connections.per.ip"),
        max_connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        max_connection_creation_rate=config.number("max.connection.creation.rate"),
        listener_limits={each.listener_name: _limits(config, each.listener_name) for each in config.broker_listeners},
    )


def _limits(config: BrokerConfig, listener_name: str) -> ListenerLimits:
    """Only what is set with the listener's prefix: the plain settings are of all listeners together."""
    prefix = f"listener.name.{listener_name.lower()}."
    return ListenerLimits(
        config.number(f"{prefix}max.connections") if config.is_set(f"{prefix}max.connections") else INT_MAX,
        config.number(f"{prefix}max.connection.creation.rate") if config.is_set(f"{prefix}max.connection.creation.rate") else INT_MAX,
    )
