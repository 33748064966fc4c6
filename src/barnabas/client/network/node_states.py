# Compiled by mypyc: src/compiled.toml lists this module.
"""The connection state of each broker (not connected, connecting, ready), and the wait before the next attempt.

The class only decides. `NetworkClient` checks whether it may connect, reports success and failure, and chooses the least loaded node.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from barnabas.client.errors import AuthenticationError, KafkaError
from barnabas.client.network.backoff import ExponentialBackoff


class ConnectionState(Enum):
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking api versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"


# The allowed previous states of each state. A failed authentication may be retried, because credentials can be corrected while the client
# runs.
ALLOWED: Final = {
    ConnectionState.CONNECTING: (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED),
    ConnectionState.CHECKING_API_VERSIONS: (ConnectionState.CONNECTING,),
    ConnectionState.READY: (ConnectionState.CHECKING_API_VERSIONS,),
    ConnectionState.DISCONNECTED: (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY),
    ConnectionState.AUTHENTICATION_FAILED: (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY),
}

_LONG_AGO: Final = -(10**15)


class NodeState:
    """The state of one broker."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.state = ConnectionState.DISCONNECTED
        self.failed_attempts = 0
        self.failed_setups = 0
        self.last_attempt_ms = _LONG_AGO
        self.retry_at_ms = _LONG_AGO
        self.throttled_until_ms = 0
        self.error: KafkaError | None = None  # the error of the last attempt, if it failed

    def move(self, state: ConnectionState) -> None:
        assert self.state in ALLOWED[state], f"{self.state} -> {state}"
        self.state = state


class NodeStates:
    """The states by node id. `reconnect` is the back-off of attempts, `setup` the growing timeout of each attempt."""

    def __init__(self, reconnect: ExponentialBackoff, setup: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup = setup
        self._states: dict[int, NodeState] = {}

    def of(self, node_id: int) -> NodeState:
        state = self._states.get(node_id)
        if state is None:
            state = self._states[node_id] = NodeState(node_id)
        return state

    def keep_only(self, node_ids: Iterable[int]) -> None:
        """Drops nodes that are neither connected nor known."""
        kept_ids = set(node_ids)
        self._states = {
            node_id: state
            for node_id, state in self._states.items()
            if node_id in kept_ids or state.state not in (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
        }

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        state = self._states.get(node_id)
        return state is None or (state.state in ALLOWED[ConnectionState.CONNECTING] and now_ms >= state.retry_at_ms)

    def is_connecting(self, node_id: int) -> bool:
        state = self._states.get(node_id)
        return state is not None and state.state in (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether the node is connected, and not throttled by a quota."""
        state = self._states.get(node_id)
        return state is not None and state.state is ConnectionState.READY and now_ms >= state.throttled_until_ms

    def any_connecting(self) -> bool:
        return any(self.is_connecting(node_id) for node_id in self._states)

    def last_attempt_ms(self, node_id: int) -> int:
        state = self._states.get(node_id)
        return _LONG_AGO if state is None else state.last_attempt_ms

    def delay_ms(self, node_id: int, now_ms: int) -> int:
        """The wait until a request can be sent or a connection attempt can start; 0 while it is connecting."""
        state = self.of(node_id)
        if state.state is ConnectionState.READY:
            return max(state.throttled_until_ms - now_ms, 0)
        return 0 if self.is_connecting(node_id) else max(state.retry_at_ms - now_ms, 0)

    def begin(self, node_id: int, now_ms: int) -> int:
        """Starts an attempt; returns its connect timeout in milliseconds."""
        state = self.of(node_id)
        state.move(ConnectionState.CONNECTING)
        state.last_attempt_ms = now_ms
        return self._setup.backoff_ms(state.failed_setups)

    def connected(self, node_id: int) -> None:
        """The connection is established and authenticated; the API versions are requested."""
        state = self.of(node_id)
        state.move(ConnectionState.CHECKING_API_VERSIONS)
        state.failed_setups = 0

    def ready(self, node_id: int) -> None:
        state = self.of(node_id)
        state.move(ConnectionState.READY)
        state.failed_attempts = 0
        state.error = None

    def failed(self, node_id: int, error: KafkaError, now_ms: int) -> None:
        """An attempt failed or a connection was lost: the next attempt waits, longer each time."""
        state = self.of(node_id)
        if state.state is ConnectionState.CONNECTING:
            state.failed_setups += 1
        state.move(ConnectionState.AUTHENTICATION_FAILED if isinstance(error, AuthenticationError) else ConnectionState.DISCONNECTED)
        state.error = error
        state.retry_at_ms = now_ms + self._reconnect.backoff_ms(state.failed_attempts)
        state.failed_attempts += 1
        state.throttled_until_ms = 0

    def closed(self, node_id: int) -> None:
        """The client closed the connection, and the node has no fault: a new attempt may start at once."""
        self.of(node_id).move(ConnectionState.DISCONNECTED)

    def throttle(self, node_id: int, until_ms: int) -> None:
        self.of(node_id).throttled_until_ms = max(until_ms, self.of(node_id).throttled_until_ms)
