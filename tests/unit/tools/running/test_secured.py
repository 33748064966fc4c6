"""DATA/secure of `barnabas up --secure`: what a start makes, keeps and renews."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas
from barnabas.security.tls.authority import CertificateAuthority, Issued
from barnabas.tools.command_line.exit_codes import CannotRun
from barnabas.tools.running import secured
from barnabas.tools.running.secured import is_secured, prepare, up_command


def certificate(data: Path) -> Issued:
    return Issued.parse((data / "secure" / "broker.pem").read_text())


def files(data: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (data / "secure").iterdir()}


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    made = prepare(str(tmp_path / "new"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.directory.iterdir()}
    assert stat.S_IMODE(made.directory.stat().st_mode) == 0o700
    assert modes == dict.fromkeys(
        ("authority.pem", "broker.pem", "broker.properties", "ca.pem", "client.properties", "console.properties", "librdkafka.properties"),
        0o600,
    )


def test_the_command_that_starts_secured_data_says_secure(tmp_path: Path) -> None:
    assert up_command(str(tmp_path), 1) == f"barnabas up --data {tmp_path}"
    prepare(str(tmp_path))
    assert up_command(str(tmp_path), 1) == f"barnabas up --data {tmp_path} --secure"
    assert up_command(str(tmp_path), 3) == f"barnabas up --data {tmp_path} --brokers 3 --secure"


def test_the_certificate_is_for_this_machine(tmp_path: Path) -> None:
    prepare(str(tmp_path), ["kafka.example"])
    assert {"localhost", "127.0.0.1", "::1", "kafka.example"} <= certificate(tmp_path).hosts


def test_clients_of_java_and_librdkafka_find_the_same_password(tmp_path: Path) -> None:
    made = prepare(str(tmp_path))
    options = parse_jaas(made.client_config["sasl.jaas.config"]).options
    assert options == {"username": "admin", "password": made.admin_password}
    assert made.librdkafka_config["sasl.password"] == made.admin_password
    assert made.client_config["ssl.truststore.location"] == made.librdkafka_config["ssl.ca.location"] == str(made.ca)


def test_the_next_start_changes_nothing(tmp_path: Path) -> None:
    assert not is_secured(str(tmp_path))
    first = prepare(str(tmp_path))
    before = files(tmp_path)
    second = prepare(str(tmp_path))
    assert is_secured(str(tmp_path))
    assert files(tmp_path) == before
    assert (first.are_passwords_new, second.are_passwords_new) == (True, False)
    assert [user.replaces for user in first.new_users] == [True, True]
    assert [user.replaces for user in second.new_users] == [False, False]
    assert first.admin_password == second.admin_password != second.broker_password


def test_a_new_host_gets_a_new_certificate_of_the_same_authority(tmp_path: Path) -> None:
    prepare(str(tmp_path))
    before = files(tmp_path)
    prepare(str(tmp_path), ["kafka.example"])
    after = files(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"broker.pem"}


def test_a_certificate_is_renewed_before_it_expires(tmp_path: Path) -> None:
    made = prepare(str(tmp_path))
    authority = CertificateAuthority(Issued.parse((made.directory / "authority.pem").read_text()))
    old = authority.issue("barnabas", secured.own_names([]), days=30)
    (made.directory / "broker.pem").write_text(authority.key_store(old))
    prepare(str(tmp_path))
    assert certificate(tmp_path).certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=365)


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    made = prepare(str(tmp_path))
    shown = repr(made) + "".join(made.usage("localhost:9092"))
    assert made.admin_password not in shown and made.broker_password not in shown


@pytest.mark.parametrize(("name", "text"), [("authority.pem", "nothing"), ("librdkafka.properties", "nothing"), ("broker.pem", "nothing")])
def test_damaged_files_are_told_with_the_fix(tmp_path: Path, name: str, text: str) -> None:
    made = prepare(str(tmp_path))
    (made.directory / name).write_text(text)
    with pytest.raises(CannotRun, match=r"secure cannot be used: .*; remove the directory"):
        prepare(str(tmp_path))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((CannotRun, InvalidConfig), match="--data"):
        prepare(str(tmp_path / "file"))
