# Compiled by mypyc: src/compiled.toml lists this module.
"""The counters of the network layer: plain attributes, incremented where an event happens and read by the metrics reporter."""

from __future__ import annotations


class ListenerMetrics:
    """Counters of one listener since it started; `connections` is the number open now."""

    __slots__ = (
        "blocked_ns",
        "busy_ns",
        "bytes_in",
        "bytes_out",
        "connections",
        "connections_accepted",
        "connections_closed",
        "connections_closed_excess",
        "connections_closed_failed",
        "connections_closed_idle",
        "connections_closed_invalid",
        "connections_delayed",
        "connections_rejected",
        "connections_throttled",
        "handshakes_failed",
        "requests",
        "responses",
    )

    def __init__(self) -> None:
        self.connections = 0
        self.connections_accepted = 0
        self.connections_rejected = 0  # by max.connections.per.ip
        self.connections_delayed = 0  # by max.connections or max.connection.creation.rate
        self.connections_throttled = 0  # closed by the connection_creation_rate of an address
        self.connections_closed = 0  # for any reason
        self.connections_closed_idle = 0  # by connections.max.idle.ms
        self.connections_closed_excess = 0  # by max.connections, to make room for another broker
        self.connections_closed_invalid = 0  # for a frame or message that cannot be parsed
        self.connections_closed_failed = 0  # for an error in a request handler
        self.handshakes_failed = 0
        self.requests = 0
        self.responses = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.busy_ns = 0  # spent on handling received bytes: the rest of an interval is NetworkProcessorAvgIdlePercent
        self.blocked_ns = 0  # in which the listener did not accept connections because of a limit
