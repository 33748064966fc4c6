"""Histories of a cluster under faults: clients go on while brokers are killed, sleep, lose power and are cut off; then all is healed, and
everything that was promised is looked for.

A seed decides everything. There are writers and readers of one topic, transactions in another, and a group that reads what those committed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.simulation.applications import REBALANCE_S, ApplicationEnvironment, GroupNotes, Member, TransactionalWriter
from barnabas.simulation.checkers import (
    EnoughReplicas,
    Watch,
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
from barnabas.simulation.cluster import PORT, SimulatedClock, SimulatedCluster
from barnabas.simulation.conversations import Unanswered
from barnabas.simulation.faults import Faults
from barnabas.simulation.workload import Promises, Reader, Writer
from barnabas.simulation.world import Stuck
from barnabas.topic_partition import TopicPartition

TOPIC: Final = "t"
TRANSACTIONS: Final = "x"
GROUP: Final = "g"
BROKERS: Final = 3
MEMBERS: Final = 2
MIN_INSYNC_REPLICAS: Final = 2
LOOK_S: Final = 0.1
FAULTS_TOLD_MAX: Final = 20
SETTLED_WITHIN_S: Final = 300.0
SETTLED_LOOK_S: Final = 0.5
ANSWERED_WITHIN_S: Final = 3.5  # less than clients wait, but for those that leave
# Shorter than real ones: a history has more of everything in the same time.
_SETTINGS: Final = {
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "1000",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.response.max.bytes": "300",  # a few batches: who is behind stays behind for a while
    "replica.fetch.max.bytes": "200",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    # What compares wall time with timestamps does nothing in these histories, however wrong a clock is.
    "log.retention.ms": "-1",
    "offsets.retention.minutes": str(2**31 - 1),
    "producer.id.expiration.ms": str(2**31 - 1),
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "min.insync.replicas": str(MIN_INSYNC_REPLICAS),
    "unclean.leader.election.enable": "false",
    "add.partitions.to.txn.retry.backoff.max.ms": "20",  # so long EndTxn waits for markers before it is answered
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.min.session.timeout.ms": "1000",
}


@dataclass
class Outcome:
    seed: int
    acknowledged: int
    committed: int
    steps: int
    trace: int
    events: list[str]
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = "\n  ".join([*self.events, *self.wrong[:FAULTS_TOLD_MAX]])
        return (
            f"seed {self.seed}: {self.acknowledged} records acknowledged, {self.committed} transactions committed, {len(self.wrong)} faults"
            f"\n  {told}\nto see it again, with what the brokers log: python -m barnabas.simulation --seeds {self.seed} --log"
        )


class History:
    def __init__(self, seed: int, partitions: int = 2, *, settings: dict[str, str] | None = None) -> None:
        self.cluster = SimulatedCluster(seed, BROKERS, {**_SETTINGS, **(settings or {})})
        self.world = self.cluster.world
        self.partitions = [TopicPartition(TOPIC, number) for number in range(partitions)]
        self.promises = {each: Promises() for each in self.partitions}
        self.transactions = [TopicPartition(TRANSACTIONS, number) for number in range(partitions)]
        self.group = GroupNotes()
        self.clients = self.cluster.process("clients")
        self._asked: list[asyncio.Task[object]] = []  # of the cluster, by its operators
        self.faults = Faults(self.cluster, [*self.partitions, *self.transactions], self.clients.host, self._client, self._ask)
        self._servers = [(broker.host, PORT) for broker in self.cluster.brokers.values()]
        self._asking: list[SimulatedClient] = []
        self._watch = Watch(self.cluster)
        self._checkpoints = CheckpointWatch(self.cluster)
        self._enough = EnoughReplicas(self.cluster, MIN_INSYNC_REPLICAS)
        servers = ",".join(f"{host}:{port}" for host, port in self._servers)
        self._environment = ApplicationEnvironment(servers, SimulatedClock(self.clients), self.world.random)
        self._transactional = TransactionalWriter(self._environment, TRANSACTIONS, partitions)
        self._writers: list[asyncio.Task[None]] = []
        self._members: list[asyncio.Task[None]] = []
        self._created_at = math.inf  # when all brokers knew of the topics
        self._quiet_since = math.inf  # when everything was healed and running

    def begin(self, records: int, pause_s: float, transactions: int = 0) -> None:
        """Brokers, topics with as many replicas, a writer and a reader for each partition of one, and a group that reads the other."""
        for broker in self.cluster.brokers.values():
            broker.start()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)
        for topic in (TOPIC, TRANSACTIONS):
            self.clients.run_until_complete(self._client().create_topic(topic, len(self.partitions), BROKERS))
        self._wait_until(self._all_know_the_topics)
        self._created_at = self.world.now
        for number, each in enumerate(self.partitions):
            writer = Writer(self._client(), *each, self.promises[each], f"w{number}", self._acknowledged)
            self._writers.append(self.clients.create_task(writer.write(records, pause_s)))
            self.clients.create_task(Reader(self._client(), *each, self.promises[each]).read())
        if transactions:
            self._writers.append(self.clients.create_task(self._transactional.write(transactions, 2 * pause_s)))
            protocol = self.world.random.choice(["classic", "consumer"])
            for number in range(MEMBERS):
                member = Member(self._environment, GROUP, protocol, f"m{number}", [TRANSACTIONS], self.group)
                self._members.append(self.clients.create_task(member.live()))

    def run(self, faults: int, between_s: tuple[float, float] = (0.5, 6.0)) -> None:
        for _ in range(faults):
            self.world.run_for(self.world.random.uniform(*between_s))
            for wait_s in self.faults.plot():
                self.world.run_for(wait_s)
                self._note_recovered()

    def end(self) -> Outcome:
        """Heals everything, waits until all is written and all replicas have it, and compares."""
        self.faults.heal()
        wrong: list[str] = []
        try:
            self._wait_until(self._all_serve)
            self._quiet_since = self.world.now
            self._wait_until(self._all_asked)
            self.clients.run_until_complete(self._assign_to_all())
            self._wait_until(self._all_is_written)
            if self.faults.clocks_were_set and self._members:
                self.clients.run_until_complete(self._transactional.settle())
            self._wait_until(self._is_settled)
            self.world.run_for(2.0)
            self._wait_until(self._all_know_the_topics)  # the controller may be about to give leaders back
        except Exception as stuck:
            wrong.append(f"{type(stuck).__name__}: {stuck}; {self._described()}")
        wrong += self._compare()
        acknowledged = sum(len(each.acknowledged) for each in self.promises.values())
        committed = sum(len(committed_values(data)[0]) for data in self._contents(self.transactions).values()) // len(self.transactions)
        outcome = Outcome(self.world.seed, acknowledged, committed, self.world.steps, self.world.trace, self.faults.events, wrong)
        self.world.end()
        return outcome

    def _all_know_the_topics(self) -> bool:
        return not all_know_the_same(self.cluster)

    def _all_serve(self) -> bool:
        """Those that do not run, or were just about to stop, are started."""
        for broker in self.cluster.brokers.values():
            self.faults.start(broker)
        return all(broker.is_serving for broker in self.cluster.brokers.values())

    def _all_asked(self) -> bool:
        """What operators have asked for must not come after what is asked for now."""
        return all(task.done() for task in self._asked)

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = self.world.now + SETTLED_WITHIN_S
        while not is_so():
            if self.world.now > deadline:
                raise Stuck(f"seed {self.world.seed}: {is_so.__name__} did not come within {SETTLED_WITHIN_S:g} s")
            self.world.run_for(SETTLED_LOOK_S)

    async def _assign_to_all(self) -> None:
        """Reassignments may have left partitions with fewer replicas."""
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
        wrong += [f"{each}, and nothing was broken" for each in self._unanswered()]
        for client in self._asking:
            wrong += [f"a broker denied that there is {topic} at {at:.3f}" for at, topic in client.denied if at > self._created_at]
        wrong += all_know_the_same(self.cluster)
        wrong += accounts_are_right(self.cluster)
        for partition in (*self.partitions, *self.transactions):
            wrong += replicas_agree(self.cluster, partition)
        for partition in self.partitions:
            for broker in self.cluster.brokers.values():
                log = log_of(broker, partition)
                held = [] if log is None else values_of(log_bytes(log))
                wrong += [f"{partition} on {broker.host}: {each}" for each in all_promises_kept(held, self.promises[partition])]
        wrong += self._transactional.wrong
        contents = self._contents(self.transactions)
        wrong += transactions_are_whole(list(contents.values()), self._transactional.endings)
        wrong += group_saw(self.group, contents) if self._members else []
        return wrong

    def _unanswered(self) -> list[Unanswered]:
        """By anybody, since everything was healed and running. Who joins a group may have to wait for the others."""
        found = self.cluster.network.conversations.unanswered(self._quiet_since, ANSWERED_WITHIN_S)
        return [each for each in found if each.waited_s > REBALANCE_S or each.api not in ("JoinGroup", "SyncGroup")]

    def _contents(self, partitions: list[TopicPartition]) -> dict[TopicPartition, bytes]:
        """Of the first replica: whether the others have the same is another question."""
        found = {}
        for partition in partitions:
            log = next(filter(None, (log_of(broker, partition) for broker in self.cluster.brokers.values())), None)
            found[partition] = b"" if log is None else log_bytes(log)
        return found

    def _client(self) -> SimulatedClient:
        client = SimulatedClient(self._servers)
        self._asking.append(client)
        return client

    def _ask(self, asking: Coroutine[Any, Any, object]) -> None:
        self._asked.append(self.clients.create_task(asking))

    def _look(self) -> None:
        self._watch.look()
        self._checkpoints.look()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)

    def _acknowledged(self, partition: TopicPartition, offset: int) -> None:
        if self.faults.lost_power is None:
            self._enough.acknowledged(partition, offset)

    # What is known

    def _note_recovered(self) -> None:
        lost = self.faults.lost_power
        if lost is not None and self.cluster.brokers[lost].is_serving and self._all_in_sync():
            self.faults.note_in_sync()

    def _all_in_sync(self) -> bool:
        """Every replica of every partition, as the tree has it and as its leader sees it."""
        for partition in self.cluster.partitions():
            state = self.cluster.state_of(partition)
            leaders = in_sync(self.cluster, partition)
            if state is None or len(state.isr) != BROKERS or list(leaders) != [state.leader] or len(leaders[state.leader]) != BROKERS:
                return False
        return True

    def _all_is_written(self) -> bool:
        return all(task.done() for task in self._writers)

    def _is_settled(self) -> bool:
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
        told = []
        for number, broker in self.cluster.brokers.items():
            if broker.broker is None:
                told.append(f"{number}: {'starting' if broker.is_running else 'not running'}")
                continue
            online = broker.broker.replica_manager.online
            told += [f"{number}: {found!r}" for key, found in online.items() if key in self.partitions or key in self.transactions]
        return "; ".join(told)


def play(seed: int, faults: int = 4, records: int = 50, pause_s: float = 0.4, transactions: int = 20) -> Outcome:
    """One history from its beginning to its end."""
    history = History(seed)
    history.begin(records, pause_s, transactions)
    history.run(faults)
    return history.end()
