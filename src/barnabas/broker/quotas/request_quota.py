"""The quota on the time of requests: percent of the time of the event loop, as Kafka's ClientRequestQuotaManager.

Kafka counts the time of its network and handler threads. Here one thread does both, so that 100 % is the whole broker. What counts is the
time for which a request holds the event loop: it is parsed and handled, its long work is done in slices, and its response is written. Time
in which it waits does not count, nor do threads for the disk and for decompression.

Requests between brokers, and Produce with acks=0, are exempt. Their time is counted apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.quotas.quota_rules import QuotaRules
from barnabas.broker.quotas.rate_quota import RateQuota, RateSensor
from barnabas.broker.quotas.sampled_rate import SampledRate

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.scheduling.steps import StepTimer
    from barnabas.broker.scheduling.turns import Turns

NS_TO_PERCENT: Final = 100 / 1_000_000_000


class RequestQuota(RateQuota):
    """`exempt` is the time of exempt requests, in percent. As in Kafka a client waits for one window at most."""

    def __init__(self, rules: QuotaRules, sensors_max: int, samples: int, window_ms: int) -> None:
        super().__init__(rules, sensors_max, samples, window_ms, throttle_max_ms=window_ms)
        self.exempt = SampledRate(samples, window_ms)


class RequestUsage:
    """The time of one request. Its steps are counted between `begin` and `end`; `turns.usage` is the request whose step runs. `charge`
    charges them to the client, once, when the response is about to be written. Later steps throttle the next request."""

    __slots__ = ("_charged", "_clock", "_held_ns", "_outer", "_quota", "_sensor", "_started_ns", "_turns", "is_exempt")

    def __init__(self, quota: RequestQuota, sensor: RateSensor | None, is_exempt: bool, clock: Clock, turns: Turns) -> None:
        self._quota = quota
        self._sensor = sensor
        self._clock = clock
        self._turns = turns
        self.is_exempt = is_exempt
        self._outer: StepTimer | None = None  # the usage whose step contains the running one
        self._started_ns = -1
        self._held_ns = 0
        self._charged = False

    def begin(self) -> bool:
        """False where a step runs already."""
        if self._started_ns >= 0:
            return False
        self._started_ns = self._clock.perf_ns()
        self._outer, self._turns.usage = self._turns.usage, self
        if self._outer is not None:
            self._outer.pause(self._started_ns)
        return True

    def end(self) -> None:
        perf_ns = self._clock.perf_ns()
        held_ns = perf_ns - self._started_ns
        self._started_ns = -1
        outer, self._outer = self._outer, None
        self._turns.usage = outer
        if outer is not None:
            outer.resume(perf_ns)
        self._count(held_ns)

    def pause(self, perf_ns: int) -> None:
        """A step of another request begins within the step of this one."""
        self._count(perf_ns - self._started_ns)
        self._started_ns = perf_ns

    def resume(self, perf_ns: int) -> None:
        self._started_ns = perf_ns

    def _count(self, held_ns: int) -> None:
        if not self._charged:
            self._held_ns += held_ns
        else:
            self._record(held_ns)

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def charge(self) -> int:
        """Returns how many milliseconds the client has to wait. 0 if the request was charged before."""
        if self._charged:
            return 0
        self._charged = True
        held_ns, self._held_ns = self._held_ns, 0
        if self._turns.usage is self:  # its step runs and is not paused
            perf_ns = self._clock.perf_ns()
            held_ns += perf_ns - self._started_ns
            self._started_ns = perf_ns
        return self._record(held_ns)

    def _record(self, held_ns: int) -> int:
        if self.is_exempt:
            self._quota.exempt.record(held_ns * NS_TO_PERCENT, self._clock.monotonic_ms())
            return 0
        return 0 if self._sensor is None else self._sensor.record(held_ns * NS_TO_PERCENT, self._clock.monotonic_ms())
