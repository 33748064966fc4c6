"""A certificate authority of our own, for `barnabas up --secure` and for tests: ECDSA keys, one CA, and what it issues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS: Final = 3650
_SKEW: Final = timedelta(days=1)  # for machines whose clocks are behind


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its private key, which repr() hides."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def hosts(self) -> frozenset[str]:
        """The names and addresses that the certificate is valid for."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return frozenset()
        return frozenset(str(name.value) for name in names)

    def key_pem(self, password: str | None = None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    @classmethod
    def parse(cls, text: str) -> Issued:
        """Of key and certificate as PEM, one after the other. Raises ValueError."""
        key = load_pem_private_key(text.encode(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the private key is not an ECDSA key")
        return cls(x509.load_pem_x509_certificate(text.encode()), key)


class CertificateAuthority:
    def __init__(self, own: Issued) -> None:
        self.own = own

    @classmethod
    def create(cls, name: str, now: datetime | None = None) -> CertificateAuthority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key, CA_DAYS, now).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        builder = builder.add_extension(_usage(is_ca=True), critical=True)
        return cls(Issued(builder.sign(key, SHA256()), key))

    def issue(self, name: str, hosts: Iterable[str], days: int, now: datetime | None = None) -> Issued:
        """A certificate for server and client, valid for the hosts. With negative `days` it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = self.own.certificate
        builder = _builder(_name(name), own.subject, key, days, now)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.own.key.public_key()), critical=False)
        builder = builder.add_extension(_usage(is_ca=False), critical=True)
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(purposes, critical=False)
        if names := [_alternative_name(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(builder.sign(self.own.key, SHA256()), key)

    def key_store(self, issued: Issued, password: str | None = None) -> str:
        """Key and chain as PEM: the value of ssl.keystore.location names a file with it."""
        return issued.key_pem(password) + issued.pem + self.own.pem


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, now: datetime | None
) -> x509.CertificateBuilder:
    begin = now or datetime.now(UTC)
    end = begin + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(begin, end) - _SKEW)
        .not_valid_after(end)
    )
