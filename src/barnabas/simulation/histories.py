"""Histories of a cluster under faults: clients run while brokers are killed, sleep, lose power and are cut off; then all faults are healed,
and the checkers compare what was promised with what is stored.

The seed determines everything. There are writers and readers of one topic, transactions in another, and a group that reads the committed
ones.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.simulation.applications import REBALANCE_S, TRANSACTIONAL_ID, ApplicationEnvironment, GroupNotes, Member, TransactionalWriter
from barnabas.simulation.checkers import (
    ClusterWatch,
    EnoughReplicas,
    accounts_are_right,
    all_know_the_same,
    all_promises_kept,
    committed_values,
    group_saw,
    in_sync,
    log_bytes,
    log_of,
    replicas_agree,
    transactions_are_whole,
    values_of,
)
from barnabas.simulation.checkpoint_watch import CheckpointWatch
from barnabas.simulation.client import SimulatedClient
from barnabas.simulation.cluster import PORT, TWO_LOG_DIRS, SimulatedClock, SimulatedCluster
from barnabas.simulation.conversations import Unanswered
from barnabas.simulation.plots import FaultInjector
from barnabas.simulation.security import (
    APPLICATION,
    GUEST,
    OPERATOR,
    STRANGER,
    AclChanges,
    Visitor,
    acls_of_application,
    client_settings,
    disobedient,
    login_of,
    new_users,
)
from barnabas.simulation.security import SETTINGS as SECURITY_SETTINGS
from barnabas.simulation.workload import PartitionReader, PartitionWriter, Promises
from barnabas.simulation.world import Stuck
from barnabas.topic_partition import TopicPartition

TOPIC: Final = "t"
TRANSACTIONS: Final = "x"
GROUP: Final = "g"
BROKERS: Final = 3
MEMBERS: Final = 2
MIN_INSYNC_REPLICAS: Final = 2
LOOK_S: Final = 0.1
FAULTS_SHOWN_MAX: Final = 20
SETTLED_WITHIN_S: Final = 300.0
ACLS_WITHIN_S: Final = 20.0  # after all else has settled
SETTLED_LOOK_S: Final = 0.5
ANSWERED_WITHIN_S: Final = 3.5  # less than the clients' timeouts, except those of a closing client
# Shorter than real timeouts: more happens in the same time.
_SETTINGS: Final = {
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "1000",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.response.max.bytes": "300",  # a few batches: a follower that lags keeps lagging for a while
    "replica.fetch.max.bytes": "200",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    # Code that compares wall-clock time with timestamps is switched off, so that a wrong clock does not matter.
    "log.retention.ms": "-1",
    "offsets.retention.minutes": str(2**31 - 1),
    "producer.id.expiration.ms": str(2**31 - 1),
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "min.insync.replicas": str(MIN_INSYNC_REPLICAS),
    "unclean.leader.election.enable": "false",
    "add.partitions.to.txn.retry.backoff.max.ms": "20",  # how long EndTxn waits for markers before its response
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.min.session.timeout.ms": "1000",
}


@dataclass
class HistoryOutcome:
    seed: int
    acknowledged: int
    committed: int
    steps: int
    trace: int
    events: list[str]
    wrong: list[str] = field(default_factory=list)
    is_secured: bool = False
    has_two_disks: bool = False
    is_throttled: bool = False

    def __str__(self) -> str:
        details = "\n  ".join([*self.events, *self.wrong[:FAULTS_SHOWN_MAX]])
        return (
            f"seed {self.seed}: {self.acknowledged} records acknowledged, {self.committed} transactions committed, {len(self.wrong)} faults"
            f"\n  {details}\nto see it again, with what the brokers log: python -m barnabas.simulation --seeds {self.seed} --log"
            f"{' --secured' if self.is_secured else ''}{' --two-disks' if self.has_two_disks else ''}"
            f"{' --throttled' if self.is_throttled else ''}"
        )


class History:
    """`is_secured`: with SASL and an authorizer (`security`). `has_two_disks`: brokers have two log directories that can fail.
    `is_throttled`: an operator throttles replication and limits clients."""

    def __init__(
        self,
        seed: int,
        partitions: int = 2,
        *,
        settings: dict[str, str] | None = None,
        is_secured: bool = False,
        has_two_disks: bool = False,
        is_throttled: bool = False,
    ) -> None:
        self._is_secured = is_secured
        self._has_two_disks = has_two_disks
        self._is_throttled = is_throttled
        more = {**(SECURITY_SETTINGS if is_secured else {}), **(TWO_LOG_DIRS if has_two_disks else {})}
        self.cluster = SimulatedCluster(seed, BROKERS, {**_SETTINGS, **more, **(settings or {})}, new_users() if is_secured else ())
        self.world = self.cluster.world
        self.partitions = [TopicPartition(TOPIC, number) for number in range(partitions)]
        self.promises = {partition: Promises() for partition in self.partitions}
        self.transactions = [TopicPartition(TRANSACTIONS, number) for number in range(partitions)]
        self.group = GroupNotes()
        self.clients = self.cluster.process("clients")
        self._admin_tasks: list[asyncio.Task[object]] = []  # requests of operators
        self.faults = FaultInjector(
            self.cluster, [*self.partitions, *self.transactions], self.clients.host, self._client, self._start_admin_task, is_throttled
        )
        self._servers = [(broker.host, PORT) for broker in self.cluster.brokers.values()]
        self._clients: list[SimulatedClient] = []
        self._watch = ClusterWatch(self.cluster)
        self._checkpoints = CheckpointWatch(self.cluster)
        self._enough = EnoughReplicas(self.cluster, MIN_INSYNC_REPLICAS)
        servers = ",".join(f"{host}:{port}" for host, port in self._servers)
        self._environment = ApplicationEnvironment(
            servers, SimulatedClock(self.clients), self.world.random, client_settings(APPLICATION) if is_secured else None
        )
        self._transactional = TransactionalWriter(self._environment, TRANSACTIONS, partitions)
        self._writers: list[asyncio.Task[None]] = []
        self._members: list[asyncio.Task[None]] = []
        self._acls: AclChanges | None = None
        self._visitors: list[Visitor] = []
        self._created_at = math.inf  # when all brokers had the topics in their metadata
        self._quiet_since = math.inf  # when everything was healed and running

    def begin(self, records: int, pause_s: float, transactions: int = 0) -> None:
        """Starts brokers, topics with a replica on each, a writer and a reader per partition of one topic, and a group for the other."""
        for broker in self.cluster.brokers.values():
            broker.start()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)
        for topic in (TOPIC, TRANSACTIONS):
            self.clients.run_until_complete(self._client().create_topic(topic, len(self.partitions), BROKERS))
        self._wait_until(self._metadata_is_current)
        self._created_at = self.world.now
        if self._is_secured:
            self._begin_security()
        for number, partition in enumerate(self.partitions):
            writer = PartitionWriter(self._client(APPLICATION), *partition, self.promises[partition], f"w{number}", self._acknowledged)
            self._writers.append(self.clients.create_task(writer.write(records, pause_s)))
            self.clients.create_task(PartitionReader(self._client(APPLICATION), *partition, self.promises[partition]).read())
        if transactions:
            self._writers.append(self.clients.create_task(self._transactional.write(transactions, 2 * pause_s)))
            protocol = self.world.random.choice(["classic", "consumer"])
            for number in range(MEMBERS):
                member = Member(self._environment, GROUP, protocol, f"m{number}", [TRANSACTIONS], self.group)
                self._members.append(self.clients.create_task(member.live()))

    def _begin_security(self) -> None:
        self._acls = AclChanges(self._client(), TOPIC, self.world.random)
        self.clients.run_until_complete(self._acls.create(acls_of_application((TOPIC, TRANSACTIONS), GROUP, TRANSACTIONAL_ID)))
        self._visitors = [Visitor(self._client(user), TOPIC, has_access=user == GUEST) for user in (GUEST, STRANGER)]
        for visitor in self._visitors:
            self.clients.create_task(visitor.visit())
        self._writers.append(self.clients.create_task(self._acls.make()))

    def run(self, faults: int, between_s: tuple[float, float] = (0.5, 6.0)) -> None:
        for _ in range(faults):
            self.world.run_for(self.world.random.uniform(*between_s))
            for wait_s in self.faults.plot():
                self.world.run_for(wait_s)
                self._note_recovered()

    def end(self) -> HistoryOutcome:
        """Heals all faults, waits until everything is written and replicated, and compares."""
        self.faults.heal()
        wrong: list[str] = []
        try:
            self._wait_until(self._all_serve)
            self._quiet_since = self.world.now
            if self._acls is not None:
                self._acls.end()
            self._wait_until(self._admin_tasks_are_done)
            self.clients.run_until_complete(self._assign_to_all())
            self._wait_until(self._all_is_written)
            if self.faults.clocks_were_set and self._members:
                self.clients.run_until_complete(self._transactional.settle())
            self._wait_until(self._is_settled)
            self.world.run_for(2.0)
            self._wait_until(self._acls_are_obeyed, ACLS_WITHIN_S)
            self._wait_until(self._metadata_is_current)  # the controller may be about to elect preferred leaders
        except Exception as stuck:
            wrong.append(f"{type(stuck).__name__}: {stuck}; {self._described()}")
        wrong += self._compare()
        acknowledged = sum(len(promises.acknowledged) for promises in self.promises.values())
        committed = sum(len(committed_values(data)[0]) for data in self._contents(self.transactions).values()) // len(self.transactions)
        outcome = HistoryOutcome(
            self.world.seed,
            acknowledged,
            committed,
            self.world.steps,
            self.world.trace,
            self.faults.events,
            wrong,
            self._is_secured,
            self._has_two_disks,
            self._is_throttled,
        )
        self.world.end()
        return outcome

    def _metadata_is_current(self) -> bool:
        return not all_know_the_same(self.cluster)

    def _acls_are_obeyed(self) -> bool:
        is_allowed = None if self._acls is None else self._acls.is_allowed
        return is_allowed is None or not disobedient(self.cluster, TOPIC, is_allowed, self.clients.host)

    def _all_serve(self) -> bool:
        """Starts the brokers that do not run or were about to stop."""
        self.faults.restart_with_repaired_disks()
        for broker in self.cluster.brokers.values():
            self.faults.start(broker)
        return all(broker.is_serving for broker in self.cluster.brokers.values())

    def _admin_tasks_are_done(self) -> bool:
        """A late request of an operator must not follow the reassignment that comes next."""
        return all(task.done() for task in self._admin_tasks)

    def _wait_until(self, condition: Callable[[], bool], within_s: float = SETTLED_WITHIN_S) -> None:
        deadline = self.world.now + within_s
        while not condition():
            if self.world.now > deadline:
                raise Stuck(f"seed {self.world.seed}: {condition.__name__} did not come within {within_s:g} s")
            self.world.run_for(SETTLED_LOOK_S)

    async def _assign_to_all(self) -> None:
        """Reassignments may have left partitions with fewer replicas: assigns them to all brokers."""
        admin = self._client()
        for partition in (*self.partitions, *self.transactions):
            while not await admin.reassign(partition, list(self.cluster.brokers)):
                await asyncio.sleep(SETTLED_LOOK_S)

    def _compare(self) -> list[str]:
        watched = [*self.cluster.wrong, *self._watch.wrong, *self._checkpoints.wrong, *self._enough.wrong]
        wrong = [*watched, *(f"{name}: {error!r}" for name, error in self.world.failures)]
        for task in (*self._writers, *self._members):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                wrong.append(f"a client failed: {error!r}")
        wrong += [f"{request}, and nothing was broken" for request in self._unanswered()]
        for visitor in self._visitors:
            wrong += visitor.wrong
        for client in self._clients:
            wrong += [f"a broker denied that there is {topic} at {at:.3f}" for at, topic in client.denied if at > self._created_at]
        wrong += all_know_the_same(self.cluster)
        wrong += accounts_are_right(self.cluster)
        for partition in (*self.partitions, *self.transactions):
            wrong += replicas_agree(self.cluster, partition)
        for partition in self.partitions:
            for broker in self.cluster.brokers.values():
                log = log_of(broker, partition)
                held = [] if log is None else values_of(log_bytes(log))
                wrong += [f"{partition} on {broker.host}: {violation}" for violation in all_promises_kept(held, self.promises[partition])]
        wrong += self._transactional.wrong
        contents = self._contents(self.transactions)
        wrong += transactions_are_whole(list(contents.values()), self._transactional.endings)
        wrong += group_saw(self.group, contents) if self._members else []
        return wrong

    def _unanswered(self) -> list[Unanswered]:
        """Requests without a response since everything was healed and running. JoinGroup may have to wait for other members."""
        requests = self.cluster.network.conversations.unanswered(self._quiet_since, ANSWERED_WITHIN_S)
        return [request for request in requests if request.waited_s > REBALANCE_S or request.api not in ("JoinGroup", "SyncGroup")]

    def _contents(self, partitions: list[TopicPartition]) -> dict[TopicPartition, bytes]:
        """The log of the first replica; another check compares the replicas."""
        contents = {}
        for partition in partitions:
            log = next(filter(None, (log_of(broker, partition) for broker in self.cluster.brokers.values())), None)
            contents[partition] = b"" if log is None else log_bytes(log)
        return contents

    def _client(self, user: str = OPERATOR) -> SimulatedClient:
        client = SimulatedClient(self._servers, login_of(user) if self._is_secured else None)
        self._clients.append(client)
        return client

    def _start_admin_task(self, request: Coroutine[Any, Any, object]) -> None:
        self._admin_tasks.append(self.clients.create_task(request))

    def _look(self) -> None:
        self._watch.look()
        self._checkpoints.look()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)

    def _acknowledged(self, partition: TopicPartition, offset: int) -> None:
        if self.faults.lost_power is None:
            self._enough.acknowledged(partition, offset)

    # Progress

    def _note_recovered(self) -> None:
        lost = self.faults.lost_power
        if lost is not None and self.cluster.brokers[lost].is_serving and self._all_in_sync():
            self.faults.note_in_sync()

    def _all_in_sync(self) -> bool:
        """Whether every replica of every partition is in the ISR, in the metadata store and on the leader."""
        for partition in self.cluster.partitions():
            state = self.cluster.state_of(partition)
            leaders = in_sync(self.cluster, partition)
            if state is None or len(state.isr) != BROKERS or list(leaders) != [state.leader] or len(leaders[state.leader]) != BROKERS:
                return False
        return True

    def _all_is_written(self) -> bool:
        return all(task.done() for task in self._writers)

    def _is_settled(self) -> bool:
        self.faults.restart_with_repaired_disks()  # a thread may report its failed write late
        if not self._all_in_sync():
            return False
        for partition in (*self.partitions, *self.transactions):
            logs = [log_of(broker, partition) for broker in self.cluster.brokers.values()]
            if None in logs or len({(log.log_end_offset, log.high_watermark) for log in logs if log is not None}) != 1:
                return False
        return not self._members or self._group_is_done()

    def _group_is_done(self) -> bool:
        contents = self._contents(self.transactions)
        decoded = {partition: committed_values(data) for partition, data in contents.items()}
        return all(
            not pending and all(offset in self.group.read.get(partition, {}) for offset, _ in visible)
            for partition, (visible, pending) in decoded.items()
        )

    def _described(self) -> str:
        lines = []
        for number, broker in self.cluster.brokers.items():
            if broker.broker is None:
                lines.append(f"{number}: {'starting' if broker.is_running else 'not running'}")
                continue
            online = broker.broker.replica_manager.online
            lines += [f"{number}: {partition!r}" for key, partition in online.items() if key in self.partitions or key in self.transactions]
        return "; ".join(lines)


def play(
    seed: int,
    faults: int = 4,
    records: int = 50,
    pause_s: float = 0.4,
    transactions: int = 20,
    is_secured: bool = False,
    has_two_disks: bool = False,
    is_throttled: bool = False,
) -> HistoryOutcome:
    """Plays one history from its beginning to its end."""
    history = History(seed, is_secured=is_secured, has_two_disks=has_two_disks, is_throttled=is_throttled)
    history.begin(records, pause_s, transactions)
    history.run(faults)
    return history.end()
