"""The settings of the network layer, a plain value that the broker makes from its configuration.

The comments give Kafka's setting. A field without one is a constant in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

INT_MAX: Final = 2**31 - 1
UNLIMITED: Final = -1


@dataclass(frozen=True)
class ListenerLimits:
    """The limits of one listener, set with the prefix `listener.name.<name>.`"""

    max_connections: int = INT_MAX  # max.connections
    max_connection_creation_rate: int = INT_MAX  # max.connection.creation.rate, connections a second
    unauthenticated_request_max_bytes: int | None = None  # sasl.server.max.receive.size of a listener with SASL


@dataclass(frozen=True)
class NetworkConfig:
    socket_request_max_bytes: int = 104857600  # socket.request.max.bytes
    socket_send_buffer_bytes: int = 102400  # socket.send.buffer.bytes, -1 = the default of the operating system
    socket_receive_buffer_bytes: int = 102400  # socket.receive.buffer.bytes, -1 = the default of the operating system
    socket_listen_backlog_size: int = 50  # socket.listen.backlog.size
    queued_max_requests: int = 500  # queued.max.requests, of the data plane
    queued_max_request_bytes: int = UNLIMITED  # queued.max.request.bytes, of the data plane
    receiving_max_bytes: int = 536870912  # barnabas.requests.receiving.max.bytes, of requests that have not arrived completely
    control_plane_queued_max_requests: int = 20  # a constant in Kafka
    connections_max_idle_ms: int = 600000  # connections.max.idle.ms, negative = never
    max_connections: int = INT_MAX  # max.connections
    max_connections_per_ip: int = INT_MAX  # max.connections.per.ip
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)  # max.connections.per.ip.overrides
    max_connection_creation_rate: int = INT_MAX  # max.connection.creation.rate, connections a second
    listener_limits: Mapping[str, ListenerLimits] = field(default_factory=dict)  # by listener name

    pipelined_requests_max: int = 5  # as max.in.flight.requests.per.connection of a Java producer, which sends no more
    receive_buffer_bytes: int = 262144  # shared by all connections, and the most that a muted connection keeps unread
    write_high_water_bytes: int = 65536  # unsent response bytes of a connection before it is muted
    linger_ms: int = 10000  # how long a closed connection may still send pending responses
    authentication_timeout_ms: int = 30000  # barnabas.connection.authentication.timeout.ms, for TLS and again for SASL
