"""The connections of a client, one per broker: opens, authenticates, re-authenticates and closes them.

`NetworkClient` sends over them. A connection attempt is a task, and so is a re-authentication; there are no other tasks. `wait_for_change`
waits for any change of any connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from random import Random
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import Node
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import AuthenticationError, Disconnected, IllegalState, KafkaError
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.broker_versions import BrokerVersions
from barnabas.client.network.connection import ClosedHere, Connection, Idle, LostUnused
from barnabas.client.network.connection_failures import ConnectionFailures
from barnabas.client.network.handshake import ConnectionHandshake
from barnabas.client.network.network_metrics import NetworkMetrics
from barnabas.client.network.node_states import ConnectionState, NodeStates
from barnabas.endpoint import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.client.network.sasl import SaslAuthenticator

_log = logging.getLogger(__name__)

# A session is renewed after this fraction of its lifetime plus a random part, because requests take time and clocks differ.
SESSION_FACTOR: Final = 0.85
SESSION_JITTER: Final = 0.10


class BrokerLink:
    """A ready connection, and the API versions of its broker."""

    __slots__ = ("connection", "is_reauthenticating", "timer", "versions")

    def __init__(self, connection: Connection, versions: BrokerVersions) -> None:
        self.connection = connection
        self.versions = versions
        self.is_reauthenticating = False
        self.timer: asyncio.TimerHandle | None = None


class Connections:
    """`find` returns the node of an id; None if it is not known."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        find: Callable[[int], Node | None],
        clock: Clock,
        metrics: NetworkMetrics,
        random: Random,
        in_flight_max: int,
        failures: ConnectionFailures | None = None,
    ) -> None:
        self.clock = clock
        self.failures = failures or ConnectionFailures(clock.monotonic_ms)
        self.links: dict[int, BrokerLink] = {}
        self.on_ready: list[Callable[[int], None]] = []
        self.on_disconnect: list[Callable[[int, KafkaError], None]] = []
        self.states = NodeStates(
            ExponentialBackoff(config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"], random=random),
            ExponentialBackoff(
                config["socket.connection.setup.timeout.ms"], config["socket.connection.setup.timeout.max.ms"], random=random
            ),
        )
        self.is_closed = False
        self._find = find
        self._metrics = metrics
        self._random = random
        self._in_flight_max = in_flight_max
        self._client_id: str = config["client.id"]
        self._idle_ms: int = config["connections.max.idle.ms"]
        self._request_timeout_ms: int = config["request.timeout.ms"]
        tls, self._sasl = _security(config, clock)
        self._handshake = ConnectionHandshake(
            self._new_connection,
            sockets=(config["send.buffer.bytes"], config["receive.buffer.bytes"]),
            request_timeout_ms=self._request_timeout_ms,
            tls=tls,
        )
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._renewals: set[asyncio.Task[None]] = set()
        self._waiters: list[asyncio.Future[None]] = []

    def can_send(self, node_id: int) -> bool:
        """Whether a request could be written now."""
        link = self.links.get(node_id)
        if link is None or link.is_reauthenticating:
            return False
        connection = link.connection
        return (
            connection.is_open
            and connection.is_writable
            and connection.in_flight_count < self._in_flight_max
            and self.states.is_ready(node_id, self.clock.monotonic_ms())
        )

    async def ready(self, node_id: int, deadline_ms: int) -> BrokerLink:
        """The link of a node when a request can be sent; raises the error of the connection attempt, or Timeout."""
        while True:
            if self.is_closed:
                raise IllegalState("The client has already been closed")
            if self.can_send(node_id):
                return self.links[node_id]
            state = self.states.of(node_id)
            now_ms = self.clock.monotonic_ms()
            if now_ms >= deadline_ms:
                raise self.failures.timeout(f"Node {node_id} was not ready in time")
            delay_ms = self.states.delay_ms(node_id, now_ms)
            attempt: asyncio.Task[None] | None = None
            if node_id not in self.links:
                if state.state is ConnectionState.AUTHENTICATION_FAILED and delay_ms > 0 and state.error is not None:
                    raise state.error.with_traceback(None)
                attempt = self.begin(node_id)
                if attempt is None and delay_ms == 0:
                    raise Disconnected(f"Node {node_id} is not known: no broker has reported its address")
            await self.wait_for_change(min(deadline_ms - now_ms, delay_ms or deadline_ms - now_ms))
            if attempt is not None and self._attempts.get(node_id) is not attempt and node_id not in self.links and state.error:
                raise state.error.with_traceback(None)

    def begin(self, node_id: int) -> asyncio.Task[None] | None:
        """Starts to connect if the back-off allows it and the address is known; returns the attempt in progress, if there is one."""
        attempt = self._attempts.get(node_id)
        if attempt is not None:
            return attempt
        node = self._find(node_id)
        now_ms = self.clock.monotonic_ms()
        if self.is_closed or node is None or node.is_empty or not self.states.can_connect(node_id, now_ms):
            return None
        setup_timeout_ms = self.states.begin(node_id, now_ms)
        self.failures.begun(node.address, node.place)
        attempt = self._attempts[node_id] = asyncio.get_running_loop().create_task(self._attempt(node, setup_timeout_ms))
        return attempt

    def disconnect(self, node_id: int, error: KafkaError) -> None:
        """Closes the connection or cancels the attempt; pending requests receive the error."""
        link = self.links.get(node_id)
        if link is not None:
            link.connection.close(error)
        elif (attempt := self._attempts.get(node_id)) is not None:
            attempt.cancel()

    def disconnect_all(self, error: KafkaError) -> None:
        for node_id in (*self.links, *self._attempts):
            self.disconnect(node_id, error)

    async def close(self) -> None:
        self.is_closed = True
        tasks = [*self._attempts.values(), *self._renewals]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.disconnect_all(ClosedHere("The client was closed"))
        if self._sasl is not None:
            await self._sasl.close()
        self._changed()
        # Transports close in the next loop iteration; waiting for it avoids warnings at exit.
        await asyncio.sleep(0)

    async def wait_for_change(self, timeout_ms: int) -> None:
        """Waits until any connection becomes ready, fails, or accepts requests again; at most `timeout_ms`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout_ms / 1000)
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    # The life of a connection

    async def _attempt(self, node: Node, setup_timeout_ms: int) -> None:
        _log.debug("Initiating connection to node %s", node)
        connection: Connection | None = None
        try:
            connection = await self._handshake.connect(node, setup_timeout_ms)
            self.states.connected(node.id)
            self.failures.accepted(node.address)
            versions = await self._handshake.versions(connection)
            lifetime_ms = await self._authenticate(connection, versions)
        except KafkaError as error:
            self._end_attempt(node, connection, error)
        except asyncio.CancelledError:
            self._end_attempt(node, connection, ClosedHere(f"The attempt to connect to {node.place} was given up"))
            raise
        except Exception as error:
            _log.exception("Connecting to node %s failed with an unexpected exception", node)
            # The repr of a UnicodeError has the whole text, which may be a password.
            shown = type(error).__name__ if isinstance(error, UnicodeError) else repr(error)
            self._end_attempt(node, connection, Disconnected(f"Connecting to {node.place} failed: {shown}"))
        else:
            self._begin_link(node, connection, versions, lifetime_ms)

    async def _authenticate(self, connection: Connection, versions: BrokerVersions) -> int:
        """The lifetime of the session in milliseconds; 0 means unlimited."""
        if self._sasl is None:
            return 0
        lifetime_ms = await self._sasl.authenticate(connection, versions, self._request_timeout_ms)
        self._metrics.authenticated.record()
        return lifetime_ms

    def _begin_link(self, node: Node, connection: Connection, versions: BrokerVersions, lifetime_ms: int) -> None:
        self._attempts.pop(node.id, None)
        if not connection.is_open:
            error = Disconnected(f"{node.place} closed the connection")
            self.failures.lost(node.address, error)
            self._failed(node.id, error)
            return
        link = self.links[node.id] = BrokerLink(connection, versions)
        self.states.ready(node.id)
        self.failures.connected(node.address)
        self._metrics.created.record()
        self._plan_renewal(node.id, link, lifetime_ms)
        self._notify_ready(node.id)

    def _end_attempt(self, node: Node, connection: Connection | None, error: KafkaError) -> None:
        self._attempts.pop(node.id, None)
        if connection is not None:
            connection.close(error)
        if isinstance(error, AuthenticationError):
            self._metrics.refused.record()
        if isinstance(error, ClosedHere):
            self.failures.given_up(node.address)
        else:
            warning = self.failures.failed(node.address, error)
            if warning is not None and not self.is_closed:
                _log.log(logging.ERROR if isinstance(error, AuthenticationError) else logging.WARNING, "%s", warning)
        self._failed(node.id, error)

    def _lost(self, node: Node, connection: Connection, error: KafkaError) -> None:
        node_id = node.id
        link = self.links.get(node_id)
        if link is None or link.connection is not connection:
            return  # it was never ready: the attempt reports the error
        del self.links[node_id]
        if link.timer is not None:
            link.timer.cancel()
        self._metrics.closed.record()
        _log.info("Node %d disconnected: %s", node_id, error)
        if isinstance(error, Idle):
            self.states.closed(node_id)
            self._notify_disconnected(node_id, error)
        else:
            if not isinstance(error, ClosedHere | LostUnused):
                self.failures.lost(node.address, error)
            self._failed(node_id, error)

    def _failed(self, node_id: int, error: KafkaError) -> None:
        self.states.failed(node_id, error, self.clock.monotonic_ms())
        self._notify_disconnected(node_id, error)

    def _notify_disconnected(self, node_id: int, error: KafkaError) -> None:
        for listener in self.on_disconnect:
            listener(node_id, error)
        self._changed()

    def _new_connection(self, node: Node) -> Connection:
        return Connection(
            node.place,
            host=node.host,
            client_id=self._client_id,
            clock=self.clock,
            idle_ms=self._idle_ms,
            traffic=self._metrics.node(node.id),
            on_lost=lambda connection, error: self._lost(node, connection, error),
            on_room=self._changed,
            on_writable=lambda: self._notify_ready(node.id),
            on_throttle=lambda throttle_ms: self._throttle(node.id, throttle_ms),
        )

    def _throttle(self, node_id: int, throttle_ms: int) -> None:
        """A quota was exceeded: the broker must receive no request for `throttle_ms`."""
        self.states.throttle(node_id, self.clock.monotonic_ms() + throttle_ms)
        asyncio.get_running_loop().call_later(throttle_ms / 1000, self._notify_ready, node_id)

    def _notify_ready(self, node_id: int) -> None:
        if self.can_send(node_id):
            for tell in self.on_ready:
                tell(node_id)
        self._changed()

    # Session renewal (KIP-368)

    def _plan_renewal(self, node_id: int, link: BrokerLink, lifetime_ms: int) -> None:
        if lifetime_ms > 0:
            delay_ms = lifetime_ms * (SESSION_FACTOR + SESSION_JITTER * self._random.random())
            link.timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._begin_renewal, node_id, link)

    def _begin_renewal(self, node_id: int, link: BrokerLink) -> None:
        task = asyncio.get_running_loop().create_task(self._renew(node_id, link))
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    async def _renew(self, node_id: int, link: BrokerLink) -> None:
        """Re-authenticates on the same connection. Meanwhile no other request is sent, but responses still arrive."""
        link.is_reauthenticating = True
        began_ms = self.clock.monotonic_ms()
        try:
            lifetime_ms = await self._reauthenticate(link)
        except KafkaError as error:
            _log.error("Re-authentication with node %d failed: %s", node_id, error)
            self._metrics.rerefused.record()
            link.connection.close(error)
            return
        link.is_reauthenticating = False
        self._metrics.reauthenticated.record()
        self._metrics.reauthentication_latency.record(self.clock.monotonic_ms() - began_ms)
        self._plan_renewal(node_id, link, lifetime_ms)
        self._notify_ready(node_id)

    def _reauthenticate(self, link: BrokerLink) -> Coroutine[Any, Any, int]:
        assert self._sasl is not None
        return self._sasl.authenticate(link.connection, link.versions, self._request_timeout_ms)

    def use_tls(self, tls: SSLContext) -> None:
        """Connections that are opened from now on use this context."""
        self._handshake.tls = tls

    def _changed(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _security(config: ClientConfig, clock: Clock) -> tuple[SSLContext | None, SaslAuthenticator | None]:
    """The TLS context and authenticator of security.protocol. Their modules are imported only if they are needed."""
    protocol = SecurityProtocol[str(config["security.protocol"]).upper()]
    tls: SSLContext | None = None
    sasl: SaslAuthenticator | None = None
    if protocol.uses_tls:
        from barnabas.client.network.tls import tls_context

        tls = tls_context(config)
    if protocol.uses_sasl:
        from barnabas.client.network.sasl import authenticator

        sasl = authenticator(config, clock)
    return tls, sasl
