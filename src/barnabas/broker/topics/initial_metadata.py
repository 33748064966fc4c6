"""Waits for the initial metadata of a broker that joins a cluster.

The controller sends a newly registered broker all brokers, topics and leaders. Until then the metadata cache is empty, and a client would
get UNKNOWN_TOPIC_OR_PARTITION for topics that exist. A new controller sends the live brokers before the topics, so the first UpdateMetadata
may have no topics; whether there really are none, only the metadata store can say.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import StoreUnusable, TreeError

USUALLY_WITHIN_S: Final = 30  # longer than an election of a controller takes
LOOK_S: Final = 0.5

_log = logging.getLogger(__name__)


class InitialMetadata:
    """Must be made on the event loop that it runs on. `is_complete` is true once the metadata cache has all topics."""

    def __init__(self, broker_id: int, cache: MetadataCache, tree: TreeClient) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._tree = tree
        self._brokers_received = asyncio.Event()  # set by an UpdateMetadata that names this broker
        self._complete = asyncio.Event()
        self._polling: asyncio.Task[None] | None = None
        cache.on_update.append(self._updated)

    @property
    def is_complete(self) -> bool:
        return self._complete.is_set()

    def start(self) -> None:
        self._polling = asyncio.ensure_future(self._poll_topics())

    async def wait(self) -> None:
        """Waits without a timeout."""
        await self._complete.wait()

    async def wait_a_while(self) -> None:
        """Waits for USUALLY_WITHIN_S at most, so that a broker normally reports its start when it can serve, but also starts without a
        controller."""
        try:
            await asyncio.wait_for(self._complete.wait(), USUALLY_WITHIN_S)
        except TimeoutError:
            _log.warning("Broker %d has received no metadata from the controller for %d s", self._broker_id, USUALLY_WITHIN_S)

    def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()

    def _updated(self) -> None:
        if self.is_complete or not self._cache.has_alive_broker(self._broker_id):
            return
        self._brokers_received.set()
        if self._cache.topics():
            self._complete.set()

    async def _poll_topics(self) -> None:
        await self._brokers_received.wait()
        while not self.is_complete:
            if await self._there_are_no_topics():
                self._complete.set()
            else:
                await asyncio.sleep(LOOK_S)

    async def _there_are_no_topics(self) -> bool:
        try:
            children = await self._tree.children(paths.TOPICS)
        except (TreeError, StoreUnusable):
            return False  # retried after LOOK_S
        return children is None or not children.names
