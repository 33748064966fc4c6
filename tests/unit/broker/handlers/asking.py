"""A client without a network: its request goes as bytes to the real dispatcher and handler, and their bytes come back as a response.

The broker it asks has the parts that a test gives it, and no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import fields
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.requests.request import Request
from barnabas.broker.scheduling.loop_lag import LoopLag
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.broker.security.session import Session
from barnabas.broker.topics.features import FeatureLevels
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.network.exchange import Exchange, Peer
from barnabas.protocol.framing import SIZE_PREFIX, parse_request, parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.protocol.registry import BY_NAME
from barnabas.security.principal import ANONYMOUS
from barnabas.uuid import Uuid
from tests.unit.frames import joined

M = TypeVar("M", bound=Message)

TIMEOUT_S = 60
CLUSTER_ID = "QzrQ8LsRTAG5hPrlEPNqTw"


def a_broker(*topics: UpdateMetadataTopicState, settings: Mapping[str, str] | None = None, **parts: Any) -> Broker:
    """A broker with id 0, which is alone, leads everything and is the controller; with a tree that nobody has written to."""
    cache = MetadataCache(0)
    cache.update(update(*topics))
    tree = TreeClient(LocalTree(now_ms=lambda: 0), lambda: None)
    config = BrokerConfig({"broker.id": "0", "log.dirs": "/data", **(settings or {})})
    given: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "broker_id": 0,
        "config": DynamicBrokerConfig(config),
        "clock": Clock(),
        "random": Random(0),
        "tree": tree,
        "metadata_cache": cache,
        "features": FeatureLevels(tree),
        "turns": Turns(),
        "loop_lag": LoopLag(),
        "access": Access(None),
        "quotas": ClientQuotas(config.number),
    }
    return Broker(**{field.name: None for field in fields(Broker)} | given | parts)


def no_quotas() -> ClientQuotas:
    return ClientQuotas(BrokerConfig({}).number)


def update(
    *topics: UpdateMetadataTopicState, brokers: tuple[UpdateMetadataBroker, ...] = (), controller_id: int = 0
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id, topic_states=list(topics), live_brokers=list(brokers) or [alive(0)])


def alive(broker_id: int, *listeners: str, rack: str | None = None) -> UpdateMetadataBroker:
    endpoints = [UpdateMetadataEndpoint(9092 + broker_id, f"host{broker_id}", listener) for listener in listeners or ("PLAINTEXT",)]
    return UpdateMetadataBroker(broker_id, endpoints=endpoints, rack=rack)


def topic(name: str, partitions: int = 1, leader: int = 0, topic_id: Uuid | None = None) -> UpdateMetadataTopicState:
    states = [UpdateMetadataPartitionState("", index, 1, leader, 7, [0], 3, [0], []) for index in range(partitions)]
    return UpdateMetadataTopicState(name, topic_id or id_of(name), states)


def id_of(name: str) -> Uuid:
    return Uuid(name.encode()[:16].ljust(16, b"."))


def request_of(message: Message, version: int, on_wait: Callable[[], None] = lambda: None) -> Request[Any]:
    """A request as the dispatcher makes it; `on_wait` is called when it leaves the queue."""
    api = BY_NAME[type(message).__name__.removesuffix("Request")]
    header = parse_request(b"".join(request_frame(message, api, version, 17, "test"))[SIZE_PREFIX:])
    peer = SimpleNamespace(
        id="test",
        remote_ip="127.0.0.1",
        session=Session(ANONYMOUS, "127.0.0.1"),
        listener_name="PLAINTEXT",
        answered=lambda: None,
        throttle=lambda until_ms: None,
        request_left_queue=lambda size: on_wait(),
    )
    return Request(Exchange(cast("Peer", peer), 10, False, 0), header, message)


class Closed(Exception):
    """The broker closed the connection instead of answering."""


async def ask(broker: Broker, request: Message, answer: type[M], version: int, listener_name: str = "PLAINTEXT") -> M:
    """What a client gets for its request; raises what the dispatcher raises, which closes a connection, and Closed."""
    api = BY_NAME[type(request).__name__.removesuffix("Request")]
    frame = b"".join(request_frame(request, api, version, 17, "test"))[SIZE_PREFIX:]
    return read(await exchange(broker, frame, listener_name), answer, version)


async def exchange(broker: Broker, frame: bytes, listener_name: str = "PLAINTEXT") -> bytes:
    """The frame that answers a frame, both without their sizes."""
    return await dispatched(RequestDispatcher(broker), frame, listener_name)


async def dispatched(dispatcher: RequestDispatcher, frame: bytes, listener_name: str = "PLAINTEXT") -> bytes:
    answered = asyncio.Event()
    peer = SimpleNamespace(
        id="test",
        remote_ip="127.0.0.1",
        session=None,
        client_software=None,
        extra_info={"peername": ("127.0.0.1", 50_000)}.get,
        listener_name=listener_name,
        answered=answered.set,
        throttle=lambda until_ms: None,
        request_left_queue=lambda size: None,
        pipelining_resumed=lambda: None,
    )
    pending = Exchange(cast("Peer", peer), len(frame), False, 0)
    dispatcher.dispatch(pending, frame)
    await asyncio.wait_for(answered.wait(), TIMEOUT_S)
    if pending.closes:
        raise Closed
    return joined(pending.response or ())[SIZE_PREFIX:]


def read(frame: bytes, answer: type[M], version: int) -> M:
    api = BY_NAME[answer.__name__.removesuffix("Response")]
    correlation_id, reader = parse_response_header(frame, api.response_header_version(version))
    assert correlation_id == 17
    message = answer.read(reader, version)
    reader.finish()
    return cast("M", message)


def asked(broker: Broker, request: Message, answer: type[M], version: int, listener_name: str = "PLAINTEXT") -> M:
    """The same for tests that have nothing else to wait for."""
    return asyncio.run(ask(broker, request, answer, version, listener_name))
