"""Certificates for the listeners: one authority, a good one for localhost, an expired one, and one of another host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Stores:
    """PEM files. A key store has the private key and then the certificate."""

    authority: Path
    good: Path
    expired: Path
    elsewhere: Path


def make_stores(directory: Path) -> Stores:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("authority")
    now = datetime.now(UTC)
    builder = _builder(name, name, key, now - 3 * DAY, now + DAY).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    authority = directory / "authority.pem"
    authority.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def store(file: str, host: x509.GeneralName, common_name: str, not_after: datetime) -> Path:
        own_key = ec.generate_private_key(ec.SECP256R1())
        request = _builder(_name(common_name), name, own_key, now - 2 * DAY, not_after)
        certificate = request.add_extension(x509.SubjectAlternativeName([host]), False).sign(key, hashes.SHA256())
        private = own_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (directory / file).write_bytes(private + certificate.public_bytes(Encoding.PEM))
        return directory / file

    localhost = x509.DNSName("localhost")
    return Stores(
        authority,
        store("good.pem", localhost, "localhost", now + DAY),
        store("expired.pem", localhost, "localhost", now - DAY),
        store("elsewhere.pem", x509.IPAddress(ip_address("192.0.2.1")), "elsewhere", now + DAY),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(not_before).not_valid_after(not_after)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
