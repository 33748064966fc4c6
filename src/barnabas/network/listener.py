"""One listening socket: accepts connections, applies the quotas, and makes each a `Connection`.

It accepts by itself instead of through `loop.create_server`, so that it can stop accepting: while a quota keeps a connection waiting, the
next ones stay in the kernel's backlog, as with Kafka's acceptor. It must never hold more than one connection that is not admitted.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from time import perf_counter_ns
from typing import Any, Final

from barnabas.endpoint import EndPoint, host_and_port
from barnabas.network.config import INT_MAX, NetworkConfig
from barnabas.network.connection import Connection
from barnabas.network.connection_context import ConnectionContext
from barnabas.network.connection_quotas import ConnectionQuotas, Verdict, normalised_ip
from barnabas.network.descriptors import DescriptorGuard
from barnabas.network.event_loop import new_socket, protocol_of
from barnabas.network.tls_alert import begin_handshake, with_alerts

ACCEPTS_PER_TURN: Final = 20  # new connections before the open ones get their turn
_RETRY_SECONDS: Final = 0.5  # after the system has refused a descriptor
THROTTLED_MAX: Final = 1000  # connections above the rate of their address that wait for their close

_log = logging.getLogger(__name__)


class Listener:
    """Bound by `open_listening_socket`; accepts nothing before `start_accepting`. It releases in the quotas what it has admitted."""

    def __init__(
        self,
        endpoint: EndPoint,
        listening: socket.socket,
        context: ConnectionContext,
        quotas: ConnectionQuotas,
        tls: ssl.SSLContext | None,
        descriptors: DescriptorGuard,
    ) -> None:
        self.endpoint = endpoint
        self.port: int = listening.getsockname()[1]
        self.context = context
        self._listening = listening
        self._quotas = quotas
        self._tls = with_alerts(tls)
        self._descriptors = descriptors
        self._accepting = False
        self._paused_ns = 0  # the time of the pause; 0 without one
        self._waiting: tuple[socket.socket, Any] | None = None  # the one connection that waits for a slot of the quotas, with its address
        self._timer: asyncio.TimerHandle | None = None
        self._opening: dict[asyncio.Task[None], Connection] = {}
        self._throttled: dict[socket.socket, asyncio.TimerHandle] = {}
        self._next_index = 0

    @property
    def name(self) -> str:
        return self.endpoint.listener_name

    @property
    def is_accepting(self) -> bool:
        """False also while a quota pauses it."""
        return self._accepting

    @property
    def blocked_ns(self) -> int:
        """The time in which this listener did not accept connections because of a limit."""
        since_ns = perf_counter_ns() - self._paused_ns if self._paused_ns else 0
        return self.context.metrics.blocked_ns + since_ns

    def start_accepting(self) -> None:
        if not self._accepting:
            self._accepting = True
            if self._paused_ns:
                self.context.metrics.blocked_ns += perf_counter_ns() - self._paused_ns
                self._paused_ns = 0
            self.context.loop.add_reader(self._listening.fileno(), self._accept)

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Connections that are accepted from now on use this context; open ones stay as they are."""
        self._tls = with_alerts(tls)

    def slot_freed(self) -> None:
        """A connection has ended on some listener: retries the one that waits, if any."""
        if self._waiting is not None and self._quotas.has_slot(self.name) and self._has_room(self._lowest_free()):
            accepted, address = self._waiting
            self._waiting = None
            if not self._descriptors.is_unlimited:
                accepted = _lowered(accepted)
            self.start_accepting()
            self._admit(accepted, address)

    def release(self, connection: Connection) -> None:
        """The connection has ended, or was never established: the quotas no longer count it."""
        if connection.is_counted:
            connection.is_counted = False
            self._quotas.release(connection.remote_ip, self.name)

    async def close(self) -> None:
        """Stops listening, and ends the connections that are not established yet; it does not close open ones."""
        self._pause()
        self._listening.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is not None:
            self._waiting[0].close()
            self._waiting = None
        for throttled in list(self._throttled):
            self._close_throttled(throttled)
        for task, connection in self._opening.items():
            if not connection.is_open:  # an established one must not be cancelled inside the loop; it ends like any other
                task.cancel()
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._accepting:
                return
            try:
                accepted, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._no_descriptor(error)
                return
            if self._has_room(accepted.fileno()):
                self._admit(accepted, address)
            else:
                self._await_room(accepted, address)

    def _has_room(self, descriptor: int) -> bool:
        return self._descriptors.admits(descriptor, is_broker=self._quotas.is_protected(self.name))

    def _lowest_free(self) -> int:
        """The descriptor that the next connection would get."""
        if self._descriptors.is_unlimited:
            return 0
        try:
            free = os.dup(self._listening.fileno())
        except OSError:
            return self._descriptors.limit
        os.close(free)
        return free

    def _await_room(self, accepted: socket.socket, address: Any) -> None:
        """Accepts nothing until a connection has ended, or other descriptors are closed."""
        self.context.metrics.connections_delayed += 1
        self._waiting = (accepted, address)
        self._pause()
        self._timer = self.context.loop.call_later(_RETRY_SECONDS, self._look_for_room)
        if self._descriptors.should_log(self.context.monotonic_ms()):
            _log.warning(
                "Listener %s has stopped accepting connections until others end: %d of the %d descriptors that this process may open are "
                "in use, and the others are kept for its files; raise "
                "the limit of open files (ulimit -n, LimitNOFILE of systemd) or lower max.connections",
                self.name,
                accepted.fileno() + 1,
                self._descriptors.limit,
            )

    def _look_for_room(self) -> None:
        self._timer = None
        self.slot_freed()
        if self._waiting is not None and self._timer is None:
            self._timer = self.context.loop.call_later(_RETRY_SECONDS, self._look_for_room)

    def _no_descriptor(self, error: OSError) -> None:
        """The kernel would report the waiting connection again at once: pauses, so that some can be closed."""
        _log.error(
            "Listener %s cannot accept a connection: %s; raise the limit of open files (ulimit -n) or lower max.connections",
            self.name,
            error,
        )
        self._pause_for(_RETRY_SECONDS)

    def _admit(self, accepted: socket.socket, address: Any) -> None:
        ip = normalised_ip(address[0])
        admission = self._quotas.admit(self.context.monotonic_ms(), ip, self.name)
        metrics = self.context.metrics
        if admission.verdict is Verdict.REJECT:
            metrics.connections_rejected += 1
            _log.info("%s", admission.reason)
            accepted.close()
        elif admission.verdict is Verdict.THROTTLE:
            metrics.connections_throttled += 1
            self._throttle(accepted, admission.delay_ms / 1000)
        elif admission.verdict is Verdict.WAIT:
            metrics.connections_delayed += 1
            self._waiting = (accepted, address)
            self._pause()
        else:
            if admission.delay_ms:
                metrics.connections_delayed += 1
                self._pause_for(admission.delay_ms / 1000)
            connection = Connection(self.context, self._connection_id(accepted, ip, address[1]), ip)
            task = self.context.loop.create_task(self._open(connection, accepted, admission.delay_ms / 1000))
            self._opening[task] = connection
            task.add_done_callback(self._opening.pop)

    def _throttle(self, accepted: socket.socket, seconds: float) -> None:
        """Closes the connection later. Above the bound the one that has waited for longest is closed at once."""
        if len(self._throttled) >= THROTTLED_MAX:
            self._close_throttled(next(iter(self._throttled)))
        self._throttled[accepted] = self.context.loop.call_later(seconds, self._close_throttled, accepted)

    def _close_throttled(self, accepted: socket.socket) -> None:
        self._throttled.pop(accepted).cancel()
        accepted.close()

    async def _open(self, connection: Connection, accepted: socket.socket, delay_seconds: float) -> None:
        """Configures the socket and, with TLS, performs the handshake; the loop then calls connection_made."""
        context = self.context
        timeout = context.config.authentication_timeout_ms / 1000 if self._tls is not None else None
        try:
            if delay_seconds:
                await asyncio.sleep(delay_seconds)
            configure_accepted(accepted, context.config)
            protocol = protocol_of(connection, context.loop)
            if self._tls is not None:
                begin_handshake(accepted)
            await context.loop.connect_accepted_socket(lambda: protocol, accepted, ssl=self._tls, ssl_handshake_timeout=timeout)
            context.metrics.connections_accepted += 1
        except (Exception, asyncio.CancelledError) as error:
            context.metrics.handshakes_failed += 1
            _log.info("Connection %s on listener %s was not established: %r", connection.id, self.name, error)
            accepted.close()
            self.release(connection)

    def _connection_id(self, accepted: socket.socket, ip: str, port: int) -> str:
        """Kafka's format. The index distinguishes two connections from one port, of which the first ended with requests in process."""
        local = accepted.getsockname()
        index = self._next_index
        self._next_index = 0 if index == INT_MAX else index + 1
        return f"{host_and_port(normalised_ip(local[0]), local[1])}-{host_and_port(ip, port)}-{index}"

    def _pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._paused_ns = perf_counter_ns()
            self.context.loop.remove_reader(self._listening.fileno())

    def _pause_for(self, seconds: float) -> None:
        self._pause()
        self._timer = self.context.loop.call_later(seconds, self.start_accepting)


