"""The single faults of a history, the requests of an operator in it, and the brokers to which a fault may happen."""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from barnabas.simulation.client import SimulatedClient
from barnabas.simulation.cluster import SimulatedBroker, SimulatedCluster
from barnabas.simulation.disk import NEEDS_DESCRIPTOR, DiskEvent
from barnabas.topic_partition import TopicPartition

SLEEP_S: Final = (0.5, 10.0)  # shorter or longer than the session timeout
SLOW_S: Final = (0.05, 0.8)  # the delay of a slow link
LOST: Final = (0.1, 0.4)  # the share of messages that a bad link loses once
SLOW_DISK_S: Final = 1.5
_WRITING: Final = frozenset({"write", "sync", "create"})


class Faults:
    """`partitions` are those that clients use; `in_clients` starts a coroutine in the clients' process and does not wait for it."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        partitions: Sequence[TopicPartition],
        clients_address: str,
        new_client: Callable[[], SimulatedClient],
        in_clients: Callable[[Coroutine[Any, Any, object]], object],
    ) -> None:
        self.events: list[str] = []
        self.lost_power: int | None = None
        self.keeper: int | None = None
        self.clocks_were_set = False
        self._cluster = cluster
        self._world = cluster.world
        self._random = cluster.world.random
        self._partitions = list(partitions)
        self._clients_address = clients_address
        self._new_client = new_client
        self._in_clients = in_clients

    def note_in_sync(self) -> None:
        """All replicas have everything: the records that were lost with the power are replicated again."""
        self.lost_power = self.keeper = None

    def heal(self) -> None:
        self._note("heal")
        self._cluster.network.heal()
        for broker in self._cluster.brokers.values():
            self._set_clock(broker, 0.0)
            broker.files.heal()
            broker.files.capacity = None
            if broker.process is not None:
                broker.process.thread_s_max = min(broker.process.thread_s_max, 0.002)
                self._world.resume(broker.process)
        self.restart_with_repaired_disks()

    def restart_with_repaired_disks(self) -> None:
        """An operator has repaired the disks that failed, and restarts their brokers. The keeper stays up."""
        for broker in self._cluster.brokers.values():
            if broker.has_offline_dir and broker.id != self.keeper:
                self._kill(broker)
                self.start(broker)

    def start(self, broker: SimulatedBroker) -> None:
        if not broker.is_running:
            self._note(f"start {broker.id}")
            broker.start_soon()

    # Single faults

    def _set_clock(self, broker: SimulatedBroker, offset_s: float) -> None:
        if broker.clock_offset_s != offset_s:
            self.clocks_were_set = True
            self._note(f"set the clock of {broker.id} to {offset_s:+.0f} s")
            broker.set_clock(offset_s)

    def _kill(self, broker: SimulatedBroker) -> None:
        self._note(f"kill {broker.id}")
        broker.kill()

    def _stop(self, broker: SimulatedBroker) -> None:
        if broker.is_serving:
            self._note(f"stop {broker.id}")
            broker.stop_soon()

    def _sleep(self, broker: SimulatedBroker) -> None:
        assert broker.process is not None
        seconds = self._random.uniform(*SLEEP_S)
        self._note(f"put {broker.id} to sleep for {seconds:.1f} s")
        broker.process.sleep(seconds)

    def _expire(self, broker: SimulatedBroker) -> None:
        if broker.tree is not None:
            self._note(f"expire the session of {broker.id}")
            broker.tree.expire()

    def _break_off(self, broker: SimulatedBroker) -> None:
        assert broker.process is not None
        self._note(f"break off the connections of {broker.id}")
        self._cluster.network.break_off(broker.process)

    def _slow_disk(self, broker: SimulatedBroker) -> None:
        assert broker.process is not None
        self._note(f"slow disk of {broker.id}")
        broker.process.thread_s_max = SLOW_DISK_S

    def _bad_disk(self, broker: SimulatedBroker) -> None:
        """The next writes fail: the broker shuts down, because it has no other log directory."""
        reason, times = self._random.choice([errno.EIO, errno.ENOSPC]), self._random.randint(1, 3)
        after = broker.files.events + self._random.randint(0, 60)
        self._note(f"{errno.errorcode[reason]} on the disk of {broker.id}")

        def fails(event: DiskEvent) -> bool:
            return event.number > after and event.kind in _WRITING

        broker.files.fail_when(fails, reason, times)

    def _one_of_two_disks(self, broker: SimulatedBroker) -> None:
        """From now on all writes to one of the log directories fail: it goes offline, the others are served on."""
        path, after = self._random.choice(broker.log_dirs), broker.files.events + self._random.randint(0, 60)
        self._note(f"EIO on {path} of {broker.id}")

        def fails(event: DiskEvent) -> bool:
            return event.number > after and event.kind in _WRITING and event.path.startswith(f"{path}/")

        broker.files.fail_when(fails)

    def _no_descriptors(self, broker: SimulatedBroker) -> None:
        """For a while the broker can open no file, because clients hold all descriptors that the process may have."""
        reason, times = self._random.choice([errno.EMFILE, errno.ENFILE]), self._random.randint(1, 60)
        after = broker.files.events + self._random.randint(0, 60)
        self._note(f"{errno.errorcode[reason]} for {broker.id}, {times} times")

        def fails(event: DiskEvent) -> bool:
            return event.number > after and event.kind in NEEDS_DESCRIPTOR

        broker.files.fail_when(fails, reason, times)

    def _cut_some(self) -> None:
        """Cuts one direction between two hosts, or both, or all links of one host."""
        brokers = [broker.address for broker in self._cluster.brokers.values() if broker.id != self.keeper]
        one = self._random.choice(brokers)
        places = [*brokers, self._cluster.tree_address, self._clients_address]
        others = [address for address in places if address != one]
        if self._random.random() < 0.2:
            self._note(f"cut off {one}")
            for address in others:
                self._cluster.network.cut_both_ways(one, address)
        else:
            self._random.choice([self._cut, self._cut_back, self._cut_both_ways, self._slow])(one, self._random.choice(others))

    def _cut(self, one: str, other: str) -> None:
        self._note(f"cut {one} to {other}")
        self._cluster.network.cut(one, other)

    def _cut_back(self, one: str, other: str) -> None:
        self._cut(other, one)

    def _cut_both_ways(self, one: str, other: str) -> None:
        self._note(f"cut {one} from {other}")
        self._cluster.network.cut_both_ways(one, other)

    def _slow(self, one: str, other: str) -> None:
        seconds = self._random.uniform(*SLOW_S)
        self._note(f"{seconds:.2f} s between {one} and {other}")
        self._cluster.network.set_delay(one, other, seconds / 2, seconds)
        self._cluster.network.set_delay(other, one, seconds / 2, seconds)

    def _lose(self, one: str, other: str) -> None:
        share = self._random.uniform(*LOST)
        self._note(f"{share:.0%} is lost once between {one} and {other}")
        self._cluster.network.set_loss(one, other, share)
        self._cluster.network.set_loss(other, one, share)

    def _elect(self) -> None:
        partition = self._any_partition()
        self._note(f"elect the preferred leader of {partition}")
        self._in_clients(self._new_client().elect_preferred_leader(partition))

    def _reassign(self) -> None:
        """To all brokers in another order, which may change the preferred leader; or to all but one."""
        partition = self._random.choice(self._partitions)
        self._reassign_to(partition, self._random.sample(list(self._cluster.brokers), self._random.choice([len(self._cluster.brokers), 2])))

    def _reassign_to(self, partition: TopicPartition, replicas: Sequence[int]) -> None:
        if self.lost_power is None:
            self._note(f"reassign {partition} to {replicas}")
            self._in_clients(self._new_client().reassign(partition, replicas))

    def _throttle(self, topic: str, bytes_a_second: int | None) -> None:
        self._note(f"throttle {topic} to {bytes_a_second} B/s")
        self._in_clients(self._new_client().throttle(topic, bytes_a_second))

    def _limit(self, quotas: Mapping[str, float | None]) -> None:
        self._note(f"limit clients to {quotas}")
        self._in_clients(self._new_client().limit(quotas))

    def _end_somehow(self, broker: SimulatedBroker | None) -> None:
        if broker is not None and self._may(broker):
            self._random.choice([self._kill, self._kill, self._sleep, self._expire])(broker)

    def _start_all(self) -> None:
        for broker in self._stopped():
            self.start(broker)

    def _nothing(self) -> None:
        """The state remains until the next plot."""

    def _has_replicas(self, broker: SimulatedBroker) -> bool:
        """Whether a broker is still in an ISR of a partition of clients. A completed reassignment has taken it out."""
        states = [self._cluster.state_of(partition) for partition in self._partitions]
        return any(state is None or broker.id in state.isr for state in states)

    # The brokers to which a fault may happen

    def _may(self, broker: SimulatedBroker) -> bool:
        return broker.is_running and broker.id != self.keeper

    def _free(self) -> list[SimulatedBroker]:
        return [broker for broker in self._cluster.brokers.values() if self._may(broker)]

    def _stopped(self) -> list[SimulatedBroker]:
        return [broker for broker in self._cluster.brokers.values() if not broker.is_running]

    def _may_lose_power(self) -> tuple[SimulatedBroker, SimulatedBroker] | None:
        """A broker, and another that has all records; None unless every partition is healthy on the keeper."""
        if self.lost_power is not None or self._an_isr_is_undecided():
            return None
        self.heal()
        registered = self._cluster.registered
        states = [self._cluster.state_of(partition) for partition in self._cluster.partitions()]
        keepers = [
            broker
            for broker in self._free()
            if broker.is_serving and broker.id in registered and all(state is not None and broker.id in state.isr for state in states)
        ]
        if not keepers:
            return None
        keeper = self._random.choice(keepers)
        others = [broker for broker in self._free() if broker is not keeper]
        return (self._random.choice(others), keeper) if others else None

    def _any_coordinator(self) -> SimulatedBroker | None:
        coordinators = [partition for partition in self._cluster.partitions() if partition not in self._partitions]
        return self._cluster.leader_of(self._random.choice(coordinators)) if coordinators else None

    def _an_isr_is_undecided(self) -> bool:
        """Whether a leader has proposed another ISR. The proposal may be written after the leader lost power, and may exclude a replica
        that has all records."""
        running = [broker.broker for broker in self._cluster.brokers.values() if broker.broker is not None]
        return any(partition.isr.proposed is not None for broker in running for partition in broker.replica_manager.online.values())

    def _any_partition(self) -> TopicPartition:
        return self._random.choice(self._cluster.partitions())

    def _leader_and_follower(self, partition: TopicPartition) -> tuple[SimulatedBroker | None, SimulatedBroker | None]:
        leader = self._cluster.leader_of(partition)
        followers = [broker for broker in self._cluster.brokers.values() if broker is not leader and broker.is_running]
        return leader, self._random.choice(followers) if followers else None

    def _note(self, event: str) -> None:
        self.events.append(f"{self._world.now:8.3f} {event}")
