from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.network.config import ListenerLimits, NetworkConfig
from barnabas.network.connection_quotas import DELAY_MAX_MS, ConnectionQuotas, ConnectionRateBucket, Verdict, normalised_ip


def quotas(*listeners: str, inter_broker: str = "", **settings: object) -> ConnectionQuotas:
    made = ConnectionQuotas(NetworkConfig(**settings), inter_broker)  # type: ignore[arg-type]
    for listener in listeners or ("PLAINTEXT",):
        made.add_listener(listener)
    return made


def verdicts(of: ConnectionQuotas, count: int, ip: str = "10.0.0.1", listener: str = "PLAINTEXT", now_ms: int = 0) -> list[Verdict]:
    return [of.admit(now_ms, ip, listener).verdict for _ in range(count)]


def test_by_default_everybody_may_connect() -> None:
    assert set(verdicts(quotas(), 1000)) == {Verdict.ACCEPT}


def test_an_address_with_its_maximum_of_connections_is_rejected() -> None:
    limited = quotas(max_connections_per_ip=2)
    assert verdicts(limited, 3) == [Verdict.ACCEPT, Verdict.ACCEPT, Verdict.REJECT]


def test_a_rejection_names_the_address_and_the_setting() -> None:
    reason = quotas(max_connections_per_ip=0).admit(0, "10.0.0.1", "PLAINTEXT").reason
    assert "10.0.0.1, address already has the configured maximum of 0 connections" in reason
    assert "max.connections.per.ip" in reason


def test_another_address_is_not_affected() -> None:
    limited = quotas(max_connections_per_ip=1)
    assert verdicts(limited, 1) + verdicts(limited, 1, ip="10.0.0.2") == [Verdict.ACCEPT, Verdict.ACCEPT]


def test_a_rejected_connection_is_not_counted() -> None:
    limited = quotas(max_connections_per_ip=1)
    verdicts(limited, 5)
    assert (limited.total, limited.connections_of("10.0.0.1"), limited.connections_on("PLAINTEXT")) == (1, 1, 1)


def test_a_released_connection_makes_room() -> None:
    limited = quotas(max_connections_per_ip=1)
    verdicts(limited, 1)
    limited.release("10.0.0.1", "PLAINTEXT")
    assert verdicts(limited, 1) == [Verdict.ACCEPT]


def test_an_override_beats_the_limit_of_all_addresses() -> None:
    limited = quotas(max_connections_per_ip=0, max_connections_per_ip_overrides={"10.0.0.1": 1})
    assert verdicts(limited, 2) == [Verdict.ACCEPT, Verdict.REJECT]
    assert verdicts(limited, 1, ip="10.0.0.2") == [Verdict.REJECT]


def test_at_max_connections_the_next_one_waits_for_a_slot() -> None:
    limited = quotas(max_connections=1)
    assert verdicts(limited, 2) == [Verdict.ACCEPT, Verdict.WAIT]
    assert not limited.has_slot("PLAINTEXT")
    limited.release("10.0.0.1", "PLAINTEXT")
    assert limited.has_slot("PLAINTEXT")


def test_a_full_listener_does_not_fill_the_others() -> None:
    limited = quotas("A", "B", listener_limits={"A": ListenerLimits(max_connections=1)})
    assert verdicts(limited, 2, listener="A") == [Verdict.ACCEPT, Verdict.WAIT]
    assert verdicts(limited, 2, listener="B") == [Verdict.ACCEPT, Verdict.ACCEPT]


def test_brokers_may_connect_to_a_full_broker_at_the_cost_of_a_client() -> None:
    limited = quotas("CLIENT", "BROKER", inter_broker="BROKER", max_connections=1)
    assert verdicts(limited, 1, listener="CLIENT") + verdicts(limited, 1, listener="BROKER") == [Verdict.ACCEPT, Verdict.ACCEPT]
    assert (limited.exceeded("CLIENT"), limited.exceeded("BROKER")) == (True, False)


def test_an_only_listener_is_not_above_the_limit_even_if_brokers_use_it() -> None:
    assert verdicts(quotas(inter_broker="PLAINTEXT", max_connections=1), 2) == [Verdict.ACCEPT, Verdict.WAIT]


def test_beyond_the_creation_rate_connections_are_delayed() -> None:
    limited = quotas(max_connection_creation_rate=10)
    assert verdicts(limited, 11) == [Verdict.ACCEPT] * 10 + [Verdict.DELAY]
    assert limited.admit(0, "10.0.0.1", "PLAINTEXT").delay_ms == 200


