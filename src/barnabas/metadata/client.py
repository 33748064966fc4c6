"""A broker's client of the metadata store: typed calls, handlers that outlive a watch, and a new session when the old one expired.

It corresponds to Kafka's ZooKeeperClient below KafkaZkClient. A handler is registered for a path first; from then on every GetData or
Exists (for children: GetChildren) of that path leaves a watch. So a handler that reads again after a change is watching again, without a
gap. This class starts no task and keeps no clock: when a session expires it calls `on_expired`, and the owner then awaits `reinitialize()`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter_ns
from typing import Protocol, TypeVar, cast

from barnabas.metadata import paths
from barnabas.metadata.errors import NodeExists, NoNode, SessionExpired
from barnabas.metadata.session_metrics import MeasuredTree, SessionMetrics
from barnabas.metadata.tree import (
    MATCH_ANY_VERSION,
    Children,
    Create,
    Created,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Kept,
    Multi,
    NodeData,
    Operation,
    SetData,
    Stat,
    StoreTrouble,
    Tree,
    TreeRequest,
    TreeResponse,
    TreeSession,
    WatchedEvent,
)

log = logging.getLogger(__name__)

R = TypeVar("R")


class ZNodeChangeHandler(Protocol):
    """Called for changes of one znode. It should only note the event and return: it runs inside the commit of the change."""

    @property
    def path(self) -> str: ...

    def handle_creation(self) -> None: ...

    def handle_deletion(self) -> None: ...

    def handle_data_change(self) -> None: ...


class ZNodeChildChangeHandler(Protocol):
    @property
    def path(self) -> str: ...

    def handle_child_change(self) -> None: ...


class StateChangeHandler(Protocol):
    @property
    def name(self) -> str: ...

    async def before_initializing_session(self) -> None:
        """The old session has ended, with its ephemeral nodes: the controller resigns here."""
        ...

    async def after_initializing_session(self) -> None:
        """A new session is open, without ephemeral nodes and watches: register the broker, read and watch everything again."""
        ...


class TreeClient:
    def __init__(self, tree: Tree, on_expired: Callable[[], None]) -> None:
        self._tree = tree
        self._is_measured = isinstance(tree, MeasuredTree)
        self.metrics = tree.session_metrics if isinstance(tree, MeasuredTree) else SessionMetrics()
        self._on_expired = on_expired
        self._session: TreeSession | None = None
        self._change_handlers: dict[str, ZNodeChangeHandler] = {}
        self._child_change_handlers: dict[str, ZNodeChildChangeHandler] = {}
        self._state_change_handlers: dict[str, StateChangeHandler] = {}

    @property
    def trouble(self) -> StoreTrouble | None:
        """Why the store cannot save changes at the moment, if it is on a disk of this machine."""
        return self._tree.trouble if isinstance(self._tree, Kept) else None

    @property
    def session_id(self) -> int:
        """0 before `connect` and after `close`."""
        return self._session.session_id if self._session is not None else 0

    @property
    def is_connected(self) -> bool:
        """Whether there is a session that the store has not ended."""
        return self._session is not None and self._session.is_alive

    async def connect(self) -> None:
        self._session = await self._tree.open_session(self._on_event)
        if not self._is_measured:
            self.metrics.connects += 1

    async def close(self) -> None:
        self._change_handlers.clear()
        self._child_change_handlers.clear()
        self._state_change_handlers.clear()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def reinitialize(self) -> None:
        """Opens a new session in place of an expired one. Handlers stay registered; their watches return with the next reads."""
        if self._session is not None and self._session.is_alive:
            return
        for handler in list(self._state_change_handlers.values()):
            await _guarded(handler.name, handler.before_initializing_session)
        await self.connect()
        for handler in list(self._state_change_handlers.values()):
            await _guarded(handler.name, handler.after_initializing_session)

    def register_change_handler(self, handler: ZNodeChangeHandler) -> None:
        """Local: the next GetData or Exists of the path leaves the watch. Only Exists can watch a missing node."""
        self._change_handlers[handler.path] = handler

    def unregister_change_handler(self, path: str) -> None:
        self._change_handlers.pop(path, None)

    def register_child_change_handler(self, handler: ZNodeChildChangeHandler) -> None:
        self._child_change_handlers[handler.path] = handler

    def unregister_child_change_handler(self, path: str) -> None:
        self._child_change_handlers.pop(path, None)

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        self._state_change_handlers[handler.name] = handler

    def unregister_state_change_handler(self, name: str) -> None:
        self._state_change_handlers.pop(name, None)

    async def handle(self, requests: Sequence[TreeRequest[R]]) -> list[TreeResponse[R]]:
        """Many requests at once; reads of paths with a handler leave a watch. The requests' own `watch` is ignored."""
        if self._session is None:
            return [TreeResponse(request, None, SessionExpired("/", "There is no session with the metadata tree")) for request in requests]
        began_ns = perf_counter_ns()
        responses = await self._session.handle([self._watching(request) for request in requests])
        took_us = (perf_counter_ns() - began_ns) // 1000
        for _ in requests:
            self.metrics.request_us.record(took_us)
        return responses

    async def get(self, path: str) -> NodeData | None:
        """Data and stat, or None if the node does not exist; then no watch is left, use `exists` for that."""
        try:
            return await self._one(GetData(path))
        except NoNode:
            return None

    async def exists(self, path: str) -> Stat | None:
        return await self._one(Exists(path))

    async def children(self, path: str) -> Children | None:
        try:
            return await self._one(GetChildren(path))
        except NoNode:
            return None

    async def create(self, path: str, data: bytes | None = None, mode: CreateMode = CreateMode.PERSISTENT) -> Created:
        return await self._one(Create(path, data, mode))

    async def create_recursive(self, path: str, data: bytes | None = None) -> None:
        """Creates the node and its missing parents, which get no data. Raises NodeExists if the node itself existed."""
        try:
            await self._one(Create(path, data))
        except NoNode:
            await self.ensure(paths.parent(path))
            await self._one(Create(path, data))

    async def ensure(self, path: str) -> None:
        """Creates the node and its parents unless they exist. A concurrent creation by another client is not an error."""
        try:
            await self.create_recursive(path)
        except NodeExists:
            pass

    async def ensure_all(self, node_paths: Sequence[str]) -> None:
        """Creates all of these nodes and their parents unless they exist, in one batch."""
        all_paths = dict.fromkeys(ancestor for path in node_paths for ancestor in paths.with_ancestors(path))
        for response in await self.handle([Create(path) for path in all_paths]):
            if response.error is not None and not isinstance(response.error, NodeExists):
                raise response.error

    async def set_data(self, path: str, data: bytes | None, version: int = MATCH_ANY_VERSION) -> Stat:
        return await self._one(SetData(path, data, version))

    async def set_or_create(self, path: str, data: bytes | None) -> None:
        try:
            await self._one(SetData(path, data))
        except NoNode:
            await self.create_recursive(path, data)

    async def delete(self, path: str, version: int = MATCH_ANY_VERSION) -> bool:
        """Returns whether the node existed."""
        try:
            await self._one(Delete(path, version))
        except NoNode:
            return False
        return True

    async def delete_recursive(self, path: str) -> bool:
        """Deletes the node and all below it, children first, one batch per level. Not atomic, as in Kafka."""
        levels = [[path]]
        while levels[-1]:
            responses = await self.handle([GetChildren(parent) for parent in levels[-1]])
            answered = zip(levels[-1], responses, strict=True)
            levels.append([f"{parent}/{name}" for parent, response in answered if response.error is None for name in response.value.names])
        deleted = False
        for level in reversed(levels):
            for response in await self.handle([Delete(node_path) for node_path in level]):
                if response.error is not None and not isinstance(response.error, NoNode):
                    raise response.error
                deleted = response.error is None
        return deleted

    async def multi(self, operations: Sequence[Operation]) -> list[Created | Stat | None]:
        return await self._one(Multi(operations))

    async def _one(self, request: TreeRequest[R]) -> R:
        (response,) = await self.handle([request])
        return response.value

    def _watching(self, request: TreeRequest[R]) -> TreeRequest[R]:
        if isinstance(request, (GetData, Exists)):
            watch = request.path in self._change_handlers
        elif isinstance(request, GetChildren):
            watch = request.path in self._child_change_handlers
        else:
            return request
        return cast("TreeRequest[R]", request if watch == request.watch else type(request)(request.path, watch))

    def _on_event(self, event: WatchedEvent) -> None:
        if event.type is EventType.SESSION_EXPIRED:
            self._on_expired()
        elif event.type is EventType.NODE_CHILDREN_CHANGED:
            child_handler = self._child_change_handlers.get(event.path)
            if child_handler is not None:
                child_handler.handle_child_change()
        else:
            handler = self._change_handlers.get(event.path)
            if handler is None:
                return
            if event.type is EventType.NODE_CREATED:
                handler.handle_creation()
            elif event.type is EventType.NODE_DELETED:
                handler.handle_deletion()
            else:
                handler.handle_data_change()


async def _guarded(name: str, step: Callable[[], Awaitable[None]]) -> None:
    """A failing handler must not keep the others from their new session."""
    try:
        await step()
    except Exception:
        log.exception("The state change handler %s failed", name)
