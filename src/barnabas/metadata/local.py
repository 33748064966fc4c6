"""A tree inside this process: nodes in memory, a journal that makes writes durable, sessions for the brokers of the process, watches.

Reads never leave memory. Writes are decided in memory, then committed to the journal, and only then seen, answered and told to watchers;
if the journal refuses, memory goes back. It runs on one thread, the event loop's, and never waits for anything but the journal.
A session lives as long as it is not closed or expired: there is no heartbeat that could be missed inside one process.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from barnabas.metadata.errors import BadArguments, SessionExpired, StoreFailure, TreeError
from barnabas.metadata.nodes import Image, Limits, Node, Nodes, Transaction, check_path, touched_paths
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
    Request,
    Response,
    SetData,
    Stat,
    StoreTrouble,
    WatchedEvent,
    Watcher,
)
from barnabas.metadata.watches import Watches

log = logging.getLogger(__name__)

EPOCH_BITS: Final = 32  # a zxid is, as in ZooKeeper, an epoch (here: a life of the store) and a counter in it


_READS: Final = frozenset({Exists, GetData, GetChildren})


class Journal(Protocol):
    """What outlives the process."""

    path: str  # empty where nothing does

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None:
        """All of it is durable on return; raises StoreFailure if none of it is kept."""
        ...

    def close(self) -> None: ...


class NoJournal:
    """For the simulator and for tests: the tree is gone with the object."""

    path = ""

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None: ...

    def close(self) -> None: ...


class LocalTree:
    """`epoch` must be greater than in any earlier life of the same nodes, so that zxids, and with them broker epochs, only grow."""

    def __init__(self, now_ms: Callable[[], int], journal: Journal | None = None, nodes: Nodes | None = None, epoch: int = 1) -> None:
        self._now_ms = now_ms
        self.trouble: StoreTrouble | None = None
        self._journal: Journal = journal if journal is not None else NoJournal()
        self._nodes = nodes if nodes is not None else Nodes(Limits())
        self._watches = Watches(self._nodes.limits.watches_max)
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
        """With the root."""
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
        """Its watches go, then its ephemerals, which the others hear of. An expired session is told so, a closed one asked for it."""
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
                # Ephemerals are not in the journal; only their parents' counters could not be kept, until the next write to them.
                log.warning("The end of session 0x%x could not be written: %s", session.session_id, failure)
        self._deliver()

    def is_open(self, session: LocalSession) -> bool:
        return session.session_id in self._sessions

    def handle(self, session: LocalSession, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        """Writes that stand in a row share one commit; a read first commits what stands before it."""
        responses: list[Response[R_co]] = []
        pending: list[Transaction] = []
        uncommitted = 0  # where in `responses` the pending writes begin
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

    def _read(self, session: LocalSession, request: Request[R_co]) -> Response[R_co]:
        try:
            if not self.is_open(session):
                raise SessionExpired("/")
            return Response(request, cast("R_co", self._look_up(session.session_id, request)))
        except TreeError as error:
            return Response(request, None, error)

    def _look_up(self, session_id: int, request: Request[object]) -> object:
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
        found = self._nodes.get(request.path)
        if found is None:
            check_path(request.path)
        if request.watch:
            self._watches.watch_data(request.path, session_id)
        return None if found is None else found.stat()

    def _missing(self, path: str) -> Node:
        check_path(path)
        return self._nodes.require(path)

    def _write(self, session: LocalSession, request: Request[R_co], pending: list[Transaction]) -> Response[R_co]:
        transaction = self._begin(session.session_id)
        try:
            if not self.is_open(session):
                raise SessionExpired("/")
            result = self._change(transaction, request)
        except TreeError as error:
            transaction.undo()
            return Response(request, None, error)
        pending.append(transaction)
        return Response(request, cast("R_co", result))

    def _change(self, transaction: Transaction, request: Request[object]) -> object:
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

    def _begin(self, session_id: int) -> Transaction:
        self._zxid += 1
        return Transaction(self._nodes, session_id, self._zxid, self._now_ms())

    def _commit_pending(self, pending: list[Transaction], responses: list[Response[R_co]], uncommitted: int) -> None:
        if not pending:
            return
        try:
            self._commit(pending)
        except StoreFailure as failure:
            for at in range(uncommitted, len(responses)):
                if responses[at].error is None:
                    responses[at] = Response(responses[at].request, None, failure)
        pending.clear()

    def _commit(self, transactions: list[Transaction], undo: bool = True) -> None:
        written: list[tuple[str, Image]] = []
        deleted: list[str] = []
        for path in touched_paths(transactions):
            node = self._nodes.get(path)
            if node is None or node.ephemeral_owner:  # an ephemeral is never in the journal, but may stand where a node was that is
                deleted.append(path)
            else:
                written.append((path, node.image()))
        try:
            if written or deleted:
                self._journal.commit(written, deleted)
                self._note_kept()
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
        """Logged when it begins: until it ends every change is refused, and whoever asked for it is told."""
        if self.trouble is None:
            log.error("%s. Until then topics, configs and leaders cannot be changed", failure)
        self.trouble = StoreTrouble(self._journal.path, str(failure))

    def _note_kept(self) -> None:
        if self.trouble is not None:
            log.warning("The metadata store %s keeps changes again", self._journal.path)
            self.trouble = None

    def _queue_events(self, transactions: list[Transaction]) -> None:
        if self._watches.is_empty:
            return
        for transaction in transactions:
            for change, path in transaction.changes:
                for session_id, event in self._watches.trigger(change, path):
                    self._events.append((self._sessions[session_id], event))

    def _deliver(self) -> None:
        """A watcher may ask and write again; what that causes is delivered after it, never inside it."""
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

    async def handle(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        return self._tree.handle(self, requests)

    def handle_now(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        """The same without `await`, for tools that work on the embedded store and nothing else."""
        return self._tree.handle(self, requests)

    async def close(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        self._tree.end_session(self)

    def expire(self) -> None:
        """As if the store had not heard of the owner for too long. Inside one process only the simulator and tests have a reason to."""
        self._tree.end_session(self, expired=True)

    def notify(self, event: WatchedEvent) -> None:
        try:
            self._watcher(event)
        except Exception:
            log.exception("The watcher of session 0x%x failed on %s %s", self._session_id, event.type.value, event.path)
