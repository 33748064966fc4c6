"""Where the client stands with each broker, and when it may try again."""

from __future__ import annotations

import itertools

import pytest

from barnabas.client.errors import Disconnected, SaslAuthentication
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.node_states import ALLOWED, ConnectionState, NodeState, NodeStates


def states() -> NodeStates:
    return NodeStates(ExponentialBackoff(50, 1000, jitter=0), ExponentialBackoff(10000, 30000, jitter=0))


@pytest.mark.parametrize(("before", "after"), [*itertools.product(ConnectionState, ConnectionState)])
def test_only_the_moves_of_the_table(before: ConnectionState, after: ConnectionState) -> None:
    node = NodeState(1)
    node.state = before
    if before in ALLOWED[after]:
        node.move(after)
        assert node.state is after
    else:
        with pytest.raises(AssertionError):
            node.move(after)


def test_a_node_nobody_has_tried_may_be_connected_to() -> None:
    known = states()
    assert known.can_connect(1, 0) and not known.is_connecting(1) and not known.is_ready(1, 0) and known.delay_ms(1, 0) == 0


def test_a_connection_from_attempt_to_ready() -> None:
    known = states()
    assert known.begin(1, 0) == 10000
    assert known.is_connecting(1) and not known.can_connect(1, 0) and known.any_connecting()
    known.connected(1)
    known.ready(1)
    assert known.is_ready(1, 0) and not known.any_connecting()


def test_waits_longer_after_each_failure_and_starts_over_once_ready() -> None:
    known = states()
    now, waits = 0, []
    for _ in range(7):
        known.begin(1, now)
        known.failed(1, Disconnected("refused"), now)
        waits.append(known.delay_ms(1, now))
        assert not known.can_connect(1, now + waits[-1] - 1) and known.can_connect(1, now + waits[-1])
        now += waits[-1]
    assert waits == [50, 100, 200, 400, 800, 1000, 1000]
    known.begin(1, now)
    known.connected(1)
    known.ready(1)
    known.failed(1, Disconnected("lost"), now)
    assert known.delay_ms(1, now) == 50


def test_setting_up_may_take_longer_each_time_it_fails() -> None:
    known = states()
    allowed = []
    for now in range(0, 8000, 2000):
        allowed.append(known.begin(1, now))
        known.failed(1, Disconnected("timed out"), now)
    assert allowed == [10000, 20000, 30000, 30000]


def test_a_failed_authentication_is_remembered_and_may_be_tried_again() -> None:
    known = states()
    known.begin(1, 0)
    known.connected(1)
    known.failed(1, SaslAuthentication("no"), 0)
    assert known.of(1).state is ConnectionState.AUTHENTICATION_FAILED and not known.can_connect(1, 0) and known.can_connect(1, 50)


def test_an_idle_connection_that_was_closed_costs_no_wait() -> None:
    known = states()
    known.begin(1, 0)
    known.connected(1)
    known.ready(1)
    known.closed(1)
    assert known.can_connect(1, 0)


def test_a_throttled_node_is_not_ready() -> None:
    known = states()
    known.begin(1, 0)
    known.connected(1)
    known.ready(1)
    known.throttle(1, 500)
    known.throttle(1, 300)
    assert not known.is_ready(1, 499) and known.delay_ms(1, 100) == 400 and known.is_ready(1, 500)


def test_nodes_that_are_gone_are_forgotten_unless_connected() -> None:
    known = states()
    for node_id in (1, 2):
        known.begin(node_id, 0)
    known.failed(1, Disconnected("refused"), 0)
    known.keep_only([])
    assert known.delay_ms(1, 0) == 0 and known.is_connecting(2)
