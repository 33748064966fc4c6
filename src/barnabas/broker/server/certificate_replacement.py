"""Replaces the certificates of the listeners while the broker runs, when dynamic settings or the files of the stores change.

The files are compared every `barnabas.ssl.reload.interval.ms` on a thread. Listeners and the links to other brokers use the new certificate
for new connections.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor

from barnabas.broker.cluster.cluster_member import ClusterMember
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.broker.security.tls.listener_tls import ListenerTls
from barnabas.network.server import SocketServer

_log = logging.getLogger(__name__)


class CertificateReplacement:
    """Its `validate` is one of the validators of dynamic settings."""

    def __init__(
        self,
        config: DynamicBrokerConfig,
        certificates: ListenerCertificates,
        sockets: SocketServer,
        cluster: ClusterMember | None,
        threads: Executor,
    ) -> None:
        self._config = config
        self._certificates = certificates
        self._sockets = sockets
        self._cluster = cluster
        self._threads = threads
        self._watch: asyncio.Task[None] | None = None
        certificates.on_change.append(self._use)

    def start(self) -> None:
        interval_ms = self._config.static.number("barnabas.ssl.reload.interval.ms")
        if interval_ms and self._certificates.contexts:
            self._watch = asyncio.ensure_future(self._watch_files(interval_ms / 1000))

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    def validate(self, config: BrokerConfig) -> None:
        """Raises InvalidConfig. Afterwards files that have changed are used at once, also where no setting changes, as in Kafka."""
        self._certificates.validate(config)
        asyncio.get_running_loop().call_soon(self.settings_changed, frozenset({"ssl."}))

    def settings_changed(self, changed: frozenset[str]) -> None:
        if any("ssl." in name for name in changed):
            self._certificates.use(self._certificates.candidates(self._config.current))

    async def _watch_files(self, interval_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            config = self._config.current
            try:
                candidates = await loop.run_in_executor(self._threads, self._certificates.candidates, config)
                if config is self._config.current:
                    self._certificates.use(candidates)
            except Exception:  # the files are compared again after the interval: one fault must not end the replacement for good
                _log.exception("The files of ssl.keystore.* and ssl.truststore.* could not be compared")

    def _use(self, listener_name: str, tls: ListenerTls) -> None:
        if listener_name not in self._sockets.listeners:
            return  # metrics.listener, which replaces its certificate by itself
        self._sockets.listeners[listener_name].use_tls(tls.context)
        current = self._config.current
        if self._cluster is not None:
            checks_host = bool(current.for_listener(listener_name, "ssl.endpoint.identification.algorithm"))
            self._cluster.use_tls(listener_name, tls.client_context(checks_host))
