"""The fuzzer of authentication: hostile frames before SaslHandshake, during PLAIN and SCRAM, after handshake version 0, and after a login.

Each number is a connection to the SASL listener, which follows from the seed. Most damage what a client would send there. A connection that
never logged in asks for Metadata at its end: the broker must not answer it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import select
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from struct import pack

from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.registry import BY_NAME
from barnabas.uuid import Uuid
from tests.fuzz import noise
from tests.fuzz.frames import make_frame
from tests.fuzz.target import HOST, SASL_PASSWORD, SASL_USER, Target

ANSWER_S = 30  # a broker that is alive answers a good login, or closes the connection
LINGER_S = 0.005
RECEIVE_MAX = 524_288  # sasl.server.max.receive.size
METADATA_VERSION = 9
SCRAM, ITERATIONS = "SCRAM-SHA-256", 4096
MECHANISMS = ("PLAIN", SCRAM)
STRANGE_MECHANISMS = ("", "plain", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-1", "PLAIN\x00", "x" * 30_000, "é", "../../etc/passwd")
SCRAM_NUMBER = 1
CODEC_ERRORS = (MalformedMessage, ValueError)


def add_user(target: Target) -> None:
    """The SCRAM user. The one of PLAIN is in the settings of the broker."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", SASL_PASSWORD.encode(), salt, ITERATIONS)
    user = ScramCredentialUpsertion(SASL_USER, SCRAM_NUMBER, ITERATIONS, salt, salted)
    with target.client() as client:
        response = client.ask(AlterUserScramCredentialsRequest(upsertions=[user]), 0)
    assert [result.error_code for result in response.results] == [0]


def live(port: int, seed: int, numbers: range, ids: Mapping[str, Uuid]) -> list[str]:
    """One connection for each number. What was found: connections that were let in without a login."""
    findings = []
    for number in numbers:
        random = Random(seed * 11_000_003 + number)
        with socket.create_connection((HOST, port), ANSWER_S) as stream:
            peer = SaslPeer(stream, number)
            try:
                random.choice(KINDS)(peer, random, partial(_frame, seed, number, ids))
                if not peer.is_logged_in and peer.gets_metadata():
                    findings.append(f"frame {number} of the SASL fuzzer was let in without a login")
                select.select([stream], [], [], LINGER_S)
            except (OSError, EOFError):
                pass  # closed by the broker
    return findings


def _frame(seed: int, number: int, ids: Mapping[str, Uuid]) -> bytes:
    return make_frame(seed, number, ids).data


AnyFrame = Callable[[], bytes]  # a frame of the fuzzer that knows the schemas


