"""The time of requests: steps that contain steps of other requests, and what is charged to which client."""

from __future__ import annotations

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.client_quota_callback import DEFAULT
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.rate_quota import RateSensor
from barnabas.broker.quotas.request_quota import RequestUsage
from barnabas.broker.scheduling.turns import Turns
from barnabas.security.principal import ANONYMOUS


class ManualClock(Clock):
    def __init__(self) -> None:
        self.perf_ms = 0

    def monotonic_ms(self) -> int:
        return 0

    def perf_ns(self) -> int:
        return self.perf_ms * 1_000_000


class Usages:
    """Requests of clients that all have a quota."""

    def __init__(self) -> None:
        self.quotas = ClientQuotas(BrokerConfig({}).number)
        self.quotas.quota_changed(None, DEFAULT, {"request_percentage": 100.0})
        self.clock = ManualClock()
        self.turns = Turns()

    def of(self, client_id: str) -> RequestUsage:
        return RequestUsage(self.quotas.request, self._sensor(client_id), False, self.clock, self.turns)

    def charged_ms(self, client_id: str) -> float:
        return self._sensor(client_id).rate.total(0) * 10

    def _sensor(self, client_id: str) -> RateSensor:
        sensor = self.quotas.request.sensor(ANONYMOUS, client_id, 0)
        assert sensor is not None
        return sensor

    def pass_ms(self, ms: int) -> None:
        self.clock.perf_ms += ms


@pytest.mark.parametrize("is_charged_before", [False, True])
def test_a_step_within_a_step_counts_once(is_charged_before: bool) -> None:
    usages = Usages()
    outer, inner = usages.of("outer"), usages.of("inner")
    if is_charged_before:
        outer.charge()
        inner.charge()
    assert outer.begin()
    usages.pass_ms(5)
    assert inner.begin() and usages.turns.usage is inner
    usages.pass_ms(7)
    inner.end()
    assert usages.turns.usage is outer
    usages.pass_ms(2)
    outer.end()
    assert usages.turns.usage is None
    outer.charge()
    inner.charge()
    assert [usages.charged_ms("outer"), usages.charged_ms("inner")] == pytest.approx([7, 7])


def test_a_request_that_is_charged_within_another_step_pays_for_its_own_time() -> None:
    usages = Usages()
    outer, inner = usages.of("outer"), usages.of("inner")
    outer.begin()
    usages.pass_ms(5)
    inner.begin()
    usages.pass_ms(7)
    outer.charge()
    assert usages.charged_ms("outer") == pytest.approx(5)
    assert not outer.begin(), "its step runs, although it is paused"
    inner.charge()
    usages.pass_ms(3)
    inner.end()
    usages.pass_ms(2)
    outer.end()
    assert [usages.charged_ms("outer"), usages.charged_ms("inner")] == pytest.approx([7, 10])
