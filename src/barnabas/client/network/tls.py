"""The TLS context of a client, from Kafka's ssl.* settings."""

from __future__ import annotations

import ssl

from barnabas.client.config.config import ClientConfig
from barnabas.config_def import InvalidConfig
from barnabas.security.tls.contexts import client_context
from barnabas.security.tls.settings import TLS_SETTINGS, TlsSettings


def tls_context(config: ClientConfig) -> ssl.SSLContext:
    """Raises InvalidConfig for settings that cannot be used."""
    factory = config.instance("ssl.engine.factory.class")
    if factory is not None:
        return _context_of(factory)
    settings = TlsSettings({name: config[name] for name in TLS_SETTINGS})
    return client_context(settings, checks_host=_checks_host(config))


def _context_of(factory: object) -> ssl.SSLContext:
    context = factory() if callable(factory) else factory
    if not isinstance(context, ssl.SSLContext):
        raise InvalidConfig(f"ssl.engine.factory.class must return an ssl.SSLContext, not a {type(context).__name__}")
    return context


def _checks_host(config: ClientConfig) -> bool:
    algorithm = config["ssl.endpoint.identification.algorithm"] or ""
    if algorithm.lower() not in ("https", ""):
        raise InvalidConfig(f"ssl.endpoint.identification.algorithm is {algorithm}: https checks the broker's host name, empty does not")
    return bool(algorithm)
