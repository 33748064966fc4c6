"""The TLS contexts of brokers and clients, from Kafka's ssl.* settings."""

from __future__ import annotations

import logging
import secrets
import ssl
import tempfile
from typing import TYPE_CHECKING, Final

from barnabas.security.tls.ciphers import TLS_1_3_SUITES, cipher_suites
from barnabas.security.tls.settings import TlsSettings
from barnabas.security.tls.trust_store import read_trust_store

if TYPE_CHECKING:
    from barnabas.security.tls.key_store import KeyMaterial

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

_log = logging.getLogger(__name__)


def server_context(settings: TlsSettings, key: KeyMaterial, client_auth: ssl.VerifyMode) -> ssl.SSLContext:
    """The context of a listener. Raises InvalidConfig."""
    context = _context(settings, ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = client_auth
    use_key(context, key)
    _trust(context, settings, None if client_auth is ssl.CERT_NONE else ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: TlsSettings, checks_host: bool) -> ssl.SSLContext:
    """The context of a client. Without a trust store it trusts the certificates of the system. Raises InvalidConfig."""
    context = _context(settings, ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    if any(settings[f"ssl.keystore.{name}"] for name in ("location", "key", "certificate.chain")):
        from barnabas.security.tls.key_store import read_key_store  # with `cryptography`, which most clients do not need

        key = read_key_store(settings)
        assert key is not None
        use_key(context, key)
    _trust(context, settings, ssl.Purpose.SERVER_AUTH)
    return context


def use_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """OpenSSL reads keys from files only. This one is readable by its owner alone, has a random password, and is deleted at once."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    password = secrets.token_hex(16)
    pem = material.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem + b"".join(certificate.public_bytes(Encoding.PEM) for certificate in material.chain))
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _context(settings: TlsSettings, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version, context.maximum_version = _versions(settings)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, each certificate of a trust store is trusted, also if it is no CA
    if settings["ssl.cipher.suites"] is not None:
        _set_ciphers(context, settings)
    return context


def _versions(settings: TlsSettings) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = settings["ssl.enabled.protocols"] or (settings["ssl.protocol"],)
    enabled = [_VERSIONS[name] for name in names if name in _VERSIONS]
    if not enabled:
        raise settings.invalid(f"ssl.enabled.protocols must have one of {', '.join(_VERSIONS)}, and has only {', '.join(names)}")
    return min(enabled), max(enabled)


def _set_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """A version of which no suite is named is not spoken."""
    try:
        suites = cipher_suites(settings["ssl.cipher.suites"])
    except ValueError as error:
        raise settings.invalid(f"ssl.cipher.suites cannot be used: {error}") from None
    if suites.earlier:
        context.set_ciphers(":".join(suites.earlier))
    if suites.tls_1_3 and set(suites.tls_1_3) < set(TLS_1_3_SUITES[:3]):
        _log.warning(
            "ssl.cipher.suites: Python cannot choose among the suites of TLS 1.3, so %s are all used", ", ".join(TLS_1_3_SUITES[:3])
        )
    lowest = ssl.TLSVersion.TLSv1_2 if suites.earlier else ssl.TLSVersion.TLSv1_3
    highest = ssl.TLSVersion.TLSv1_3 if suites.tls_1_3 else ssl.TLSVersion.TLSv1_2
    if context.minimum_version > highest or context.maximum_version < lowest:
        raise settings.invalid("ssl.cipher.suites has no suite for a version of ssl.enabled.protocols")
    context.minimum_version = max(context.minimum_version, lowest)
    context.maximum_version = min(context.maximum_version, highest)


def _trust(context: ssl.SSLContext, settings: TlsSettings, systems: ssl.Purpose | None) -> None:
    """`systems` says for what the certificates of the system are trusted where no trust store is set."""
    if settings["ssl.truststore.location"] is None and settings["ssl.truststore.certificates"] is None:
        if systems is not None:
            context.load_default_certs(systems)
        return
    try:
        context.load_verify_locations(cadata=read_trust_store(settings))
    except ssl.SSLError as error:
        reason = getattr(error, "reason", None) or error
        raise settings.invalid(f"The certificates of ssl.truststore.* cannot be used: {reason}; check that they are PEM") from None
