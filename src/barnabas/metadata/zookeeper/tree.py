"""The metadata store on a ZooKeeper ensemble, shared by brokers of several processes and machines."""

from __future__ import annotations

from dataclasses import replace

from barnabas.metadata import paths
from barnabas.metadata.errors import NodeExists, StoreUnusable
from barnabas.metadata.session_metrics import SessionMetrics
from barnabas.metadata.tree import Create, Exists, Watcher
from barnabas.metadata.zookeeper.session import ZooKeeperOptions, ZooKeeperSession


class ZooKeeperTree:
    def __init__(self, options: ZooKeeperOptions) -> None:
        self.session_metrics = SessionMetrics()
        self._options = options
        self._sessions: list[ZooKeeperSession] = []
        self._has_chroot = not options.ensemble.chroot

    async def open_session(self, watcher: Watcher) -> ZooKeeperSession:
        """Creates the chroot first, if it is missing. Raises StoreUnusable with a text that names the fix."""
        if not self._has_chroot:
            await self._make_chroot()
            self._has_chroot = True
        session = ZooKeeperSession(self._options, watcher, self.session_metrics)
        await session.open()
        self._sessions = [open_session for open_session in self._sessions if open_session.is_alive]
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions.clear()

    def abandon(self) -> None:
        """Ends all sessions without the servers, which do not come back: requests that wait fail at once."""
        for session in self._sessions:
            session.abandon()

    async def _make_chroot(self) -> None:
        """Uses a session of its own, without a chroot."""
        chroot = self._options.ensemble.chroot
        session = ZooKeeperSession(replace(self._options, ensemble=self._options.ensemble._replace(chroot="")), lambda _: None)
        await session.open()
        try:
            (response,) = await session.handle([Exists(chroot)])
            if response.result is not None:
                return  # a user without permission to create nodes beside it could not create it, though it exists
            for creation in await session.handle([Create(node_path) for node_path in paths.with_ancestors(chroot)]):
                if creation.error is not None and not isinstance(creation.error, NodeExists):
                    raise StoreUnusable(f"{chroot} of zookeeper.connect cannot be made: {creation.error}") from creation.error
        finally:
            await session.close()
