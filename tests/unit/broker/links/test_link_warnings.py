"""Log lines about brokers that refuse this one: the first says what to do, and they become rarer."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.links.link_warnings import LinkWarnings
from barnabas.client.errors import Disconnected


class Now:
    monotonic_ms = 0

    def __call__(self) -> int:
        return self.monotonic_ms


def test_a_refused_broker_is_told_once_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    now = Now()
    warnings = LinkWarnings(now)
    for _ in range(100):
        now.monotonic_ms += 50
        warnings.refused(2, "LeaderAndIsr")
    assert len(caplog.records) == 1
    assert "Broker 2 refuses LeaderAndIsr" in caplog.text
    assert "super.users" in caplog.text and "--operation ClusterAction --cluster" in caplog.text
    now.monotonic_ms += 10_000
    warnings.refused(2, "LeaderAndIsr")
    assert len(caplog.records) == 2


def test_each_broker_and_request_has_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    warnings = LinkWarnings(Now())
    warnings.refused(2, "LeaderAndIsr")
    warnings.refused(2, "Fetch")
    warnings.refused(3, "Fetch")
    assert len(caplog.records) == 3


def test_a_broker_that_cannot_be_reached_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    warnings = LinkWarnings(Now())
    for _ in range(100):
        warnings.failed(logging.WARNING, 2, "Fetch", Disconnected("gone"))
    assert [record.getMessage() for record in caplog.records] == ["Fetch to broker 2 failed, and is tried again: gone"]
