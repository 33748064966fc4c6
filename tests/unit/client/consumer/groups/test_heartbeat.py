"""When a member has to be heard of."""

from __future__ import annotations

import pytest

from barnabas.client.consumer.membership.heartbeat import Heartbeat
from barnabas.client.errors import IllegalArgument
from barnabas.client.network.backoff import ExponentialBackoff


def heartbeat() -> Heartbeat:
    one = Heartbeat(session_timeout_ms=10_000, interval_ms=3000, poll_timeout_ms=60_000, backoff=ExponentialBackoff(100, 1000, jitter=0.0))
    one.reset_timeouts(0)
    return one


def test_an_interval_that_is_longer_than_the_session_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="Heartbeat must be set lower than the session timeout"):
        Heartbeat(session_timeout_ms=3000, interval_ms=3000, poll_timeout_ms=1, backoff=ExponentialBackoff(100, 1000))


def test_the_first_is_due_after_the_interval() -> None:
    one = heartbeat()
    assert (one.is_due(2999), one.is_due(3000), one.ms_to_next(1000)) == (False, True, 2000)


def test_none_is_due_while_one_is_under_way() -> None:
    one = heartbeat()
    one.sent(3000)
    assert not one.is_due(9000)


def test_the_next_is_due_an_interval_after_the_last_was_sent() -> None:
    one = heartbeat()
    one.sent(3000)
    one.received(3500)
    assert (one.is_due(5999), one.is_due(6000)) == (False, True)


def test_a_failed_one_is_tried_again_after_a_growing_wait() -> None:
    one = heartbeat()
    one.sent(3000)
    one.failed(3010)
    first = one.ms_to_next(3010)
    one.sent(3110)
    one.failed(3120)
    assert (first, one.ms_to_next(3120)) == (100, 200)


def test_a_session_ends_when_nothing_was_heard_for_its_time() -> None:
    one = heartbeat()
    one.received(4000)
    assert (one.session_expired(13_999), one.session_expired(14_000)) == (False, True)


def test_an_application_that_does_not_poll_runs_out_of_time() -> None:
    one = heartbeat()
    one.polled(5000)
    assert (one.poll_expired(64_999), one.poll_expired(65_000)) == (False, True)


def test_news_are_told_at_once_but_not_within_a_back_off() -> None:
    one = heartbeat()
    one.hurry(10)
    assert one.is_due(10)
    one.sent(10)
    one.failed(20)
    one.hurry(30)
    assert not one.is_due(30)
    one.forgive(40)
    assert one.is_due(40)


def test_whoever_waits_is_told_the_nearest_of_all_ends() -> None:
    one = heartbeat()
    assert one.ms_to_anything(1000) == 2000
    one.sent(3000)
    assert one.ms_to_anything(3000) == 7000
