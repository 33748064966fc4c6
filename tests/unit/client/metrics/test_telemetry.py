"""Telemetry: what is asked and pushed, when, and what follows from every answer; names and sums as Kafka's clients push them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.clock import SystemClock
from barnabas.client.errors import AuthenticationError, Disconnected, IllegalArgument, KafkaError, Timeout, error_for
from barnabas.client.metrics import telemetry_sender
from barnabas.client.metrics.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Metric,
    MetricName,
    Metrics,
    Rate,
    WindowedCount,
)
from barnabas.client.metrics.otlp import CUMULATIVE, DELTA, Point
from barnabas.client.metrics.telemetry import ClientTelemetry, Collector, telemetry_name
from barnabas.client.metrics.telemetry_sender import (
    DEFAULT_PUSH_INTERVAL_MS,
    NEVER_MS,
    ClientTelemetryState,
    ClientTelemetrySubscription,
    TelemetrySender,
)
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.protocol.messages.push_telemetry_response import PushTelemetryResponse
from barnabas.records.codecs import compression
from barnabas.uuid import Uuid
from tests.logged import lines_of

ID = Uuid.from_string("AAAAAAAAAAAAAAAAAAAAAQ")
PAYLOAD = b"some metrics " * 20


class Middle(Random):
    """Draws the middle of every range, so that there is no jitter."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


def new_sender() -> TelemetrySender:
    return TelemetrySender(lambda subscription, now_ms: PAYLOAD, Middle())


def granted(**fields: Any) -> GetTelemetrySubscriptionsResponse:
    settings: dict[str, Any] = {
        "client_instance_id": ID,
        "subscription_id": 7,
        "accepted_compression_types": [compression.ZSTD, compression.GZIP],
        "push_interval_ms": 1000,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**(settings | fields))


def subscribed(**fields: Any) -> TelemetrySender:
    sender = new_sender()
    sender.next_request(0)
    sender.subscribed(granted(**fields), 100)
    return sender


def test_the_subscription_is_asked_for_at_once_without_an_id() -> None:
    sender = new_sender()
    assert sender.time_to_next_ms(0) == 0
    request = sender.next_request(0)
    assert isinstance(request, GetTelemetrySubscriptionsRequest) and request.client_instance_id == Uuid.ZERO
    assert sender.state is ClientTelemetryState.SUBSCRIPTION_IN_PROGRESS
    assert sender.time_to_next_ms(0) == NEVER_MS


def test_metrics_are_pushed_after_the_interval_compressed_as_the_broker_prefers() -> None:
    sender = subscribed()
    assert sender.time_to_next_ms(100) == 1000
    request = sender.next_request(0)
    assert isinstance(request, PushTelemetryRequest)
    assert (request.client_instance_id, request.subscription_id, request.terminating) == (ID, 7, False)
    assert request.compression_type == compression.ZSTD
    assert compression.decompress(compression.ZSTD, bytes(request.metrics)) == PAYLOAD
    sender.pushed(PushTelemetryResponse(), 2000)
    assert (sender.state, sender.time_to_next_ms(2000)) == (ClientTelemetryState.PUSH_NEEDED, 1000)


@given(st.integers())
def test_the_first_push_comes_between_half_and_one_and_a_half_intervals(seed: int) -> None:
    sender = TelemetrySender(lambda subscription, now_ms: b"", Random(seed))
    sender.next_request(0)
    sender.subscribed(granted(), 0)
    assert 500 <= sender.time_to_next_ms(0) <= 1500


def test_a_codec_that_we_do_not_know_is_passed_over() -> None:
    request = subscribed(accepted_compression_types=[9, compression.LZ4]).next_request(0)
    assert isinstance(request, PushTelemetryRequest) and request.compression_type == compression.LZ4


def test_without_codecs_it_is_pushed_as_it_is() -> None:
    request = subscribed(accepted_compression_types=[]).next_request(0)
    assert isinstance(request, PushTelemetryRequest) and (request.compression_type, bytes(request.metrics)) == (0, PAYLOAD)


