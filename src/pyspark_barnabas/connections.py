"""The connections of one Python worker to a cluster, kept from task to task.

Spark runs many short tasks in one Python process. A client for each task would cost metadata requests, handshakes and, with SASL or TLS,
much more. Therefore `shared_client` gives all tasks of a process with the same settings the same client: one thread with an event loop,
and a connection to each broker in use. Unused clients are closed at the next call, and their number is bounded. Nothing else in this
package outlives a task.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from barnabas.client.clock import SystemClock
from barnabas.client.config.config import ClientConfig, SharedSettings
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient

if TYPE_CHECKING:
    from pyspark_barnabas.queries.publisher import Publisher

CLIENTS_MAX: Final = 8  # clients with different settings in one process
IDLE_S_MAX: Final = 300.0
TOPIC_IDLE_MS: Final = 300_000
CLOSE_TIMEOUT_S: Final = 5.0

# -1: the system sizes the socket buffer, so that a fetch arrives in few pieces.
DEFAULTS: Final = {"receive.buffer.bytes": "-1", "send.buffer.bytes": "-1", "enable.metrics.push": "false"}

Role = Literal["consumer", "producer"]
T = TypeVar("T")


def _config(role: Role, settings: Mapping[str, object]) -> ClientConfig:
    """Imports only one of the two configs: a task that reads does not load the producer."""
    if role == "consumer":
        from barnabas.client.consumer.config import consumer_config

        return consumer_config(settings, {})
    from barnabas.client.producer.config import producer_config

    return producer_config(settings, {})


class Client:
    """A network client with its metadata, on a thread of its own. `run` and `submit` may be called from any other thread."""

    def __init__(self, settings: Mapping[str, str], role: Role) -> None:
        self.config = _config(role, SharedSettings({**DEFAULTS, **settings}))
        self.config.report_unused()
        clock = SystemClock()
        self.clock = clock
        self.metadata = Metadata(
            self.config,
            clock=clock,
            topic_idle_ms=TOPIC_IDLE_MS,
            allow_auto_topic_creation=role == "producer",
        )
        self.last_used = time.monotonic()
        self.publisher: Publisher | None = None  # made when a query first publishes
        self._thread = LoopThread(f"barnabas-spark-{role}")
        self._thread.start()
        try:
            self.network: NetworkClient = self._thread.run(self._start(clock))
        except BaseException:
            self._thread.close()
            raise

    async def _start(self, clock: SystemClock) -> NetworkClient:
        network = NetworkClient(self.config, self.metadata, clock=clock, metrics=Metrics(clock), metric_group="spark")
        await network.start()
        return network

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs a coroutine on the client's loop and returns its result."""
        return self._thread.run(coroutine, timeout_s)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine on the client's loop without waiting."""
        return self._thread.submit(coroutine)

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._thread.call_soon(callback, *arguments)

    def close(self) -> None:
        """Closes all connections. Only for a client that is not shared."""
        try:
            self._thread.run(self.network.close(), CLOSE_TIMEOUT_S)
        finally:
            self._thread.close(CLOSE_TIMEOUT_S)


class ClientCache:
    """Clients by their settings. `used` counts the holders of a client, so that none is closed while a task uses it."""

    def __init__(self, make: Callable[[Mapping[str, str], Role], Client] = Client, now: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._now = now
        self._clients: dict[tuple[Role, frozenset[tuple[str, str]]], Client] = {}
        self._used: dict[int, int] = {}
        self._lock = threading.Lock()  # a worker has one task at a time, but Spark's own threads may call this too
        self._process_id = os.getpid()

    def acquire(self, settings: Mapping[str, str], role: Role) -> Client:
        with self._lock:
            if self._process_id != os.getpid():  # after a fork: the threads exist only in the parent
                self._clients, self._used, self._process_id = {}, {}, os.getpid()
            self._close_idle()
            key = (role, frozenset(settings.items()))
            client = self._clients.pop(key, None) or self._make(settings, role)
            self._clients[key] = client  # ordered by last use
            client.last_used = self._now()
            self._used[id(client)] = self._used.get(id(client), 0) + 1
            return client

    def release(self, client: Client) -> None:
        with self._lock:
            client.last_used = self._now()
            self._used[id(client)] = max(self._used.get(id(client), 0) - 1, 0)

    def _close_idle(self) -> None:
        now = self._now()
        free = [(key, client) for key, client in self._clients.items() if not self._used.get(id(client))]
        surplus = len(self._clients) - CLIENTS_MAX + 1
        for number, (key, client) in enumerate(free):
            if number < surplus or now - client.last_used > IDLE_S_MAX:
                del self._clients[key]
                self._used.pop(id(client), None)
                client.close()


_cache = ClientCache()


@contextmanager
def shared_client(settings: Mapping[str, str], role: Role = "consumer") -> Generator[Client, None, None]:
    """A context with the process's client for these settings (names without the `kafka.` prefix)."""
    client = _cache.acquire(settings, role)
    try:
        yield client
    finally:
        _cache.release(client)
