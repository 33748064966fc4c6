"""The tree that a ZooKeeper ensemble keeps: where brokers of several processes and machines meet."""

from __future__ import annotations

from dataclasses import replace

from barnabas.metadata import paths
from barnabas.metadata.errors import NodeExists, StoreUnusable
from barnabas.metadata.tree import Create, Exists, Watcher
from barnabas.metadata.zookeeper.session import Options, ZooKeeperSession


class ZooKeeperTree:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions: list[ZooKeeperSession] = []
        self._has_chroot = not options.ensemble.chroot

    async def open_session(self, watcher: Watcher) -> ZooKeeperSession:
        """Makes the chroot first, if it is not there. Raises StoreUnusable, with a text that names the fix."""
        if not self._has_chroot:
            await self._make_chroot()
            self._has_chroot = True
        session = ZooKeeperSession(self._options, watcher)
        await session.open()
        self._sessions = [each for each in self._sessions if each.is_alive]
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions.clear()

    async def _make_chroot(self) -> None:
        """In a session of its own, which sees the whole tree."""
        chroot = self._options.ensemble.chroot
        session = ZooKeeperSession(replace(self._options, ensemble=self._options.ensemble._replace(chroot="")), lambda _: None)
        await session.open()
        try:
            (found,) = await session.handle([Exists(chroot)])
            if found.result is not None:
                return  # who may not make nodes beside it, would be refused to make it though it is there
            for response in await session.handle([Create(each) for each in paths.with_ancestors(chroot)]):
                if response.error is not None and not isinstance(response.error, NodeExists):
                    raise StoreUnusable(f"{chroot} of zookeeper.connect cannot be made: {response.error}") from response.error
        finally:
            await session.close()
