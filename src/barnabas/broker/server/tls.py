"""TLS contexts of the listeners, made from Kafka's ssl.* settings.

Key and trust stores must be PEM. For a Java key store (JKS, PKCS12) the error says how to convert it.
"""

from __future__ import annotations

import ssl
import tempfile
from typing import Any, Final

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig

_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_contexts(config: BrokerConfig) -> dict[str, ssl.SSLContext]:
    """The TLS context of each TLS listener, by listener name. Raises InvalidConfig."""
    return {
        endpoint.listener_name: _context(config, endpoint.listener_name)
        for endpoint in config.broker_listeners
        if endpoint.security_protocol.uses_tls
    }


def _context(config: BrokerConfig, listener_name: str) -> ssl.SSLContext:
    def setting(name: str) -> Any:
        return config.for_listener(listener_name, name)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    enabled = [_PROTOCOLS[name] for name in setting("ssl.enabled.protocols") if name in _PROTOCOLS]
    if not enabled:
        raise InvalidConfig(f"Listener {listener_name}: ssl.enabled.protocols must have one of {', '.join(_PROTOCOLS)}")
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)
    context.verify_mode = _CLIENT_AUTH[setting("ssl.client.auth")]
    try:
        if setting("ssl.cipher.suites"):
            context.set_ciphers(":".join(setting("ssl.cipher.suites")))
        _load_certificate(context, listener_name, setting)
        _load_trusted(context, listener_name, setting)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(f"Listener {listener_name} cannot use its ssl.* settings: {error}") from error
    return context


def _load_certificate(context: ssl.SSLContext, listener_name: str, setting: Any) -> None:
    _require_pem(listener_name, "ssl.keystore.type", setting("ssl.keystore.type"))
    password = setting("ssl.key.password") or setting("ssl.keystore.password") or ""
    location, key, chain = setting("ssl.keystore.location"), setting("ssl.keystore.key"), setting("ssl.keystore.certificate.chain")
    if location is not None:
        context.load_cert_chain(location, password=password)
    elif key is not None and chain is not None:
        # OpenSSL loads keys from files only. This temporary file is readable by its owner alone and deleted at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{key}\n{chain}\n")
            file.flush()
            context.load_cert_chain(file.name, password=password)
    else:
        raise InvalidConfig(f"Listener {listener_name} has no certificate: set ssl.keystore.location (a PEM file with key and chain)")


def _load_trusted(context: ssl.SSLContext, listener_name: str, setting: Any) -> None:
    location, certificates = setting("ssl.truststore.location"), setting("ssl.truststore.certificates")
    if location is not None or certificates is not None:
        _require_pem(listener_name, "ssl.truststore.type", setting("ssl.truststore.type"))
        context.load_verify_locations(cafile=location, cadata=certificates)
    elif context.verify_mode is not ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)


def _require_pem(listener_name: str, name: str, store_type: str) -> None:
    if store_type != "PEM":
        raise InvalidConfig(
            f"Listener {listener_name}: {name} is {store_type}, and only PEM is read here. Convert the store (keytool -importkeystore to "
            f"PKCS12, then openssl pkcs12 -nodes) and set {name}=PEM"
        )
