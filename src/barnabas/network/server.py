"""Kafka's SocketServer: the listeners of a broker, their connections, and the bounds they share.

It receives a dispatcher and endpoints. Starting has two steps, so that the ports are bound before the first request is accepted; stopping
has two as well, so that the requests in process are answered before the connections close.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.endpoint import EndPoint
from barnabas.network.config import UNLIMITED, NetworkConfig
from barnabas.network.connection import Connection
from barnabas.network.connection_context import ConnectionContext
from barnabas.network.connection_quotas import AddressRates, ConnectionQuotas
from barnabas.network.descriptors import DescriptorGuard
from barnabas.network.exchange import Dispatcher
from barnabas.network.idle_connections import IdleConnections
from barnabas.network.listener import Listener, open_listening_socket
from barnabas.network.metrics import ListenerMetrics
from barnabas.network.receive_memory import ReceiveMemory
from barnabas.network.request_gate import RequestGate

_ABORT_TIMEOUT_MS: Final = 5000  # for the loop to report aborted connections

_log = logging.getLogger(__name__)


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class SocketServer:
    """Must be created on the loop it runs on. `monotonic_ms` is the clock of idle times, throttling and creation rates.
    `on_closed` is called with the id of each connection that has ended."""

    def __init__(
        self,
        config: NetworkConfig,
        dispatcher: Dispatcher,
        *,
        inter_broker_listener: str = "",
        control_plane_listener: str | None = None,
        monotonic_ms: Callable[[], int] = monotonic_ms,
        descriptors: DescriptorGuard | None = None,
        on_closed: Callable[[str], None] | None = None,
        address_rates: AddressRates | None = None,
    ) -> None:
        self.config = config
        self.descriptors = descriptors or DescriptorGuard()
        self.quotas = ConnectionQuotas(config, inter_broker_listener, address_rates)
        self.idle: IdleConnections[Connection] = IdleConnections(config.connections_max_idle_ms)
        self.listeners: dict[str, Listener] = {}
        self._loop = asyncio.get_running_loop()
        self._dispatcher = dispatcher
        self._inter_broker_listener = inter_broker_listener
        self._control_plane_listener = control_plane_listener
        self._monotonic_ms = monotonic_ms
        self._on_closed = on_closed
        self.data_plane = RequestGate(config.queued_max_requests, config.queued_max_request_bytes, self._loop.call_soon)
        self.control_plane = RequestGate(config.control_plane_queued_max_requests, UNLIMITED, self._loop.call_soon)
        self.receive_memory = ReceiveMemory(config.receiving_max_bytes)
        self._receive_view = memoryview(bytearray(config.receive_buffer_bytes))
        self._connections: dict[Connection, None] = {}  # in the order in which they were opened
        self._all_closed: asyncio.Event = asyncio.Event()
        self._all_closed.set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_shutting_down = False

    @property
    def connections(self) -> Sequence[Connection]:
        return list(self._connections)

    @property
    def waiting_responses(self) -> int:
        """Responses that are complete and wait for earlier ones of their connections."""
        return sum(connection.waiting_responses for connection in self._connections)

    def port(self, listener_name: str) -> int:
        """The port a listener is bound to, also if the endpoint's port is 0."""
        return self.listeners[listener_name].port

    async def start(self, endpoints: Sequence[EndPoint], tls: Mapping[str, ssl.SSLContext] | None = None) -> None:
        """Binds every listener; `tls` has the contexts of SSL listeners by name. Clients can connect but are not served yet."""
        try:
            for endpoint in endpoints:
                await self._add_listener(endpoint, (tls or {}).get(endpoint.listener_name))
        except BaseException:
            await self.stop_accepting()
            raise

    def start_processing_requests(self) -> None:
        """Starts accepting: first on the control plane, then from the other brokers, then from all clients."""
        for listener in sorted(self.listeners.values(), key=self._rank):
            listener.start_accepting()
            _log.info("Listening on %s, port %d", listener.endpoint, listener.port)

    async def stop_accepting(self) -> None:
        for listener in self.listeners.values():
            await listener.close()

    async def shutdown(self, timeout_ms: int) -> bool:
        """Stops accepting and reading, waits up to `timeout_ms` for the requests in process, and closes. False if some were aborted."""
        self._is_shutting_down = True
        await self.stop_accepting()
        for connection in self.connections:
            connection.close_when_answered()
        is_clean = await self._closed_within(timeout_ms)
        if not is_clean:
            _log.warning("Closing %d connections with requests in process or responses unread", len(self._connections))
            for connection in self.connections:
                connection.abort()
            await self._closed_within(_ABORT_TIMEOUT_MS)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        return is_clean

    def reconfigure_quotas(self, config: NetworkConfig) -> None:
        """Sets new limits for connections; the other settings are read only at the start."""
        self.quotas.reconfigure(config)
        self._close_excess_connections()
        self._slot_freed()

    def close_idle_connections(self) -> None:
        """Closes connections that have been idle for too long. One that waits for its response is not idle."""
        monotonic_ms = self._monotonic_ms()
        for connection in self.idle.expired(monotonic_ms):
            if connection.in_process:
                self.idle.active(connection, monotonic_ms)
                continue
            connection.context.metrics.connections_closed_idle += 1
            _log.debug("Closing connection %s: quiet for connections.max.idle.ms", connection.id)
            connection.abort()
            self.idle.remove(connection)
        self._idle_timer = None
        self._watch_idle()

    async def _add_listener(self, endpoint: EndPoint, tls: ssl.SSLContext | None) -> None:
        name = endpoint.listener_name
        if name in self.listeners:
            raise ValueError(f"Each listener must have a different name, but {name} stands twice in listeners")
        if endpoint.security_protocol.uses_tls and tls is None:
            raise ValueError(f"Listener {name} uses {endpoint.security_protocol.name} and has no certificate: set ssl.keystore.location")
        listening = await open_listening_socket(endpoint, self.config, self._loop)
        self.quotas.add_listener(name)
        context = ConnectionContext(
            name,
            self.config,
            self._dispatcher,
            self.control_plane if name == self._control_plane_listener else self.data_plane,
            self.receive_memory,
            ListenerMetrics(),
            self.idle,
            self._receive_view,
            self._loop,
            self._monotonic_ms,
            self._opened,
            self._closed,
        )
        self.listeners[name] = Listener(
            endpoint, listening, context, self.quotas, tls if endpoint.security_protocol.uses_tls else None, self.descriptors
        )

    def _rank(self, listener: Listener) -> int:
        return 0 if listener.name == self._control_plane_listener else 1 if listener.name == self._inter_broker_listener else 2

    def _opened(self, connection: Connection) -> None:
        self._connections[connection] = None
        self._all_closed.clear()
        if self._is_shutting_down:
            connection.close()
        self._watch_idle()
        self._close_excess_connections()

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self.idle.remove(connection)
        self.listeners[connection.context.listener_name].release(connection)
        if self._on_closed is not None:
            self._on_closed(connection.id)
        if not self._connections:
            self._all_closed.set()
        self._slot_freed()

    def _slot_freed(self) -> None:
        for listener in self.listeners.values():
            listener.slot_freed()

    def _close_excess_connections(self) -> None:
        """If the inter-broker listener has exceeded max.connections, closes the least recently active connections of other listeners."""
        excess = self.quotas.total - self.quotas.max_connections
        if excess <= 0:
            return
        candidates = (
            connection for connection in self.idle.least_recently_active() if self.quotas.exceeded(connection.context.listener_name)
        )
        for connection in [candidate for candidate, _ in zip(candidates, range(excess), strict=False)]:
            connection.context.metrics.connections_closed_excess += 1
            _log.info("Closing connection %s, the quietest one: max.connections is exceeded", connection.id)
            connection.abort()

    def _watch_idle(self) -> None:
        """Sets the timer to the expiry of the longest idle connection."""
        expiry_ms = self.idle.next_expiry_ms()
        if expiry_ms is not None and self._idle_timer is None and not self._is_shutting_down:
            self._idle_timer = self._loop.call_later(max(0, expiry_ms - self._monotonic_ms()) / 1000, self.close_idle_connections)

    async def _closed_within(self, timeout_ms: int) -> bool:
        try:
            await asyncio.wait_for(self._all_closed.wait(), timeout_ms / 1000)
        except TimeoutError:
            pass
        return self._all_closed.is_set()
