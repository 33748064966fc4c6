"""The metadata store of a data directory, opened briefly to read or write it. No broker has it open meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from barnabas.layout.cluster_image import ClusterImage, read_image
from barnabas.layout.errors import NotConvertible
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.errors import NoNode
from barnabas.metadata.tree import SetData

T = TypeVar("T")


class EmbeddedStore:
    """Each call runs its own event loop. Raises StoreUnusable."""

    def __init__(self, path: str, now_ms: Callable[[], int]) -> None:
        self.path = path
        self._now_ms = now_ms

    def image(self) -> ClusterImage:
        if not os.path.exists(self.path):
            raise NotConvertible(f"{self.path} is missing: only the data of `barnabas up` can be converted")
        return asyncio.run(self._opened(read_image))

    def write(self, znodes: Sequence[tuple[str, bytes]]) -> None:
        async def set_all(tree: TreeClient) -> None:
            responses = await tree.handle([SetData(path, data) for path, data in znodes])
            for (path, data), response in zip(znodes, responses, strict=True):
                if isinstance(response.error, NoNode):
                    await tree.create_recursive(path, data)
                elif response.error is not None:
                    raise response.error

        asyncio.run(self._opened(set_all))

    async def _opened(self, use: Callable[[TreeClient], Awaitable[T]]) -> T:
        store = open_embedded(self.path, self._now_ms)
        tree = TreeClient(store, lambda: None)
        try:
            await tree.connect()
            return await use(tree)
        finally:
            await tree.close()
            await store.close()
