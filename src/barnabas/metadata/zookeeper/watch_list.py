"""What a session waits for: the watches it has left, so that they can be left again on another server.

A watch lives in the server that a session is connected to. When the connection is lost the next server is told of all of them, with the
last change that the session has seen, and tells at once what it missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.metadata.tree import EventType, Exists, GetChildren, GetData, Request, WatchedEvent
from barnabas.metadata.zookeeper import wire

Lists = tuple[list[str], list[str], list[str]]  # of data, of nodes that are not there, of children


class WatchList:
    def __init__(self) -> None:
        self._data: dict[str, None] = {}  # dicts for their order
        self._exist: dict[str, None] = {}
        self._child: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._data) + len(self._exist) + len(self._child)

    def left_by(self, asked: Request[Any], is_there: bool) -> None:
        """A read was answered. On a node that is not there only Exists leaves a watch."""
        if isinstance(asked, Exists) and asked.watch:
            (self._data if is_there else self._exist)[asked.path] = None
        elif isinstance(asked, GetData) and asked.watch and is_there:
            self._data[asked.path] = None
        elif isinstance(asked, GetChildren) and asked.watch and is_there:
            self._child[asked.path] = None

    def used_up_by(self, event: WatchedEvent) -> None:
        if event.type is not EventType.NODE_CHILDREN_CHANGED:
            self._data.pop(event.path, None)
            self._exist.pop(event.path, None)
        if event.type in (EventType.NODE_CHILDREN_CHANGED, EventType.NODE_DELETED):
            self._child.pop(event.path, None)

    def in_portions(self, chroot: str) -> Iterator[Lists]:
        """All of them, in lists that a server takes in one frame."""
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