class SaslPeer:
    """One connection to the SASL listener. Its number is the correlation id of all that it sends."""

    def __init__(self, stream: socket.socket, number: int) -> None:
        self.stream = stream
        self.is_logged_in = False
        self._number = number

    def send(self, data: bytes) -> None:
        self.stream.sendall(data)

    def ask(self, message: Message, version: int) -> bytes:
        self.send(self.framed(message, version))
        return self.receive()

    def framed(self, message: Message, version: int) -> bytes:
        api = BY_NAME[type(message).__name__.removesuffix("Request")]
        return b"".join(request_frame(message, api, version, self._number, "fuzz"))

    def receive(self) -> bytes:
        """The next frame without its size. Raises EOFError."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def handshake(self, mechanism: str, version: int = 1) -> None:
        self.ask(SaslHandshakeRequest(mechanism), version)

    def token(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        answer = self.ask(SaslAuthenticateRequest(token), version)
        _, reader = parse_response_header(answer, BY_NAME["SaslAuthenticate"].response_header_version(version))
        return SaslAuthenticateResponse.read(reader, version)

    def log_in(self, mechanism: str, random: Random) -> None:
        if mechanism == SCRAM:
            answer = self.token(_scram_final(self, random))
        else:
            self.handshake(mechanism)
            answer = self.token(f"\0{SASL_USER}\0{SASL_PASSWORD}".encode())
        assert answer.error_code == 0, f"a good login got error {answer.error_code}: {answer.error_message}"
        self.is_logged_in = True

    def gets_metadata(self) -> bool:
        """Whether a response comes that names a broker, after whatever is still to be read before it."""
        self.send(self.framed(MetadataRequest([]), METADATA_VERSION))
        while True:
            answer = self.receive()
            try:
                correlation_id, reader = parse_response_header(answer, BY_NAME["Metadata"].response_header_version(METADATA_VERSION))
                if correlation_id == self._number and MetadataResponse.read(reader, METADATA_VERSION).brokers:
                    return True
            except CODEC_ERRORS:
                continue

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.stream.recv(min(count - len(data), 1 << 16))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def _any_request(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    """A request before the handshake, whole or damaged."""
    peer.send(any_frame())


def _noise(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    random.choice(noise.KINDS)(peer.stream, random)
    peer.stream.shutdown(socket.SHUT_WR)


def _too_large(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    """More than an unauthenticated connection may send, or as much, and never the end of it."""
    if random.random() < 0.5:
        peer.handshake(random.choice(MECHANISMS), random.choice((0, 1)))
    size = random.choice((RECEIVE_MAX, RECEIVE_MAX + 1, 104_857_600, 2**31 - 1, -1))
    peer.send(pack(">i", size) + random.randbytes(random.choice((0, 100, 60_000))))
    peer.stream.shutdown(socket.SHUT_WR)


def _strange_mechanism(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    peer.handshake(random.choice(STRANGE_MECHANISMS), random.choice((0, 1)))
    peer.token(b"\x00user\x00password")


def _request_during_the_exchange(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    peer.handshake(random.choice(MECHANISMS))
    if random.random() < 0.5:
        peer.token(_scram_first(random))
    peer.send(any_frame())


def _handshake_again(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    for _ in range(random.randint(2, 4)):
        peer.handshake(random.choice(MECHANISMS), random.choice((0, 1)))


def _damaged_plain(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    peer.handshake("PLAIN")
    peer.token(_damaged(random, b"\x00" + SASL_USER.encode() + b"\x00guessed"), random.choice((0, 1, 2)))


def _tokens_without_headers(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    """After a handshake of version 0, a frame is a token."""
    mechanism = random.choice(MECHANISMS)
    peer.handshake(mechanism, 0)
    token = _scram_first(random) if mechanism == SCRAM else b"\x00" + SASL_USER.encode() + b"\x00guessed"
    token = _damaged(random, token) if random.random() < 0.5 else token
    peer.send(pack(">i", len(token)) + token)
    if random.random() < 0.5:
        peer.receive()
        final = _damaged(random, b"c=biws,r=x,p=AAAA")
        peer.send(pack(">i", len(final)) + final)


def _damaged_scram_first(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    peer.handshake(SCRAM)
    peer.token(_damaged(random, _scram_first(random)))


def _damaged_scram_final(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    """The right final message, but for its damage: another nonce, another proof, or anything."""
    final = _scram_final(peer, random)
    damaged = _damaged(random, final)
    peer.token(damaged if damaged != final else b"")


def _good_login_then_anything(peer: SaslPeer, random: Random, any_frame: AnyFrame) -> None:
    """A session of PLAIN or SCRAM, then hostile frames, among them a login within the session."""
    peer.log_in(random.choice(MECHANISMS), random)
    again = (peer.framed(SaslHandshakeRequest("PLAIN"), 1), peer.framed(SaslAuthenticateRequest(b"x"), 2))
    for _ in range(random.randint(1, 3)):
        peer.send(random.choice((any_frame(), *again)))


def _scram_first(random: Random) -> bytes:
    name = random.choice((SASL_USER, "nobody", "=2C=3D", "=", "x" * 1000, ""))
    extension = random.choice(("", ",tokenauth=true", ",a=b", ",m=mandatory", "," * 50))
    return f"n,{random.choice(('', 'a=other'))},n={name},r=fyko+d2lbbFgONRv9qkxdawL{extension}".encode()


def _scram_final(peer: SaslPeer, random: Random) -> bytes:
    """What a client sends that knows the password."""
    bare = f"n={SASL_USER},r={random.getrandbits(64):x}".encode()
    peer.handshake(SCRAM)
    server_first = peer.token(b"n,," + bare).auth_bytes
    parts = dict(part.split(b"=", 1) for part in server_first.split(b","))
    salted = hashlib.pbkdf2_hmac("sha256", SASL_PASSWORD.encode(), b64decode(parts[b"s"]), int(parts[b"i"]))
    without_proof = b"c=biws,r=" + parts[b"r"]
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, server_first, without_proof)), "sha256")
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return without_proof + b",p=" + b64encode(proof)


def _damaged(random: Random, token: bytes) -> bytes:
    kind = random.randrange(6)
    if kind == 0:
        return token[: random.randrange(len(token))]
    if kind == 1:
        return token + random.choice((b"\x00", b",", b"=", b"\xff\xfe", random.randbytes(60_000)))
    if kind == 2:
        at = random.randrange(len(token))
        return token[:at] + random.choice((b"\x00" * 100, b"," * 1000, b"\xc0\x80", b"r=,", b"i=0")) + token[at:]
    if kind == 3:
        return token.replace(b"=", b"") if b"=" in token else token.replace(b"\x00", b"")
    if kind == 4:
        return random.randbytes(random.choice((0, 1, 100, 500_000)))
    flipped = bytearray(token)
    for _ in range(random.choice((1, 1, 3))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


KINDS: tuple[Callable[[SaslPeer, Random, AnyFrame], None], ...] = (
    _any_request,
    _any_request,
    _noise,
    _too_large,
    _strange_mechanism,
    _request_during_the_exchange,
    _request_during_the_exchange,
    _handshake_again,
    _damaged_plain,
    _tokens_without_headers,
    _tokens_without_headers,
    _damaged_scram_first,
    _damaged_scram_final,
    _damaged_scram_final,
    _good_login_then_anything,
    _good_login_then_anything,
)
