"""The config part of a broker: a real metadata store, real logs, a metadata cache, and the handlers called without a network."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from types import SimpleNamespace, TracebackType
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.config.config_manager import ConfigManager
from barnabas.broker.config.log_levels import LogLevels
from barnabas.broker.scheduling.loop_lag import LoopLag
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.storage.disk.files import Files
from barnabas.storage.log_manager import LogManager
from tests.unit.broker.handlers.asking import request_of


class TestClock(Clock):
    """Clocks that stand until they are moved."""

    __test__ = False

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000
        self.elapsed_ms = 0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.elapsed_ms


class ConfigBroker:
    """To be used in a `with`: it has a loop of its own, on which everything here runs."""

    def __init__(self, directory: Path, properties: Mapping[str, str], topics: Sequence[str] = ()) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = TestClock()
        self.config = DynamicBrokerConfig(BrokerConfig.from_properties(properties))
        self.tree = LocalTree(self.clock.now_ms)
        self.client = TreeClient(self.tree, lambda: None)
        self.admin = AdminTree(self.client, Random(1))
        self.log_manager = LogManager(Files(), [str(directory)], self.config.current.log_config())
        self.cache = MetadataCache(self.config.static.broker_id)
        self.loggers = logging.Manager(logging.RootLogger(logging.ERROR))
        self.loop_lag = LoopLag()
        self.topics = list(topics)
        self.manager: ConfigManager
        self.access = Access(None)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def __enter__(self) -> ConfigBroker:
        self.run(self._start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.run(self.manager.close())
        self.run(self.client.close())
        self.log_manager.shutdown(self.clock.monotonic_ms())
        self.loop.close()

    async def _start(self) -> None:
        await self.client.connect()
        for topic in self.topics:
            await self.admin.create_topic(topic, {0: (self.config.static.broker_id,)})
        self.cache.update(self._metadata())
        await self.start_manager()

    async def start_manager(self) -> None:
        self.make_manager()
        await self.manager.start()

    def make_manager(self) -> None:
        self.manager = ConfigManager(
            broker_id=self.config.static.broker_id,
            tree=self.client,
            admin_tree=self.admin,
            config=self.config,
            log_manager=self.log_manager,
            clock=self.clock,
            log_levels=LogLevels(self.loggers),
            loop_lag=self.loop_lag,
        )

    def ask(self, handler: str, message: Message, version: int) -> Message:
        """What a handler answers, as it arrives at the client."""
        broker = SimpleNamespace(configs=self.manager, metadata_cache=self.cache, turns=Turns(), access=self.access)
        request = request_of(message, version)
        answer: Message = self.run(import_module(f"barnabas.broker.handlers.{handler}").handle(broker, request).result())
        return parse(type(answer), serialize(answer, version), version)

    def _metadata(self) -> UpdateMetadataRequest:
        broker_id = self.config.static.broker_id
        states = [
            UpdateMetadataTopicState(
                topic_name=topic,
                partition_states=[UpdateMetadataPartitionState(partition_index=0, leader=broker_id, replicas=[broker_id], isr=[broker_id])],
            )
            for topic in self.topics
        ]
        return UpdateMetadataRequest(topic_states=states, live_brokers=[UpdateMetadataBroker(id=broker_id)])
