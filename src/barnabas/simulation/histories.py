"""Histories of a cluster under faults: writers and readers go on while brokers are killed, lose power, and are cut off; then all is healed,
and everything that was promised is looked for.

A seed decides everything. What happens stays within what Kafka promises to survive: nobody is elected out of sync, and when a replica has
lost what it had not flushed, the others are left alone until it is in sync again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.tree import GetChildren
from barnabas.simulation.checkers import LeadershipWatch, all_promises_kept, in_sync, log_bytes, log_of, replicas_agree, values_of
from barnabas.simulation.client import SimulatedClient
from barnabas.simulation.cluster import PORT, SimulatedBroker, SimulatedCluster
from barnabas.simulation.workload import Promises, Reader, Writer
from barnabas.topic_partition import TopicPartition

TOPIC: Final = "t"
BROKERS: Final = 3
LOOK_S: Final = 0.05
FAULTS_TOLD_MAX: Final = 20
SETTLED_WITHIN_S: Final = 300.0
# Shorter than real ones: a history has more of everything in the same time.
_SETTINGS: Final = {"replica.lag.time.max.ms": "3000", "replica.fetch.wait.max.ms": "200", "replica.fetch.backoff.ms": "200"}


@dataclass
class Outcome:
    seed: int
    acknowledged: int
    steps: int
    trace: int
    events: list[str]
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = "\n  ".join([*self.events, *self.wrong[:FAULTS_TOLD_MAX]])
        return f"seed {self.seed}: {self.acknowledged} records acknowledged, {len(self.wrong)} faults\n  {told}"


class History:
    def __init__(self, seed: int, partitions: int = 2, *, settings: dict[str, str] | None = None) -> None:
        self.cluster = SimulatedCluster(seed, BROKERS, {**_SETTINGS, **(settings or {})})
        self.world = self.cluster.world
        self.events: list[str] = []
        self.partitions = [TopicPartition(TOPIC, number) for number in range(partitions)]
        self.promises = {each: Promises() for each in self.partitions}
        self._addresses = [(broker.host, PORT) for broker in self.cluster.brokers.values()]
        self._watch = LeadershipWatch(self.cluster)
        self._writers: list[asyncio.Task[None]] = []
        self._lost_power: set[int] = set()

    def begin(self, records: int, pause_s: float, configs: dict[str, str] | None = None) -> None:
        """Brokers, a topic with as many replicas, a writer and a reader for each partition."""
        for broker in self.cluster.brokers.values():
            broker.start()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)
        process = self.cluster.process("clients")
        admin = self._client()
        wanted = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false", **(configs or {})}
        process.run_until_complete(admin.create_topic(TOPIC, len(self.partitions), BROKERS, wanted))
        for number, each in enumerate(self.partitions):
            writer = Writer(self._client(), TOPIC, each.partition, self.promises[each], f"w{number}")
            self._writers.append(process.create_task(writer.write(records, pause_s)))
            process.create_task(Reader(self._client(), TOPIC, each.partition, self.promises[each]).read())

    def run(self, faults: int, between_s: tuple[float, float] = (0.5, 12.0)) -> None:
        for _ in range(faults):
            self.world.run_for(self.world.random.uniform(*between_s))
            self.fault()

    def fault(self) -> None:
        """One of those that can happen now."""
        self._note_recovered()
        running = [broker for broker in self.cluster.brokers.values() if broker.is_running]
        stopped = [broker for broker in self.cluster.brokers.values() if not broker.is_running]
        choices: list[Callable[[], None]] = [self._heal]
        choices += [partial(self._start, broker) for broker in stopped] * 2
        if not self._lost_power:
            choices += [self._cut]
            choices += [partial(self._kill, broker) for broker in running]
            choices += [partial(self._stop, broker) for broker in running[:1] if broker.is_serving]
            if self._all_in_sync() and self._all_registered():
                choices += [partial(self._lose_power, broker) for broker in running]
        self.world.random.choice(choices)()

    def end(self) -> Outcome:
        """Heals everything, waits until all is written and all replicas have it, and compares."""
        self._heal()
        for broker in self.cluster.brokers.values():
            if not broker.is_running:
                self._start(broker)
        wrong: list[str] = []
        try:
            self.world.run_until(lambda: all(task.done() for task in self._writers), SETTLED_WITHIN_S)
            self.world.run_until(self._is_settled, SETTLED_WITHIN_S)
        except Exception as stuck:
            wrong.append(f"{type(stuck).__name__}: {stuck}; {self._described()}")
        self.world.run_for(2.0)
        wrong += self._compare()
        acknowledged = sum(len(each.acknowledged) for each in self.promises.values())
        outcome = Outcome(self.world.seed, acknowledged, self.world.steps, self.world.trace, self.events, wrong)
        self.world.end()
        return outcome

    def _compare(self) -> list[str]:
        wrong = [*self._watch.wrong, *(f"{name}: {error!r}" for name, error in self.world.failures)]
        for task in self._writers:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                wrong.append(f"a writer failed: {error!r}")
        for partition in self.partitions:
            wrong += replicas_agree(self.cluster, partition)
            for broker in self.cluster.brokers.values():
                log = log_of(broker, partition)
                held = [] if log is None else values_of(log_bytes(log))
                wrong += [f"{partition} on {broker.host}: {each}" for each in all_promises_kept(held, self.promises[partition])]
        return wrong

    def _client(self) -> SimulatedClient:
        return SimulatedClient(self._addresses)

    def _look(self) -> None:
        self._watch.look()
        self.cluster.network.kernel.call_later(LOOK_S, self._look)

    def _note(self, event: str) -> None:
        self.events.append(f"{self.world.now:8.3f} {event}")

    # Faults

    def _kill(self, broker: SimulatedBroker) -> None:
        self._note(f"kill {broker.id}")
        broker.kill()

    def _lose_power(self, broker: SimulatedBroker) -> None:
        self._heal()
        self._note(f"power off {broker.id}")
        self._lost_power.add(broker.id)
        broker.lose_power()

    def _stop(self, broker: SimulatedBroker) -> None:
        self._note(f"stop {broker.id}")
        broker.stop()

    def _start(self, broker: SimulatedBroker) -> None:
        self._note(f"start {broker.id}")
        broker.start_soon()

    def _cut(self) -> None:
        """One direction between two of the brokers and the tree, or all that leads to and from one of them."""
        network, random = self.cluster.network, self.world.random
        places = [*(broker.address for broker in self.cluster.brokers.values()), self.cluster.tree_address]
        one, other = random.sample(places, 2)
        if random.random() < 0.3:
            self._note(f"cut off {one}")
            for each in places:
                if each != one:
                    network.cut_both_ways(one, each)
        elif random.random() < 0.5:
            self._note(f"cut {one} from {other}")
            network.cut_both_ways(one, other)
        else:
            self._note(f"cut {one} to {other}")
            network.cut(one, other)

    def _heal(self) -> None:
        self._note("heal")
        self.cluster.network.heal()

    # What is known

    def _all_in_sync(self) -> bool:
        found = [in_sync(self.cluster, partition) for partition in self.partitions]
        return all(len(leaders) == 1 and all(len(isr) == BROKERS for isr in leaders.values()) for leaders in found)

    def _all_registered(self) -> bool:
        session = self.cluster.tree.open_session_now(lambda _: None)
        (answer,) = session.handle_now([GetChildren(paths.BROKER_IDS)])
        session.close_now()
        return len(answer.value.names) == BROKERS

    def _note_recovered(self) -> None:
        if self._lost_power and self._all_in_sync():
            self._lost_power.clear()

    def _is_settled(self) -> bool:
        if not self._all_in_sync():
            return False
        for partition in self.partitions:
            logs = [log_of(broker, partition) for broker in self.cluster.brokers.values()]
            if None in logs or len({(log.log_end_offset, log.high_watermark) for log in logs if log is not None}) != 1:
                return False
        return True

    def _described(self) -> str:
        told = []
        for number, broker in self.cluster.brokers.items():
            if broker.broker is not None:
                told += [f"{number}: {found!r}" for key, found in broker.broker.replica_manager.online.items() if key.topic == TOPIC]
            else:
                told.append(f"{number}: not running")
        return "; ".join(told)


def play(seed: int, faults: int = 8, records: int = 150, pause_s: float = 0.2) -> Outcome:
    """One history from its beginning to its end."""
    history = History(seed)
    history.begin(records, pause_s)
    history.run(faults)
    return history.end()
