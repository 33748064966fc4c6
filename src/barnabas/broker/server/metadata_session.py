"""The broker's session with the metadata store: the embedded one, or ZooKeeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.environment import Environment
from barnabas.broker.server.background_tasks import BackgroundTasks
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import STORE_NAME
from barnabas.metadata.errors import StoreUnusable
from barnabas.metadata.tree import Tree

RETRY_S: Final = 1.0

_log = logging.getLogger(__name__)


class MetadataSession:
    """Where brokers share the store, an expired session is replaced by a new one. Where they do not, `on_failure` is called."""

    def __init__(
        self,
        config: BrokerConfig,
        environment: Environment,
        tree_path: str | None,
        background: BackgroundTasks,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.is_shared = bool((config.text("zookeeper.connect") or "").strip()) or environment.is_shared
        self._config = config
        self._environment = environment
        self._tree_path = tree_path or f"{config.text('metadata.log.dir') or config.log_dirs[0]}/{STORE_NAME}"
        self._background = background
        self._on_failure = on_failure

    async def open_store(self) -> Tree:
        if self._environment.tree is None and self.is_shared:
            from barnabas.broker.cluster import cluster_member  # noqa: F401 - a slow import while the session is open would let it expire
            from barnabas.broker.server.zookeeper_store import zookeeper_tree

            return zookeeper_tree(self._config, self._environment.random)
        return await self._environment.open_tree(self._tree_path)

    def client(self, store: Tree) -> TreeClient:
        """The client of an open store. It is not connected yet."""
        self._client = TreeClient(store, self._expired)
        return self._client

    def _expired(self) -> None:
        if self.is_shared:
            self._background.start(self._renew())
        else:
            self._on_failure(RuntimeError(f"The session with the metadata store {self._tree_path} has ended"))

    async def _renew(self) -> None:
        """Opens a new session. The old one took this broker's registration with it: its controller has resigned, and in the new session the
        broker registers and runs for controller again."""
        while True:
            try:
                await self._client.reinitialize()
                return
            except StoreUnusable as error:
                _log.warning("No new session with the metadata store yet: %s", error)
            await asyncio.sleep(RETRY_S)
