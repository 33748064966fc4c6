"""Scrapers that break the rules, all at once: the broker serves its clients and the next scraper as if they were not there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from barnabas.broker.reporting.metrics_reporter import Metric, MetricsReporter
from barnabas.broker.server.server import BrokerServer
from benchmarks.generator import Batch
from benchmarks.wire import Client
from tests.unit.broker.exposition.test_metrics_listener import ask, get, scrape, send, serving

SCRAPERS = 10
REQUESTS = 100


class Raising(MetricsReporter):
    def init(self, metrics: Sequence[Metric]) -> None:
        raise RuntimeError("a mistake of the reporter")


HOSTILE = (
    b"GET /metrics\r\n",  # HTTP/0.9
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" * 1000,
    b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n",  # and its response is never read
    b"\x16\x03\x01\x02\x00",
    b"",
)


def test_a_broker_serves_producers_while_scrapers_break_every_rule(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert server.metrics is not None and server.metrics.address is not None
        host, _, port = server.metrics.address.removeprefix("http://").rpartition(":")

        def produce(client: Client) -> None:
            client.create_topics(["orders"])
            for _ in range(REQUESTS):
                send(client, Batch(10, 1).produce_frame("orders"))

        with ExitStack() as stack:
            for sent in HOSTILE:
                connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
                connection.setblocking(False)
                connection.send(sent)
            scraped = asyncio.gather(*(get(server, "/metrics") for _ in range(SCRAPERS)))
            await ask(server, produce)
            assert {status for status, _ in await scraped} == {200}
            shown = await scrape(server)
        assert shown['kafka_network_requestmetrics_requests_total{request="Produce",version="9"}'] == REQUESTS
        assert shown['kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"}'] == REQUESTS

    serving(tmp_path, use, metric_reporters="tests.unit.broker.exposition.test_hostile_scrapers.Raising")
