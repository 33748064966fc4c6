"""The ways out of a broker's metrics: metrics.listener, metric.reporters and metrics.otlp.endpoint.

If none of them is set, there is no registry, and requests are not measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.metrics_listener import BASIC, LISTENER_NAME, MetricsListener, parse_headers
from barnabas.broker.exposition.observed import Observed
from barnabas.broker.security.principal_builder import principal_builder
from barnabas.broker.security.sasl.listeners import SaslListeners
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.broker.security.tls.listener_tls import ListenerTls
from barnabas.client.software import SOFTWARE_VERSION
from barnabas.config_def import InvalidConfig

if TYPE_CHECKING:
    from barnabas.broker.exposition.metrics_listener import MetricsServer
    from barnabas.broker.exposition.scraper_access import ScraperAccess
    from barnabas.broker.reporting.reporters import Reporters

REPORTERS: Final = "metric.reporters"
_JAVAS_REPORTER: Final = ("org.apache.kafka.common.metrics.JmxReporter",)

_log = logging.getLogger(__name__)


class MetricsOutputs:
    """`config` has the settings of the start. `on_first` is called when the first way out needs metrics: requests are measured from then
    on."""

    def __init__(self, observed: Observed, config: BrokerConfig, on_first: Callable[[], None]) -> None:
        self._observed = observed
        self._config = config
        self._on_first = on_first
        self._reporters: Reporters | None = None
        self.server: MetricsServer | None = None

    async def start(self, sasl: SaslListeners, certificates: ListenerCertificates, threads: Executor) -> None:
        """Called before the logs are loaded, which may take long: the health of a starting broker can be seen. Raises InvalidConfig."""
        config, broker = self._config, self._observed.broker
        if config.text("metrics.listener") is not None:
            await self._metrics().start(self._access(sasl, threads), certificates.contexts.get(LISTENER_NAME))
            certificates.on_change.append(self._certificate_changed)
        current = broker.config.current
        if current.items(REPORTERS) != _JAVAS_REPORTER or current.is_set(REPORTERS):
            self._start_reporters()
        if (endpoint := config.text("metrics.otlp.endpoint")) is not None:
            self._start_otlp(endpoint)
        broker.config.validators.append(self._validate)
        broker.configs.on_broker_change.append(self._settings_changed)

    def broker_runs(self) -> None:
        """Called when the broker serves requests."""
        if self.server is not None:
            self.server.watch_other_brokers()

    async def stop(self) -> None:
        if self._reporters is not None:
            await self._reporters.stop()
        if self.server is not None:
            await self.server.stop()

    def _metrics(self) -> MetricsServer:
        if self.server is None:
            from barnabas.broker.exposition.metrics_listener import MetricsServer

            text = self._config.text("metrics.listener")
            listener = None if text is None else MetricsListener.parse(text)
            self.server = MetricsServer(self._observed, listener, tuple(self._config["metrics.dialects"]))
            self._on_first()
        return self.server

    def _access(self, sasl: SaslListeners, threads: Executor) -> ScraperAccess:
        """Identities are decided by the settings of the start: a dynamic setting must not change the identity of a client."""
        from barnabas.broker.exposition.scraper_access import ScraperAccess
        from barnabas.broker.security.sasl.passwords import Passwords, password_sources

        config, broker = self._config, self._observed.broker
        passwords: Passwords | None = None
        if config.text("metrics.listener.authentication") == BASIC:
            sources = password_sources(sasl.by_name)
            if not sources:
                raise InvalidConfig(
                    f"metrics.listener.authentication={BASIC} needs users: no listener enables PLAIN or SCRAM in sasl.enabled.mechanisms"
                )
            passwords = Passwords(sources, threads, broker.clock.monotonic_ms, config.number("connection.failed.authentication.delay.ms"))
        uses_tls = MetricsListener.parse(config.text("metrics.listener") or "").uses_tls
        return ScraperAccess(broker.access, principal_builder(config, LISTENER_NAME), LISTENER_NAME, uses_tls, passwords)

    def _certificate_changed(self, listener_name: str, tls: ListenerTls) -> None:
        if listener_name == LISTENER_NAME and self.server is not None:
            self.server.use_tls(tls.context)

    def _all_reporters(self) -> Reporters:
        if self._reporters is None:
            from barnabas.broker.reporting.reporters import Reporters

            metrics = self._metrics()
            self._reporters = Reporters(lambda: metrics.registry, self._observed.broker.turns)
        return self._reporters

    def _start_reporters(self) -> None:
        """Raises InvalidConfig: a class that is not there is a mistake in server.properties."""
        from barnabas.broker.reporting.reporters import load_reporter, reporter_names, without_effect

        current = self._observed.broker.config.current
        for line in without_effect(current):
            _log.warning("%s", line)
        for name in reporter_names(current):
            reporter = load_reporter(name, current)
            self._all_reporters().start(name, reporter, current.number("kafka.metrics.polling.interval.secs"))

    def _start_otlp(self, endpoint: str) -> None:
        from barnabas.broker.reporting.otlp_reporter import OtlpReporter

        broker = self._observed.broker
        resource = {
            "service.name": "barnabas",
            "service.version": SOFTWARE_VERSION,
            "service.instance.id": f"{broker.cluster_id}/{broker.broker_id}",
            "kafka.cluster.id": broker.cluster_id,
            "kafka.broker.id": str(broker.broker_id),
        }
        headers = parse_headers(self._config.text("metrics.otlp.headers") or "")
        reporter = OtlpReporter(endpoint, headers, resource, broker.clock.now_ms)
        self._all_reporters().start("otlp", reporter, self._config.number("metrics.otlp.interval.ms") / 1000)

    def _validate(self, config: BrokerConfig) -> None:
        before = self._observed.broker.config.current
        if config.items(REPORTERS) != before.items(REPORTERS):
            from barnabas.broker.reporting.reporters import validate

            validate(before, config)

    def _settings_changed(self, changed: frozenset[str]) -> None:
        if REPORTERS in changed:
            self._all_reporters().reconfigure(self._observed.broker.config.current)
