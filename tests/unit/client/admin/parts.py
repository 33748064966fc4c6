"""A cluster that answers from a script, for an admin client without a network: a clock that moves only when somebody waits, and every
message written and read as it would be on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.calls import Calls, CallSettings
from barnabas.client.admin.cluster.cluster import BROKER_ENDPOINTS
from barnabas.client.admin.config import admin_config
from barnabas.client.cluster import Node
from barnabas.errors import KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.protocol.registry import APIS, BY_NAME

T = TypeVar("T")
Reply = Message | KafkaError
BACKOFF_MS = 100


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


class FakeClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class ConstantBackoff:
    def backoff_ms(self, attempts: int) -> int:
        return BACKOFF_MS


class FakeCluster:
    """Brokers 1, 2 and 3, of which 1 is controller. `on` gives the replies to a request: one after the other, the last again and again.

    Partitions are led by the broker `leader_of`, groups and transactional ids coordinated by `coordinator_of`, unless a reply says else.
    """

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.known = True
        self.alive = [1, 2, 3]
        self.controller_ids = [1]
        self.sent: list[tuple[int, Message]] = []
        self.updates_requested = 0
        self.limits: dict[int, int] = {}  # the newest version the brokers take, by API
        self.leader_of: dict[tuple[str, int], int] = {}
        self.coordinator_of: dict[str, int] = {}
        self._replies: dict[type[Message], list[Callable[[int, Any], Reply]]] = {}

    def on(self, request: type[Message], *replies: Reply | Callable[[int, Any], Reply]) -> None:
        self._replies[request] = [_constant(reply) if not callable(reply) else reply for reply in replies]

    def requests(self, kind: type[T]) -> list[T]:
        return [request for _, request in self.sent if isinstance(request, kind)]

    def nodes_asked(self, kind: type[Message]) -> list[int]:
        return [node_id for node_id, request in self.sent if isinstance(request, kind)]

    # Channel

    async def send(
        self, node_id: int, request: Message, *, timeout_ms: int | None = None, version: int | None = None, max_version: int | None = None
    ) -> Message:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        newest = min(self.limits.get(api.key, api.highest_version), api.highest_version if max_version is None else max_version)
        if newest < 0:
            raise UnsupportedVersion(f"The node does not support {api.name}")
        heard = parse(api.request, serialize(request, newest), newest)
        self.sent.append((node_id, heard))
        reply = self._reply(node_id, heard)
        if isinstance(reply, KafkaError):
            raise reply
        return parse(api.response, serialize(reply, newest), newest)

    def version_of(self, node_id: int, api_key: int) -> int | None:
        return self.limits.get(api_key, APIS[api_key].highest_version)

    # Directory

    async def any_node(self, timeout_ms: int) -> int:
        return self.alive[-1]

    async def controller(self, timeout_ms: int) -> int:
        return self.controller_ids.pop(0) if len(self.controller_ids) > 1 else self.controller_ids[0]

    async def brokers(self, timeout_ms: int) -> list[int]:
        return list(self.alive)

    def node(self, node_id: int) -> Node:
        return Node(node_id, f"host{node_id}", 9092)

    def request_update(self) -> None:
        self.updates_requested += 1

    async def sleep(self, seconds: float) -> None:
        self.clock.ms += round(seconds * 1000)

    def _reply(self, node_id: int, request: Message) -> Reply:
        replies = self._replies.get(type(request))
        if replies:
            return (replies.pop(0) if len(replies) > 1 else replies[0])(node_id, request)
        if isinstance(request, MetadataRequest):
            return self.metadata([topic.name or "" for topic in request.topics or ()])
        if isinstance(request, FindCoordinatorRequest):
            keys = request.coordinator_keys
            return FindCoordinatorResponse(coordinators=[Coordinator(key, self.coordinator_of.get(key, 2), "h", 1) for key in keys])
        if isinstance(request, ApiVersionsRequest):
            return BY_NAME["ApiVersions"].response()
        raise AssertionError(f"no reply to {request}")

    def metadata(self, topics: Iterable[str]) -> MetadataResponse:
        by_topic: dict[str, list[MetadataResponsePartition]] = {topic: [] for topic in topics}
        for (topic, partition), leader in self.leader_of.items():
            if topic in by_topic:
                by_topic[topic].append(MetadataResponsePartition(0, partition, leader))
        return MetadataResponse(topics=[MetadataResponseTopic(0, topic, partitions=rows) for topic, rows in by_topic.items()])


class ScriptedAdmin(AsyncAdmin):
    """The admin client on such a cluster."""

    def __init__(self, cluster: FakeCluster, settings: CallSettings | None = None) -> None:
        self._config = admin_config({"bootstrap.servers": "localhost:9092"})
        self._uses_controllers = False
        self._endpoint_type = BROKER_ENDPOINTS
        self._telemetry = None
        self._calls = Calls(cluster, cluster, settings or CallSettings(), cluster.clock, ConstantBackoff(), cluster.sleep)


def _constant(reply: Reply) -> Callable[[int, Any], Reply]:
    return lambda _, __: reply
