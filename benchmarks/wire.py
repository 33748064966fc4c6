"""A client as thin as can be: requests as messages or as prebuilt frames over a blocking socket, responses in their order.

What it costs itself is part of every figure, the same for both brokers; so it parses nothing that a figure does not need.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.registry import BY_NAME

R = TypeVar("R", bound=Message)

CLIENT_ID = "bench"
METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7
DELETE_TOPICS_VERSION = 5


class Client:
    """`authority` is the file of the certificate authority; with it the connection has TLS."""

    def __init__(
        self, host: str, port: int, timeout: float = 60, authority: str | None = None, client_id: str = CLIENT_ID, source: str = ""
    ) -> None:
        self.client_id = client_id
        self.socket = socket.create_connection((host, port), timeout, (source, 0))
        if self.socket.getsockname() == self.socket.getpeername():  # the system has chosen the port of the server for this end
            self.socket.close()
            raise ConnectionRefusedError("Nobody listens there: the connection has met itself")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._receive_flags = int(socket.MSG_WAITALL)
        if authority is not None:
            self.socket = ssl.create_default_context(cafile=authority).wrap_socket(self.socket, server_hostname=host)
            self._receive_flags = 0  # TLS knows none
        self._received = bytearray()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: Message, version: int) -> Any:
        """The response to a request, parsed."""
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        self.socket.sendall(b"".join(request_frame(request, api, version, 1, self.client_id)))
        _, reader = parse_response_header(self.next_frame(), api.response_header_version(version))
        return api.response.read(reader, version)

    def metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        requested = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        return cast("MetadataResponse", self.ask(MetadataRequest(requested, allow_auto_topic_creation=False), METADATA_VERSION))

    def create_topics(self, topics: Sequence[str], partitions: int = 1, configs: dict[str, str] | None = None, replicas: int = 1) -> None:
        """Creates them and waits until each has its leaders."""
        wanted = [
            CreatableTopic(name, partitions, replicas, [], [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()])
            for name in topics
        ]
        response: CreateTopicsResponse = self.ask(CreateTopicsRequest(wanted, 60_000), CREATE_TOPICS_VERSION)
        for topic in response.topics:
            if topic.error_code:
                raise RuntimeError(f"Creating {topic.name}: error {topic.error_code} {topic.error_message}")
        while any(partition.leader_id < 0 for topic in self.metadata(topics).topics for partition in topic.partitions):
            pass

    def delete_topics(self, topics: Sequence[str]) -> None:
        self.ask(DeleteTopicsRequest(topic_names=list(topics), timeout_ms=60_000), DELETE_TOPICS_VERSION)

    def next_frame(self) -> bytes:
        """The next response, without its size."""
        while True:
            frame = self.frame_at_hand()
            if frame is not None:
                return frame
            self.receive()

    def next_of(self, into: memoryview) -> int:
        """Receives the next response, however large, into a buffer that is used again and again, and gives its size."""
        if self._received:
            raise RuntimeError("Something was received that nobody has asked for")
        size_prefix = memoryview(bytearray(4))
        self._fill(size_prefix)
        size = int.from_bytes(size_prefix, "big")
        self._fill(into[:size])
        return size

    def _fill(self, into: memoryview) -> None:
        filled = 0
        while filled < len(into):
            count = self.socket.recv_into(into[filled:], 0, self._receive_flags)
            if not count:
                raise ConnectionError("The broker has closed the connection")
            filled += count

    def receive(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("The broker has closed the connection")
        self._received += data

    def frame_at_hand(self) -> bytes | None:
        received = self._received
        if len(received) < 4:
            return None
        size = int.from_bytes(received[:4], "big")
        if len(received) < 4 + size:
            return None
        frame = bytes(received[4 : 4 + size])
        del received[: 4 + size]
        return frame
