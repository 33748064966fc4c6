"""The watches that a session has left, so that they can be registered again on another server.

A watch is stored in the server that a session is connected to. After a lost connection the session sends all its watches to the next
server, with the zxid of the last change it has seen, and that server delivers the missed events at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.metadata.tree import EventType, Exists, GetChildren, GetData, Request, WatchedEvent
from barnabas.metadata.zookeeper import wire

Lists = tuple[list[str], list[str], list[str]]  # data watches, watches of missing nodes, child watches


class WatchList:
    def __init__(self) -> None:
        self._data: dict[str, None] = {}  # dicts for their order
        self._exist: dict[str, None] = {}
        self._child: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._data) + len(self._exist) + len(self._child)

    def note_response(self, request: Request[Any], exists: bool) -> None:
        """Records the watch of an answered read. On a missing node only Exists leaves a watch."""
        if isinstance(request, Exists) and request.watch:
            (self._data if exists else self._exist)[request.path] = None
        elif isinstance(request, GetData) and request.watch and exists:
            self._data[request.path] = None
        elif isinstance(request, GetChildren) and request.watch and exists:
            self._child[request.path] = None

    def remove_triggered(self, event: WatchedEvent) -> None:
        if event.type is not EventType.NODE_CHILDREN_CHANGED:
            self._data.pop(event.path, None)
            self._exist.pop(event.path, None)
        if event.type in (EventType.NODE_CHILDREN_CHANGED, EventType.NODE_DELETED):
            self._child.pop(event.path, None)

    def in_portions(self, chroot: str) -> Iterator[Lists]:
        """All watches, in lists that fit in one frame."""
        lists: Lists = ([], [], [])
        size = 0
        for number, paths in enumerate((self._data, self._exist, self._child)):
            for path in paths:
                lists[number].append(wire.rooted(path, chroot))
                size += len(path.encode()) + len(chroot) + 4
                if size > wire.WATCHES_BYTES_MAX:
                    yield lists
                    lists, size = ([], [], []), 0
        if size:
            yield lists
