"""The admin side of a broker: a real tree, cache, purgatory and manager, handlers asked without a network, and a controller by hand.

The controller does what it is told to, when it is told to: so a test can look at what happens before it has acted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from random import Random
from types import SimpleNamespace
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.security.access import Access
from barnabas.broker.topics.admin_manager import AdminManager
from barnabas.broker.topics.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.protocol.message import Message
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import request_of

DEADLINE_SECONDS = 60


class HandClock(Clock):
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class AdminBroker:
    """`racks` says which brokers there are; this one is the first of them. To be made with `await AdminBroker.start()`."""

    def __init__(self, properties: Mapping[str, str], racks: Mapping[int, str | None], controller: Any) -> None:
        self.racks = racks
        self.clock = HandClock()
        self.config = DynamicBrokerConfig(BrokerConfig.from_properties(properties))
        self.client = TreeClient(LocalTree(self.clock.now_ms), lambda: None)
        self.admin_tree = AdminTree(self.client, Random(1))
        self.cache = MetadataCache(min(racks))
        self.purgatory: DelayedOperationPurgatory[DelayedOperation] = DelayedOperationPurgatory("topic", self.clock.ms)
        self.controller = controller
        self.admin = AdminManager(
            self.client, self.admin_tree, self.cache, self.controller, self.config, self.clock, self.purgatory, Random(2)
        )
        self.quotas = ClientQuotas(self.config.static.number)
        self.waiting = asyncio.Event()
        self.tell()

    @classmethod
    async def start(
        cls, properties: Mapping[str, str] | None = None, racks: Mapping[int, str | None] | None = None, controller: Any = None
    ) -> AdminBroker:
        """`controller` is for those who ask it for elections."""
        broker = cls(
            properties or {},
            {0: None} if racks is None else racks,
            controller or SimpleNamespace(is_active=True, cordoned_brokers=frozenset()),
        )
        await broker.client.connect()
        for path in paths.PERSISTENT_PATHS:
            await broker.client.ensure(path)
        return broker

    def ask(self, api: str, message: Message, version: int) -> asyncio.Task[Any]:
        """The handler at work; `waiting` is set when the request goes into the purgatory."""
        self.waiting.clear()
        request = request_of(message, version, self.waiting.set)
        parts = SimpleNamespace(
            admin=self.admin,
            metadata_cache=self.cache,
            config=self.config,
            access=Access(None),
            clock=self.clock,
            quotas=self.quotas,
        )
        return asyncio.ensure_future(import_module(f"barnabas.broker.handlers.{api}").handle(parts, request).result())

    async def ask_and_act(self, api: str, message: Message, version: int) -> Any:
        """The answer, with a controller that acts as soon as it is waited for."""
        task = self.ask(api, message, version)
        waiting = asyncio.ensure_future(self.waiting.wait())
        await asyncio.wait([task, waiting], timeout=DEADLINE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not task.done():
            await self.act()
        return await asyncio.wait_for(task, DEADLINE_SECONDS)

    async def act(self) -> None:
        """Leaders for everything there is, and deletion of everything that is marked."""
        marked = await self.client.children(paths.DELETE_TOPICS)
        assert marked is not None
        for name in marked.names:
            await self.forget(name)
            await self.remove(name)
        await self.lead()

    async def lead(self, leader: int = 0) -> None:
        """The controller elects leaders, and all brokers are told."""
        topics = await self.admin_tree.topic_assignments(await self.admin_tree.all_topics())
        self.tell(
            *(
                UpdateMetadataTopicState(
                    name,
                    topic.topic_id or Uuid.ZERO,
                    [
                        UpdateMetadataPartitionState("", number, 1, leader, replicas=list(topic.partitions[number].replicas))
                        for number in topic.partitions
                    ],
                )
                for name, topic in topics.items()
            )
        )

    async def forget(self, name: str) -> None:
        """All brokers are told that a topic is being deleted."""
        gone = [UpdateMetadataPartitionState("", number, 1, LEADER_DURING_DELETE) for number in self.cache.partitions(name)]
        self.tell(UpdateMetadataTopicState(name, self.cache.topic_id(name) or Uuid.ZERO, gone))

    async def remove(self, name: str) -> None:
        """The controller has finished with a topic: its nodes go, the mark last."""
        for path in (paths.topic(name), f"/config/topics/{name}", paths.delete_topic(name)):
            await self.client.delete_recursive(path)

    def tell(self, *topics: UpdateMetadataTopicState) -> None:
        brokers = [
            UpdateMetadataBroker(broker_id, endpoints=[UpdateMetadataEndpoint(9092, "h", "PLAINTEXT")], rack=rack)
            for broker_id, rack in self.racks.items()
        ]
        self.cache.update(UpdateMetadataRequest(0, controller_epoch=1, topic_states=list(topics), live_brokers=brokers))

    def pass_time(self, ms: int) -> None:
        self.clock.ms += ms
        self.purgatory.advance(self.clock.ms)
