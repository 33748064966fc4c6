"""Brokers in a simulated world: each a process with a disk of its own, all on one metadata tree.

What survives what: a process that crashes leaves its disk as the next process finds it, a machine that loses power leaves what was synced;
its session with the tree ends when the tree has not heard of it for the session timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.server import BrokerServer
from barnabas.broker.surroundings import Surroundings
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Watcher
from barnabas.simulation.disk import SimulatedFiles
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import SimulatedNetwork
from barnabas.simulation.world import World

PORT: Final = 9092
SESSION_TIMEOUT_S: Final = 6.0
LOG_DIR: Final = "/data"
_SETTINGS: Final = {
    "log.dirs": LOG_DIR,
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "num.recovery.threads.per.data.dir": "1",  # in turn: there are no threads here
}


class SimulatedClock(Clock):
    def __init__(self, process: ProcessLoop) -> None:
        self._process = process

    def now_ms(self) -> int:
        return int(self._process.wall_s() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._process.time() * 1000)


class NoThreads(Executor):
    """The loop runs what would go to threads; whoever goes past the loop is wrong here."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("There are no threads in a simulation")


class SharedTree:
    """The one tree as a process sees it: closing it ends the sessions of that process and of nobody else."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree
        self.sessions: list[LocalSession] = []

    async def open_session(self, watcher: Watcher) -> LocalSession:
        session = self._tree.open_session_now(watcher)
        self.sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self.sessions:
            session.close_now()


class SimulatedBroker:
    def __init__(self, cluster: SimulatedCluster, broker_id: int, settings: Mapping[str, str]) -> None:
        self.id = broker_id
        self.host = f"broker-{broker_id}"
        self.address = cluster.network.add_host(self.host)
        self.files = SimulatedFiles(lambda: int(cluster.world.now * 1000))
        self.process: ProcessLoop | None = None
        self.server: BrokerServer | None = None
        self._cluster = cluster
        self._settings = settings
        self._tree: SharedTree | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        """Returns when it serves."""
        cluster = self._cluster
        self.process = ProcessLoop(cluster.world, cluster.network, self.host, self.address)
        self.server = self.process.run_until_complete(self._started(self.process))

    async def _started(self, process: ProcessLoop) -> BrokerServer:
        self._tree = SharedTree(self._cluster.tree)
        config = BrokerConfig.from_properties(
            {**_SETTINGS, "broker.id": str(self.id), "listeners": f"PLAINTEXT://{self.host}:{PORT}", **self._settings}
        )
        surroundings = Surroundings(SimulatedClock(process), self._cluster.world.random, self.files, NoThreads, self._opened_tree)
        server = BrokerServer(config, surroundings=surroundings)
        await server.start()
        return server

    async def _opened_tree(self, _: str) -> SharedTree:
        assert self._tree is not None
        return self._tree

    def stop(self) -> None:
        """Cleanly."""
        assert self.process is not None and self.server is not None
        self.process.run_until_complete(self.server.shutdown())
        self._end(self.process)

    def kill(self) -> None:
        """As SIGKILL does."""
        assert self.process is not None
        self._end(self.process)
        self.files = self.files.process_crash()
        self._expire_later()

    def lose_power(self) -> None:
        """What was not synced may be lost."""
        assert self.process is not None
        self._end(self.process)
        self.files = self.files.crash(self._cluster.world.random)
        self._expire_later()

    def _end(self, process: ProcessLoop) -> None:
        self.process = self.server = None
        process.crash()

    def _expire_later(self) -> None:
        tree = self._tree
        assert tree is not None
        for session in tree.sessions:
            self._cluster.network.kernel.call_later(SESSION_TIMEOUT_S, session.expire)


class SimulatedCluster:
    """`settings` are of all its brokers."""

    def __init__(self, seed: int, brokers: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.tree = LocalTree(lambda: int(self.world.now * 1000))
        self.brokers = {number: SimulatedBroker(self, number, settings or {}) for number in range(1, brokers + 1)}

    def process(self, name: str) -> ProcessLoop:
        """Another process, on a host of its own: a client."""
        return ProcessLoop(self.world, self.network, name, self.network.add_host(name))
