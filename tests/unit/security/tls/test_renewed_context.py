"""The TLS context of a client whose certificates are replaced while it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.security.distinguished_name import subject_of
from barnabas.security.tls.renewed_context import RenewedContext
from barnabas.security.tls.settings import TlsSettings
from tests.unit.security import certificates


def replace(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def settings(tmp_path: Path) -> TlsSettings:
    values = {"ssl.keystore.location": str(tmp_path / "own.pem"), "ssl.truststore.location": str(tmp_path / "ca.pem")}
    replace(tmp_path / "own.pem", certificates.key_store("broker", "localhost"))
    replace(tmp_path / "ca.pem", certificates.authority().own.pem)
    return TlsSettings({**values, "ssl.protocol": "TLSv1.3"}, prefix="zookeeper.")


def test_a_replaced_file_makes_a_new_context(tmp_path: Path) -> None:
    renewed = RenewedContext(settings(tmp_path), checks_host=True)
    first = renewed.current()
    assert renewed.current() is first
    replace(tmp_path / "ca.pem", certificates.authority("Other CA").own.pem)
    second = renewed.current()
    assert second is not first
    assert [subject_of(der) for der in second.get_ca_certs(binary_form=True)] == ["CN=Other CA"]
    assert second.check_hostname
    assert renewed.current() is second


def test_files_that_cannot_be_used_leave_the_previous_context_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    renewed = RenewedContext(settings(tmp_path), checks_host=False)
    first = renewed.current()
    replace(tmp_path / "own.pem", "no key")
    assert [renewed.current(), renewed.current()] == [first, first]
    (record,) = caplog.records
    assert "zookeeper.ssl.keystore" in record.getMessage()
    replace(tmp_path / "own.pem", certificates.key_store("broker", "localhost"))
    assert renewed.current() is not first


def test_files_that_cannot_be_used_at_the_start_are_refused(tmp_path: Path) -> None:
    made = settings(tmp_path)
    (tmp_path / "own.pem").unlink()
    with pytest.raises(InvalidConfig, match=r"zookeeper\.ssl\.keystore\.location"):
        RenewedContext(made, checks_host=False)
