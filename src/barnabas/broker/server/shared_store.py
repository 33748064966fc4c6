"""One embedded metadata store shared by several brokers of one process. Each broker has its own sessions and closes only those."""

from __future__ import annotations

from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import StoreTrouble, Watcher


class SharedStore:
    """The view that one broker has of the store."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree
        self._sessions: list[LocalSession] = []

    @property
    def trouble(self) -> StoreTrouble | None:
        return self._tree.trouble

    async def open_session(self, watcher: Watcher) -> LocalSession:
        session = await self._tree.open_session(watcher)
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions.clear()