async def open_listening_socket(endpoint: EndPoint, config: NetworkConfig, loop: asyncio.AbstractEventLoop) -> socket.socket:
    """Binds and listens; an empty host means all addresses, IPv4 and IPv6. Raises OSError with the address and the fix."""
    try:
        family, address = await _resolve(endpoint, loop)
        listening = new_socket(loop, family)
    except OSError as error:
        raise _bind_error(endpoint, error) from error
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not endpoint.host else 1)
        # Accepted sockets inherit it. The window can grow beyond 64 KB only if it is set before `listen`.
        if config.socket_receive_buffer_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        listening.bind(address)
        listening.listen(config.socket_listen_backlog_size)
    except OSError as error:
        listening.close()
        raise _bind_error(endpoint, error) from error
    return listening


def _lowered(accepted: socket.socket) -> socket.socket:
    """The same connection with the lowest free descriptor, because the next one is judged by its number."""
    try:
        lower = accepted.dup()
    except OSError:
        return accepted
    accepted.close()
    return lower


def configure_accepted(accepted: socket.socket, config: NetworkConfig) -> None:
    accepted.setblocking(False)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if config.socket_send_buffer_bytes >= 0:
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)


async def _resolve(endpoint: EndPoint, loop: asyncio.AbstractEventLoop) -> tuple[int, tuple[str, int]]:
    if not endpoint.host:
        return (socket.AF_INET6, ("::", endpoint.port)) if socket.has_dualstack_ipv6() else (socket.AF_INET, ("0.0.0.0", endpoint.port))
    addresses = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    # Of a name with addresses of both families the IPv4 one is used, as in Java.
    family, _, _, _, address = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address  # type: ignore[return-value]


_BIND_ADVICE: Final = {
    errno.EADDRINUSE: "stop what listens there, or set another port in listeners",
    errno.EACCES: "ports below 1024 are the system's, set another port in listeners",
    errno.EADDRNOTAVAIL: "the host is not an address of this machine, correct it in listeners",
}


def _bind_error(endpoint: EndPoint, error: OSError) -> OSError:
    advice = _BIND_ADVICE.get(error.errno or 0, "correct the host or port in listeners")
    text = f"Socket server failed to bind to {host_and_port(endpoint.host, endpoint.port)} (listener {endpoint.listener_name})"
    return OSError(error.errno, f"{text}: {error.strerror}; {advice}")
