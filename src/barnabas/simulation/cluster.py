"""Brokers in a simulated world: each is a process with a disk of its own, and all share one metadata store.

When a process crashes, the next process finds its disk unchanged. When a machine loses power, only synced data is certain to survive. The
session with the metadata store ends when the store has received nothing from the broker for the session timeout.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final

from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.environment import Environment
from barnabas.broker.server.server import BrokerServer
from barnabas.layout.log_end import read_log_end_offset
from barnabas.metadata import paths
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Delete, GetChildren, GetData, R_co, TreeRequest
from barnabas.metadata.znodes.cluster import decode_controller, decode_controller_epoch
from barnabas.metadata.znodes.topics import PartitionState, decode_partition_state
from barnabas.security.new_user import NewUser
from barnabas.simulation.disk import SimulatedFiles
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import SimulatedNetwork
from barnabas.simulation.tree import HOST, SESSION_TIMEOUT_S, SimulatedTree
from barnabas.simulation.world import START_S, World
from barnabas.topic_partition import TopicPartition

PORT: Final = 9092
LOG_DIR: Final = "/data"
TWO_LOG_DIRS: Final = {"log.dirs": f"{LOG_DIR},/other"}  # each on a disk of its own, which can fail alone
SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE})
RESTART_S: Final = 1.0  # after a failed start
_SETTINGS: Final = {
    "log.dirs": LOG_DIR,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "num.recovery.threads.per.data.dir": "1",  # a simulation has no threads
}


class SimulatedClock(Clock):
    def __init__(self, process: ProcessLoop) -> None:
        self._process = process
        self._perf_ns = 0

    def now_ms(self) -> int:
        return int(self._process.wall_s() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._process.time() * 1000)

    def perf_ns(self) -> int:
        """The time of the world stands during a call. A step that is measured takes 20 µs."""
        self._perf_ns += 20_000
        return self._perf_ns


class NoThreads(Executor):
    """The loop runs the work of threads as callbacks. Code that bypasses the loop gets an error."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("There are no threads in a simulation")


class SimulatedBroker:
    def __init__(self, cluster: SimulatedCluster, broker_id: int, settings: Mapping[str, str]) -> None:
        self.id = broker_id
        self.host = f"broker-{broker_id}"
        self.address = cluster.network.add_host(self.host)
        self.clock_offset_s = 0.0  # by how much the wall clock of its machine is ahead
        self.files = SimulatedFiles(lambda: int((START_S + cluster.world.now + self.clock_offset_s) * 1000))
        self.process: ProcessLoop | None = None
        self.server: BrokerServer | None = None
        self.is_serving = False
        self.tree: SimulatedTree | None = None
        self.held: dict[TopicPartition, int] = {}  # the log end offsets when its process ended
        self._cluster = cluster
        self._settings = settings
        self.log_dirs: list[str] = settings.get("log.dirs", LOG_DIR).split(",")

    @property
    def has_offline_dir(self) -> bool:
        """Whether one of several log directories is offline: only a restart brings it back."""
        return len(self.log_dirs) > 1 and self.broker is not None and bool(self.broker.replica_manager.log_manager.offline_dirs)

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def broker(self) -> Broker | None:
        """The broker object, once the server has created it."""
        return None if self.server is None else getattr(self.server, "broker", None)

    def start(self) -> None:
        """Returns when the broker serves requests."""
        self.process = self._new_process()
        self.process.run_until_complete(self._started(self.process))

    def start_soon(self) -> None:
        """Starts while the other processes run on, and something it needs may be missing for a while. A failed start is repeated."""
        if self.process is not None:
            return
        self.process = self._new_process()
        self.process.create_task(self._started(self.process)).add_done_callback(self._restart_if_failed)

    def _new_process(self) -> ProcessLoop:
        return ProcessLoop(self._cluster.world, self._cluster.network, self.host, self.address, self.clock_offset_s)

    def set_clock(self, offset_s: float) -> None:
        """Sets the wall clock of its machine to `offset_s` ahead of the correct time. Monotonic time is not affected."""
        self._cluster.world.note("clock", self.host, offset_s)
        self.clock_offset_s = offset_s
        if self.process is not None:
            self.process.clock_offset_s = offset_s

    def _restart_if_failed(self, start: asyncio.Task[BrokerServer]) -> None:
        if not start.cancelled() and start.exception() is not None and self.process is not None:
            self.kill()
            self._cluster.network.kernel.call_later(RESTART_S, self.start_soon)

    async def _started(self, process: ProcessLoop) -> BrokerServer:
        cluster = self._cluster

        async def tree(_: str) -> SimulatedTree:
            self.tree = SimulatedTree(cluster.tree, cluster.network, process)
            return self.tree

        config = BrokerConfig.from_properties(
            {
                **_SETTINGS,
                **cluster.replication,
                "broker.id": str(self.id),
                "listeners": f"{self._settings.get('security.inter.broker.protocol', 'PLAINTEXT')}://{self.host}:{PORT}",
                **self._settings,
            }
        )
        is_shared = len(cluster.brokers) > 1
        clock, random = SimulatedClock(process), cluster.world.random
        environment = Environment(clock, random, self.files, NoThreads, NoThreads, NoThreads, tree, is_shared)
        self.server = server = BrokerServer(config, environment=environment, new_users=cluster.new_users)
        server.failed.add_done_callback(lambda _: cluster.network.kernel.call_soon(self._give_up, process))
        await server.start()
        self.is_serving = True
        return server

    def _give_up(self, process: ProcessLoop) -> None:
        """The server has reported a fatal error, such as a failed disk: a process supervisor would end it."""
        if self.process is process:
            self._cluster.world.note("gave up", self.host)
            if self.files.refusals and self.files.refusals <= SHORTAGES:
                self._cluster.wrong.append(f"{self.host} took a lack of descriptors for a failed disk")
            self.kill()

    def stop(self) -> None:
        """Stops the broker cleanly."""
        assert self.process is not None and self.server is not None
        self.process.run_until_complete(self.server.shutdown())
        self._end(self.process)

    def stop_soon(self) -> None:
        """Stops cleanly while the other processes run on; the broker may be killed before it has stopped."""
        assert self.process is not None and self.server is not None
        self.is_serving = False
        process = self.process
        stopping = process.create_task(self.server.shutdown())
        stopping.add_done_callback(lambda task: self._cluster.network.kernel.call_soon(self._stopped, process, task))

    def _stopped(self, process: ProcessLoop, stopping: asyncio.Task[None]) -> None:
        if self.process is process and (stopping.cancelled() or stopping.exception() is not None):
            self.kill()
        elif self.process is process:
            self._end(process)

    def end_on_disk(self, partition: TopicPartition) -> int:
        """The end of a log that the broker does not serve, because its log directory has failed or the machine has lost power."""
        with self.files.without_faults():
            directories = [f"{path}/{partition}" for path in self.log_dirs if self.files.exists(f"{path}/{partition}")]
            return max((read_log_end_offset(self.files, directory) for directory in directories), default=0)

    def kill(self) -> None:
        """Ends the process as SIGKILL does."""
        assert self.process is not None
        self._end(self.process)
        self.files = self.files.process_crash()

    def lose_power(self) -> None:
        """Ends the process; data that was not synced may be lost."""
        assert self.process is not None
        self._end(self.process)
        self.held = {}
        self.files = self.files.crash(self._cluster.world.random)

    def _end(self, process: ProcessLoop) -> None:
        if self.broker is not None:
            self.held = {log.partition: log.log_end_offset for log in self.broker.replica_manager.log_manager.logs}
        self.process = self.server = self.tree = None
        self.is_serving = False
        process.crash()


