"""The metadata store of a simulated cluster: a host of its own, reached over the network as ZooKeeper is.

Requests of a session are executed and answered in their order, and a watch event arrives before the response that shows the change. A
session expires when its broker's process has ended, or its link was cut for longer than the timeout; the broker learns of it when it can be
reached again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import EventType, R_co, Request, Response, WatchedEvent, Watcher
from barnabas.simulation.network import Lane

if TYPE_CHECKING:
    from barnabas.simulation.loop import ProcessLoop
    from barnabas.simulation.network import SimulatedNetwork

SESSION_TIMEOUT_S: Final = 6.0
PING_S: Final = SESSION_TIMEOUT_S / 3
HOST: Final = "zookeeper"


class SimulatedTree:
    """The shared metadata store as one process uses it; closing it ends the sessions of that process only."""

    def __init__(self, tree: LocalTree, network: SimulatedNetwork, process: ProcessLoop) -> None:
        self._tree = tree
        self._network = network
        self._process = process
        self._sessions: list[SimulatedSession] = []

    async def open_session(self, watcher: Watcher) -> SimulatedSession:
        session = SimulatedSession(self._tree, self._network, self._process, watcher)
        await session.opened
        self._sessions.append(session)
        return session

    def expire(self) -> None:
        """Ends its sessions; the process receives SESSION_EXPIRED."""
        for session in self._sessions:
            session.expire()

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()


class SimulatedSession:
    def __init__(self, tree: LocalTree, network: SimulatedNetwork, process: ProcessLoop, watcher: Watcher) -> None:
        host = network.add_host(HOST)
        self.session_id = 0
        self.is_alive = True
        self.opened: asyncio.Future[None] = process.create_future()
        self._tree = tree
        self._process = process
        self._network = network
        self._watcher = watcher
        self._to_store = Lane(network, process.host, host)
        self._from_store = Lane(network, host, process.host)
        self._remote: LocalSession | None = None  # the session at the store
        self._last_contact_at = 0.0
        self._waiting: dict[int, asyncio.Future[list[Response[Any]]]] = {}
        self._requests: dict[int, Sequence[Request[Any]]] = {}
        self._last = 0
        self._last_response_at = network.world.now
        self._to_store.send(self._open)

    async def handle(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        if not requests:
            return []
        if not self.is_alive:
            return _expired(requests)
        self._last += 1
        responses: asyncio.Future[list[Response[Any]]] = self._process.create_future()
        self._waiting[self._last], self._requests[self._last] = responses, requests
        self._to_store.send(self._execute, self._last, requests)
        return await responses

    def expire(self) -> None:
        """Expires the session, as the store does after the session timeout."""
        if self._remote is not None and self._remote.is_alive:
            self._network.world.note("session expired", self._process.name)
            self._remote.expire()

    async def close(self) -> None:
        if self.is_alive:
            self._end()
            self._to_store.send(self._close)

    # At the store

    def _open(self) -> None:
        self._remote = self._tree.open_session_now(self._on_event)
        self._note_contact()
        self._check_timeout()
        self._send_to_process(self._receive_open, self._remote.session_id)

    def _execute(self, number: int, requests: Sequence[Request[Any]]) -> None:
        assert self._remote is not None
        if not self._remote.is_alive:
            self._send_to_process(self._receive_end)
            return
        self._note_contact()
        self._send_to_process(self._receive_responses, number, self._remote.handle_now(requests))

    def _close(self) -> None:
        if self._remote is not None:
            self._remote.close_now()

    def _note_contact(self) -> None:
        self._last_contact_at = self._network.world.now

    def _receive_ping(self) -> None:
        if self._remote is not None and self._remote.is_alive:
            self._note_contact()
            self._send_to_process(self._receive_pong)
        else:
            self._send_to_process(self._receive_end)

    def _check_timeout(self) -> None:
        if self._remote is None or not self._remote.is_alive:
            return
        remaining_s = self._last_contact_at + SESSION_TIMEOUT_S - self._network.world.now
        if remaining_s <= 0:
            self._network.world.note("session over", self._process.name)
            self._remote.expire()
        else:
            self._network.kernel.call_later(remaining_s, self._check_timeout)

    def _on_event(self, event: WatchedEvent) -> None:
        if event.type is EventType.SESSION_EXPIRED:
            self._send_to_process(self._receive_end)
        else:
            self._send_to_process(self._receive_event, event)

    def _send_to_process(self, call: Any, *args: Any) -> None:
        self._from_store.send_to(self._process, call, *args)

    # In the process

    def _receive_open(self, session_id: int) -> None:
        self.session_id = session_id
        if not self.opened.done():
            self.opened.set_result(None)
        self._ping()

    def _ping(self) -> None:
        """Sends no ping if no response has arrived for long: a ZooKeeper client has closed the connection by then."""
        if self.is_alive:
            if self._network.world.now - self._last_response_at < SESSION_TIMEOUT_S * 2 / 3:
                self._to_store.send(self._receive_ping)
            self._process.call_later(PING_S, self._ping)

    def _receive_pong(self) -> None:
        self._last_response_at = self._network.world.now

    def _receive_event(self, event: WatchedEvent) -> None:
        if self.is_alive:
            self._watcher(event)

    def _receive_responses(self, number: int, responses: list[Response[Any]]) -> None:
        future = self._waiting.pop(number, None)
        self._requests.pop(number, None)
        self._receive_pong()
        if future is not None and not future.done():
            future.set_result(responses)

    def _receive_end(self) -> None:
        if self.is_alive:
            self._end()
            self._watcher(WatchedEvent(EventType.SESSION_EXPIRED, ""))

    def _end(self) -> None:
        self.is_alive = False
        for number, future in self._waiting.items():
            if not future.done():
                future.set_result(_expired(self._requests[number]))
        self._waiting.clear()
        self._requests.clear()


def _expired(requests: Sequence[Request[Any]]) -> list[Response[Any]]:
    return [Response(request, None, SessionExpired("/")) for request in requests]
