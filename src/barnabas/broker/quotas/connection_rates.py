"""The connection quotas of addresses: `connection_creation_rate` of an ip entity, or of the default of all addresses.

As in Kafka's ConnectionQuotas a connection above the rate of its address is not opened. Its socket is closed after the throttle time, so
that a client that connects again and again is slowed down. It counts for no rate.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import floor

from barnabas.broker.quotas.sampled_rate import SampledRate


class ConnectionRates:
    """`samples` windows of `window_ms`: quota.window.num and quota.window.size.seconds. At most `addresses_max` addresses are measured; the
    one that was idle for longest is measured anew. `is_in_use` is False while no address has a rate."""

    def __init__(self, samples: int, window_ms: int, addresses_max: int) -> None:
        self.is_in_use = False
        self._samples = samples
        self._window_ms = window_ms
        self._addresses_max = addresses_max
        self._default: float | None = None
        self._hosts: dict[str, tuple[Sequence[str], float]] = {}  # addresses and rate of the hosts that have one
        self._by_address: dict[str, float] = {}
        self._measured: OrderedDict[str, SampledRate] = OrderedDict()  # the least recently used first

    def rate_changed(self, host: str | None, addresses: Sequence[str], rate: float | None) -> None:
        """Sets the connections a second of a host, or with None of all addresses that have no rate; None removes the rate."""
        if host is None:
            self._default = rate
        else:
            for address in self._hosts.pop(host, ((), 0.0))[0]:
                self._by_address.pop(address, None)
            if rate is not None:
                self._hosts[host] = (addresses, rate)
            for others, other_rate in self._hosts.values():  # two names may have one address
                self._by_address.update(dict.fromkeys(others, other_rate))
        self.is_in_use = self._default is not None or bool(self._by_address)
        if not self.is_in_use:
            self._measured.clear()

    def rate_of(self, address: str) -> float | None:
        """The connections a second that an address may open; None: unlimited."""
        return self._by_address.get(address, self._default)

    def throttle_ms(self, address: str, monotonic_ms: int) -> int:
        """Counts a connection. Returns 0 if it is within the rate of its address; otherwise the time after which it is closed."""
        bound = self.rate_of(address)
        if bound is None:
            return 0
        rate = self._rate(address)
        rate.record(1, monotonic_ms)
        measured = rate.rate(monotonic_ms)
        if measured <= bound:
            return 0
        throttle_ms = self._window_ms
        if bound > 0:
            throttle_ms = min(throttle_ms, floor((measured - bound) / bound * rate.window_size_ms(monotonic_ms) + 0.5))
        if throttle_ms > 0:
            rate.record(-1, monotonic_ms)
        return throttle_ms

    def _rate(self, address: str) -> SampledRate:
        rate = self._measured.get(address)
        if rate is None:
            if len(self._measured) >= self._addresses_max:
                self._measured.popitem(last=False)
            rate = self._measured[address] = SampledRate(self._samples, self._window_ms)
        self._measured.move_to_end(address)
        return rate
