"""The rules of KIP-714 for one client, with a clock that the test moves."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.scheduling.turns import at_once
from barnabas.broker.telemetry.client_instance import EXPIRY_MS_MIN, ClientInstance
from barnabas.broker.telemetry.client_metrics_manager import EXPIRY_CHECK_MS, POINTS_PER_SLICE, ClientMetricsManager
from barnabas.broker.telemetry.otlp_reader import ReceivedPoint, ReceivedPoints
from barnabas.broker.telemetry.received_metrics import ReceivedMetrics
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.uuid import Uuid

INTERVAL_MS = 1000
MAX_BYTES = 100


class Client:
    """A client of a manager that has one subscription, for all metrics of all clients, every second."""

    def __init__(self, manager: ClientMetricsManager | None = None, connection: str = "c1") -> None:
        if manager is None:
            manager = ClientMetricsManager(ReceivedMetrics(), MAX_BYTES, Random(1))
            manager.subscriptions.update("all", {"metrics": "*", "interval.ms": str(INTERVAL_MS)})
        self.manager = manager
        self.connection = connection
        self.now_ms = 0
        self.id = Uuid.ZERO
        self.subscription_id = 0

    def get(self) -> ErrorCode:
        answer = self.manager.get_subscription(self.id, {"client_id": "app"}, self.connection, self.now_ms)
        if isinstance(answer, ErrorCode):
            return answer
        self.id, self.subscription_id = answer.id, answer.requested.subscription_id
        return ErrorCode.NONE

    def push(self, metrics: bytes = b"", compression: int = 0, terminating: bool = False) -> ErrorCode:
        request = PushTelemetryRequest(self.id, self.subscription_id, terminating, compression, metrics)
        answer = self.manager.begin_push(request, {"client_id": "app"}, self.connection, self.now_ms)
        if isinstance(answer, ErrorCode):
            return answer
        points = [ReceivedPoint("m", (), 1.0, True, True)] if metrics else []
        at_once(self.manager.pushed(answer, len(metrics), ReceivedPoints(points)))
        return ErrorCode.NONE

    def change_subscription(self) -> None:
        self.manager.subscriptions.update("all", {"metrics": "a.", "interval.ms": str(INTERVAL_MS)})

    @property
    def instance(self) -> ClientInstance:
        return next(instance for instance in self.manager.instances() if instance.id == self.id)


def test_a_client_gets_an_id_and_keeps_it() -> None:
    client = Client()
    assert client.get() is ErrorCode.NONE
    assert client.id != Uuid.ZERO
    first, client.now_ms = client.id, INTERVAL_MS
    assert client.get() is ErrorCode.NONE
    assert client.id == first


def test_a_broker_that_has_not_seen_the_client_takes_its_id() -> None:
    client = Client()
    client.id = Uuid(bytes(range(16)))
    assert client.get() is ErrorCode.NONE
    assert client.id == Uuid(bytes(range(16)))


def test_the_subscription_is_given_once_an_interval() -> None:
    client = Client()
    client.get()
    client.now_ms = INTERVAL_MS - 1
    assert client.get() is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms = INTERVAL_MS
    assert client.get() is ErrorCode.NONE
    assert client.instance.throttled == 1


def test_a_subscription_that_changed_is_given_at_once() -> None:
    client = Client()
    client.get()
    before = client.subscription_id
    client.change_subscription()
    assert client.get() is ErrorCode.NONE
    assert client.subscription_id != before


def test_the_first_push_may_come_early_and_the_next_ones_once_an_interval() -> None:
    client = Client()
    client.get()
    client.now_ms = 500
    assert client.push() is ErrorCode.NONE
    client.now_ms = 500 + INTERVAL_MS - 1
    assert client.push() is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms += 1
    assert client.push() is ErrorCode.NONE


def test_the_last_push_may_come_at_any_time_and_nothing_may_follow_it() -> None:
    client = Client()
    client.get()
    client.now_ms = 1
    assert [client.push(), client.push(terminating=True)] == [ErrorCode.NONE, ErrorCode.NONE]
    client.now_ms = INTERVAL_MS * 2
    assert client.push(terminating=True) is ErrorCode.INVALID_REQUEST


def test_a_push_with_an_old_subscription_is_refused_and_the_new_one_given_at_once() -> None:
    client = Client()
    client.get()
    client.change_subscription()
    assert client.push() is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.manager.unknown_subscriptions == 1
    assert [client.get(), client.push()] == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    client.now_ms = INTERVAL_MS
    assert client.push() is ErrorCode.NONE


@pytest.mark.parametrize("client_id", [Uuid.ZERO, Uuid.METADATA_TOPIC_ID])
def test_a_push_needs_an_id_that_is_not_reserved(client_id: Uuid) -> None:
    client = Client()
    client.id = client_id
    assert client.push() is ErrorCode.INVALID_REQUEST
    assert client.manager.instances() == []


@pytest.mark.parametrize("compression", [-1, 5, 100])
def test_a_push_in_an_unknown_compression_is_refused_and_the_subscription_given_again(compression: int) -> None:
    client = Client()
    client.get()
    assert client.push(compression=compression) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert client.get() is ErrorCode.NONE


def test_a_push_may_have_as_many_bytes_as_the_setting_says() -> None:
    client = Client()
    client.get()
    assert client.push(b"x" * (MAX_BYTES + 1)) is ErrorCode.TELEMETRY_TOO_LARGE
    client.now_ms = INTERVAL_MS
    assert client.push(b"x" * MAX_BYTES) is ErrorCode.NONE
    assert (client.instance.pushes, client.instance.bytes_received) == (1, MAX_BYTES)


def test_what_was_pushed_is_kept_as_long_as_the_client_is_connected() -> None:
    client = Client()
    client.get()
    client.push(b"x")
    assert [series.labels["client_id"] for series in client.manager.received.series()] == ["app"]
    client.manager.disconnected("another")
    assert client.manager.received.client_count == 1
    client.manager.disconnected(client.connection)
    assert (client.manager.instances(), client.manager.received.client_count) == ([], 0)


def test_a_client_that_connects_again_is_not_forgotten_with_its_old_connection() -> None:
    client = Client()
    client.get()
    client.connection, client.now_ms = "c2", INTERVAL_MS
    client.push(b"x")
    client.manager.disconnected("c1")
    assert client.manager.received.client_count == 1
    client.manager.disconnected("c2")
    assert client.manager.instances() == []


def test_a_client_that_is_silent_is_forgotten_after_a_minute() -> None:
    client = Client()
    client.get()
    client.push(b"x")
    client.manager.expire(EXPIRY_MS_MIN - EXPIRY_CHECK_MS)
    assert len(client.manager.instances()) == 1
    client.manager.expire(EXPIRY_MS_MIN)
    assert (client.manager.instances(), client.manager.received.series_count) == ([], 0)


def test_a_client_with_a_long_interval_is_forgotten_after_three_of_them() -> None:
    client = Client()
    client.manager.subscriptions.update("all", {"metrics": "*", "interval.ms": "60000"})
    client.get()
    client.manager.expire(180_000 - EXPIRY_CHECK_MS)
    assert len(client.manager.instances()) == 1
    client.manager.expire(180_000)
    assert client.manager.instances() == []


def test_beyond_the_number_of_clients_the_one_silent_for_longest_is_forgotten() -> None:
    manager = ClientMetricsManager(ReceivedMetrics(), MAX_BYTES, Random(1), instances_max=2)
    clients = [Client(manager, f"c{number}") for number in range(3)]
    clients[0].get()
    clients[1].get()
    clients[0].push(b"x")
    clients[2].get()
    assert [instance.id for instance in manager.instances()] == [clients[0].id, clients[2].id]


def test_what_a_client_pushed_is_dropped_if_it_left_while_that_was_read() -> None:
    client = Client()
    client.get()
    request = PushTelemetryRequest(client.id, client.subscription_id, metrics=b"x")
    instance = client.manager.begin_push(request, {}, client.connection, 1)
    assert isinstance(instance, ClientInstance)
    client.manager.disconnected(client.connection)
    at_once(client.manager.pushed(instance, 1, ReceivedPoints([ReceivedPoint("m", (), 1.0, False, False)])))
    assert client.manager.received.client_count == 0


def test_many_points_are_kept_in_slices_until_the_client_leaves() -> None:
    client = Client()
    client.get()
    points = [ReceivedPoint(f"m{number}", (), 1.0, False, False) for number in range(3 * POINTS_PER_SLICE)]
    work = client.manager.pushed(client.instance, 1, ReceivedPoints(points))
    for slices in (1, 2):
        next(work)
        assert client.manager.received.series_count == slices * POINTS_PER_SLICE
    client.manager.disconnected(client.connection)
    at_once(work)
    assert client.manager.received.series_count == 0


def test_a_push_that_cannot_be_read_is_counted() -> None:
    client = Client()
    client.get()
    client.manager.unreadable(client.instance)
    assert (client.instance.failures, client.instance.last_error) == (1, ErrorCode.INVALID_RECORD)
