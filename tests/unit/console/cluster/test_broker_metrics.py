"""Bytes in and out, from the metrics of brokers."""

from __future__ import annotations

import asyncio
import http.client
import urllib.request

import pytest

from barnabas.console.cluster.broker_metrics import BrokerMetrics, ByteTotals, MetricsUnreadable, parse_totals
from barnabas.console.cluster.derivation import Derivation
from barnabas.console.cluster.reader import Readings

TEXT = b"""# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 1.5e3
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 69
kafka_server_brokertopicmetrics_bytesout_total 7
"""


def test_the_totals_of_all_topics_are_read() -> None:
    assert parse_totals(TEXT) == ByteTotals(1_500, 7)


@pytest.mark.parametrize("text", [b"", b"<html>", TEXT.replace(b"bytesout", b"other"), TEXT.replace(b"1.5e3", b"many")])
def test_another_text_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_totals(text)


def test_metrics_that_cannot_be_read_are_named() -> None:
    with pytest.raises(MetricsUnreadable, match="http://localhost:1/metrics cannot be read"):
        asyncio.run(BrokerMetrics(["http://localhost:1"], {}).totals())


def test_metrics_of_something_that_speaks_no_http_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, **__: object) -> None:
        raise http.client.BadStatusLine("SSH")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", answer)
    with pytest.raises(MetricsUnreadable, match="http://localhost:1/metrics cannot be read: SSH"):
        asyncio.run(BrokerMetrics(["http://localhost:1"], {}).totals())


def test_a_rate_needs_two_totals_and_begins_anew_with_a_broker() -> None:
    derivation = Derivation()

    def rates() -> tuple[float | None, float | None]:
        made = derivation.snapshot(Readings(), 0, 0)
        return made.bytes_in_per_s, made.bytes_out_per_s

    derivation.note_bytes(ByteTotals(1_000, 100), 0)
    assert rates() == (None, None)
    derivation.note_bytes(ByteTotals(6_000, 600), 5_000)
    assert rates() == (1_000, 100)
    derivation.note_bytes(ByteTotals(10, 0), 10_000)
    assert rates() == (None, None)
