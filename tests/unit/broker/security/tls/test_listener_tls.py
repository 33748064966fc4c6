"""Kafka's ssl.* settings become the TLS of the listeners, or an error that says what to change."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.tls.listener_certificates import ListenerCertificates
from barnabas.config_def import InvalidConfig
from tests.unit.security.certificates import authority, key_store

LISTENER = {"listeners": "SSL://:0", "security.inter.broker.protocol": "SSL"}
SASL_LISTENER = {"listeners": "SASL_SSL://:0", "security.inter.broker.protocol": "SASL_SSL"}


def own_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def no_context() -> str:
    return "nothing"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Key and chain in one PEM file, as ssl.keystore.location names it."""
    path = tmp_path / "broker.pem"
    path.write_text(key_store("broker", "localhost"))
    return str(path)


def contexts(listener: dict[str, str] = LISTENER, is_clustered: bool = False, **settings: str) -> dict[str, ssl.SSLContext]:
    named = {name.replace("_", "."): text for name, text in settings.items()}
    return ListenerCertificates(BrokerConfig.from_properties(listener | named), is_clustered).contexts


def test_a_listener_without_tls_has_no_context() -> None:
    assert contexts({"listeners": "PLAINTEXT://:0"}) == {}


def test_key_and_certificate_come_from_one_file(store: str) -> None:
    made = contexts(ssl_keystore_type="PEM", ssl_keystore_location=store)["SSL"]
    assert (made.minimum_version, made.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def test_key_and_certificate_may_stand_in_the_settings(store: str) -> None:
    key, certificate = Path(store).read_text().split("-----END PRIVATE KEY-----\n")
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.key": f"{key}-----END PRIVATE KEY-----"}
    settings["ssl.keystore.certificate.chain"] = " ".join(certificate.split("\n"))
    assert list(contexts(LISTENER | settings)) == ["SSL"]


def test_clients_show_a_certificate_when_the_settings_of_the_listener_say_so(store: str) -> None:
    trusting = LISTENER | {"ssl.keystore.location": store, "ssl.truststore.certificates": authority().own.pem}
    assert contexts(trusting, ssl_client_auth="required")["SSL"].verify_mode is ssl.CERT_REQUIRED
    assert contexts(trusting, listener_name_ssl_ssl_client_auth="requested")["SSL"].verify_mode is ssl.CERT_OPTIONAL
    assert contexts(trusting)["SSL"].verify_mode is ssl.CERT_NONE


def test_with_sasl_only_the_setting_with_the_prefix_of_the_listener_counts(store: str, caplog: pytest.LogCaptureFixture) -> None:
    made = contexts(SASL_LISTENER, ssl_keystore_location=store, ssl_client_auth="required")
    assert made["SASL_SSL"].verify_mode is ssl.CERT_NONE
    assert "set listener.name.sasl_ssl.ssl.client.auth" in caplog.text
    prefixed = contexts(SASL_LISTENER | {"listener.name.sasl_ssl.ssl.client.auth": "required"}, ssl_keystore_location=store)
    assert prefixed["SASL_SSL"].verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("trusts", [False, True])
def test_clients_of_all_authorities_of_the_machine_are_not_let_in_without_a_word(
    store: str, trusts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    trust_store = {"ssl.truststore.certificates": authority().own.pem} if trusts else {}
    contexts(LISTENER | {"ssl.keystore.location": store, "ssl.client.auth": "required"} | trust_store)
    assert ("Listener SSL: ssl.truststore.* is not set" in caplog.text) is not trusts


def test_a_listener_without_certificate_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"Listener SSL: .*set ssl\.keystore\.location"):
        contexts(ssl_keystore_type="PEM")


def test_the_brokers_of_a_cluster_must_trust_each_other(store: str) -> None:
    with pytest.raises(InvalidConfig, match=r"Listener SSL: .*ssl\.truststore\.\* must trust the certificate"):
        contexts(is_clustered=True, ssl_keystore_location=store, ssl_truststore_certificates=authority("other").own.pem)
    trusting = LISTENER | {"ssl.keystore.location": store, "ssl.truststore.certificates": authority().own.pem}
    assert contexts(trusting, is_clustered=True, ssl_client_auth="required")


def test_an_expired_certificate_is_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "old.pem").write_text(key_store("broker", days=-1))
    with caplog.at_level(logging.WARNING):
        contexts(ssl_keystore_location=str(tmp_path / "old.pem"))
    assert "expired on" in caplog.text


def test_a_context_of_ones_own() -> None:
    assert contexts(ssl_engine_factory_class=f"{__name__}.own_context")["SSL"].verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize("name", ["no_context", "missing"])
def test_a_factory_that_makes_no_context_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match=r"ssl\.engine\.factory\.class"):
        contexts(ssl_engine_factory_class=f"{__name__}.{name}")
