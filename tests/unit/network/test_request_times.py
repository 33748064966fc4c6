"""The times of a request, from the first byte to the response: what an exchange and its connection record."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

from barnabas.metrics.histogram import Histogram, quantiles
from barnabas.network.exchange import Exchange, Peer
from barnabas.network.request_metrics import RequestMetrics
from barnabas.protocol.slices import Streamed
from tests.unit.network.harness import Echo, Keeper, client_of, serving, until

MS = 1_000_000  # nanoseconds


class Measured(Echo):
    """Holds the event loop for 3 ms with each request."""

    def __init__(self) -> None:
        self.metrics = RequestMetrics("Echo", 3)

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        exchange.metrics, exchange.version = self.metrics, 2
        until_ns = time.perf_counter_ns() + 3 * MS
        while time.perf_counter_ns() < until_ns:
            pass
        super().dispatch(exchange, frame)


class MeasuredKeeper(Keeper):
    def __init__(self) -> None:
        super().__init__()
        self.metrics = RequestMetrics("Keeper", 1)

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        exchange.metrics = self.metrics
        super().dispatch(exchange, frame)


def recorded(histogram: Histogram) -> float:
    """The median, in milliseconds."""
    return round(quantiles(histogram.counts(), (0.5,))[0] / 1000)


def an_exchange(received_ns: int, dequeued_ns: int) -> tuple[Exchange, RequestMetrics]:
    peer: Any = SimpleNamespace(id="test", answered=lambda: None, request_left_queue=lambda size: None)
    exchange = Exchange(cast("Peer", peer), 100, False, received_ns, dequeued_ns)
    exchange.metrics = metrics = RequestMetrics("Test", 5)
    exchange.version = 4
    return exchange, metrics


def times(metrics: RequestMetrics) -> dict[str, float]:
    names = ("request_queue", "local", "remote", "throttle", "response_queue", "response_send", "total")
    return {name: recorded(getattr(metrics, f"{name}_us")) for name in names}


def test_an_immediate_response_has_no_remote_time() -> None:
    exchange, metrics = an_exchange(10 * MS, 15 * MS)
    exchange.respond([b"1234", Streamed(1000, cast("Any", None))])
    exchange.dispatched_ns = 25 * MS
    exchange.throttle_ms = 7
    exchange.record(27 * MS, 30 * MS)
    expected = {"request_queue": 5, "local": 10, "remote": 0, "throttle": 7, "response_queue": 2, "response_send": 3, "total": 20}
    assert times(metrics) == expected
    assert (metrics.versions, metrics.request_bytes.count, metrics.errors) == ([0, 0, 0, 0, 1], 1, {})
    assert quantiles(metrics.response_bytes.counts(), (0.5,))[0] > 1000 * 0.96


def test_a_response_that_waited_has_remote_time() -> None:
    exchange, metrics = an_exchange(10 * MS, 10 * MS)
    exchange.dispatched_ns = 12 * MS
    exchange.respond([b"1234"])
    exchange.complete_ns = 52 * MS
    exchange.record(52 * MS, 54 * MS)
    expected = {"request_queue": 0, "local": 2, "remote": 40, "throttle": 0, "response_queue": 0, "response_send": 2, "total": 44}
    assert times(metrics) == expected


def test_the_work_of_a_task_is_local_time() -> None:
    exchange, metrics = an_exchange(10 * MS, 10 * MS)
    exchange.is_task = True
    exchange.dispatched_ns = 12 * MS
    exchange.respond([b"1234"])
    exchange.complete_ns = 52 * MS
    exchange.record(52 * MS, 53 * MS)
    assert (times(metrics)["local"], times(metrics)["remote"]) == (42, 0)


async def test_a_connection_records_each_request_once_with_its_turn() -> None:
    dispatcher = Measured()
    async with serving(dispatcher) as server, client_of(server) as client:
        client.send(b"Pone", b"Ptwo", b"Pthree")  # of one read: the second and the third wait for those before them
        assert [await client.receive() for _ in range(3)] == [b"Pone", b"Ptwo", b"Pthree"]
        metrics = dispatcher.metrics
        await until(lambda: metrics.total_us.count == 3)
        assert (metrics.versions, metrics.request_bytes.count) == ([0, 0, 3], 3)
        assert recorded(metrics.local_us) >= 3
        assert (metrics.response_send_us.count, metrics.remote_us.count, metrics.request_queue_us.count) == (3, 0, 2)


async def test_a_response_that_comes_later_is_recorded_when_it_is_sent() -> None:
    dispatcher = MeasuredKeeper()
    async with serving(dispatcher) as server, client_of(server) as client:
        client.send(b"Pone", b"Ptwo")
        await until(lambda: len(dispatcher.kept) == 2)
        dispatcher.answer(b"Ptwo")
        assert dispatcher.metrics.total_us.count == 0  # its turn is after the first
        dispatcher.answer(b"Pone")
        assert (await client.receive(), await client.receive()) == (b"Pone", b"Ptwo")
        assert (dispatcher.metrics.total_us.count, dispatcher.metrics.remote_us.count) == (2, 2)


async def test_a_request_whose_client_has_left_is_recorded_when_it_is_answered() -> None:
    dispatcher = MeasuredKeeper()
    async with serving(dispatcher) as server:
        async with client_of(server) as client:
            client.send(b"one")
            await until(lambda: dispatcher.kept)
        await until(lambda: not server.connections)
        dispatcher.answer(b"one")
        assert dispatcher.metrics.total_us.count == 1
