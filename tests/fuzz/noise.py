"""The fuzzer that knows nothing: bytes of all kinds, plausible beginnings, other protocols, peers that dawdle and peers that leave.

Every life is a run of connections that follows from the seed. Nothing is expected of the broker but that it stays: each connection is read
for a moment, whatever comes, and left.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from random import Random
from struct import pack

from tests.fuzz.target import HOST

LINGER_S = 0.005
API_VERSIONS = pack(">ihhih", 12, 18, 0, 7, 2) + b"me"
SIZES = (0, 1, 3, 4, 5, 8, 12, 100, 1000, 5000)


def live(port: int, seed: int, numbers: range) -> int:
    """One connection for each number; how many there were."""
    for number in numbers:
        random = Random(seed * 7_000_003 + number)
        with socket.create_connection((HOST, port), 30) as connection:
            try:
                random.choice(KINDS)(connection, random)
                if random.random() < 0.5 and select.select([connection], [], [], LINGER_S)[0]:
                    connection.recv(65536)
            except OSError:
                pass  # closed by the broker while we were still talking
    return len(numbers)


def _bytes(connection: socket.socket, random: Random) -> None:
    connection.sendall(random.randbytes(random.choice(SIZES)))


def _frames_of_bytes(connection: socket.socket, random: Random) -> None:
    for _ in range(random.randint(1, 5)):
        body = random.randbytes(random.choice(SIZES))
        connection.sendall(pack(">i", len(body)) + body)


def _plausible_header(connection: socket.socket, random: Random) -> None:
    """An API and a version that may be there, then anything."""
    for _ in range(random.randint(1, 5)):
        header = pack(
            ">hhih", random.randrange(-1, 100), random.randrange(-1, 20), random.randrange(2**31), random.choice((-1, 0, 1, 4, 32767))
        )
        body = header + random.choice((bytes, random.randbytes))(random.choice(SIZES))
        connection.sendall(pack(">i", len(body)) + body)


def _byte_by_byte(connection: socket.socket, random: Random) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(random.randint(1, len(API_VERSIONS))):
        connection.sendall(API_VERSIONS[at : at + 1])


def _half_a_frame(connection: socket.socket, random: Random) -> None:
    connection.sendall(pack(">i", random.choice((100, 1_000_000, 104_857_600))) + API_VERSIONS[4:])
    if random.random() < 0.5:
        connection.shutdown(socket.SHUT_WR)


def _garbage_after_a_request(connection: socket.socket, random: Random) -> None:
    connection.sendall(API_VERSIONS * random.randint(1, 3) + random.randbytes(random.choice(SIZES)))


def _sizes(connection: socket.socket, random: Random) -> None:
    connection.sendall(pack(">i", random.choice((-1, -(2**31), 2**31 - 1, 104_857_601, 0, 1, 7))) + random.randbytes(random.choice(SIZES)))


def _requests_and_gone(connection: socket.socket, random: Random) -> None:
    """Asks and does not wait for the answers: the broker writes to nobody."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    connection.sendall(API_VERSIONS * random.randint(1, 200))


def _tls(connection: socket.socket, random: Random) -> None:
    connection.sendall(CLIENT_HELLO)


def _http(connection: socket.socket, random: Random) -> None:
    connection.sendall(
        random.choice((b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v2/topics HTTP/1.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    )


def _nothing(connection: socket.socket, random: Random) -> None:
    pass


def _client_hello() -> bytes:
    """What a client begins TLS with."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


CLIENT_HELLO = _client_hello()
KINDS: tuple[Callable[[socket.socket, Random], None], ...] = (
    _bytes,
    _frames_of_bytes,
    _plausible_header,
    _byte_by_byte,
    _half_a_frame,
    _garbage_after_a_request,
    _sizes,
    _requests_and_gone,
    _tls,
    _http,
    _nothing,
)
