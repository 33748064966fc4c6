"""Certificates for tests, made when they are needed: a CA, and what it issues."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """A certificate with its key; `issuer` is None for a CA."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: Issued | None

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def store_pem(self, password: str | None = None) -> str:
        """A PEM key store as Kafka reads it: key and chain."""
        return self.key_pem(password) + self.pem + (self.issuer.pem if self.issuer is not None else "")


@functools.cache
def authority(name: str = "Test CA") -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key, 3650).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    return Issued(builder.add_extension(usage, critical=True).sign(key, SHA256()), key, None)


def issued(name: str, hosts: Sequence[str] = ("localhost", "127.0.0.1"), ca: Issued | None = None, days: int = 30) -> Issued:
    """A certificate for the hosts, valid from yesterday for `days`; negative: it expired that many days ago."""
    issuer = ca or authority()
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts]
    issuer_name = issuer.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = _builder(name, str(issuer_name), key, days).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Issued(builder.sign(issuer.key, SHA256()), key, issuer)


def _builder(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), end) - timedelta(days=1))
        .not_valid_after(end)
    )
