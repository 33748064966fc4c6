"""Many connections: 5,000 are open, and 500 of them produce at once, each with one request in flight.

The figures are the number of errors, the requests that the producing connections complete together, and the memory of the broker with no
connection, with all connections, and after they are closed.
"""

from __future__ import annotations

import resource
import selectors
import time

from benchmarks import peers
from benchmarks.generator import Batch
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import Client

CONNECTIONS = 5000
PRODUCING = 500
SECONDS = 10
TOPICS = 50
_FILES_MAX = 20_000


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES_MAX, max(_FILES_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with peers.barnabas(files_max=_FILES_MAX) as peer:
        return _measure(peer)


def _measure(peer: Peer) -> list[Figure | Comparison]:
    topics = [f"connections-{number}" for number in range(TOPICS)]
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics(topics)
    before = peer.memory_mb()
    clients = [_open(peer) for _ in range(CONNECTIONS)]
    opened = peer.memory_mb()
    requests = _produce(clients[:PRODUCING], topics)
    producing = peer.memory_mb()
    errors = sum(not _answers(client) for client in clients)
    for client in clients:
        client.socket.close()
    _await_descriptors(peer)
    return [
        Figure(f"errors on {CONNECTIONS:,} connections, {PRODUCING} producing", "errors", 0, [errors], smaller_is_better=True),
        Figure(f"requests answered to {PRODUCING} producers", "requests/s", 1, [requests / SECONDS]),
        Figure("memory with no connection", "MB", 120, [before], smaller_is_better=True),
        Figure(f"memory with {CONNECTIONS:,} open", "MB", 250, [opened], smaller_is_better=True),
        Figure(f"memory after {PRODUCING} produced for {SECONDS} s", "MB", 250, [producing], smaller_is_better=True),
        Figure("memory after all have gone", "MB", 250, [peer.memory_mb()], smaller_is_better=True),
    ]


def _open(peer: Peer) -> Client:
    client = Client("127.0.0.1", peer.port)
    assert _answers(client), "A new connection got no answer"
    return client


def _answers(client: Client) -> bool:
    try:
        return bool(client.metadata([]).brokers)
    except OSError:
        return False


def _produce(clients: list[Client], topics: list[str]) -> int:
    """Every client sends its next request when the one before is answered; a failing one raises."""
    batch = Batch.of_bytes(100, 1024)
    frames = {id(client): batch.produce_frame(topics[number % len(topics)]) for number, client in enumerate(clients)}
    selector = selectors.DefaultSelector()
    answered = 0
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.socket.sendall(frames[id(client)])
    until = time.perf_counter() + SECONDS
    waiting = len(clients)
    while waiting:
        for key, _ in selector.select(1):
            client = key.data
            client.receive()
            if client.frame_at_hand() is None:
                continue
            answered += 1
            if time.perf_counter() < until:
                client.socket.sendall(frames[id(client)])
            else:
                waiting -= 1
    return answered


def _await_descriptors(peer: Peer) -> None:
    """Until the broker has noticed that they are gone."""
    until = time.perf_counter() + 30
    while peer.open_files() > CONNECTIONS // 2 and time.perf_counter() < until:
        time.sleep(0.05)
