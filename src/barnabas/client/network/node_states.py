# Compiled by mypyc: src/compiled.toml lists this module.
"""Where the client stands with each broker: not connected, connecting, ready; and how long to wait before the next attempt.

It decides only. `NetworkClient` asks whether it may connect, tells of success and failure, and picks the node that has least to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from barnabas.client.errors import AuthenticationError, KafkaError
from barnabas.client.network.backoff import ExponentialBackoff


class State(Enum):
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking api versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"


# From what a state may be reached. A failed authentication may be tried again: the credentials can be put right while the client lives.
ALLOWED: Final = {
    State.CONNECTING: (State.DISCONNECTED, State.AUTHENTICATION_FAILED),
    State.CHECKING_API_VERSIONS: (State.CONNECTING,),
    State.READY: (State.CHECKING_API_VERSIONS,),
    State.DISCONNECTED: (State.CONNECTING, State.CHECKING_API_VERSIONS, State.READY),
    State.AUTHENTICATION_FAILED: (State.CONNECTING, State.CHECKING_API_VERSIONS, State.READY),
}

_LONG_AGO: Final = -(10**15)


class NodeState:
    """One broker's."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.state = State.DISCONNECTED
        self.failed_attempts = 0
        self.failed_setups = 0
        self.last_attempt_ms = _LONG_AGO
        self.retry_at_ms = _LONG_AGO
        self.throttled_until_ms = 0
        self.error: KafkaError | None = None  # of the last attempt, if it failed

    def move(self, state: State) -> None:
        assert self.state in ALLOWED[state], f"{self.state} -> {state}"
        self.state = state


class NodeStates:
    """By node id. `reconnect` and `setup` are the back-off of attempts and the growing time each may take."""

    def __init__(self, reconnect: ExponentialBackoff, setup: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup = setup
        self._states: dict[int, NodeState] = {}

    def of(self, node_id: int) -> NodeState:
        found = self._states.get(node_id)
        if found is None:
            found = self._states[node_id] = NodeState(node_id)
        return found

    def keep_only(self, node_ids: Iterable[int]) -> None:
        """Forgets nodes that are not connected and not known any more."""
        known = set(node_ids)
        self._states = {
            node_id: state
            for node_id, state in self._states.items()
            if node_id in known or state.state not in (State.DISCONNECTED, State.AUTHENTICATION_FAILED)
        }

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        state = self._states.get(node_id)
        return state is None or (state.state in ALLOWED[State.CONNECTING] and now_ms >= state.retry_at_ms)

    def is_connecting(self, node_id: int) -> bool:
        state = self._states.get(node_id)
        return state is not None and state.state in (State.CONNECTING, State.CHECKING_API_VERSIONS)

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Connected, and not told to wait by a quota."""
        state = self._states.get(node_id)
        return state is not None and state.state is State.READY and now_ms >= state.throttled_until_ms

    def any_connecting(self) -> bool:
        return any(self.is_connecting(node_id) for node_id in self._states)

    def last_attempt_ms(self, node_id: int) -> int:
        state = self._states.get(node_id)
        return _LONG_AGO if state is None else state.last_attempt_ms

    def delay_ms(self, node_id: int, now_ms: int) -> int:
        """How long until something may be sent to it, or it may be connected to; 0 while it is being connected to."""
        state = self.of(node_id)
        if state.state is State.READY:
            return max(state.throttled_until_ms - now_ms, 0)
        return 0 if self.is_connecting(node_id) else max(state.retry_at_ms - now_ms, 0)

    def begin(self, node_id: int, now_ms: int) -> int:
        """An attempt begins; how many milliseconds it may take to connect."""
        state = self.of(node_id)
        state.move(State.CONNECTING)
        state.last_attempt_ms = now_ms
        return self._setup.backoff_ms(state.failed_setups)

    def connected(self, node_id: int) -> None:
        """The connection stands and is authenticated; what the broker speaks is asked for."""
        state = self.of(node_id)
        state.move(State.CHECKING_API_VERSIONS)
        state.failed_setups = 0

    def ready(self, node_id: int) -> None:
        state = self.of(node_id)
        state.move(State.READY)
        state.failed_attempts = 0
        state.error = None

    def failed(self, node_id: int, error: KafkaError, now_ms: int) -> None:
        """An attempt failed or a connection was lost: the next attempt waits, longer each time."""
        state = self.of(node_id)
        if state.state is State.CONNECTING:
            state.failed_setups += 1
        state.move(State.AUTHENTICATION_FAILED if isinstance(error, AuthenticationError) else State.DISCONNECTED)
        state.error = error
        state.retry_at_ms = now_ms + self._reconnect.backoff_ms(state.failed_attempts)
        state.failed_attempts += 1
        state.throttled_until_ms = 0

    def closed(self, node_id: int) -> None:
        """We closed the connection, and nothing is wrong with the node: it may be connected to again at once."""
        self.of(node_id).move(State.DISCONNECTED)

    def throttle(self, node_id: int, until_ms: int) -> None:
        self.of(node_id).throttled_until_ms = max(until_ms, self.of(node_id).throttled_until_ms)
