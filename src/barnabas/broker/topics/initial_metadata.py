"""How a broker that joins a cluster comes to know what there is.

The controller hears of it and tells it all: the other brokers, the topics and who leads them. Until then it knows of nothing, and whoever
asks would be told that topics do not exist. A new controller tells who lives before it tells what there is, so that the first news may be
without topics; only the tree can say whether there are none.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import StoreUnusable, TreeError

USUALLY_WITHIN_S: Final = 30  # what it takes to elect a controller
LOOK_S: Final = 0.5

_log = logging.getLogger(__name__)


class InitialMetadata:
    """To be made on the loop it will run on."""

    def __init__(self, broker_id: int, cache: MetadataCache, tree: TreeClient) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._tree = tree
        self._told_of_brokers = asyncio.Event()  # this one among them
        self._over = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        cache.on_update.append(self._news)

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def start(self) -> None:
        self._looking = asyncio.ensure_future(self._look())

    async def wait(self) -> None:
        """However long it takes."""
        await self._over.wait()

    async def wait_a_while(self) -> None:
        """So that a broker is not said to have started before it can serve; without a controller it will have to do."""
        try:
            await asyncio.wait_for(self._over.wait(), USUALLY_WITHIN_S)
        except TimeoutError:
            _log.warning("The controller has not told broker %d what there is for %d s", self._broker_id, USUALLY_WITHIN_S)

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def _news(self) -> None:
        if self.is_over or not self._cache.has_alive_broker(self._broker_id):
            return
        self._told_of_brokers.set()
        if self._cache.topics():
            self._over.set()

    async def _look(self) -> None:
        await self._told_of_brokers.wait()
        while not self.is_over:
            if await self._there_are_no_topics():
                self._over.set()
            else:
                await asyncio.sleep(LOOK_S)

    async def _there_are_no_topics(self) -> bool:
        try:
            found = await self._tree.children(paths.TOPICS)
        except (TreeError, StoreUnusable):
            return False  # asked again
        return found is None or not found.names
