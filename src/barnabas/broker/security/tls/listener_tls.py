"""The TLS of one listener, as its ssl.* settings and the files they name were when it was loaded."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Final

from barnabas.endpoint import EndPoint
from barnabas.security.tls.contexts import client_context, server_context
from barnabas.security.tls.settings import TLS_SETTINGS, FileStamp, TlsSettings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.security.tls.key_store import KeyMaterial

KAFKAS_FACTORY: Final = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"

_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerTlsConfig:
    """The settings of the TLS of one listener. Equal settings with unchanged files make equal contexts."""

    listener_name: str
    settings: TlsSettings
    client_auth: str
    engine_factory: str | None

    @classmethod
    def of(cls, config: BrokerConfig, endpoint: EndPoint) -> ListenerTlsConfig:
        name = endpoint.listener_name
        values = {setting: config.for_listener(name, setting) for setting in TLS_SETTINGS}
        factory = config.for_listener(name, "ssl.engine.factory.class")
        settings = TlsSettings(values, owner=f"Listener {name}")
        return cls(name, settings, _client_auth(config, endpoint), None if factory == KAFKAS_FACTORY else factory)

    def stamps(self) -> tuple[FileStamp, ...]:
        return self.settings.stamps()


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """`key` is None if ssl.engine.factory.class makes the context."""

    config: ListenerTlsConfig
    stamps: tuple[FileStamp, ...]
    key: KeyMaterial | None
    context: ssl.SSLContext

    @classmethod
    def load(cls, config: ListenerTlsConfig) -> ListenerTls:
        """Raises InvalidConfig, with the setting and the fix."""
        stamps = config.stamps()  # before the files are read, so that a change in between is noticed afterwards
        if config.engine_factory is not None:
            return cls(config, stamps, None, _made_by(config, config.engine_factory))
        from barnabas.security.tls.key_store import read_key_store

        key = read_key_store(config.settings)
        if key is None:
            raise config.settings.invalid(
                "The listener has no certificate: set ssl.keystore.location (a PKCS12 or PEM file with key and chain)"
            )
        _warn_if_expired(config, key)
        _warn_if_all_authorities_are_trusted(config)
        return cls(config, stamps, key, server_context(config.settings, key, _CLIENT_AUTH[config.client_auth]))

    def client_context(self, checks_host: bool = False) -> ssl.SSLContext:
        """The context of this broker as a client of the same listener of another broker."""
        return client_context(self.config.settings, checks_host)


def _client_auth(config: BrokerConfig, endpoint: EndPoint) -> str:
    """With SASL_SSL clients show a certificate only if the setting has the prefix of the listener, as in Kafka (KIP-684)."""
    name = endpoint.listener_name
    value = str(config.for_listener(name, "ssl.client.auth")).lower()
    if not endpoint.security_protocol.uses_sasl or config.is_set(f"listener.name.{name.lower()}.ssl.client.auth"):
        return value
    if value != "none":
        _log.warning(
            "ssl.client.auth=%s is ignored for the SASL_SSL listener %s: set listener.name.%s.ssl.client.auth", value, name, name.lower()
        )
    return "none"


def _made_by(config: ListenerTlsConfig, factory: str) -> ssl.SSLContext:
    module_name, _, name = factory.rpartition(".")
    try:
        context = getattr(import_module(module_name), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise config.settings.invalid(
            f"ssl.engine.factory.class is {factory}, which cannot be called ({error}): give the dotted path of a function that takes no "
            "arguments and returns an ssl.SSLContext"
        ) from error
    if not isinstance(context, ssl.SSLContext):
        raise config.settings.invalid(f"ssl.engine.factory.class must return an ssl.SSLContext, not a {type(context).__name__}")
    return context


def _warn_if_all_authorities_are_trusted(config: ListenerTlsConfig) -> None:
    """Warns of a default that is Java's: with certificates as identities, every authority of the system could issue one."""
    settings = config.settings
    if config.client_auth in ("requested", "required") and not any(
        settings[f"ssl.truststore.{name}"] for name in ("location", "certificates")
    ):
        _log.warning(
            "%s: ssl.truststore.* is not set, so that clients with a certificate of any authority that this machine trusts are let in: set "
            "ssl.truststore.location to the authority of your clients",
            settings.owner,
        )


def _warn_if_expired(config: ListenerTlsConfig, key: KeyMaterial) -> None:
    end = key.certificate.not_valid_after_utc
    if end <= datetime.now(UTC):
        _log.warning(
            "%s: the certificate of ssl.keystore.* expired on %s, and clients refuse it: replace it", config.settings.owner, end.date()
        )
