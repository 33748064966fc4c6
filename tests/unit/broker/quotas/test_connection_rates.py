from __future__ import annotations

import pytest

from barnabas.broker.quotas.connection_rates import ConnectionRates

IP, OTHER = "10.0.0.1", "10.0.0.2"


def rates(addresses_max: int = 100) -> ConnectionRates:
    """Eleven windows of a second, as by default: a burst of ten seconds is within the rate."""
    return ConnectionRates(11, 1000, addresses_max)


def opened(of: ConnectionRates, count: int, monotonic_ms: int = 0, address: str = IP) -> list[int]:
    return [of.throttle_ms(address, monotonic_ms) for _ in range(count)]


def test_without_rates_nothing_is_counted() -> None:
    made = rates()
    assert not made.is_in_use
    assert opened(made, 1000) == [0] * 1000


def test_an_address_above_its_rate_waits_until_it_is_within_it_again() -> None:
    made = rates()
    made.rate_changed(IP, [IP], 2.0)
    assert made.is_in_use
    assert opened(made, 21) == [0] * 20 + [500]  # 2.1 a second over ten seconds: half a second more, and it is 2
    assert opened(made, 3) == [500] * 3  # a throttled connection does not count
    assert opened(made, 20, address=OTHER) == [0] * 20
    assert opened(made, 3, 11_000) == [0] * 3


def test_the_wait_is_at_most_a_window() -> None:
    made = rates()
    made.rate_changed(IP, [IP], 0.1)
    assert opened(made, 3) == [0, 1000, 1000]


def test_a_rate_of_zero_lets_nobody_in() -> None:
    """Kafka 3.9 writes such a rate, Kafka 4.2 refuses it."""
    made = rates()
    made.rate_changed(IP, [IP], 0.0)
    assert opened(made, 2) == [1000, 1000]


def test_the_default_is_for_each_address_without_a_rate() -> None:
    made = rates()
    made.rate_changed(None, [], 1.0)
    made.rate_changed(IP, [IP], 2.0)
    assert [made.rate_of(IP), made.rate_of(OTHER), made.rate_of("::1")] == [2.0, 1.0, 1.0]
    assert [sum(wait == 0 for wait in opened(made, 30, address=address)) for address in (IP, OTHER, "::1")] == [20, 10, 10]
    made.rate_changed(IP, [IP], None)
    assert made.rate_of(IP) == 1.0
    made.rate_changed(None, [], None)
    assert not made.is_in_use


def test_a_raised_rate_holds_at_once() -> None:
    made = rates()
    made.rate_changed(IP, [IP], 1.0)
    assert opened(made, 11)[-1] > 0
    made.rate_changed(IP, [IP], 2.0)
    assert opened(made, 11) == [0] * 10 + [500]


def test_a_name_that_has_moved_leaves_no_rate_behind() -> None:
    made = rates()
    made.rate_changed("host", [IP, "::1"], 1.0)
    made.rate_changed("alias", [IP], 3.0)
    assert (made.rate_of(IP), made.rate_of("::1")) == (3.0, 1.0)
    made.rate_changed("host", [OTHER], 1.0)
    assert (made.rate_of(IP), made.rate_of("::1"), made.rate_of(OTHER)) == (3.0, None, 1.0)
    made.rate_changed("alias", [], None)
    assert made.rate_of(IP) is None


@pytest.mark.parametrize("count", [3, 50])
def test_the_number_of_measured_addresses_is_bounded(count: int) -> None:
    made = rates(addresses_max=2)
    made.rate_changed(None, [], 1.0)
    for number in range(count):
        opened(made, 1, address=f"10.0.1.{number}")
    assert len(made._measured) == 2
