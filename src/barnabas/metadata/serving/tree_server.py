"""Serves the embedded tree to the processes of one machine as ZooKeeper would: sessions, requests, watches. Plain objects without I/O.

A session lives until its client closes it, until its client is silent for the session timeout, or until `process_ended` names the process
that opened it: no other process can know its password. A connection may be lost and replaced. Watches belong to a connection: the client
registers them again on the next one, with the last change that it knows, and receives what it missed.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from barnabas.metadata.errors import BadArguments, TreeError
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.serving import server_wire
from barnabas.metadata.serving.server_wire import PASSWORD_BYTES, ClientFrame, SetWatches
from barnabas.metadata.tree import EventType, Exists, GetChildren, GetData, Stat, TreeRequest, WatchedEvent
from barnabas.metadata.zookeeper import wire

log = logging.getLogger(__name__)

TICK_MS: Final = 500  # how often sessions are checked
TIMEOUT_MS_MIN: Final = 4_000  # the bounds that ZooKeeper has with its default tickTime
TIMEOUT_MS_MAX: Final = 40_000
SESSIONS_MAX: Final = 10_000

_READS: Final = (Exists, GetData, GetChildren)


class ServedConnection(Protocol):
    """The connection of a client, as this module needs it. `end` closes it after everything that was sent."""

    @property
    def process(self) -> int | None:
        """The id of the process at the other end; None where the system does not tell it."""
        ...

    def send(self, frames: bytes) -> None: ...

    def end(self) -> None: ...


@dataclass(eq=False)
class ServedSession:
    password: bytes
    timeout_ms: int
    process: int | None
    deadline_ms: int  # of the next sign of life
    connection: ServedConnection | None
    session: LocalSession | None = None

    def notify(self, event: WatchedEvent) -> None:
        if self.connection is not None and event.type is not EventType.SESSION_EXPIRED:
            self.connection.send(server_wire.notification(event))


class TreeServer:
    """`monotonic_ms` is the time in every call. All calls come from one thread."""

    def __init__(self, tree: LocalTree, random: Random) -> None:
        self._tree = tree
        self._random = random
        self._sessions: dict[int, ServedSession] = {}
        self._connected: dict[ServedConnection, ServedSession] = {}
        self._last_tick_ms: int | None = None

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    def received(self, connection: ServedConnection, frames: Sequence[bytes], monotonic_ms: int) -> None:
        """Answers frames that came together. Consecutive writes share one commit. Raises Malformed: the caller ends the connection."""
        if not frames:
            return
        served = self._connected.get(connection)
        if served is None:
            served = self._connect(connection, frames[0], monotonic_ms)
            frames = frames[1:]
            if served is None:
                return
        served.deadline_ms = monotonic_ms + served.timeout_ms
        _Answers(self, self._tree, served, connection).answer(frames)

    def lost(self, connection: ServedConnection) -> None:
        """The session lives on, without watches, until its timeout."""
        served = self._connected.pop(connection, None)
        if served is not None and served.connection is connection and served.session is not None:
            served.connection = None
            served.session.forget_watches()

    def tick(self, monotonic_ms: int) -> None:
        """Ends the sessions of clients that were silent for too long. A tick that is late itself, as after this process was suspended,
        gives every client the time that was missed: what it has sent meanwhile is not read yet."""
        last_ms, self._last_tick_ms = self._last_tick_ms, monotonic_ms
        late_ms = 0 if last_ms is None else monotonic_ms - last_ms - TICK_MS
        if late_ms > TICK_MS:
            for served in self._sessions.values():
                served.deadline_ms += late_ms
        for session_id, served in list(self._sessions.items()):
            if monotonic_ms >= served.deadline_ms:
                log.warning("Session 0x%x has expired: its process was silent for %d ms", session_id, served.timeout_ms)
                self.end_session(served)

    def process_ended(self, process: int) -> None:
        """Ends the sessions of a process that has been reaped."""
        for served in list(self._sessions.values()):
            if served.process == process:
                self.end_session(served)

    def end_session(self, served: ServedSession) -> None:
        """Deletes its ephemeral nodes and closes its connection."""
        if served.session is None:
            return
        self._sessions.pop(served.session.session_id, None)
        served.session.close_now()
        connection, served.connection = served.connection, None
        if connection is not None:
            self._connected.pop(connection, None)
            connection.end()

    def close(self) -> None:
        """Ends all sessions."""
        for served in list(self._sessions.values()):
            self.end_session(served)

    def _connect(self, connection: ServedConnection, frame: bytes, monotonic_ms: int) -> ServedSession | None:
        request = server_wire.connect_request(frame)
        timeout_ms = min(max(request.timeout_ms, TIMEOUT_MS_MIN), TIMEOUT_MS_MAX)
        served = self._new(connection, timeout_ms, monotonic_ms) if request.session_id == 0 else self._renewed(connection, request)
        if served is None or served.session is None:
            connection.send(server_wire.expired(request.has_read_only))
            connection.end()
            return None
        served.timeout_ms = timeout_ms
        self._connected[connection] = served
        connection.send(server_wire.connected(timeout_ms, served.session.session_id, served.password, request.has_read_only))
        return served

    def _new(self, connection: ServedConnection, timeout_ms: int, monotonic_ms: int) -> ServedSession | None:
        if len(self._sessions) >= SESSIONS_MAX:
            log.warning("A client was refused: there are %d sessions, the limit", SESSIONS_MAX)
            return None
        served = ServedSession(self._random.randbytes(PASSWORD_BYTES), timeout_ms, connection.process, monotonic_ms, connection)
        served.session = self._tree.open_session_now(served.notify)
        self._sessions[served.session.session_id] = served
        return served

    def _renewed(self, connection: ServedConnection, request: server_wire.ConnectRequest) -> ServedSession | None:
        served = self._sessions.get(request.session_id)
        if served is None or served.session is None or not hmac.compare_digest(served.password, request.password):
            return None
        served.session.forget_watches()
        earlier, served.connection = served.connection, connection
        if earlier is not None:
            self._connected.pop(earlier, None)
            earlier.end()
        return served


class _Answers:
    """Answers some frames of one connection, in order. A client receives an event before the response to the write that caused it."""

    def __init__(self, server: TreeServer, tree: LocalTree, served: ServedSession, connection: ServedConnection) -> None:
        assert served.session is not None
        self._server = server
        self._tree = tree
        self._served = served
        self._session = served.session
        self._connection = connection
        self._replies: list[bytes] = []
        self._writes: list[tuple[ClientFrame, TreeRequest[Any]]] = []  # not carried out yet

    def answer(self, frames: Sequence[bytes]) -> None:
        for data in frames:
            frame = server_wire.client_frame(data)
            if not server_wire.is_tree_operation(frame.operation):
                self._write()
                self._control(frame)
                if self._served.connection is not self._connection:
                    return  # the session was closed
                continue
            try:
                request = server_wire.tree_request(frame)
            except BadArguments as error:
                self._write()
                self._replies.append(server_wire.error_reply(frame, self._tree.last_zxid, error))
                continue
            if isinstance(request, _READS):
                self._write()
                (response,) = self._session.handle_now([request])
                self._replies.append(server_wire.tree_reply(frame, self._tree.last_zxid, response))
            else:
                self._writes.append((frame, request))
        self._write()
        self._send()

    def _write(self) -> None:
        """Carries out the writes that wait. The earlier responses go out first, because a write may cause an event for this client."""
        if not self._writes:
            return
        self._send()
        writes, self._writes = self._writes, []
        first_zxid = self._tree.last_zxid + 1  # each write takes one, also one that fails
        responses = self._session.handle_now([request for _, request in writes])
        for number, ((frame, _), response) in enumerate(zip(writes, responses, strict=True)):
            self._replies.append(server_wire.tree_reply(frame, first_zxid + number, response))

    def _control(self, frame: ClientFrame) -> None:
        zxid = self._tree.last_zxid
        if frame.operation == wire.PING:
            self._replies.append(server_wire.reply(wire.PING_XID, zxid))
        elif frame.operation == wire.AUTH:
            self._replies.append(server_wire.reply(wire.AUTH_XID, zxid))
        elif frame.operation == server_wire.SYNC:
            self._replies.append(server_wire.sync_reply(frame.xid, zxid, server_wire.sync_path(frame.body)))
        elif frame.operation == wire.SET_WATCHES:
            self._set_watches(frame, server_wire.set_watches(frame.body))
        elif frame.operation == wire.CLOSE:
            self._replies.append(server_wire.reply(frame.xid, zxid))
            self._send()
            self._server.end_session(self._served)
        else:
            self._replies.append(server_wire.reply(frame.xid, zxid, server_wire.UNIMPLEMENTED))

    def _set_watches(self, frame: ClientFrame, watches: SetWatches) -> None:
        """Registers the watches of an earlier connection. Where the change that a watch waits for has happened, its event is sent."""
        try:
            for path in watches.data:
                stat = self._stat(path)
                if stat is None:
                    self._notify(EventType.NODE_DELETED, path)
                elif stat.mzxid > watches.last_zxid:
                    self._notify(EventType.NODE_DATA_CHANGED, path)
                else:
                    self._ask(GetData(path, watch=True))
            for path in watches.exist:
                if self._stat(path) is not None:
                    self._notify(EventType.NODE_CREATED, path)
                else:
                    self._ask(Exists(path, watch=True))
            for path in watches.child:
                stat = self._stat(path)
                if stat is None:
                    self._notify(EventType.NODE_DELETED, path)
                elif stat.pzxid > watches.last_zxid:
                    self._notify(EventType.NODE_CHILDREN_CHANGED, path)
                else:
                    self._ask(GetChildren(path, watch=True))
        except TreeError as error:
            self._replies.append(server_wire.error_reply(frame, self._tree.last_zxid, error))
            return
        self._replies.append(server_wire.reply(wire.SET_WATCHES_XID, self._tree.last_zxid))

    def _stat(self, path: str) -> Stat | None:
        stat: Stat | None = self._ask(Exists(path))
        return stat

    def _ask(self, request: TreeRequest[Any]) -> Any:
        (response,) = self._session.handle_now([request])
        return response.value

    def _notify(self, change: EventType, path: str) -> None:
        self._replies.append(server_wire.notification(WatchedEvent(change, path)))

    def _send(self) -> None:
        if self._replies:
            self._connection.send(b"".join(self._replies))
            self._replies.clear()
