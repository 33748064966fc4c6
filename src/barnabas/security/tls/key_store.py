"""The private key and certificate chain of Kafka's ssl.keystore.* settings: PEM and PKCS12, in a file or as PEM text in the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from barnabas.security.tls.pkcs12 import open_pkcs12, refuse_java_format
from barnabas.security.tls.settings import TlsSettings
from barnabas.security.tls.store_file import in_lines, is_pem, read_store_file

_KEY: Final = re.compile(r"-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A private key, and its certificate chain: the own certificate first, each followed by its issuer."""

    key: PrivateKeyTypes = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]


def read_key_store(settings: TlsSettings) -> KeyMaterial | None:
    """None if the settings name no key. Raises InvalidConfig."""
    location, key, chain = settings["ssl.keystore.location"], settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    if location is not None and (key is not None or chain is not None):
        raise settings.invalid("Both ssl.keystore.location and ssl.keystore.key or certificate.chain are set: keep one of the two ways")
    if location is not None:
        data = read_store_file(settings, "keystore", location)
        return _of_pem(settings, data.decode(errors="replace")) if is_pem(data) else _of_pkcs12(settings, location, data)
    if key is None and chain is None:
        return None
    if key is None or chain is None:
        raise settings.invalid("ssl.keystore.key and ssl.keystore.certificate.chain must be set together")
    return _of_pem(settings, f"{in_lines(key)}\n{in_lines(chain)}")


def _of_pem(settings: TlsSettings, text: str) -> KeyMaterial:
    match = _KEY.search(text)
    if match is None:
        raise settings.invalid("ssl.keystore.* has no private key: a PEM key store has the key and then the certificate chain")
    password = settings["ssl.key.password"] or settings["ssl.keystore.password"]
    try:
        key = _loaded_key(match[0].encode(), password)
        certificates = x509.load_pem_x509_certificates(_KEY.sub("", text).encode())
    except TypeError:
        raise settings.invalid("The private key of ssl.keystore.* is encrypted: set ssl.key.password") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise settings.invalid(
            f"The private key and certificates of ssl.keystore.* cannot be read: {_first_line(error)}; "
            "check that they are PEM, and that ssl.key.password opens the key"
        ) from None
    return _material(settings, key, certificates)


def _loaded_key(block: bytes, password: str | None) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(block, None if password is None else password.encode())
    except TypeError:  # the key is not encrypted and needs no password, or the reverse
        if password is None:
            raise
        return load_pem_private_key(block, None)


def _of_pkcs12(settings: TlsSettings, location: str, data: bytes) -> KeyMaterial:
    refuse_java_format(settings, "keystore", location, data)
    password, key_password = settings["ssl.keystore.password"], settings["ssl.key.password"]
    if password is None:
        raise settings.invalid(f"ssl.keystore.password is missing: the key store {location} cannot be opened without it")
    if key_password is not None and key_password != password:
        raise settings.invalid(
            "ssl.key.password is not the same as ssl.keystore.password: a PKCS12 store has one password for both; "
            f"keytool -importkeystore -srckeystore {location} -destkeystore NEW -deststoretype PKCS12 writes one"
        )
    store = open_pkcs12(settings, "keystore", location, data)
    if store.key is None or store.cert is None:
        raise settings.invalid(f"ssl.keystore.location: {location} has no private key with its certificate")
    return _material(settings, store.key, [store.cert.certificate, *(entry.certificate for entry in store.additional_certs)])


def _material(settings: TlsSettings, key: PrivateKeyTypes, certificates: Iterable[x509.Certificate]) -> KeyMaterial:
    """Orders the chain: OpenSSL sends it as it is, and a client verifies it from the own certificate upwards."""
    remaining = list(certificates)
    own = next((certificate for certificate in remaining if _is_of(key, certificate)), None)
    if own is None:
        raise settings.invalid("The private key and the certificate of ssl.keystore.* do not belong together")
    chain = [own]
    remaining.remove(own)
    while (issuer := next((other for other in remaining if other.subject == chain[-1].issuer), None)) is not None:
        chain.append(issuer)
        remaining.remove(issuer)
    return KeyMaterial(key, tuple(chain))


def _is_of(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(" (")[0].rstrip(".")
