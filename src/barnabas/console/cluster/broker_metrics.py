"""The bytes that brokers have received and sent, from their metrics in the text format of Prometheus. Kafka's protocol has no such numbers.

The metrics are read on a thread, with the user and the authority of the cluster's clients. Only two lines of them are parsed.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import ssl
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.errors import KafkaError

TIMEOUT_S: Final = 3.0
BYTES_MAX: Final = 64 << 20
_IN: Final = b"kafka_server_brokertopicmetrics_bytesin_total "
_OUT: Final = b"kafka_server_brokertopicmetrics_bytesout_total "


class MetricsUnreadable(KafkaError):
    """The metrics of a broker cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class ByteTotals:
    """Since the brokers started."""

    bytes_in: float
    bytes_out: float


class BrokerMetrics:
    """The metrics at these addresses, one for each broker."""

    def __init__(self, addresses: Sequence[str], settings: Mapping[str, object]) -> None:
        self._urls = [address if address.endswith("/metrics") else f"{address.rstrip('/')}/metrics" for address in addresses]
        self._settings = settings

    @property
    def is_known(self) -> bool:
        """Whether there is an address."""
        return bool(self._urls)

    async def totals(self) -> ByteTotals:
        """The sums over all brokers. Raises MetricsUnreadable."""
        totals = await asyncio.gather(*(asyncio.to_thread(self._read, url) for url in self._urls))
        return ByteTotals(sum(one.bytes_in for one in totals), sum(one.bytes_out for one in totals))

    def _read(self, url: str) -> ByteTotals:
        try:
            request = urllib.request.Request(url)
            user, password = self._settings.get("sasl.username"), self._settings.get("sasl.password")
            if user is not None and url.startswith("https:"):
                credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
                request.add_unredirected_header("Authorization", f"Basic {credentials}")
            handlers: list[Any] = [_NoRedirect()]
            if url.startswith("https:"):
                handlers.append(urllib.request.HTTPSHandler(context=self._context()))
            with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as response:
                return parse_totals(response.read(BYTES_MAX))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise MetricsUnreadable(f"The metrics at {url} cannot be read: {error}") from None

    def _context(self) -> ssl.SSLContext:
        authority = self._settings.get("ssl.truststore.location")
        is_pem = str(self._settings.get("ssl.truststore.type", "")).upper() == "PEM"
        return ssl.create_default_context(cafile=str(authority) if authority is not None and is_pem else None)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The metrics are at the address that was configured, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def parse_totals(text: bytes) -> ByteTotals:
    """Raises ValueError for a text without the two counters."""
    values: dict[bytes, float] = {}
    for line in text.splitlines():
        for name in (_IN, _OUT):
            if line.startswith(name):
                values[name] = float(line[len(name) :].split()[0])
    if len(values) < 2:
        raise ValueError("kafka_server_brokertopicmetrics_bytesin_total or bytesout_total is missing")
    return ByteTotals(values[_IN], values[_OUT])
