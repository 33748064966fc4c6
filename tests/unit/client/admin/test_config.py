"""The settings of the admin client."""

from __future__ import annotations

import pytest

from barnabas.client.admin.config import admin_config
from barnabas.config_def import InvalidConfig

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_the_defaults_are_kafkas() -> None:
    config = admin_config(SERVERS)
    names = [
        "default.api.timeout.ms",
        "request.timeout.ms",
        "retries",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "retry.backoff.ms",
    ]
    assert [config[name] for name in names] == [60000, 30000, 2**31 - 1, 300000, False, 100]


def test_it_must_be_told_where_to_begin() -> None:
    with pytest.raises(InvalidConfig, match=r"You must set either bootstrap.servers or bootstrap.controllers"):
        admin_config({})


def test_it_begins_with_brokers_or_with_controllers_but_not_with_both() -> None:
    with pytest.raises(InvalidConfig, match=r"You cannot configure both bootstrap.servers and bootstrap.controllers."):
        admin_config(SERVERS | {"bootstrap.controllers": "localhost:9093"})


def test_a_call_may_not_be_shorter_than_a_request() -> None:
    with pytest.raises(InvalidConfig, match=r"default.api.timeout.ms must be no smaller than the value of request.timeout.ms"):
        admin_config(SERVERS | {"default.api.timeout.ms": 5, "request.timeout.ms": 10})


def test_longer_requests_make_calls_longer() -> None:
    assert admin_config(SERVERS | {"request.timeout.ms": "90000"})["default.api.timeout.ms"] == 90000


def test_clients_without_an_id_are_numbered() -> None:
    first, second = (admin_config(SERVERS)["client.id"] for _ in range(2))
    assert first.startswith("adminclient-") and int(second[12:]) == int(first[12:]) + 1


def test_keywords_have_underscores_for_dots() -> None:
    assert admin_config(None, {"bootstrap_servers": "localhost:9092", "client_id": "me"})["client.id"] == "me"
