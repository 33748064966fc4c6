"""Quotas on rates: bytes of Produce and Fetch, and time of requests. How long a client has to wait is Kafka's formula.

The rate O over the window W is above the bound T. It falls to T if nothing happens for X, where O * W / (W + X) = T, so
X = (O - T) / T * W.
"""

from __future__ import annotations

from math import floor

from barnabas.broker.quotas.client_quota import THROTTLE_MAX_MS, ClientQuota, QuotaSensor
from barnabas.broker.quotas.quota_rules import QuotaRules
from barnabas.broker.quotas.sampled_rate import SampledRate
from barnabas.security.principal import KafkaPrincipal


class RateSensor(QuotaSensor):
    def __init__(self, bound: float | None, rate: SampledRate, throttle_max_ms: int, monotonic_ms: int) -> None:
        super().__init__(bound, monotonic_ms)
        self.rate = rate
        self.last_throttle_ms = 0
        self.throttled_at_ms = monotonic_ms
        self._throttle_max_ms = throttle_max_ms

    def record(self, value: float, monotonic_ms: int) -> int:
        """Records a value. Returns how many milliseconds the client has to wait; 0 within the bound."""
        self.rate.record(value, monotonic_ms)
        rate, bound = self.rate.rate(monotonic_ms), self.bound
        if bound is None or rate <= bound:
            return 0
        throttle_ms = self._throttle_max_ms
        if bound > 0:
            throttle_ms = min(floor((rate - bound) / bound * self.rate.window_size_ms(monotonic_ms) + 0.5), throttle_ms)
        self.last_throttle_ms, self.throttled_at_ms = throttle_ms, monotonic_ms
        return throttle_ms

    def throttle_time_ms(self, monotonic_ms: int) -> int:
        """How long the client was last asked to wait; 0 if that was longer ago than the windows of its rate."""
        is_recent = monotonic_ms - self.throttled_at_ms < self.rate.samples * self.rate.window_ms
        return self.last_throttle_ms if is_recent else 0

    def record_only(self, value: float, monotonic_ms: int) -> None:
        """Records a value that throttles the next request. A negative value takes back what was recorded."""
        self.rate.record(value, monotonic_ms)


class RateQuota(ClientQuota[RateSensor]):
    """`samples` windows of `window_ms`: quota.window.num and quota.window.size.seconds."""

    def __init__(self, rules: QuotaRules, sensors_max: int, samples: int, window_ms: int, throttle_max_ms: int = THROTTLE_MAX_MS) -> None:
        super().__init__(rules, sensors_max)
        self._samples = samples
        self._window_ms = window_ms
        self._throttle_max_ms = throttle_max_ms

    def record(self, principal: KafkaPrincipal, client_id: str | None, value: float, monotonic_ms: int) -> int:
        """Charges a value to a client. Returns how many milliseconds the client has to wait; 0 within the bound, or without one."""
        sensor = self.sensor(principal, client_id, monotonic_ms)
        return 0 if sensor is None else sensor.record(value, monotonic_ms)

    def max_in_windows(self, principal: KafkaPrincipal, client_id: str | None, monotonic_ms: int) -> float | None:
        """The largest value that does not exceed the bound for certain: a larger one is throttled after any pause. None: there is none."""
        sensor = self.sensor(principal, client_id, monotonic_ms)
        if sensor is None or sensor.bound is None:
            return None
        return sensor.bound * (self._samples - 1) * self._window_ms / 1000

    def _new_sensor(self, bound: float | None, monotonic_ms: int) -> RateSensor:
        return RateSensor(bound, SampledRate(self._samples, self._window_ms), self._throttle_max_ms, monotonic_ms)
