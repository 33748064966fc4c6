"""The SASL exchange frame by frame: each conversation gets the same responses from Apache Kafka and from this broker.

A conversation is what a client sends, in order. Its transcript has each response, or that the broker closed the connection.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from barnabas.client.network.sasl.scram import Scram
from barnabas.protocol import api_keys
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message, serialize
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.registry import BY_NAME
from tests import certificates
from tests.integration.client import secure_kafka
from tests.integration.client.secure_kafka import OTHER_USER, PASSWORD, USER, SecureKafka

TIMEOUT_S = 30
CLOSED = "closed"
GOOD = f"\0{USER}\0{PASSWORD}".encode()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[SecureKafka, SecureKafka], None, None]:
    made = certificates.make(tmp_path_factory.mktemp("certificates"))
    ours, kafkas = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("kafka")
    with secure_kafka.running_ours(ours, made) as our_broker, secure_kafka.running(kafkas, made) as kafka:
        yield kafka, our_broker


class Talk:
    """A connection to one listener, and the transcript of what the broker has answered."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self.transcript: list[Any] = []

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, message: Message, version: int) -> Any:
        """The response; None if the broker has closed the connection."""
        api = BY_NAME[type(message).__name__.removesuffix("Request")]
        frame = self._exchange(b"".join(request_frame(message, api, version, 17, "test")))
        if frame is None:
            return None
        _, reader = parse_response_header(frame, api.response_header_version(version))
        response: Any = api.response.read(reader, version)
        if api.key == api_keys.SASL_HANDSHAKE:
            response.mechanisms.sort()
        self.transcript.append((response.error_code, len(response.api_keys) > 1) if api.key == api_keys.API_VERSIONS else response)
        return response

    def send(self, frame: bytes) -> None:
        """Sends any bytes as a frame, and records the bytes of the response."""
        response = self._exchange(struct.pack(">i", len(frame)) + frame)
        if response is not None:
            self.transcript.append(response)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> None:
        self.ask(SaslHandshakeRequest(mechanism), version)

    def authenticate(self, token: bytes = GOOD, version: int = 2) -> SaslAuthenticateResponse | None:
        response: SaslAuthenticateResponse | None = self.ask(SaslAuthenticateRequest(token), version)
        return response

    def _exchange(self, data: bytes) -> bytes | None:
        try:
            self._socket.sendall(data)
            (size,) = struct.unpack(">i", self._receive(4))
            return self._receive(size)
        except (EOFError, ConnectionError):
            self.transcript.append(CLOSED)
            return None

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            if not (more := self._socket.recv(size - len(received))):
                raise EOFError
            received += more
        return received


def versions_twice(talk: Talk) -> None:
    talk.send(serialize(RequestHeader(api_keys.API_VERSIONS, 99, 17, "test"), 2))
    for _ in range(2):
        talk.ask(ApiVersionsRequest("test", "1.0"), 3)


def invalid_software_name(talk: Talk) -> None:
    talk.ask(ApiVersionsRequest("a b", "1.0"), 3)


def without_handshake(talk: Talk) -> None:
    talk.authenticate()


def metadata_first(talk: Talk) -> None:
    talk.ask(MetadataRequest([MetadataRequestTopic(name="t")]), 12)


def garbage_first(talk: Talk) -> None:
    talk.send(b"\x60\x82\x01\x00 a token")


def unknown_mechanism(talk: Talk) -> None:
    talk.handshake("CRAM-MD5")


def unknown_mechanism_of_an_old_client(talk: Talk) -> None:
    talk.handshake("CRAM-MD5", 0)


def heartbeat_in_the_middle(talk: Talk) -> None:
    talk.handshake()
    talk.ask(HeartbeatRequest("group", 1, "member"), 4)


def versions_in_the_middle(talk: Talk) -> None:
    talk.handshake()
    talk.ask(ApiVersionsRequest("test", "1.0"), 3)


def second_handshake(talk: Talk) -> None:
    talk.handshake()
    talk.handshake()


def large_frame(talk: Talk) -> None:
    talk.send(b"\0" * 524_289)


def password_of_an_old_client(talk: Talk) -> None:
    talk.handshake(version=0)
    talk.send(GOOD)
    talk.ask(ApiVersionsRequest("test", "1.0"), 3)


def wrong_password_of_an_old_client(talk: Talk) -> None:
    talk.handshake(version=0)
    talk.send(b"\0alice\0wrong")