class SimulatedCluster:
    """`settings` apply to all its brokers. `new_users` exist before the first connection."""

    def __init__(self, seed: int, brokers: int = 1, settings: Mapping[str, str] | None = None, new_users: Sequence[NewUser] = ()) -> None:
        self.new_users = new_users
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.tree = LocalTree(lambda: int((START_S + self.world.now) * 1000))
        self._session: LocalSession | None = None  # of the checkers
        self.tree_address = self.network.add_host(HOST)
        factor = str(min(3, brokers))
        self.replication = {
            "default.replication.factor": factor,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": str(max(1, min(3, brokers) - 1)),
            "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
        }
        self.wrong: list[str] = []  # actions that brokers must never take
        self.brokers = {number: SimulatedBroker(self, number, settings or {}) for number in range(1, brokers + 1)}

    def state_of(self, partition: TopicPartition) -> PartitionState | None:
        """The state in the metadata store."""
        return self.written_state_of(partition)[0]

    def written_state_of(self, partition: TopicPartition) -> tuple[PartitionState | None, int]:
        """The state, and the zxid of the write that set it."""
        znode = self._read(GetData(paths.topic_partition_state(*partition)))
        return (None, -1) if znode is None else (decode_partition_state(*partition, znode.data), znode.stat.mzxid)

    @property
    def controller_epoch(self) -> tuple[int, int]:
        """The epoch in the metadata store, and the zxid of the write that set it."""
        znode = self._read(GetData(paths.CONTROLLER_EPOCH))
        return (0, -1) if znode is None else (decode_controller_epoch(znode.data), znode.stat.mzxid)

    def leader_of(self, partition: TopicPartition) -> SimulatedBroker | None:
        state = self.state_of(partition)
        return None if state is None else self.brokers.get(state.leader)

    @property
    def controller(self) -> SimulatedBroker | None:
        znode = self._read(GetData(paths.CONTROLLER))
        return None if znode is None else self.brokers.get(decode_controller(znode.data).broker_id)

    def depose_controller(self) -> None:
        """Deletes the controller's znode, as an operator can: its session lives on, and the controller learns of it by its watch."""
        self._read(Delete(paths.CONTROLLER))

    @property
    def registered(self) -> list[int]:
        children = self._read(GetChildren(paths.BROKER_IDS))
        return [] if children is None else sorted(map(int, children.names))

    def partitions(self) -> list[TopicPartition]:
        """The partitions of all topics in the metadata store."""
        topics = self._read(GetChildren(paths.TOPICS))
        all_partitions = []
        for topic in [] if topics is None else sorted(topics.names):
            partitions = self._read(GetChildren(paths.topic_partitions(topic)))
            all_partitions += [] if partitions is None else [TopicPartition(topic, number) for number in sorted(map(int, partitions.names))]
        return all_partitions

    def _read(self, request: TreeRequest[R_co]) -> R_co | None:
        if self._session is None or not self._session.is_alive:
            self._session = self.tree.open_session_now(lambda _: None)
        (response,) = self._session.handle_now([request])
        return response.value if response.error is None else None

    def process(self, name: str) -> ProcessLoop:
        """A process on a host of its own, for clients."""
        return ProcessLoop(self.world, self.network, name, self.network.add_host(name))