def test_where_nothing_is_wanted_the_subscription_is_asked_for_again_with_the_id() -> None:
    sender = subscribed(requested_metrics=[])
    assert (sender.state, sender.time_to_next_ms(100)) == (ClientTelemetryState.SUBSCRIPTION_NEEDED, 1000)
    request = sender.next_request(0)
    assert isinstance(request, GetTelemetrySubscriptionsRequest) and request.client_instance_id == ID


@pytest.mark.parametrize("interval", [0, -1])
def test_an_interval_that_cannot_be_is_five_minutes(interval: int) -> None:
    assert subscribed(push_interval_ms=interval).time_to_next_ms(100) == DEFAULT_PUSH_INTERVAL_MS


@pytest.mark.parametrize(
    ("code", "wait_ms"),
    [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 0),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0),
        (ErrorCode.TELEMETRY_TOO_LARGE, 1000),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1000),
        (ErrorCode.INVALID_REQUEST, NEVER_MS),
        (ErrorCode.INVALID_RECORD, NEVER_MS),
        (ErrorCode.UNSUPPORTED_VERSION, NEVER_MS),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NEVER_MS),
    ],
)
def test_a_refused_push_leads_back_to_the_subscription_now_later_or_never(code: ErrorCode, wait_ms: int) -> None:
    sender = subscribed()
    sender.next_request(0)
    sender.pushed(PushTelemetryResponse(error_code=code), 2000)
    assert (sender.state, sender.time_to_next_ms(2000)) == (ClientTelemetryState.SUBSCRIPTION_NEEDED, wait_ms)


def test_a_refused_subscription_waits_for_five_minutes_where_no_interval_is_known() -> None:
    sender = new_sender()
    sender.next_request(0)
    sender.subscribed(granted(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED), 0)
    assert sender.time_to_next_ms(0) == DEFAULT_PUSH_INTERVAL_MS


def test_without_an_instance_id_nothing_is_pushed() -> None:
    assert subscribed(client_instance_id=Uuid.ZERO).time_to_next_ms(100) == NEVER_MS


