"""Kafka's ssl.* settings become TLS contexts of the listeners, or an error that says what to change."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.tls import tls_contexts
from barnabas.config_def import InvalidConfig

LISTENER = {"listeners": "SSL://:0", "security.inter.broker.protocol": "SSL"}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate in one file, as ssl.keystore.location names it."""
    directory = tmp_path_factory.mktemp("tls")
    key, certificate, both = directory / "key.pem", directory / "certificate.pem", directory / "both.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return both


def contexts(**settings: str) -> dict[str, ssl.SSLContext]:
    return tls_contexts(BrokerConfig.from_properties(LISTENER | {name.replace("_", "."): text for name, text in settings.items()}))


def test_a_listener_without_tls_has_no_context() -> None:
    assert tls_contexts(BrokerConfig.from_properties({"listeners": "PLAINTEXT://:0"})) == {}


def test_key_and_certificate_come_from_one_pem_file(pem: Path) -> None:
    assert list(contexts(ssl_keystore_type="PEM", ssl_keystore_location=str(pem))) == ["SSL"]


def test_key_and_certificate_may_stand_in_the_settings(pem: Path) -> None:
    key, certificate = pem.read_text().split("-----END PRIVATE KEY-----\n")
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.key": f"{key}-----END PRIVATE KEY-----"}
    settings["ssl.keystore.certificate.chain"] = certificate
    assert list(tls_contexts(BrokerConfig.from_properties(LISTENER | settings))) == ["SSL"]


def test_clients_are_asked_for_a_certificate_when_the_settings_say_so(pem: Path) -> None:
    found = contexts(
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(pem),
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(pem),
        ssl_client_auth="required",
    )
    assert found["SSL"].verify_mode is ssl.CERT_REQUIRED


def test_a_java_key_store_is_refused_with_the_way_to_convert_it(pem: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.type=PEM"):
        contexts(ssl_keystore_location=str(pem))


def test_a_listener_without_certificate_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"set ssl\.keystore\.location"):
        contexts(ssl_keystore_type="PEM")


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    with pytest.raises(InvalidConfig, match=r"Listener SSL cannot use its ssl\.\* settings"):
        contexts(ssl_keystore_type="PEM", ssl_keystore_location=str(tmp_path / "empty.pem"))
