from __future__ import annotations

import logging

import pytest

from barnabas.broker.telemetry.subscriptions import ATTRIBUTE_LENGTH_MAX, INTERVAL_MS_DEFAULT, ClientMetricsSubscriptions, Requested
from barnabas.uuid import Uuid

CLIENT = Uuid(bytes(range(16)))


def subscriptions(**configs: dict[str, str]) -> ClientMetricsSubscriptions:
    subscribed = ClientMetricsSubscriptions()
    for name, properties in configs.items():
        subscribed.update(name, properties)
    return subscribed


def requested(subscribed: ClientMetricsSubscriptions, client: Uuid = CLIENT, **attributes: str | None) -> Requested:
    return subscribed.requested(client, attributes)


def test_without_a_subscription_a_client_is_asked_for_nothing() -> None:
    assert requested(ClientMetricsSubscriptions())[:2] == ((), INTERVAL_MS_DEFAULT)


def test_a_subscription_without_patterns_is_for_every_client() -> None:
    assert requested(subscriptions(all={"metrics": "a.,b.", "interval.ms": "500"}))[:2] == (("a.", "b."), 500)


def test_the_metrics_of_all_matching_subscriptions_are_asked_for_at_the_shortest_interval() -> None:
    subscribed = subscriptions(
        one={"metrics": "b.,a.", "interval.ms": "1000", "match": "client_id=app-.*"},
        two={"metrics": "a.", "interval.ms": "500", "match": "client_software_name=librdkafka,client_id=app-1"},
        three={"metrics": "c.", "interval.ms": "100", "match": "client_id=other"},
    )
    assert requested(subscribed, client_id="app-1", client_software_name="librdkafka")[:2] == (("a.", "b."), 500)
    assert requested(subscribed, client_id="app-1", client_software_name="java")[:2] == (("a.", "b."), 1000)
    assert requested(subscribed, client_id="the-app-1", client_software_name="librdkafka")[0] == ()


def test_a_star_asks_for_all_metrics_whatever_else_is_asked_for() -> None:
    assert requested(subscriptions(one={"metrics": "a."}, two={"metrics": "*"}))[0] == ("*",)


def test_an_attribute_that_is_unknown_or_very_long_matches_nothing() -> None:
    subscribed = subscriptions(one={"metrics": "a.", "match": "client_id=.*"})
    assert requested(subscribed, client_id="x" * ATTRIBUTE_LENGTH_MAX)[0] == ("a.",)
    assert requested(subscribed, client_id=None)[0] == ()
    assert requested(subscribed)[0] == ()
    assert requested(subscribed, client_id="x" * (ATTRIBUTE_LENGTH_MAX + 1))[0] == ()


def test_the_id_of_what_is_asked_for_changes_with_it_and_with_the_client() -> None:
    first = requested(subscriptions(one={"metrics": "a.,b.", "interval.ms": "500"}))
    assert requested(subscriptions(other={"metrics": "b.,a.", "interval.ms": "500"})) == first
    others = [
        requested(subscriptions(one={"metrics": "a.", "interval.ms": "500"})),
        requested(subscriptions(one={"metrics": "a.,b.", "interval.ms": "501"})),
        requested(subscriptions(one={"metrics": "a.,b.", "interval.ms": "500"}), Uuid(bytes(15) + b"x")),
    ]
    assert len({first.subscription_id, *(other.subscription_id for other in others)}) == 4
    assert all(-(2**31) <= other.subscription_id < 2**31 for other in others)


def test_each_change_is_a_new_version_and_a_subscription_without_configs_is_removed() -> None:
    subscribed = subscriptions(one={"metrics": "a."})
    assert subscribed.version == 1
    subscribed.update("nobody", {})
    assert subscribed.version == 1
    subscribed.update("one", {})
    assert (subscribed.version, requested(subscribed)[0]) == (2, ())


def test_configs_that_are_invalid_in_the_store_are_logged_and_not_used(caplog: pytest.LogCaptureFixture) -> None:
    subscribed = subscriptions(one={"metrics": "a."})
    with caplog.at_level(logging.ERROR):
        subscribed.update("one", {"metrics": "a.", "match": "client_id=(?=a)"})
    assert requested(subscribed)[0] == ()
    assert "The client metrics subscription one is not used: Illegal client matching pattern: client_id=(?=a)" in caplog.text
