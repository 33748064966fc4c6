"""The one-shot watches of ZooKeeper: which sessions watch which node.

GetData and Exists leave data watches, GetChildren leaves child watches; a change removes the watches that it triggers. The table only
returns the sessions to notify. The store delivers the events, after the change is durable.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata import paths
from barnabas.metadata.errors import QuotaExceeded
from barnabas.metadata.tree import EventType, WatchedEvent

_Table = dict[str, dict[int, None]]  # path to session ids; dicts for their order


class WatchTable:
    def __init__(self, watches_max: int) -> None:
        self._watches_max = watches_max
        self._data: _Table = {}
        self._children: _Table = {}
        self._of_session: dict[int, dict[tuple[bool, str], None]] = {}  # (is a child watch, path)

    def __len__(self) -> int:
        return sum(len(watches) for watches in self._of_session.values())

    @property
    def is_empty(self) -> bool:
        return not self._of_session

    def watch_data(self, path: str, session_id: int) -> None:
        self._watch(self._data, False, path, session_id)

    def watch_children(self, path: str, session_id: int) -> None:
        self._watch(self._children, True, path, session_id)

    def forget(self, session_id: int) -> None:
        for is_child, path in self._of_session.pop(session_id, {}):
            table = self._children if is_child else self._data
            del table[path][session_id]
            if not table[path]:
                del table[path]

    def trigger(self, change: EventType, path: str) -> Iterator[tuple[int, WatchedEvent]]:
        """The sessions to notify of a change of a node, each at most once per event, with the event."""
        sessions = self._take(self._data, False, path)
        if change is EventType.NODE_DELETED:
            sessions |= self._take(self._children, True, path)
        for session_id in sessions:
            yield session_id, WatchedEvent(change, path)
        if change is not EventType.NODE_DATA_CHANGED:
            parent = paths.parent(path)
            for session_id in self._take(self._children, True, parent):
                yield session_id, WatchedEvent(EventType.NODE_CHILDREN_CHANGED, parent)

    def _watch(self, table: _Table, is_child: bool, path: str, session_id: int) -> None:
        session_watches = self._of_session.setdefault(session_id, {})
        if len(session_watches) >= self._watches_max and (is_child, path) not in session_watches:
            raise QuotaExceeded(path, f"Session 0x{session_id:x} holds {len(session_watches)} watches, its limit")
        session_watches[is_child, path] = None
        table.setdefault(path, {})[session_id] = None

    def _take(self, table: _Table, is_child: bool, path: str) -> dict[int, None]:
        sessions = table.pop(path, {})
        for session_id in sessions:
            session_watches = self._of_session[session_id]
            del session_watches[is_child, path]
            if not session_watches:
                del self._of_session[session_id]
        return sessions
