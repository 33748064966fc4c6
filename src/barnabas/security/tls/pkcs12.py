"""Stores in PKCS12 files. A file in Java's own format JKS is refused with the command that converts it."""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, PKCS12KeyAndCertificates, load_pkcs12

from barnabas.security.distinguished_name import subject_of
from barnabas.security.tls.settings import TlsSettings

_JAVA_FORMATS: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}


def trusted_certificates(settings: TlsSettings, location: str, data: bytes) -> bytes:
    """DER, one after the other. As in Java, a private key in the store does not make the authorities of its chain trusted."""
    store = open_pkcs12(settings, "truststore", location, data)
    has_key = store.key is not None
    entries = [store.cert, *(entry for entry in store.additional_certs if not (has_key and _is_of_chain(entry)))]
    trusted = [entry.certificate.public_bytes(Encoding.DER) for entry in entries if entry is not None]
    if not trusted:
        raise settings.invalid(f"ssl.truststore.location: {location} has no certificate; add one with keytool -importcert")
    return b"".join(trusted)


def _is_of_chain(entry: PKCS12Certificate) -> bool:
    """Java names the certificates of a chain by their subject, and trusted ones by their alias; OpenSSL names neither."""
    return not entry.friendly_name or entry.friendly_name.decode("utf-8", "replace") == subject_of(
        entry.certificate.public_bytes(Encoding.DER)
    )


def open_pkcs12(settings: TlsSettings, store: str, location: str, data: bytes) -> PKCS12KeyAndCertificates:
    refuse_java_format(settings, store, location, data)
    if (settings[f"ssl.{store}.type"] or "").upper() == "PEM":
        raise settings.invalid(f"ssl.{store}.type is PEM, and {location} is not: set the type PKCS12, or name a PEM file")
    password = settings[f"ssl.{store}.password"]
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise settings.invalid(
            f"ssl.{store}.password does not open {location}, or the file is not a PKCS12 store: keytool -list -keystore {location} "
            "shows which"
        ) from None


def refuse_java_format(settings: TlsSettings, store: str, location: str, data: bytes) -> None:
    """Raises InvalidConfig for a JKS file."""
    if (java_format := _JAVA_FORMATS.get(data[:4])) is not None:
        raise settings.invalid(
            f"ssl.{store}.location: {location} is a {java_format} file, which only Java reads. Convert it: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12; then set ssl.{store}.location={location}.p12 and "
            f"ssl.{store}.type=PKCS12"
        )
