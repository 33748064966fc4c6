"""A network that delays, holds back and cuts: simulated hosts, sockets and connections between the processes of a world.

It guarantees what TCP guarantees and no more: bytes of one direction arrive in order or not at all, in pieces of any size; a peer that does
not read makes its sender wait; over a cut link nothing arrives, in one direction or both, until the link is healed. `sockets` implements
the endpoints; this module implements the transfer between them.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.simulation.conversations import Conversations
from barnabas.simulation.loop import ProcessLoop

if TYPE_CHECKING:
    from barnabas.simulation.sockets import SimulatedSocket
    from barnabas.simulation.world import World

DELAY_S: Final = (0.0001, 0.002)  # the default minimum and maximum
RESENT_S: Final = (0.05, 0.4)  # the additional delay of a retransmission
LOCAL_DELAY_S: Final = (0.00001, 0.0001)
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", ""})


class Lane:
    """One direction of one connection: messages arrive in the order they were sent."""

    def __init__(self, network: SimulatedNetwork, source: str, target: str) -> None:
        self._network = network
        self._source = source
        self._target = target
        self._last_arrival = 0.0
        self._held: deque[tuple[ProcessLoop, Callable[..., None], tuple[Any, ...]]] = deque()

    def send(self, arrive: Callable[..., None], *args: Any) -> None:
        """Runs `arrive` at the target host, whether or not a process is running there."""
        self.send_to(self._network.kernel, arrive, *args)

    def send_to(self, process: ProcessLoop, arrive: Callable[..., None], *args: Any) -> None:
        """Like `send`, but `arrive` runs in a process."""
        if self._held or self._network.is_cut(self._source, self._target):
            self._held.append((process, arrive, args))
            self._network.holding(self)
            return
        self._last_arrival = max(self._last_arrival, self._network.world.now + self._network.delay(self._source, self._target))
        process.call_at(self._last_arrival, arrive, *args)

    def maybe_release(self) -> bool:
        """Sends the held messages if the link is no longer cut."""
        if self._network.is_cut(self._source, self._target):
            return False
        held, self._held = self._held, deque()
        for process, arrive, args in held:
            self.send_to(process, arrive, *args)
        return True


class SimulatedNetwork:
    def __init__(self, world: World) -> None:
        self.world = world
        self.kernel = ProcessLoop(world, self, "network", "")  # runs arrivals; endpoints process them in their own processes
        self.listening: dict[tuple[str, int], SimulatedSocket] = {}
        self.conversations = Conversations(world)
        self._names: dict[str, str] = {}
        self._sockets: dict[int, SimulatedSocket] = {}
        self._delays: dict[tuple[str, str], tuple[float, float]] = {}
        self._losses: dict[tuple[str, str], float] = {}
        self._cuts: set[tuple[str, str]] = set()
        self._holding: list[Lane] = []
        self._last_port = 40_000

    # Hosts and links

    def add_host(self, name: str) -> str:
        """Adds a host and returns its address."""
        return self._names.setdefault(name, f"10.0.0.{len(self._names) + 1}")

    def address_of(self, name: str, process: ProcessLoop) -> str:
        if name in LOOPBACK_NAMES:
            return process.host
        if name in self._names.values():
            return name
        if name not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, f"{name} is not a host of this simulation")
        return self._names[name]

    def set_delay(self, source: str, target: str, least_s: float, most_s: float) -> None:
        self._delays[source, target] = (least_s, most_s)

    def set_loss(self, source: str, target: str, share: float) -> None:
        """This share of the messages is lost and retransmitted. It delays what follows on its connection, and no other connection."""
        self._losses[source, target] = share

    def cut(self, source: str, target: str) -> None:
        """Nothing sent from one address to the other arrives from now on. Messages in flight still arrive."""
        self.world.note("cut", source, target)
        self._cuts.add((source, target))

    def cut_both_ways(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def heal(self) -> None:
        """Restores all links and their speed. Held messages are sent."""
        self.world.note("heal")
        self._cuts.clear()
        self._delays.clear()
        self._losses.clear()
        holding, self._holding = self._holding, []
        self._holding += [lane for lane in holding if not lane.maybe_release()]

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    def delay(self, source: str, target: str) -> float:
        least, most = self._delays.get((source, target), LOCAL_DELAY_S if source == target else DELAY_S)
        seconds = self.world.random.uniform(least, most)
        share = self._losses.get((source, target))
        if share is not None and self.world.random.random() < share:
            seconds += self.world.random.uniform(*RESENT_S)
        return seconds

    def holding(self, lane: Lane) -> None:
        if lane not in self._holding:
            self._holding.append(lane)

    # Sockets

    def socket(self, process: ProcessLoop) -> SimulatedSocket:
        from barnabas.simulation.sockets import SimulatedSocket

        made = SimulatedSocket(self, process, len(self._sockets) + 1000)
        self._sockets[made.fileno()] = made
        return made

    def by_number(self, number: int) -> SimulatedSocket:
        return self._sockets[number]

    def free_port(self) -> int:
        self._last_port += 1
        return self._last_port

    def break_off(self, process: ProcessLoop) -> None:
        """Breaks all connections of a process."""
        self.world.note("break off", process.name)
        for endpoint in list(self._sockets.values()):
            if endpoint.process is process:
                process.call_soon(endpoint.break_off)

    def process_ended(self, process: ProcessLoop) -> None:
        """The kernel of the process's machine runs on and resets its connections."""
        for endpoint in self._sockets.values():
            if endpoint.process is process:
                endpoint.reset()