@pytest.mark.parametrize(
    ("error", "wait_ms", "warnings"),
    [
        (Disconnected("gone"), DEFAULT_PUSH_INTERVAL_MS, 0),
        (Timeout("late"), DEFAULT_PUSH_INTERVAL_MS, 0),
        (error_for(ErrorCode.NOT_CONTROLLER), DEFAULT_PUSH_INTERVAL_MS, 0),
        (UnsupportedVersion("old"), NEVER_MS, 0),
        (AuthenticationError("no"), NEVER_MS, 1),
    ],
)
def test_a_request_without_an_answer_is_tried_in_five_minutes_or_never(
    error: KafkaError, wait_ms: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    sender = subscribed()
    sender.next_request(0)
    sender.failed(error, 2000)
    assert (sender.state, sender.time_to_next_ms(2000)) == (ClientTelemetryState.SUBSCRIPTION_NEEDED, wait_ms)
    assert len(lines_of(caplog, telemetry_sender, logging.WARNING)) == warnings


@pytest.mark.parametrize("asks_first", [False, True])
def test_a_client_that_closes_pushes_a_last_time(asks_first: bool) -> None:
    sender = subscribed()
    if asks_first:
        sender.next_request(0)
    sender.initiate_close()
    assert sender.time_to_next_ms(100) == 0
    request = sender.next_request(0)
    assert isinstance(request, PushTelemetryRequest) and request.terminating
    assert sender.time_to_next_ms(100) == NEVER_MS
    sender.close()
    assert sender.state is ClientTelemetryState.TERMINATED


@pytest.mark.parametrize("make", [new_sender, lambda: subscribed(requested_metrics=[])])
def test_a_client_that_was_asked_for_nothing_pushes_nothing_at_its_end(make: Callable[[], TelemetrySender]) -> None:
    sender = make()
    sender.initiate_close()
    assert (sender.state, sender.next_request(0), sender.time_to_next_ms(0)) == (ClientTelemetryState.TERMINATED, None, NEVER_MS)


ANSWERS = {
    ClientTelemetryState.SUBSCRIPTION_IN_PROGRESS: ("granted", "refused", "failed"),
    ClientTelemetryState.PUSH_IN_PROGRESS: ("pushed", "push refused", "failed"),
}


@given(st.lists(st.sampled_from(("next", "granted", "refused", "pushed", "push refused", "failed", "close", "end")), max_size=20))
def test_answers_in_any_order_after_the_close_change_nothing(steps: list[str]) -> None:
    """Whatever comes, no transition outside of the table is made."""
    sender = new_sender()
    for step in steps:
        if step == "next":
            sender.next_request(0)
        elif step == "close":
            sender.initiate_close()
        elif step == "end":
            sender.close()
        elif step in ANSWERS.get(sender.state, ()):
            _answer(sender, step)
        elif sender.state in (
            ClientTelemetryState.TERMINATING_PUSH_NEEDED,
            ClientTelemetryState.TERMINATING_PUSH_IN_PROGRESS,
            ClientTelemetryState.TERMINATED,
        ):
            before = sender.state
            _answer(sender, step)
            assert sender.state is before


def _answer(sender: TelemetrySender, step: str) -> None:
    if step in ("granted", "refused"):
        sender.subscribed(granted(error_code=0 if step == "granted" else ErrorCode.INVALID_REQUEST), 0)
    elif step == "failed":
        sender.failed(Disconnected("gone"), 0)
    else:
        sender.pushed(PushTelemetryResponse(error_code=0 if step == "pushed" else ErrorCode.UNKNOWN_SUBSCRIPTION_ID), 0)


@pytest.mark.parametrize(
    ("group", "name", "full"),
    [
        ("producer-metrics", "record-send-rate", "org.apache.kafka.producer.record.send.rate"),
        ("consumer-fetch-manager-metrics", "fetch-latency-avg", "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg"),
        ("producer-node-metrics", "request-total", "org.apache.kafka.producer.node.request.total"),
        ("kafka-metrics-count", "count", "org.apache.kafka.kafka.count.count"),
    ],
)
def test_names_are_those_that_kafka_pushes(group: str, name: str, full: str) -> None:
    assert telemetry_name(MetricName(name, group)) == full


@pytest.mark.parametrize(
    ("prefixes", "selected"),
    [
        (("*",), True),
        ((), False),
        (("org.apache.kafka.producer.",), True),
        (("org.apache.kafka.consumer.", "org"), True),
        (("*", "x"), False),
    ],
)
def test_metrics_are_selected_by_their_prefix(prefixes: tuple[str, ...], selected: bool) -> None:
    assert ClientTelemetrySubscription(ID, 0, 1, (), False, prefixes).selects("org.apache.kafka.producer.record.send.rate") is selected


class Time:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def all_metrics(delta: bool) -> ClientTelemetrySubscription:
    return ClientTelemetrySubscription(ID, 0, 1000, (), delta, ("*",))


def collected(collector: Collector, delta: bool, now_ms: int) -> dict[str, Point]:
    return {point.name.rpartition(".")[2]: point for point in collector.points(all_metrics(delta), now_ms)}


def new_metrics(time: Time) -> Metrics:
    metrics = Metrics(time, tags={"client-id": "me"})
    for name, stat in {
        "sum": CumulativeSum(),
        "count": CumulativeCount(),
        "window": WindowedCount(2, 30000),
        "rate": Rate(2, 30000),
        "avg": Avg(2, 30000),
    }.items():
        metrics.add("sensor", metrics.metric_name(name, "g", node_id="node-1"), stat)
    metrics.gauge(metrics.metric_name("gauge", "g"), lambda: 5)
    metrics.gauge(metrics.metric_name("text", "g"), lambda: "no number")
    metrics.gauge(metrics.metric_name("flag", "g"), lambda: True)
    metrics.gauge(metrics.metric_name("broken", "g"), lambda: 1 / 0)
    return metrics


def test_totals_and_counts_are_sums_and_all_else_that_is_a_number_are_gauges() -> None:
    metrics = new_metrics(Time())
    metrics.sensor("sensor").record(3)
    points = collected(Collector(metrics, 10), False, 20)
    assert {name: point.temporality for name, point in points.items()} == {
        "sum": CUMULATIVE,
        "count": CUMULATIVE,
        "window": CUMULATIVE,
        "rate": 0,
        "avg": 0,
        "gauge": 0,
    }
    assert (points["sum"].value, points["count"].value, points["gauge"].value) == (3, 1, 5)
    assert (points["sum"].start_ms, points["sum"].time_ms, points["gauge"].start_ms) == (10, 20, 0)


def test_tags_are_attributes_except_the_client_id() -> None:
    assert collected(Collector(new_metrics(Time()), 0), False, 1)["sum"].attributes == {"node_id": "node-1"}


def test_deltas_are_what_came_since_the_last_push() -> None:
    metrics = new_metrics(Time())
    collector = Collector(metrics, 10)
    metrics.sensor("sensor").record(3)
    first = collected(collector, True, 20)["sum"]
    metrics.sensor("sensor").record(4)
    second = collected(collector, True, 30)["sum"]
    assert [(point.value, point.start_ms, point.temporality) for point in (first, second)] == [(3, 10, DELTA), (4, 20, DELTA)]


def test_after_a_change_of_temporality_sums_begin_anew() -> None:
    metrics = new_metrics(Time())
    collector = Collector(metrics, 10)
    metrics.sensor("sensor").record(3)
    collected(collector, True, 20)
    collector.forget(25)
    again = collected(collector, True, 30)["sum"]
    assert (again.value, again.start_ms) == (3, 25)


def test_metrics_that_come_and_go_are_followed() -> None:
    metrics = Metrics(Time())
    collector = Collector(metrics, 10)
    metrics.add("late", metrics.metric_name("sum", "g"), CumulativeSum())
    assert collected(collector, False, 20)["sum"].start_ms == 20
    metrics.remove_sensor("late")
    assert collected(collector, False, 30) == {}


def own(name: str, value: float, *, is_sum: bool = False) -> Metric:
    return Metric.of(MetricName(name, "app-metrics", (("queue", "q"),)), lambda: value, is_sum=is_sum)


def test_metrics_of_the_application_are_pushed_until_they_are_unregistered() -> None:
    """KIP-1076."""
    collector = Collector(Metrics(Time()), 10)
    length, done = own("length", 4), own("done", 9, is_sum=True)
    collector.register(length)
    collector.register(done)
    points = {point.name: point for point in collector.points(all_metrics(True), 20)}
    assert {name: (point.value, point.temporality, point.attributes) for name, point in points.items()} == {
        "org.apache.kafka.app.length": (4, 0, {"queue": "q"}),
        "org.apache.kafka.app.done": (9, DELTA, {"queue": "q"}),
    }
    collector.unregister(length)
    assert list(collected(collector, False, 30)) == ["done"]


def test_a_metric_that_is_registered_again_takes_the_place_of_the_first() -> None:
    collector = Collector(Metrics(Time()), 10)
    collector.register(own("length", 4))
    collector.register(own("length", 5))
    assert collected(collector, False, 20)["length"].value == 5


def test_metrics_of_the_client_are_neither_replaced_nor_removed_by_the_application() -> None:
    metrics = Metrics(Time())
    name = metrics.metric_name("gauge", "g")
    metrics.gauge(name, lambda: 1)
    collector = Collector(metrics, 10)
    collector.register(Metric.of(name, lambda: 2))
    assert collected(collector, False, 20)["gauge"].value == 1
    collector.unregister(Metric.of(name, lambda: 2))
    assert collected(collector, False, 30)["gauge"].value == 1


def test_only_metrics_can_be_registered() -> None:
    with pytest.raises(IllegalArgument, match=r"Metric\.of"):
        Collector(Metrics(Time()), 10).register("length")  # type: ignore[arg-type]


class FakeNetwork:
    """Answers what it is told to, in turn; then nothing more."""

    def __init__(self, *answers: Message | KafkaError) -> None:
        self.answers = list(answers)
        self.requests: list[Message] = []
        self.done = asyncio.Event()

    async def any_ready(self, deadline_ms: int) -> int:
        return 3

    def is_ready(self, node_id: int) -> bool:
        return True

    def timeout(self, message: str) -> Timeout:
        return Timeout(message)

    async def send(self, node_id: int, request: Message, *, timeout_ms: int | None = None) -> Message:
        assert node_id == 3
        self.requests.append(request)
        if not self.answers:
            self.done.set()
            await asyncio.get_running_loop().create_future()
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer


def run(network_answers: list[Message | KafkaError], use: Callable[[ClientTelemetry, FakeNetwork], Any]) -> list[Message]:
    async def go() -> list[Message]:
        network = FakeNetwork(*network_answers)
        metrics = new_metrics(Time())
        telemetry = ClientTelemetry(network, metrics, clock=SystemClock(), request_timeout_ms=1000, random=Middle())
        telemetry.start()
        try:
            await use(telemetry, network)
        finally:
            await telemetry.close(0)
        return network.requests

    return asyncio.run(go())


def test_the_instance_id_is_waited_for() -> None:
    async def use(telemetry: ClientTelemetry, network: FakeNetwork) -> None:
        assert await telemetry.client_instance_id(10_000) == ID

    run([granted()], use)


@pytest.mark.parametrize("answers", [[], [UnsupportedVersion("old")], [granted(error_code=ErrorCode.INVALID_REQUEST)]])
def test_an_instance_id_that_does_not_come_times_out(answers: list[Message | KafkaError]) -> None:
    async def use(telemetry: ClientTelemetry, network: FakeNetwork) -> None:
        with pytest.raises(Timeout):
            await telemetry.client_instance_id(50)
        with pytest.raises(IllegalArgument):
            await telemetry.client_instance_id(-1)

    run(answers, use)


def test_closing_pushes_once_more_and_may_be_repeated() -> None:
    async def use(telemetry: ClientTelemetry, network: FakeNetwork) -> None:
        await telemetry.client_instance_id(10_000)
        network.answers.append(PushTelemetryResponse())
        await telemetry.close(1000)
        await telemetry.close(1000)

    requests = run([granted()], use)
    assert [type(request) for request in requests] == [GetTelemetrySubscriptionsRequest, PushTelemetryRequest]
    assert isinstance(requests[-1], PushTelemetryRequest) and requests[-1].terminating


def test_closing_does_not_fail_where_the_last_push_does() -> None:
    async def use(telemetry: ClientTelemetry, network: FakeNetwork) -> None:
        await telemetry.client_instance_id(10_000)
        network.answers.append(Disconnected("gone"))
        await telemetry.close(1000)

    assert len(run([granted()], use)) == 2


def test_pushes_follow_each_other_until_the_broker_wants_another_subscription() -> None:
    async def use(telemetry: ClientTelemetry, network: FakeNetwork) -> None:
        await asyncio.wait_for(network.done.wait(), 10)

    stale = PushTelemetryResponse(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    requests = run([granted(push_interval_ms=1), PushTelemetryResponse(), stale, granted(push_interval_ms=1)], use)
    assert [type(request).__name__.removesuffix("Request") for request in requests[:5]] == [
        "GetTelemetrySubscriptions",
        "PushTelemetry",
        "PushTelemetry",
        "GetTelemetrySubscriptions",
        "PushTelemetry",
    ]
