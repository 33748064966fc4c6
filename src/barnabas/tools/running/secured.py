"""The directory DATA/secure of `barnabas up --secure`: a certificate authority, the broker's certificate, and the user `admin`.

A start makes what is missing and keeps the rest, so that clients need the files once. All files have mode 0600, the directory 0700.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from barnabas.file_modes import DIRECTORY_MODE
from barnabas.properties import parse_properties
from barnabas.security.new_user import NewUser
from barnabas.storage.directory.log_dir import SECURE_DIR
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode

ADMIN: Final = "admin"
BROKER: Final = "broker"  # the user that the brokers of a cluster are to each other
MECHANISM: Final = "SCRAM-SHA-512"
CERTIFICATE_DAYS: Final = 730
RENEWAL: Final = timedelta(days=90)  # a certificate that expires sooner is replaced at the start

_MODE: Final = 0o700
_PASSWORD_BYTES: Final = 24
_JAAS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True, slots=True)
class Secured:
    """What a start of secured brokers needs; made by `prepare`."""

    directory: Path
    admin_password: str = field(repr=False)
    broker_password: str = field(repr=False)
    are_passwords_new: bool

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"

    @property
    def client_properties(self) -> Path:
        """For our clients, our tools, and Java."""
        return self.directory / "client.properties"

    @property
    def console_properties(self) -> Path:
        """For the console: without a user, because people log in to it."""
        return self.directory / "console.properties"

    @property
    def librdkafka_properties(self) -> Path:
        """For clients that are made of librdkafka. Before 2.6.1 it sends a wrong nonce, which Apache Kafka refuses too (CVE-2024-56128)."""
        return self.directory / "librdkafka.properties"

    @property
    def client_config(self) -> dict[str, str]:
        return parse_properties(self.client_properties.read_text())

    @property
    def librdkafka_config(self) -> dict[str, str]:
        return parse_properties(self.librdkafka_properties.read_text())

    @property
    def new_users(self) -> list[NewUser]:
        """With new passwords they replace the credentials that an earlier DATA/secure had."""
        passwords = {ADMIN: self.admin_password, BROKER: self.broker_password}
        return [NewUser.of_password(name, password, MECHANISM, replaces=self.are_passwords_new) for name, password in passwords.items()]

    @property
    def broker_settings(self) -> dict[str, str]:
        return {
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "barnabas.sasl.inter.broker.username": BROKER,
            "barnabas.sasl.inter.broker.password": self.broker_password,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
        }

    def usage(self, address: str, metrics: str | None = None) -> list[str]:
        """Lines for people: how clients connect, and how metrics are read. They have no secrets, only names of files."""
        client, librdkafka = self.client_properties, self.librdkafka_properties
        return [
            f"secured by TLS and {MECHANISM}; the password of the user {ADMIN} is in {client}",
            f"  barnabas topics --bootstrap-server {address} --command-config {client} --list",
            f"  kafka-topics.sh --bootstrap-server {address} --command-config {client} --list",
            "  Python, barnabas.client and confluent_kafka:",
            f'    Producer(parse_properties(open("{client}").read()), bootstrap_servers="{address}")  # from barnabas.properties',
            f'    Producer({{"bootstrap.servers": "{address}", **dict(line.strip().split("=", 1) for line in open("{librdkafka}"))}})',
            *([] if metrics is None else [f"  curl --cacert {self.ca} --user {ADMIN} {metrics}/metrics  # asks for the password"]),
        ]


def prepare(data: str, hosts: Iterable[str] = ()) -> Secured:
    """Makes or completes DATA/secure. The certificate is valid for this machine's names, and for `hosts`. Raises CannotRun."""
    directory = Path(data) / SECURE_DIR
    try:
        os.makedirs(data, DIRECTORY_MODE, exist_ok=True)
        directory.mkdir(_MODE, exist_ok=True)
        directory.chmod(_MODE)
        _certificates(directory, own_names(hosts))
        return _users(directory)
    except OSError as error:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{directory}: {error.strerror or error}; name another directory with --data") from error
    except ValueError as error:
        advice = "remove the directory to make new certificates and passwords, which clients then need"
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{directory} cannot be used: {error}; {advice}") from error


def is_secured(data: str) -> bool:
    """Whether brokers with this data directory were secured."""
    return (Path(data) / SECURE_DIR / "client.properties").exists()


def up_command(data: str, brokers: int) -> str:
    """The command that starts brokers with this data directory."""
    return f"barnabas up --data {data}" + (f" --brokers {brokers}" if brokers > 1 else "") + (" --secure" if is_secured(data) else "")


def own_names(hosts: Iterable[str]) -> list[str]:
    """localhost and the loopback addresses, the names of this machine, and the given hosts, each once."""
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn(), *hosts]
    return list(dict.fromkeys(name for name in names if name and name not in ("0.0.0.0", "::")))


def _certificates(directory: Path, hosts: Collection[str]) -> None:
    from barnabas.security.tls.authority import CertificateAuthority, Issued

    authority_file, broker_file = directory / "authority.pem", directory / "broker.pem"
    if authority_file.exists():
        authority = CertificateAuthority(Issued.parse(authority_file.read_text()))
    else:
        authority = CertificateAuthority.create(f"Barnabas on {socket.gethostname()}"[:64])
        _write(authority_file, authority.own.key_pem() + authority.own.pem)
        broker_file.unlink(missing_ok=True)
    _write_if_other(directory / "ca.pem", authority.own.pem)
    _write_if_other(directory / "console.properties", _tls_text(directory) + f"sasl.mechanism={MECHANISM}\n")
    current = Issued.parse(broker_file.read_text()) if broker_file.exists() else None
    if current is None or not set(hosts) <= current.hosts or current.certificate.not_valid_after_utc - datetime.now(UTC) < RENEWAL:
        _write(broker_file, authority.key_store(authority.issue("barnabas", hosts, CERTIFICATE_DAYS)))


def _users(directory: Path) -> Secured:
    client, librdkafka, broker = (directory / f"{name}.properties" for name in ("client", "librdkafka", "broker"))
    are_new = not (client.exists() and librdkafka.exists() and broker.exists())
    if are_new:
        admin_password, broker_password = secrets.token_urlsafe(_PASSWORD_BYTES), secrets.token_urlsafe(_PASSWORD_BYTES)
        _write(broker, f"password={broker_password}\n")
        _write(librdkafka, _librdkafka_text(directory, admin_password))
        _write(client, _client_text(directory, admin_password))
    try:
        admin_password = parse_properties(librdkafka.read_text())["sasl.password"]
        broker_password = parse_properties(broker.read_text())["password"]
    except KeyError as error:
        raise ValueError(f"a password is missing ({error})") from None
    return Secured(directory, admin_password, broker_password, are_new)


def _client_text(directory: Path, password: str) -> str:
    return f'{_tls_text(directory)}sasl.mechanism={MECHANISM}\nsasl.jaas.config={_JAAS} username="{ADMIN}" password="{password}";\n'


def _tls_text(directory: Path) -> str:
    return f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={directory / 'ca.pem'}\n"


def _librdkafka_text(directory: Path, password: str) -> str:
    return (
        f"security.protocol=SASL_SSL\nssl.ca.location={directory / 'ca.pem'}\n"
        f"sasl.mechanisms={MECHANISM}\nsasl.username={ADMIN}\nsasl.password={password}\n"
    )


def _write_if_other(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    """Replaces the file at once. Temporary files have mode 0600, and keep it under the new name."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