def after_authentication(talk: Talk) -> None:
    talk.ask(ApiVersionsRequest("test", "1.0"), 3)
    talk.handshake()
    for version in range(3):
        talk.authenticate(version=version)
    talk.handshake()


def wrong_scram_password(talk: Talk) -> None:
    scram = Scram("SCRAM-SHA-512", USER, "wrong")
    talk.handshake("SCRAM-SHA-512")
    challenge = talk.authenticate(scram.begin())
    assert challenge is not None
    talk.transcript.pop()  # its nonce is random
    talk.authenticate(scram.answer(challenge.auth_bytes) or b"")


def malformed_scram_message(talk: Talk) -> None:
    talk.handshake("SCRAM-SHA-512")
    talk.authenticate(b"y,,n=alice,r=nonce")


def other_authorization_id_of_scram(talk: Talk) -> None:
    talk.handshake("SCRAM-SHA-512")
    talk.authenticate(f"n,a=admin,n={USER},r=nonce".encode())


def invalid_token(talk: Talk) -> None:
    talk.handshake("OAUTHBEARER")
    talk.authenticate(b"n,,\x01auth=Bearer a.b.c\x01\x01")
    talk.authenticate(b"\x01")


def malformed_token(talk: Talk) -> None:
    talk.handshake("OAUTHBEARER")
    talk.authenticate(b"n,,auth=Bearer")


def plain_with(token: bytes) -> Callable[[Talk], None]:
    def conversation(talk: Talk) -> None:
        talk.handshake()
        talk.authenticate(token)

    conversation.__name__ = f"plain_with_{token!r}"
    return conversation


def renewed(talk: Talk) -> None:
    for _ in range(2):
        talk.handshake()
        talk.authenticate()
    talk.handshake()  # within a second of the one before
    talk.ask(ApiVersionsRequest("test", "1.0"), 3)


def renewed_as_another_user(talk: Talk) -> None:
    talk.handshake()
    talk.authenticate()
    talk.handshake()
    talk.authenticate(f"\0{OTHER_USER}\0{PASSWORD}".encode())


def renewed_with_another_mechanism(talk: Talk) -> None:
    talk.handshake()
    talk.authenticate()
    talk.handshake("SCRAM-SHA-256")
    talk.authenticate(Scram("SCRAM-SHA-256", USER, PASSWORD).begin())


def expired(talk: Talk) -> None:
    talk.handshake()
    response = talk.authenticate()
    assert response is not None
    ends = time.monotonic() + response.session_lifetime_ms / 1000
    while talk.transcript[-1] != CLOSED and time.monotonic() < ends + TIMEOUT_S:
        talk.ask(ApiVersionsRequest("test", "1.0"), 3)
        if talk.transcript[-1] != CLOSED:
            talk.transcript.pop()  # how often it answers depends on the time it takes
    assert time.monotonic() >= ends


TOKENS = [b"\0alice\0wrong", b"\0eve\0wrong", b"admin" + GOOD, b"\0\0x", b"\0alice\0", b"", b"alice", GOOD + b"\0more"]
ON_SASL = [
    versions_twice,
    invalid_software_name,
    without_handshake,
    metadata_first,
    garbage_first,
    unknown_mechanism,
    unknown_mechanism_of_an_old_client,
    heartbeat_in_the_middle,
    versions_in_the_middle,
    second_handshake,
    large_frame,
    password_of_an_old_client,
    wrong_password_of_an_old_client,
    after_authentication,
    wrong_scram_password,
    malformed_scram_message,
    other_authorization_id_of_scram,
    invalid_token,
    malformed_token,
    *map(plain_with, TOKENS),
]
ON_SHORT = [renewed, renewed_as_another_user, renewed_with_another_mechanism, expired]
CASES = [("SASL", conversation) for conversation in ON_SASL] + [("SHORT", conversation) for conversation in ON_SHORT]


@pytest.mark.java
@pytest.mark.parametrize(("listener", "conversation"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_both_brokers_answer_alike(brokers: tuple[SecureKafka, SecureKafka], listener: str, conversation: Callable[[Talk], None]) -> None:
    transcripts = []
    for broker in brokers:
        with Talk(broker.addresses[listener]) as talk:
            conversation(talk)
            transcripts.append(talk.transcript)
    assert transcripts[1] == transcripts[0]
