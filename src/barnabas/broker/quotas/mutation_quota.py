"""The quota on changes of topics: created and deleted partitions a second, as Kafka's ControllerMutationQuotaManager (KIP-599).

A token bucket lets a client that was quiet create many partitions at once. A request of a version that has THROTTLING_QUOTA_EXCEEDED is
strict: an exhausted bucket refuses further topics. A request of an older version is permissive: its topics are all changed, and the client
waits afterwards.
"""

from __future__ import annotations

from math import floor

from barnabas.broker.quotas.client_quota import THROTTLE_MAX_MS, ClientQuota, QuotaSensor
from barnabas.broker.quotas.quota_rules import QuotaRules
from barnabas.broker.quotas.token_bucket import TokenBucket
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.security.principal import KafkaPrincipal


class BucketSensor(QuotaSensor):
    def __init__(self, bound: float | None, samples: int, window_ms: int, monotonic_ms: int) -> None:
        super().__init__(bound, monotonic_ms)
        self.bucket = TokenBucket(samples, window_ms, bound or 0, monotonic_ms)
        self._windows_ms = samples * window_ms
        self._last_throttle_ms = 0
        self._throttled_at_ms = monotonic_ms

    def bound_changed(self, bound: float | None, monotonic_ms: int) -> None:
        self.bucket.tokens(monotonic_ms)  # fills at the old rate until now
        self.bound = bound
        self.bucket.rate = bound or 0

    def throttle_ms(self, monotonic_ms: int) -> int:
        """Milliseconds until the bucket is not overdrawn any more."""
        tokens = self.bucket.tokens(monotonic_ms)
        if tokens >= 0:
            return 0
        return min(floor(-tokens / self.bucket.rate * 1000 + 0.5), THROTTLE_MAX_MS) if self.bucket.rate > 0 else THROTTLE_MAX_MS

    def throttled(self, throttle_ms: int, monotonic_ms: int) -> None:
        """The client has to wait for so long."""
        self._last_throttle_ms, self._throttled_at_ms = throttle_ms, monotonic_ms

    def throttle_time_ms(self, monotonic_ms: int) -> int:
        """How long the client was last asked to wait; 0 if that was longer ago than the windows of the quota."""
        return self._last_throttle_ms if monotonic_ms - self._throttled_at_ms < self._windows_ms else 0


class MutationQuota:
    """The quota of one request."""

    def __init__(self, sensor: BucketSensor, is_strict: bool) -> None:
        self._sensor = sensor
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def record(self, partitions: int, monotonic_ms: int) -> None:
        """Takes tokens for partitions that are about to be created or deleted. Raises ThrottlingQuotaExceeded if the quota is strict and
        was exhausted before."""
        sensor = self._sensor
        if self._is_strict:
            throttle_ms = sensor.throttle_ms(monotonic_ms)
            if throttle_ms > 0:
                self._throttle(throttle_ms, monotonic_ms)
                raise ThrottlingQuotaExceeded("The throttling quota has been exceeded.")
            sensor.bucket.take(partitions, monotonic_ms)
        else:
            sensor.bucket.take(partitions, monotonic_ms)
            throttle_ms = sensor.throttle_ms(monotonic_ms)
            if throttle_ms > 0:
                self._throttle(throttle_ms, monotonic_ms)

    def throttle_ms(self, monotonic_ms: int) -> int:
        """Milliseconds that the client has to wait, counted from now: the request may have waited since its partitions were recorded."""
        return max(0, self._throttle_ms - (monotonic_ms - self._recorded_ms))

    def _throttle(self, throttle_ms: int, monotonic_ms: int) -> None:
        self._throttle_ms = throttle_ms
        self._recorded_ms = monotonic_ms
        self._sensor.throttled(throttle_ms, monotonic_ms)


class MutationQuotas(ClientQuota[BucketSensor]):
    """`samples` windows of `window_ms`: controller.quota.window.num and controller.quota.window.size.seconds."""

    def __init__(self, rules: QuotaRules, sensors_max: int, samples: int, window_ms: int) -> None:
        super().__init__(rules, sensors_max)
        self._samples = samples
        self._window_ms = window_ms

    def of(self, principal: KafkaPrincipal, client_id: str | None, is_strict: bool, monotonic_ms: int) -> MutationQuota | None:
        """The quota of one request; None where the client is not limited."""
        sensor = self.sensor(principal, client_id, monotonic_ms)
        return None if sensor is None else MutationQuota(sensor, is_strict)

    def _new_sensor(self, bound: float | None, monotonic_ms: int) -> BucketSensor:
        return BucketSensor(bound, self._samples, self._window_ms, monotonic_ms)
