"""What a client's network measures of its time."""

from __future__ import annotations

import math

from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.connection import Traffic
from barnabas.client.network.network_metrics import NetworkMetrics
from tests.unit.client.clocks import ManualClock

MS = 1_000_000  # in nanoseconds


class Rig:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics(self.clock, samples=2, window_ms=1000)
        network = NetworkMetrics(self.metrics, "consumer", lambda: 0)
        self.one, self.other = network.node(1), network.node(2)

    def value(self, name: str) -> object:
        metric = self.metrics.find(name, "consumer-metrics")
        assert metric is not None, name
        return metric.metric_value()

    def turn(self, node: Traffic, from_ms: int, to_ms: int, *, reading: bool = True) -> None:
        node.io_begins(from_ms * MS)
        node.io_ended(to_ms * MS, self.clock.monotonic_ms(), reading=reading)


def test_io_is_what_is_done_when_the_loop_comes_and_waiting_what_is_between() -> None:
    rig = Rig()
    rig.turn(rig.one, 10, 12)
    rig.turn(rig.other, 20, 24)
    assert (rig.value("io-time-ns-avg"), rig.value("io-time-ns-total")) == (3 * MS, 6 * MS)
    assert (rig.value("io-wait-time-ns-avg"), rig.value("io-wait-time-ns-total")) == (8 * MS, 8 * MS)
    assert rig.value("select-total") == 2


def test_ratios_are_of_the_time_that_has_passed() -> None:
    rig = Rig()
    rig.turn(rig.one, 0, 0)
    rig.turn(rig.one, 300, 500)
    ratios = rig.value("io-ratio"), rig.value("io-wait-ratio")
    assert [math.isclose(ratio, expected) for ratio, expected in zip(ratios, (0.2, 0.3), strict=True)] == [True, True]  # type: ignore[arg-type]


def test_a_request_that_is_written_because_of_an_answer_is_of_the_same_turn() -> None:
    rig = Rig()
    rig.one.io_begins(10 * MS)
    rig.turn(rig.other, 11, 12, reading=False)
    rig.one.io_ended(14 * MS, rig.clock.monotonic_ms(), reading=True)
    assert (rig.value("io-time-ns-total"), rig.value("select-total")) == (4 * MS, 1)


def test_writing_is_io_but_no_select() -> None:
    rig = Rig()
    rig.turn(rig.one, 1, 2, reading=False)
    assert (rig.value("io-time-ns-total"), rig.value("select-total")) == (MS, 0)
