"""The plots of a history: sequences of faults that have broken replicated logs before.

A plot is a generator that acts and yields how long to wait before it continues. It stays within what Kafka promises to survive: a broker
loses power only while another one (`keeper`) has all acknowledged records and is spared until the first is in sync again, and no leader is
elected from outside the ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Final

from barnabas.simulation.client import SimulatedClient
from barnabas.simulation.cluster import SimulatedCluster
from barnabas.simulation.faults import Faults
from barnabas.topic_partition import TopicPartition

CLIENT_QUOTAS: Final[Mapping[str, tuple[float, ...]]] = {  # from less than clients use to more than they can
    "producer_byte_rate": (300, 1_000, 20_000),
    "consumer_byte_rate": (300, 1_000, 20_000),
    "request_percentage": (0.02, 0.1, 1),
    "controller_mutation_rate": (0.1, 1, 100),
}
THROTTLES: Final = (300, 1_000, 5_000)  # bytes a second: from less than is written to more than all of it
# Ahead by less than the longest producer.id.expiration.ms (24.8 days): beyond it a broker correctly forgets a producer.
CLOCK_STEPS_S: Final = (-3600.0, 20 * 86_400.0)
DRAIN_LOOKS: Final = 10  # how often, and in what steps, a drain looks whether the broker is empty before the broker is stopped anyway
DRAIN_LOOK_S: Final = 1.0

Plot = Generator[float, None, None]


class FaultInjector(Faults):
    """With `throttles` an operator also sets and removes throttles of replication and quotas of clients."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        partitions: Sequence[TopicPartition],
        clients_address: str,
        new_client: Callable[[], SimulatedClient],
        in_clients: Callable[[Coroutine[Any, Any, object]], object],
        throttles: bool = False,
    ) -> None:
        super().__init__(cluster, partitions, clients_address, new_client, in_clients)
        self._throttles = throttles

    def plot(self) -> Plot:
        """A random plot that is possible now."""
        plots: list[tuple[int, Callable[[], Plot]]] = [
            (6, self._single),
            (3, self._follower_lags_and_leader_goes),
            (3, self._returns_slowly_and_leader_goes),
            (2, self._answers_are_lost),
            (2, self._leader_is_cut_off),
            (3, self._controller_is_deposed),
            (2, self._controller_learns_late),
            (2, self._coordinator_goes),
            (4, self._markers_come_late),
            (3, self._power_is_lost),
            (1, self._one_after_the_other),
            (1, self._two_are_down),
            (2, self._clock_is_wrong),
            (2, self.broker_is_drained),
        ]
        if self._throttles:
            plots.append((20, self._throttled_reassignment))
            plots.append((20, self._limited_clients))
        (chosen,) = self._random.choices([plot for _, plot in plots], [weight for weight, _ in plots])
        return chosen()

    def _single(self) -> Plot:
        running = self._free()
        choices: list[Callable[[], None]] = [self.heal, self._cut_some, self._elect, self._reassign]
        choices += [lambda stopped=stopped: self.start(stopped) for stopped in self._stopped()] * 3
        if running:
            broker = self._random.choice(running)
            faults = [self._kill, self._kill, self._stop, self._sleep, self._expire, self._break_off, self._slow_disk, self._bad_disk]
            faults.append(self._no_descriptors)
            if len(broker.log_dirs) > 1:
                faults += [self._one_of_two_disks] * 4
            choices += [lambda fault=fault: fault(broker) for fault in faults]  # type: ignore[misc]
        self._random.choice(choices)()
        yield 0

    def _follower_lags_and_leader_goes(self) -> Plot:
        partition = self._any_partition()
        leader, follower = self._leader_and_follower(partition)
        if leader is None or follower is None:
            return
        self._random.choice([self._cut_both_ways, self._slow])(leader.address, follower.address)
        yield self._random.uniform(0.2, 8)
        self._end_somehow(self._cluster.leader_of(partition))
        yield self._random.uniform(0.5, 8)
        self._random.choice([self.heal, self._start_all, self._nothing])()

    def _returns_slowly_and_leader_goes(self) -> Plot:
        partition = self._any_partition()
        leader, follower = self._leader_and_follower(partition)
        if leader is None or follower is None or not self._may(follower):
            return
        self._kill(follower)
        yield self._random.uniform(3, 9)
        self.start(follower)
        leader = self._cluster.leader_of(partition)
        if leader is not None and leader is not follower:
            self._slow(leader.address, follower.address)
        yield self._random.uniform(1, 10)
        self._end_somehow(self._cluster.leader_of(partition))
        yield self._random.uniform(0.5, 8)
        self._random.choice([self.heal, self._start_all, self._nothing])()

    def _answers_are_lost(self) -> Plot:
        leader = self._cluster.leader_of(self._any_partition())
        if leader is None:
            return
        self._note(f"cut {leader.id} to the clients")
        self._cluster.network.cut(leader.address, self._clients_address)
        yield self._random.uniform(0.05, 1.5)
        self._end_somehow(leader)
        yield self._random.uniform(0.5, 7)
        self.heal()

    def _leader_is_cut_off(self) -> Plot:
        """From all brokers and the metadata store, but not from its clients, which still use it as the leader."""
        leader = self._cluster.leader_of(self._any_partition())
        if leader is None or not self._may(leader):
            return
        self._note(f"cut off {leader.id}, but not from its clients")
        self._cluster.network.cut_both_ways(leader.address, self._cluster.tree_address)
        for broker in self._cluster.brokers.values():
            if broker is not leader:
                self._cluster.network.cut_both_ways(leader.address, broker.address)
        yield self._random.uniform(4, 12)
        self._random.choice([self.heal, self._nothing])()

    def _controller_is_deposed(self) -> Plot:
        """While its control requests to one of the brokers are delayed."""
        controller = self._cluster.controller
        if controller is None or not self._may(controller):
            return
        others = [broker for broker in self._cluster.brokers.values() if broker is not controller]
        cut_off = self._random.choice(others)
        self._note(f"cut {controller.id} to {cut_off.id}")
        self._cluster.network.cut(controller.address, cut_off.address)
        yield self._random.uniform(0, 0.5)
        other = next(broker for broker in others if broker is not cut_off)
        actions: list[Callable[[], None]] = [self._elect, self._reassign]
        if self._may(other):
            actions += [lambda: self._kill(other)] * 2
        self._random.choice(actions)()
        yield self._random.uniform(0.2, 7)
        if self._may(controller):
            self._random.choice([self._expire, self._expire, self._sleep, self._kill])(controller)
        yield self._random.uniform(0.5, 8)
        self._start_all()
        yield self._random.uniform(0, 3)
        self.heal()

    def _controller_learns_late(self) -> Plot:
        """The controller learns late that it was deposed: for a while it acts beside the next controller."""
        controller = self._cluster.controller
        if controller is None:
            return
        self._slow(self._cluster.tree_address, controller.address)
        self._random.choice([self._elect, self._reassign, self._nothing])()
        followers = [broker for broker in self._free() if broker is not controller]
        if followers:
            self._random.choice([self._break_off, self._sleep, self._kill])(self._random.choice(followers))
        yield self._random.uniform(0, 4)
        self._note(f"depose {controller.id}")
        self._cluster.depose_controller()
        self._random.choice([self._elect, self._reassign, self._nothing])()
        yield self._random.uniform(0.5, 4)
        self.heal()
        self._start_all()

    def _coordinator_goes(self) -> Plot:
        """While it is cut off from a leader, or has only just begun to send markers to it."""
        coordinator = self._any_coordinator()
        others = [broker for broker in self._cluster.brokers.values() if broker is not coordinator]
        if coordinator is None:
            return
        other = self._random.choice(others)
        self._random.choice([self._cut, self._slow])(coordinator.address, other.address)
        yield self._random.uniform(0.1, 2.5)
        self._end_somehow(coordinator)
        yield self._random.uniform(0.5, 7)
        self.heal()
        self._start_all()

    def _markers_come_late(self) -> Plot:
        """Some markers and some verification requests are delayed: the next transaction begins while the last one is ending."""
        coordinator = self._any_coordinator()
        if coordinator is None:
            return
        for other in self._cluster.brokers.values():
            if other is not coordinator:
                self._lose(coordinator.address, other.address)
        yield self._random.uniform(2, 8)
        self.heal()

    def _power_is_lost(self) -> Plot:
        """One broker loses power, perhaps the controller or a leader, perhaps while the controller fails too."""
        pair = self._may_lose_power()
        if pair is None:
            return
        broker, keeper = pair
        self.lost_power, self.keeper = broker.id, keeper.id
        controller = self._cluster.controller
        self._note(f"power off {broker.id}, keeping {keeper.id}")
        broker.lose_power()
        if controller is not None and self._may(controller) and self._random.random() < 0.7:
            self._kill(controller)
        yield self._random.choice([0.0, self._random.uniform(0, 8)])
        self.start(broker)
        yield self._random.uniform(2, 10)
        self._start_all()

    def _one_after_the_other(self) -> Plot:
        for broker in self._free():
            if self._may(broker):
                self._random.choice([self._kill, self._stop])(broker)
                yield self._random.uniform(0.1, 7)
                self.start(broker)
                yield self._random.uniform(0.1, 4)

    def _two_are_down(self) -> Plot:
        free = self._free()
        if self.lost_power is not None or len(free) < 2:
            return
        for broker in self._random.sample(free, 2):
            self._kill(broker)
            yield self._random.uniform(0, 7)
        yield self._random.uniform(1, 7)
        self._start_all()

    def _clock_is_wrong(self) -> Plot:
        """The wall clock of a machine is wrong, perhaps from the start of its broker on, and corrected later. The broker may restart."""
        free = self._free()
        if not free:
            return
        broker = self._random.choice(free)
        restarts = self._random.random() < 0.5
        if restarts:
            self._kill(broker)
        self._set_clock(broker, self._random.choice(CLOCK_STEPS_S))
        if restarts:
            self.start(broker)
        yield self._random.uniform(0.5, 12)
        self._set_clock(broker, 0.0)
        yield self._random.uniform(0, 12)
        if self._random.random() < 0.5:
            self._end_somehow(broker)
        yield self._random.uniform(0, 3)
        self._start_all()

    def broker_is_drained(self) -> Plot:
        """All partitions of clients leave a broker while something else happens; then it is stopped, and gets them back later."""
        free = self._free()
        if not free or self.lost_power is not None:
            return
        broker = self._random.choice(free)
        self._note(f"drain {broker.id}")
        others = [other for other in self._cluster.brokers if other != broker.id]
        for partition in self._partitions:
            self._reassign_to(partition, self._random.sample(others, len(others)))
        meanwhile: list[Callable[[], None]] = [
            self._cut_some,
            self._elect,
            self._nothing,
            lambda: self._end_somehow(self._cluster.controller),
            lambda: self._end_somehow(self._cluster.leader_of(self._random.choice(self._partitions))),
        ]
        yield self._random.uniform(0, 1.5)
        self._random.choice(meanwhile)()
        yield self._random.uniform(0.5, 6)
        self._random.choice([self.heal, self._start_all, self._nothing])()
        for _ in range(DRAIN_LOOKS):
            if not self._has_replicas(broker):
                break
            yield DRAIN_LOOK_S
        if self._may(broker):
            self._random.choice([self._stop, self._stop, self._kill])(broker)
        yield self._random.uniform(0.5, 8)
        self._start_all()
        yield self._random.uniform(0, 3)
        for partition in self._partitions:
            self._reassign_to(partition, self._random.sample(list(self._cluster.brokers), len(self._cluster.brokers)))

    def _throttled_reassignment(self) -> Plot:
        """An operator throttles a topic and reassigns it, perhaps while a broker goes, and removes the throttle or forgets to."""
        topic = self._random.choice(self._partitions).topic
        self._throttle(topic, self._random.choice(THROTTLES))
        yield self._random.uniform(0, 2)
        self._reassign()
        yield self._random.uniform(0, 3)
        if self._random.random() < 0.5:
            self._end_somehow(self._cluster.leader_of(self._any_partition()))
        yield self._random.uniform(1, 12)
        self._start_all()
        if self._random.random() < 0.5:
            self._throttle(topic, None)

    def _limited_clients(self) -> Plot:
        """An operator sets quotas for all clients and changes them, perhaps while a broker goes, and removes them or forgets to."""
        for _ in range(self._random.randint(1, 3)):
            limited = self._random.sample(list(CLIENT_QUOTAS), self._random.randint(1, len(CLIENT_QUOTAS)))
            self._limit({key: self._random.choice(CLIENT_QUOTAS[key]) for key in limited})
            yield self._random.uniform(0.5, 6)
        if self._random.random() < 0.5:
            self._end_somehow(self._cluster.leader_of(self._any_partition()))
        yield self._random.uniform(1, 8)
        self._start_all()
        if self._random.random() < 0.5:
            self._limit(dict.fromkeys(CLIENT_QUOTAS))
