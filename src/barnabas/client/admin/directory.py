"""The nodes and the controller of the cluster for the admin client, from `Metadata`.

`Calls` takes from here the node of each request. If the metadata is missing or was found stale, a lookup waits for the next Metadata
response, at most for its timeout.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.client.admin.call import NotAssigned
from barnabas.client.cluster import Cluster, Node
from barnabas.client.errors import Timeout
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient


class MetadataDirectory:
    """`start` is called before every lookup; its first call starts the network."""

    def __init__(self, metadata: Metadata, network: NetworkClient, start: Callable[[], Awaitable[None]]) -> None:
        self._metadata = metadata
        self._network = network
        self._start = start
        self._wrong_up_to: int | None = None  # the metadata is stale up to and including this version

    @property
    def known(self) -> bool:
        return not self._metadata.cluster.is_bootstrap

    async def any_node(self, timeout_ms: int) -> int:
        await self._fresh(timeout_ms)
        try:
            return await self._network.any_ready(self._network.clock.monotonic_ms() + timeout_ms)
        except Timeout as error:
            raise NotAssigned(str(error)) from error

    async def controller(self, timeout_ms: int) -> int:
        cluster = await self._fresh(timeout_ms)
        if cluster.controller is None:
            self.request_update()
            raise NotAssigned("The brokers report no controller")
        return cluster.controller.id

    async def brokers(self, timeout_ms: int) -> list[int]:
        return sorted(node.id for node in (await self._fresh(timeout_ms)).nodes)

    def node(self, node_id: int) -> Node:
        return self._metadata.cluster.node_by_id(node_id) or Node(node_id, "", -1)

    def request_update(self) -> None:
        self._wrong_up_to = self._metadata.request_update()

    async def _fresh(self, timeout_ms: int) -> Cluster:
        await self._start()
        wrong_up_to = self._wrong_up_to if self.known else self._metadata.update_version
        if wrong_up_to is not None:
            try:
                await self._metadata.wait_for_update(wrong_up_to, timeout_ms)
            except Timeout as error:
                raise NotAssigned(str(error)) from error
        self._wrong_up_to = None
        return self._metadata.cluster
