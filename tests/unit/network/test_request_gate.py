from __future__ import annotations

from collections.abc import Callable

from barnabas.network.config import UNLIMITED
from barnabas.network.request_gate import RequestGate


class Visitor:
    """Asks again each time it is called, and counts the places it got."""

    def __init__(self, gate: RequestGate, size: int = 1) -> None:
        self.gate = gate
        self.size = size
        self.entered = 0

    def gate_opened(self) -> None:
        self.ask()

    def ask(self) -> bool:
        let_in = self.gate.enter(self, self.size)
        self.entered += let_in
        return let_in


class Later:
    """Runs deferred calls when told to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def __call__(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def run(self) -> None:
        while self.calls:
            self.calls.pop(0)()


def test_so_many_requests_enter_and_the_next_waits() -> None:
    gate = RequestGate(2, UNLIMITED, Later())
    visitor = Visitor(gate)
    assert [visitor.ask() for _ in range(3)] == [True, True, False]
    assert (gate.requests, gate.waiting, gate.times_full) == (2, 1, 1)


def test_who_waits_is_called_when_one_leaves_but_not_within_that_call() -> None:
    later = Later()
    gate = RequestGate(1, UNLIMITED, later)
    first, second = Visitor(gate), Visitor(gate)
    first.ask()
    second.ask()
    gate.leave(1)
    assert second.entered == 0
    later.run()
    assert second.entered == 1


def test_those_who_wait_are_called_in_their_order() -> None:
    later = Later()
    gate = RequestGate(1, UNLIMITED, later)
    visitors = [Visitor(gate) for _ in range(4)]
    for visitor in visitors:
        visitor.ask()
    for turn in range(1, 4):
        gate.leave(1)
        later.run()
        assert [visitor.entered for visitor in visitors] == [1] * (turn + 1) + [0] * (3 - turn)


def test_a_visitor_that_does_not_come_leaves_its_place_to_the_next() -> None:
    class Gone(Visitor):
        def gate_opened(self) -> None:
            pass

    later = Later()
    gate = RequestGate(1, UNLIMITED, later)
    Visitor(gate).ask()
    gone, patient = Gone(gate), Visitor(gate)
    gone.ask()
    patient.ask()
    gate.leave(1)
    later.run()
    assert patient.entered == 1


def test_a_forgotten_visitor_is_not_called() -> None:
    later = Later()
    gate = RequestGate(1, UNLIMITED, later)
    Visitor(gate).ask()
    gone = Visitor(gate)
    gone.ask()
    gate.forget(gone)
    gate.leave(1)
    later.run()
    assert gone.entered == 0


def test_bytes_have_a_bound_of_their_own() -> None:
    gate = RequestGate(100, 10, Later())
    large = Visitor(gate, size=15)
    assert [large.ask(), large.ask()] == [True, False]
