"""The TLS of all listeners of a broker, while certificates are replaced: by dynamic settings, or by new content of the same files.

An https metrics.listener is one of them. New connections use the new certificate, open ones stay. What cannot be used is refused, and the
previous certificate stays.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.config.metrics_listener import LISTENER_NAME, MetricsListener
from barnabas.broker.security.tls.listener_tls import ListenerTls, ListenerTlsConfig
from barnabas.broker.security.tls.replacement import require_mutual_trust, require_replaceable
from barnabas.config_def import InvalidConfig
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.security.tls.settings import FileStamp

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateCandidate:
    """A listener with new settings or files: the TLS that can replace the loaded one, or the reason why it cannot."""

    config: ListenerTlsConfig
    stamps: tuple[FileStamp, ...]
    tls: ListenerTls | None
    error: InvalidConfig | None

    @property
    def listener_name(self) -> str:
        return self.config.listener_name


class ListenerCertificates:
    """`is_clustered` says that other brokers connect to the inter-broker and control-plane listeners. Raises InvalidConfig."""

    def __init__(self, config: BrokerConfig, is_clustered: bool) -> None:
        of_brokers = {config.inter_broker_listener_name, config.control_plane_listener_name}
        self._of_brokers = of_brokers if is_clustered else frozenset[str | None]()
        self._loaded = {name: ListenerTls.load(tls_config) for name, tls_config in _tls_configs(config).items()}
        self._refused: dict[str, tuple[ListenerTlsConfig, tuple[FileStamp, ...]]] = {}  # by listener: what was warned about
        self.on_change: list[Callable[[str, ListenerTls], None]] = []
        for own in (tls for name, tls in self._loaded.items() if name in self._of_brokers):
            try:
                require_mutual_trust(own, own)
            except InvalidConfig as error:
                raise own.config.settings.invalid(str(error)) from error

    @property
    def contexts(self) -> dict[str, ssl.SSLContext]:
        return {name: tls.context for name, tls in self._loaded.items()}

    def validate(self, config: BrokerConfig) -> None:
        """Called before dynamic settings are written. Raises InvalidConfig if a listener could not use them."""
        for candidate in self.candidates(config):
            if candidate.error is not None:
                raise InvalidConfig(f"Validation of dynamic config update of SSLFactory failed: {candidate.error}")

    def candidates(self, config: BrokerConfig) -> list[CertificateCandidate]:
        """The listeners whose settings or files have changed. Reads files and changes nothing, so that it may run on a thread."""
        return [
            self._candidate(config, old, tls_config, stamps)
            for name, tls_config in _tls_configs(config).items()
            if (old := self._loaded.get(name)) is not None and (tls_config, stamps := tls_config.stamps()) != (old.config, old.stamps)
        ]

    def use(self, candidates: Iterable[CertificateCandidate]) -> None:
        """A listener whose new settings cannot be used keeps its certificate, with one warning."""
        for candidate in candidates:
            name = candidate.listener_name
            if candidate.tls is not None:
                self._use(name, candidate.tls)
            elif self._refused.get(name) != (candidate.config, candidate.stamps):
                self._refused[name] = (candidate.config, candidate.stamps)
                _log.warning("The certificate of listener %s is not replaced, and the previous one stays in use: %s", name, candidate.error)

    def _candidate(
        self, config: BrokerConfig, old: ListenerTls, tls_config: ListenerTlsConfig, stamps: tuple[FileStamp, ...]
    ) -> CertificateCandidate:
        name = tls_config.listener_name
        try:
            new = ListenerTls.load(tls_config)
            allows_dn_changes = bool(config.for_listener(name, "ssl.allow.dn.changes"))
            require_replaceable(old, new, allows_dn_changes, bool(config.for_listener(name, "ssl.allow.san.changes")))
            if name in self._of_brokers:
                require_mutual_trust(old, new)
        except InvalidConfig as error:
            return CertificateCandidate(tls_config, stamps, None, error)
        return CertificateCandidate(tls_config, stamps, new, None)

    def _use(self, name: str, tls: ListenerTls) -> None:
        self._loaded[name] = tls
        self._refused.pop(name, None)
        end = "" if tls.key is None else f", valid until {tls.key.certificate.not_valid_after_utc.date()}"
        _log.info("Listener %s uses a new certificate for new connections%s", name, end)
        for listener in self.on_change:
            listener(name, tls)


def _tls_configs(config: BrokerConfig) -> dict[str, ListenerTlsConfig]:
    return {
        endpoint.listener_name: ListenerTlsConfig.of(config, endpoint)
        for endpoint in (*config.broker_listeners, *_metrics_endpoints(config))
        if endpoint.security_protocol.uses_tls
    }


def _metrics_endpoints(config: BrokerConfig) -> list[EndPoint]:
    """metrics.listener, as if it were a listener of the protocol SSL, if it is https."""
    text = config.text("metrics.listener")
    listener = None if text is None else MetricsListener.parse(text)
    if listener is None or not listener.uses_tls:
        return []
    return [EndPoint(LISTENER_NAME, listener.host, listener.port, SecurityProtocol.SSL)]
