"""The TLS context of a client, from Kafka's ssl.* settings.

Certificates are PEM, the only store type of Kafka that is common outside Java; the error for a Java key store says how to convert it.
"""

from __future__ import annotations

import ssl
import tempfile
from typing import Final

from barnabas.client.config.config import ClientConfig
from barnabas.config_def import InvalidConfig

_PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(config: ClientConfig) -> ssl.SSLContext:
    """Raises InvalidConfig for settings that cannot be used."""
    factory = config.instance("ssl.engine.factory.class")
    if factory is not None:
        return _context_of(factory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version, context.maximum_version = _versions(config)
    _set_host_check(context, config)
    try:
        if config["ssl.cipher.suites"]:
            context.set_ciphers(":".join(config["ssl.cipher.suites"]))
        _load_certificate(context, config)
        _load_trusted(context, config)
    except ssl.SSLError as error:
        raise InvalidConfig(f"The ssl.* settings cannot be used: {getattr(error, 'reason', None) or error}") from error
    except OSError as error:
        raise InvalidConfig(f"A file of the ssl.* settings cannot be read: {error}") from error
    return context


def _context_of(factory: object) -> ssl.SSLContext:
    context = factory() if callable(factory) else factory
    if not isinstance(context, ssl.SSLContext):
        raise InvalidConfig(f"ssl.engine.factory.class must return an ssl.SSLContext, not a {type(context).__name__}")
    return context


def _versions(config: ClientConfig) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = config["ssl.enabled.protocols"] or (config["ssl.protocol"],)
    enabled = [_PROTOCOLS[name] for name in names if name in _PROTOCOLS]
    if not enabled:
        raise InvalidConfig(f"ssl.enabled.protocols must have one of {', '.join(_PROTOCOLS)}, and has only {', '.join(names)}")
    return min(enabled), max(enabled)


def _set_host_check(context: ssl.SSLContext, config: ClientConfig) -> None:
    algorithm = config["ssl.endpoint.identification.algorithm"] or ""
    if algorithm.lower() not in ("https", ""):
        raise InvalidConfig(f"ssl.endpoint.identification.algorithm is {algorithm}: https checks the broker's host name, empty does not")
    context.check_hostname = bool(algorithm)


def _load_certificate(context: ssl.SSLContext, config: ClientConfig) -> None:
    location, key, chain = config["ssl.keystore.location"], config["ssl.keystore.key"], config["ssl.keystore.certificate.chain"]
    if location is None and key is None and chain is None:
        return
    if location is not None and (key is not None or chain is not None):
        raise InvalidConfig("Both ssl.keystore.location and ssl.keystore.key or certificate.chain are set: keep one of the two ways")
    if location is not None:
        _require_pem(config, "ssl.keystore")
        _load_chain(context, location, config["ssl.key.password"] or config["ssl.keystore.password"])
        return
    if key is None or chain is None:
        raise InvalidConfig("ssl.keystore.key and ssl.keystore.certificate.chain must be set together")
    # OpenSSL reads keys only from files. The temporary file is readable by this user only and exists only during the load.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{_pem(key)}\n{_pem(chain)}\n")
        file.flush()
        _load_chain(context, file.name, config["ssl.key.password"])


def _load_chain(context: ssl.SSLContext, path: str, password: str | None) -> None:
    try:
        # Without a password OpenSSL would prompt on the terminal; an empty one prevents that.
        context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        raise InvalidConfig(
            f"The private key and certificates of ssl.keystore.* cannot be read: {getattr(error, 'reason', None) or error}; "
            "check that they are PEM, belong together, and that ssl.key.password opens the key"
        ) from error


def _load_trusted(context: ssl.SSLContext, config: ClientConfig) -> None:
    location, certificates = config["ssl.truststore.location"], config["ssl.truststore.certificates"]
    if location is not None and certificates is not None:
        raise InvalidConfig("Both ssl.truststore.location and ssl.truststore.certificates are set: keep one of the two")
    if location is not None:
        _require_pem(config, "ssl.truststore")
        context.load_verify_locations(cafile=location)
    elif certificates is not None:
        context.load_verify_locations(cadata=_pem(certificates))
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)


def _require_pem(config: ClientConfig, store: str) -> None:
    """Accepts a store whose type is PEM, or whose type is not set and whose file is PEM."""
    store_type, location = config[f"{store}.type"], config[f"{store}.location"]
    if store_type == "PEM" or (not config.is_given(f"{store}.type") and _is_pem(location)):
        return
    raise InvalidConfig(
        f"{store}.type is {store_type}, and only PEM is read here. Convert {location} (keytool -importkeystore -deststoretype PKCS12, then "
        f"openssl pkcs12 -nodes) and set {store}.type=PEM"
    )


def _is_pem(location: str) -> bool:
    with open(location, "rb") as file:
        return b"-----BEGIN " in file.read(65536)


def _pem(text: str) -> str:
    """PEM from a properties file, in which line breaks may have become blanks."""
    if "\n" in text:
        return text
    words = text.replace("-----BEGIN ", "\n-----BEGIN ").replace("-----END ", "\n-----END ").split("\n")
    lines = []
    for word in words:
        if word.startswith("-----"):
            head, _, body = word[5:].partition("-----")
            lines += [f"-----{head}-----", *body.split()]
        else:
            lines += word.split()
    return "\n".join(lines) + "\n"
