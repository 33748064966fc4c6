"""A broker that says what a test wants: it parses requests as ours does, and answers each API with a function of the test's.

By default it knows ApiVersions and Metadata, and is the only broker, number 1, of its cluster.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol import framing
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from barnabas.protocol.registry import APIS
from tests.client_network import network, on_loop

Answer = Callable[[Any, int], "Message | bytes | None"]  # of the request and its version; None for silence, bytes are sent as they are


ASK = DescribeClusterRequest()
ANSWER = DescribeClusterResponse(cluster_id="the cluster")  # of `described`


class Close(Exception):
    """Raised by an answer to close the connection instead."""


class Peer:
    """`async with Peer() as peer`: `peer.answers["DescribeCluster"] = lambda request, version: …`."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer] = {"ApiVersions": self._api_versions, "Metadata": self._metadata}
        self.requests: list[tuple[str, int, Message]] = []  # what came: the API, its version, the message
        self.came = asyncio.Event()  # set with each request
        self.connected = 0  # how often somebody has
        self.versions = {key: (api.lowest_version, api.stable_version) for key, api in APIS.items()}
        self.brokers: list[tuple[int, int]] | None = None  # id and port of those that Metadata tells of
        self.features: dict[str, int] = {}
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Peer:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the port and all connections."""
        assert self._server is not None
        self._server.close()
        self.drop()
        await self._server.wait_closed()

    def drop(self) -> None:
        """Resets all connections."""
        for writer in list(self._open):
            writer.transport.abort()

    def count(self, api: str) -> int:
        return sum(name == api for name, _, _ in self.requests)

    async def wait_for(self, api: str, count: int = 1) -> None:
        while self.count(api) < count:
            self.came.clear()
            await self.came.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        self._open.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                self._answer(framing.parse_request(await reader.readexactly(size)), writer)
        except (Close, asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, request: framing.RequestFrame, writer: asyncio.StreamWriter) -> None:
        message = request.message()
        self.requests.append((request.api.name, request.version, message))
        self.came.set()
        answer = self.answers[request.api.name](message, request.version)
        if isinstance(answer, bytes):
            writer.write(answer)
        elif answer is not None:
            header_version = request.api.response_header_version(request.version)
            frame = framing.response_frame(answer, request.correlation_id, request.version, header_version)
            writer.write(b"".join(frame))  # type: ignore[arg-type]

    def _api_versions(self, request: Message, version: int) -> Message:
        return ApiVersionsResponse(0, [ApiVersion(key, low, high) for key, (low, high) in self.versions.items()])

    def _metadata(self, request: Message, version: int) -> Message:
        brokers = [(1, self.port)] if self.brokers is None else self.brokers
        return MetadataResponse(
            0, [MetadataResponseBroker(node_id, "127.0.0.1", port) for node_id, port in brokers], "cluster", brokers[0][0]
        )


def described(request: Message, version: int) -> Message:
    return ANSWER


def closing(request: Message, version: int) -> Message:
    raise Close


def silent(request: Message, version: int) -> None:
    return None


async def linked(client: NetworkClient, node_id: int = 1) -> None:
    """Waits until broker 1 is known and connected."""
    await client.metadata.wait_for_update(0, 5000)
    while not client.ready(node_id):
        await client.wait_for_change(1000)


def with_peer(test: Callable[[Peer, NetworkClient], Any], prepare: Callable[[Peer], None] = lambda peer: None, **settings: Any) -> None:
    """Runs a test with a peer, and a client that is about to connect to it."""

    async def run() -> None:
        async with Peer() as peer:
            peer.answers["DescribeCluster"] = described
            prepare(peer)
            async with network(peer.address, **settings) as client:
                await test(peer, client)

    on_loop(run)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port
