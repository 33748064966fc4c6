"""The quota on changes of topics: Kafka's token bucket, strict for new clients and permissive for old ones."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.mutation_quota import MutationQuota
from barnabas.broker.quotas.token_bucket import TokenBucket
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.security.principal import ANONYMOUS


def quota_of(quotas: ClientQuotas, is_strict: bool, monotonic_ms: int = 0) -> MutationQuota:
    quota = quotas.controller_mutation.of(ANONYMOUS, "c", is_strict, monotonic_ms)
    assert quota is not None
    return quota


@pytest.fixture
def quotas() -> ClientQuotas:
    """10 partitions a second, over 11 windows of a second: 110 at once."""
    quotas = ClientQuotas(BrokerConfig({}).number)
    quotas.quota_changed("ANONYMOUS", None, {"controller_mutation_rate": 10.0})
    return quotas


def test_the_bucket_of_kafkas_documentation() -> None:
    """A rate of 5 over 100 windows of a second: 560 at once leave -60 tokens, and 12 s fill them up."""
    bucket = TokenBucket(100, 1000, 5, 0)
    assert bucket.tokens(0) == 500
    bucket.take(560, 0)
    assert bucket.tokens(0) == -60
    assert bucket.tokens(12_000) == 0
    assert bucket.tokens(10_000_000) == 500


def test_strict_refuses_when_it_is_exhausted_and_not_before(quotas: ClientQuotas) -> None:
    quota = quota_of(quotas, is_strict=True)
    quota.record(110, 0)
    quota.record(50, 0)  # an empty bucket is not overdrawn yet
    assert quota.throttle_ms(0) == 0
    with pytest.raises(ThrottlingQuotaExceeded, match="The throttling quota has been exceeded"):
        quota.record(1, 0)
    assert quota.throttle_ms(0) == 5000
    assert quota.throttle_ms(2000) == 3000, "the request has waited for 2 s"
    later = quota_of(quotas, is_strict=True, monotonic_ms=5000)
    later.record(1, 5000)
    assert later.throttle_ms(5000) == 0


def test_what_is_refused_takes_no_tokens(quotas: ClientQuotas) -> None:
    quota = quota_of(quotas, is_strict=True)
    quota.record(120, 0)
    for _ in range(10):
        with pytest.raises(ThrottlingQuotaExceeded):
            quota.record(100, 0)
    quota.record(100, 1000)


def test_permissive_allows_everything_and_throttles_at_once(quotas: ClientQuotas) -> None:
    quota = quota_of(quotas, is_strict=False)
    quota.record(110, 0)
    assert quota.throttle_ms(0) == 0
    quota.record(40, 0)
    assert quota.throttle_ms(0) == 4000
    quota.record(10, 0)
    assert quota.throttle_ms(0) == 5000


def test_both_kinds_use_the_same_bucket(quotas: ClientQuotas) -> None:
    quota_of(quotas, is_strict=False).record(150, 0)
    with pytest.raises(ThrottlingQuotaExceeded):
        quota_of(quotas, is_strict=True).record(1, 0)


def test_a_changed_rate_fills_the_same_bucket(quotas: ClientQuotas) -> None:
    quota = quota_of(quotas, is_strict=False)
    quota.record(210, 0)
    quotas.quota_changed("ANONYMOUS", None, {"controller_mutation_rate": 100.0})
    assert quota_of(quotas, is_strict=True, monotonic_ms=1000).throttle_ms(1000) == 0
    with pytest.raises(ThrottlingQuotaExceeded):
        quota_of(quotas, is_strict=True, monotonic_ms=1000).record(1, 1000)  # 10 of 100 tokens came back at the old rate
    quota_of(quotas, is_strict=True, monotonic_ms=1900).record(1, 1900)


def test_the_windows_are_settings() -> None:
    settings = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "3"}
    quotas = ClientQuotas(BrokerConfig(settings).number)
    quotas.quota_changed("ANONYMOUS", None, {"controller_mutation_rate": 10.0})
    quota = quota_of(quotas, is_strict=False)
    quota.record(60, 0)
    assert quota.throttle_ms(0) == 0
    quota.record(1, 0)
    assert quota.throttle_ms(0) == 100
