"""The metadata tree of a simulated cluster: a host of its own, reached over the network as ZooKeeper is.

Requests of a session are carried out in their order and answered in it, and what a watch tells arrives before the answer that shows it. A
session lives as long as its broker is heard of: one whose process is gone, or whose link is cut for longer than the timeout, is over, and
the broker hears of that when it can be reached again.
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
    """The one tree as a process sees it; closing it ends the sessions of that process and of nobody else."""

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
        """Its sessions are over, and it hears of that."""
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
        self._there = Lane(network, process.host, host)
        self._back = Lane(network, host, process.host)
        self._remote: LocalSession | None = None  # as the tree has it
        self._heard_at = 0.0
        self._waiting: dict[int, asyncio.Future[list[Response[Any]]]] = {}
        self._asked: dict[int, Sequence[Request[Any]]] = {}
        self._last = 0
        self._answered_at = network.world.now
        self._there.send(self._open)

    async def handle(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        if not requests:
            return []
        if not self.is_alive:
            return _expired(requests)
        self._last += 1
        answer: asyncio.Future[list[Response[Any]]] = self._process.create_future()
        self._waiting[self._last], self._asked[self._last] = answer, requests
        self._there.send(self._carry_out, self._last, requests)
        return await answer

    def expire(self) -> None:
        """The tree ends it, as it does with those it has not heard of for too long."""
        if self._remote is not None and self._remote.is_alive:
            self._network.world.note("session expired", self._process.name)
            self._remote.expire()

    async def close(self) -> None:
        if self.is_alive:
            self._end()
            self._there.send(self._close)

    # At the tree

    def _open(self) -> None:
        self._remote = self._tree.open_session_now(self._on_event)
        self._hear()
        self._look_after()
        self._send_back(self._welcomed, self._remote.session_id)

    def _carry_out(self, number: int, requests: Sequence[Request[Any]]) -> None:
        assert self._remote is not None
        if not self._remote.is_alive:
            self._send_back(self._ended)
            return
        self._hear()
        self._send_back(self._answered, number, self._remote.handle_now(requests))

    def _close(self) -> None:
        if self._remote is not None:
            self._remote.close_now()

    def _hear(self) -> None:
        self._heard_at = self._network.world.now

    def _pinged(self) -> None:
        if self._remote is not None and self._remote.is_alive:
            self._hear()
            self._send_back(self._ponged)
        else:
            self._send_back(self._ended)

    def _look_after(self) -> None:
        if self._remote is None or not self._remote.is_alive:
            return
        left_s = self._heard_at + SESSION_TIMEOUT_S - self._network.world.now
        if left_s <= 0:
            self._network.world.note("session over", self._process.name)
            self._remote.expire()
        else:
            self._network.kernel.call_later(left_s, self._look_after)

    def _on_event(self, event: WatchedEvent) -> None:
        if event.type is EventType.SESSION_EXPIRED:
            self._send_back(self._ended)
        else:
            self._send_back(self._told, event)

    def _send_back(self, call: Any, *args: Any) -> None:
        self._back.send_to(self._process, call, *args)

    # In the process

    def _welcomed(self, session_id: int) -> None:
        self.session_id = session_id
        if not self.opened.done():
            self.opened.set_result(None)
        self._ping()

    def _ping(self) -> None:
        """Not where nothing has come back for long: a client of ZooKeeper has given up that connection by then."""
        if self.is_alive:
            if self._network.world.now - self._answered_at < SESSION_TIMEOUT_S * 2 / 3:
                self._there.send(self._pinged)
            self._process.call_later(PING_S, self._ping)

    def _ponged(self) -> None:
        self._answered_at = self._network.world.now

    def _told(self, event: WatchedEvent) -> None:
        if self.is_alive:
            self._watcher(event)

    def _answered(self, number: int, responses: list[Response[Any]]) -> None:
        waiting = self._waiting.pop(number, None)
        self._asked.pop(number, None)
        self._ponged()
        if waiting is not None and not waiting.done():
            waiting.set_result(responses)

    def _ended(self) -> None:
        if self.is_alive:
            self._end()
            self._watcher(WatchedEvent(EventType.SESSION_EXPIRED, ""))

    def _end(self) -> None:
        self.is_alive = False
        for number, waiting in self._waiting.items():
            if not waiting.done():
                waiting.set_result(_expired(self._asked[number]))
        self._waiting.clear()
        self._asked.clear()


def _expired(requests: Sequence[Request[Any]]) -> list[Response[Any]]:
    return [Response(each, None, SessionExpired("/")) for each in requests]
