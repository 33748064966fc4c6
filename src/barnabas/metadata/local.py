"""A metadata store inside this process: nodes in memory, a journal that makes writes durable, watches, sessions for the process's brokers.

Reads never leave memory. Writes are decided in memory, then committed to the journal; only then are they visible, answered and sent to
watchers. If the journal fails, the change in memory is undone. Everything runs on the thread of the event loop and waits for nothing but
the journal. A session lives until it is closed or expired: inside one process no heartbeat can be missed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from barnabas.metadata.errors import BadArguments, SessionExpired, StoreFailure, TreeError
from barnabas.metadata.nodes import Image, Limits, TreeTransaction, ZNode, ZNodes, check_path, touched_paths
from barnabas.metadata.tree import (
    Check,
    Children,
    Create,
    Created,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    NodeData,
    R_co,
    SetData,
    Stat,
    StoreTrouble,
    TreeRequest,
    TreeResponse,
    WatchedEvent,
    Watcher,
)
from barnabas.metadata.watches import WatchTable

log = logging.getLogger(__name__)

EPOCH_BITS: Final = 32  # a zxid is, as in ZooKeeper, an epoch (here: one opening of the store) and a counter in it


_READS: Final = frozenset({Exists, GetData, GetChildren})


class TreeJournal(Protocol):
    """The durable part of the tree."""

    path: str  # empty if nothing is durable

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None:
        """All changes are durable on return; raises StoreFailure if none of them is saved."""
        ...

    def close(self) -> None: ...


class NoJournal:
    """For the simulator and for tests: nothing is durable."""

    path = ""

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None: ...

    def close(self) -> None: ...


class LocalTree:
    """`epoch` must be greater than in any earlier opening of the same nodes, so that zxids, and with them broker epochs, only grow."""

    def __init__(self, now_ms: Callable[[], int], journal: TreeJournal | None = None, nodes: ZNodes | None = None, epoch: int = 1) -> None:
        self._now_ms = now_ms
        self.trouble: StoreTrouble | None = None
        self._journal: TreeJournal = journal if journal is not None else NoJournal()
        self._nodes = nodes if nodes is not None else ZNodes(Limits())
        self._watches = WatchTable(self._nodes.limits.watches_max)
        self._sessions: dict[int, LocalSession] = {}
        self._events: deque[tuple[LocalSession, WatchedEvent]] = deque()
        self._delivering = False
        self._closed = False
        self._zxid = epoch << EPOCH_BITS
        self._last_session_id = epoch << EPOCH_BITS

    @property
    def last_zxid(self) -> int:
        return self._zxid

    @property
    def node_count(self) -> int:
        """The number of nodes, including the root."""
        return len(self._nodes)

    @property
    def watch_count(self) -> int:
        return len(self._watches)

    async def open_session(self, watcher: Watcher) -> LocalSession:
        return self.open_session_now(watcher)

    def open_session_now(self, watcher: Watcher) -> LocalSession:
        if self._closed:
            raise StoreFailure("/", "The metadata tree is closed")
        self._last_session_id += 1
        session = self._sessions[self._last_session_id] = LocalSession(self, self._last_session_id, watcher)
        return session

    async def close(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        if self._closed:
            return
        for session in list(self._sessions.values()):
            self.end_session(session)
        self._closed = True
        self._journal.close()

    def end_session(self, session: LocalSession, expired: bool = False) -> None:
        """Removes its watches, then its ephemeral nodes, which triggers other watches. An expired session gets SESSION_EXPIRED."""
        if self._sessions.pop(session.session_id, None) is None:
            return
        self._watches.forget(session.session_id)
        transaction = self._begin(session.session_id)
        transaction.close_session(session.session_id)
        if expired:
            self._events.append((session, WatchedEvent(EventType.SESSION_EXPIRED, "")))
        if transaction.touched:
            try:
                self._commit([transaction], undo=False)
            except StoreFailure as failure:
                # Ephemeral nodes are not in the journal; only their parents' counters are not saved, until the next write to them.
                log.warning("The end of session 0x%x could not be written: %s", session.session_id, failure)
        self._deliver()

    def forget_watches(self, session: LocalSession) -> None:
        self._watches.forget(session.session_id)

    def is_open(self, session: LocalSession) -> bool:
        return session.session_id in self._sessions

    def handle(self, session: LocalSession, requests: Sequence[TreeRequest[R_co]]) -> list[TreeResponse[R_co]]:
        """Consecutive writes share one commit; a read first commits the writes before it."""
        responses: list[TreeResponse[R_co]] = []
        pending: list[TreeTransaction] = []
        uncommitted = 0  # the index in `responses` of the first pending write
        for request in requests:
            if type(request) in _READS:
                self._commit_pending(pending, responses, uncommitted)
                responses.append(self._read(session, request))
                uncommitted = len(responses)
            else:
                responses.append(self._write(session, request, pending))
        self._commit_pending(pending, responses, uncommitted)
        self._deliver()
        return responses

    def _read(self, session: LocalSession, request: TreeRequest[R_co]) -> TreeResponse[R_co]:
        try:
            if not self.is_open(session):
                raise SessionExpired("/")
            return TreeResponse(request, cast("R_co", self._look_up(session.session_id, request)))
        except TreeError as error:
            return TreeResponse(request, None, error)

    def _look_up(self, session_id: int, request: TreeRequest[object]) -> object:
        if isinstance(request, GetData):
            node = self._nodes.get(request.path) or self._missing(request.path)
            if request.watch:
                self._watches.watch_data(request.path, session_id)
            return NodeData(node.data, node.stat())
        if isinstance(request, GetChildren):
            node = self._nodes.get(request.path) or self._missing(request.path)
            if request.watch:
                self._watches.watch_children(request.path, session_id)
            return Children(sorted(node.children or ()), node.stat())
        assert isinstance(request, Exists)
        node_or_none = self._nodes.get(request.path)
        if node_or_none is None:
            check_path(request.path)
        if request.watch:
            self._watches.watch_data(request.path, session_id)
        return None if node_or_none is None else node_or_none.stat()

    def _missing(self, path: str) -> ZNode:
        check_path(path)
        return self._nodes.require(path)

    def _write(self, session: LocalSession, request: TreeRequest[R_co], pending: list[TreeTransaction]) -> TreeResponse[R_co]:
        transaction = self._begin(session.session_id)
        try:
            if not self.is_open(session):
                raise SessionExpired("/")
            result = self._change(transaction, request)
        except TreeError as error:
            transaction.undo()
            return TreeResponse(request, None, error)
        pending.append(transaction)
        return TreeResponse(request, cast("R_co", result))

    def _change(self, transaction: TreeTransaction, request: TreeRequest[object]) -> object:
        if isinstance(request, (Create, SetData, Delete, Check)):
            return transaction.apply(request)
        if not isinstance(request, Multi):
            raise BadArguments("/", f"{type(request).__name__} is not a request of the metadata tree")
        if len(request.operations) > self._nodes.limits.operations_max:
            raise BadArguments("/", f"A multi of {len(request.operations)} operations, more than {self._nodes.limits.operations_max}")
        results: list[Created | Stat | None] = []
        for number, operation in enumerate(request.operations):
            try:
                results.append(transaction.apply(operation))
            except TreeError as error:
                error.operation = number
                raise
        return results

    def _begin(self, session_id: int) -> TreeTransaction:
        self._zxid += 1
        return TreeTransaction(self._nodes, session_id, self._zxid, self._now_ms())

    def _commit_pending(self, pending: list[TreeTransaction], responses: list[TreeResponse[R_co]], uncommitted: int) -> None:
        if not pending:
            return
        try:
            self._commit(pending)
        except StoreFailure as failure:
            for at in range(uncommitted, len(responses)):
                if responses[at].error is None:
                    responses[at] = TreeResponse(responses[at].request, None, failure)
        pending.clear()

    def _commit(self, transactions: list[TreeTransaction], undo: bool = True) -> None:
        written: list[tuple[str, Image]] = []
        deleted: list[str] = []
        for path in touched_paths(transactions):
            node = self._nodes.get(path)
            if node is None or node.ephemeral_owner:  # an ephemeral node is never in the journal, but may replace one that is
                deleted.append(path)
            else:
                written.append((path, node.image()))
        try:
            if written or deleted:
                self._journal.commit(written, deleted)
                self._note_saved()
        except StoreFailure as failure:
            self._note_trouble(failure)
            if undo:
                for transaction in reversed(transactions):
                    transaction.undo()
                raise
            self._queue_events(transactions)
            raise
        self._queue_events(transactions)

    def _note_trouble(self, failure: StoreFailure) -> None:
        """Logged once, when the trouble begins: until it ends every change fails, and its caller receives the error."""
        if self.trouble is None:
            log.error("%s. Until then topics, configs and leaders cannot be changed", failure)
        self.trouble = StoreTrouble(self._journal.path, str(failure))

    def _note_saved(self) -> None:
        if self.trouble is not None:
            log.warning("The metadata store %s keeps changes again", self._journal.path)
            self.trouble = None

    def _queue_events(self, transactions: list[TreeTransaction]) -> None:
        if self._watches.is_empty:
            return
        for transaction in transactions:
            for change, path in transaction.changes:
                for session_id, event in self._watches.trigger(change, path):
                    self._events.append((self._sessions[session_id], event))

    def _deliver(self) -> None:
        """A watcher may send requests; the events they cause are delivered after it returns, never inside it."""
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._events:
                session, event = self._events.popleft()
                if self.is_open(session) or event.type is EventType.SESSION_EXPIRED:
                    session.notify(event)
        finally:
            self._delivering = False


class LocalSession:
    def __init__(self, tree: LocalTree, session_id: int, watcher: Watcher) -> None:
        self._tree = tree
        self._session_id = session_id
        self._watcher = watcher

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def is_alive(self) -> bool:
        return self._tree.is_open(self)

    async def handle(self, requests: Sequence[TreeRequest[R_co]]) -> list[TreeResponse[R_co]]:
        return self._tree.handle(self, requests)

    def handle_now(self, requests: Sequence[TreeRequest[R_co]]) -> list[TreeResponse[R_co]]:
        """`handle` without `await`, for tools that work on the embedded store only."""
        return self._tree.handle(self, requests)

    async def close(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        self._tree.end_session(self)

    def forget_watches(self) -> None:
        """Removes the watches of this session, as when its connection is lost."""
        self._tree.forget_watches(self)

    def expire(self) -> None:
        """Expires the session, as after missed heartbeats. Used by the simulator and tests."""
        self._tree.end_session(self, expired=True)

    def notify(self, event: WatchedEvent) -> None:
        try:
            self._watcher(event)
        except Exception:
            log.exception("The watcher of session 0x%x failed on %s %s", self._session_id, event.type.value, event.path)