def test_the_rate_of_a_listener_is_its_own() -> None:
    limited = quotas("A", "B", listener_limits={"A": ListenerLimits(max_connection_creation_rate=1)})
    assert verdicts(limited, 2, listener="A") == [Verdict.ACCEPT, Verdict.DELAY]
    assert verdicts(limited, 2, listener="B") == [Verdict.ACCEPT, Verdict.ACCEPT]


def test_the_rate_of_the_broker_does_not_hold_up_other_brokers() -> None:
    limited = quotas("CLIENT", "BROKER", inter_broker="BROKER", max_connection_creation_rate=1)
    assert verdicts(limited, 3, listener="BROKER") == [Verdict.ACCEPT] * 3


def test_new_limits_hold_for_the_next_connection() -> None:
    limited = quotas()
    verdicts(limited, 3)
    limited.reconfigure(NetworkConfig(max_connections_per_ip=3))
    assert verdicts(limited, 1) == [Verdict.REJECT]


@settings(deadline=None)
@given(st.integers(1, 50), st.lists(st.integers(0, 300), min_size=1, max_size=200))
def test_connections_that_wait_as_told_never_come_faster_than_the_rate(rate: int, pauses_ms: list[int]) -> None:
    bucket = ConnectionRateBucket(rate)
    now_ms, admitted_ms = 0, []
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        now_ms += bucket.take(now_ms)
        admitted_ms.append(now_ms)
    for index, start_ms in enumerate(admitted_ms):
        within = [at for at in admitted_ms[index:] if at < start_ms + 1000]
        assert len(within) <= 2 * rate + 1  # a second's worth that was saved up, and a second's worth


def test_no_delay_is_longer_than_the_bound() -> None:
    bucket = ConnectionRateBucket(1)
    assert max(bucket.take(0) for _ in range(100)) == DELAY_MAX_MS


def test_after_a_flood_the_bucket_recovers_in_bounded_time() -> None:
    bucket = ConnectionRateBucket(5)
    for _ in range(1000):
        bucket.take(0)
    assert bucket.take(2000) == 0


@pytest.mark.parametrize(
    ("given_ip", "one_spelling"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("0:0:0:0:0:0:0:1", "::1"), ("fe80::1%eth0", "fe80::1"), ("10.0.0.1", "10.0.0.1"), ("host", "host")],
)
def test_an_address_has_one_spelling(given_ip: str, one_spelling: str) -> None:
    assert normalised_ip(given_ip) == one_spelling


class Rates:
    """Stands for the rates of addresses: each address may open one connection."""

    def __init__(self, is_in_use: bool = True) -> None:
        self.is_in_use = is_in_use
        self.counted: list[str] = []

    def throttle_ms(self, address: str, monotonic_ms: int) -> int:
        self.counted.append(address)
        return 0 if self.counted.count(address) == 1 else 250


def test_a_connection_above_the_rate_of_its_address_is_throttled_and_counts_for_nothing() -> None:
    limited = ConnectionQuotas(NetworkConfig(max_connections_per_ip=1), "", Rates())
    limited.add_listener("PLAINTEXT")
    assert verdicts(limited, 2) == [Verdict.ACCEPT, Verdict.THROTTLE]  # not REJECT: Kafka checks the rate first
    assert limited.admit(0, "10.0.0.1", "PLAINTEXT").delay_ms == 250
    assert verdicts(limited, 1, ip="10.0.0.2") == [Verdict.ACCEPT]
    assert (limited.total, limited.connections_of("10.0.0.1")) == (2, 1)


def test_a_connection_that_waits_for_a_slot_is_counted_once_for_its_rate() -> None:
    rates = Rates()
    limited = ConnectionQuotas(NetworkConfig(max_connections=1), "", rates)
    limited.add_listener("PLAINTEXT")
    assert verdicts(limited, 1) + verdicts(limited, 3, ip="10.0.0.2") == [Verdict.ACCEPT] + [Verdict.WAIT] * 3
    assert rates.counted == ["10.0.0.1"]


def test_without_rates_of_addresses_none_is_measured() -> None:
    rates = Rates(is_in_use=False)
    limited = ConnectionQuotas(NetworkConfig(), "", rates)
    limited.add_listener("PLAINTEXT")
    verdicts(limited, 3)
    assert rates.counted == []
