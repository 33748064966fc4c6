"""The HTTP listener of a broker: /metrics, /health/live, /health/ready, /health/cluster."""

from __future__ import annotations

import errno
import json
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from itertools import chain
from typing import Final

from barnabas.broker.config.metrics_listener import (
    CONFLUENT,
    JMX_EXPORTER,
    KAFKA_EXPORTER,
    KMINION,
    REDPANDA,
    STRIMZI_REPORTER,
    MetricsListener,
)
from barnabas.broker.exposition import health
from barnabas.broker.exposition.dialects.kminion_families import kminion_families
from barnabas.broker.exposition.dialects.redpanda_families import redpanda_families
from barnabas.broker.exposition.dialects.shapes import shaped
from barnabas.broker.exposition.families.cleaner_families import cleaner_families
from barnabas.broker.exposition.families.controller_event_families import controller_event_families
from barnabas.broker.exposition.families.controller_families import controller_families
from barnabas.broker.exposition.families.coordinator_families import coordinator_families
from barnabas.broker.exposition.families.exporter_families import exporter_families
from barnabas.broker.exposition.families.fetcher_families import fetcher_families
from barnabas.broker.exposition.families.network_families import network_families
from barnabas.broker.exposition.families.process_families import process_families
from barnabas.broker.exposition.families.quota_families import quota_families
from barnabas.broker.exposition.families.replica_families import log_families, purgatory_families, replica_families
from barnabas.broker.exposition.families.request_families import request_families
from barnabas.broker.exposition.families.session_families import session_families
from barnabas.broker.exposition.families.topic_families import topic_families
from barnabas.broker.exposition.http_server import HttpRequest, HttpResponse, HttpServer
from barnabas.broker.exposition.observed import Observed
from barnabas.broker.exposition.prometheus_text import CONTENT_TYPE, LabelTexts, render_shapes
from barnabas.broker.exposition.received_text import render_received
from barnabas.broker.exposition.remote_offsets import RemoteOffsets
from barnabas.broker.exposition.scraper_access import ScraperAccess
from barnabas.endpoint import host_and_port
from barnabas.metrics.registry import Family, Registry

PORTS_TRIED: Final = 100
_JSON: Final = "application/json"
_OF_MBEANS: Final = (
    topic_families,
    replica_families,
    request_families,
    network_families,
    log_families,
    purgatory_families,
    cleaner_families,
    controller_families,
    controller_event_families,
    coordinator_families,
    fetcher_families,
    quota_families,
    session_families,
    process_families,
)
_FAMILIES: Final = {
    JMX_EXPORTER: _OF_MBEANS,
    STRIMZI_REPORTER: _OF_MBEANS,
    CONFLUENT: _OF_MBEANS,
    KAFKA_EXPORTER: (exporter_families,),
    REDPANDA: (redpanda_families,),
    KMINION: (kminion_families,),
}
_SHOW_LAG: Final = frozenset((KAFKA_EXPORTER, REDPANDA, KMINION))

_log = logging.getLogger(__name__)


def registry(observed: Observed, dialects: tuple[str, ...]) -> Registry:
    """All metrics of these dialects. Several dialects name the same families, of Kafka's MBeans."""
    made = Registry()
    for families in dict.fromkeys(families for dialect in dialects for families in _FAMILIES[dialect]):
        made.add(families(observed))
    return made


class MetricsServer:
    """The metrics of a broker, and the HTTP listener that shows them. Without `listener` nothing is bound: the metrics have another way
    out. `start` never stops a broker from starting: a listener that cannot be bound is a warning."""

    def __init__(self, observed: Observed, listener: MetricsListener | None, dialects: tuple[str, ...]) -> None:
        self._observed = observed
        self._listener = listener
        self._access: ScraperAccess | None = None
        self.registry = registry(observed, dialects)
        self._shapes = shaped(self.registry, dialects)
        self._label_texts = LabelTexts()
        self._own_names = frozenset(name for _, shape in self._shapes for name in shape.sample_names)
        self._http = HttpServer(self._answer)
        cluster = observed.broker.cluster
        self._remote_offsets = None if cluster is None or _SHOW_LAG.isdisjoint(dialects) else RemoteOffsets(observed, cluster)
        self.address: str | None = None  # http://HOST:PORT or https://HOST:PORT, once it is bound

    @property
    def families(self) -> list[Family]:
        return list(self.registry)

    async def start(self, access: ScraperAccess, tls: ssl.SSLContext | None = None) -> None:
        """Binds the port of the listener or, if it is taken, the next one that is not."""
        if self._listener is None:
            return
        self._access = access
        host, first = self._listener.host, self._listener.port
        for port in range(first, min(first + PORTS_TRIED, 65_536) if first else 1):
            try:
                await self._http.start(host, port, tls)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                _log.warning("There are no metrics: metrics.listener cannot be bound to %s: %s", host_and_port(host, port), error)
                return
            self.address = f"{self._listener.scheme}://{host_and_port(host or 'localhost', self._http.port)}"
            level = logging.WARNING if first and port != first else logging.INFO
            taken = f": port {first} of metrics.listener is taken" if level == logging.WARNING else ""
            _log.log(level, "Metrics are at %s/metrics%s", self.address, taken)
            return
        _log.warning("There are no metrics: port %d of metrics.listener and the %d after it are taken", first, PORTS_TRIED - 1)

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Connections that are accepted from now on use this certificate."""
        self._http.use_tls(tls)

    def watch_other_brokers(self) -> None:
        """Called when the broker runs."""
        if self._remote_offsets is not None:
            self._remote_offsets.start()

    async def stop(self) -> None:
        if self._remote_offsets is not None:
            await self._remote_offsets.stop()
        await self._http.stop()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        """Only the two probes need no access. Every other path does, also one that is added later."""
        assert self._access is not None
        match request.path:
            case "/health/live":
                return HttpResponse(HTTPStatus.OK, _json({"status": "good"}), _JSON)
            case "/health/ready":
                return self._ready(await self._access.may_see_details(request))
        return await self._access.refusal(request) or self._protected(request.path)

    def _ready(self, has_details: bool) -> HttpResponse:
        checks = health.readiness(self._observed)
        is_ready = all(check.is_good for check in checks)
        body: dict[str, object] = {"status": "good" if is_ready else "bad"}
        if has_details:
            body["problems"] = [check.problem for check in checks if not check.is_good]
        return HttpResponse(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, _json(body), _JSON)

    def _protected(self, path: str) -> HttpResponse:
        match path:
            case "/metrics":
                return HttpResponse(HTTPStatus.OK, self._text(), CONTENT_TYPE)
            case "/health/cluster":
                facts = health.cluster_facts(self._observed)
                status = HTTPStatus.SERVICE_UNAVAILABLE if facts.problems else HTTPStatus.OK
                return HttpResponse(status, _json(facts.as_json()), _JSON)
            case "/":
                return HttpResponse(HTTPStatus.OK, "/metrics\n/health/live\n/health/ready\n/health/cluster\n")
            case _:
                return HttpResponse(HTTPStatus.NOT_FOUND, "Not Found\n")

    async def _text(self) -> AsyncIterator[str]:
        """One slice in each turn of the loop, so that requests are served between them."""
        turns = self._observed.broker.turns
        for piece in self._pieces():
            yield piece
            await turns.next(self)

    def _pieces(self) -> Iterator[str]:
        received = render_received(self._observed.broker.client_metrics.received.series(), self._own_names)
        return chain(render_shapes(self._shapes, self._label_texts), received)

    def __repr__(self) -> str:
        return "a scrape of metrics"


def _json(value: object) -> str:
    return json.dumps(value) + "\n"
