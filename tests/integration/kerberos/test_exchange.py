"""The exchange of GSSAPI between our client and our broker, message by message, with tickets of a real key distribution center."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.sasl.gssapi import KEYTAB, PRINCIPAL, Gssapi, mechanism
from barnabas.broker.security.sasl.mechanism import MechanismSettings, SaslFailure
from barnabas.client.config.common_config import COMMON
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import SaslAuthentication
from barnabas.client.network.sasl.gssapi import Kerberos
from barnabas.config_def import InvalidConfig, table
from tests.kerberos import REALM, Kdc

JAAS_SETTING = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
JAAS = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "


@pytest.fixture(scope="module")
def service(kdc: Kdc) -> Path:
    return kdc.keytab("kafka/localhost")


@pytest.fixture(scope="module")
def alice(kdc: Kdc) -> Path:
    return kdc.keytab("alice")


def broker(properties: dict[str, str]) -> Gssapi:
    config = BrokerConfig.from_properties(
        {"listeners": "SASL_PLAINTEXT://:9092", "security.inter.broker.protocol": "SASL_PLAINTEXT", **properties}
    )
    return mechanism(
        MechanismSettings("GSSAPI", "SASL_PLAINTEXT", config, Credentials(), Clock(), Random(1), ThreadPoolExecutor(1), b"secret")
    )


def broker_of(service: Path, principal: str = f"kafka/localhost@{REALM}") -> Gssapi:
    return broker({KEYTAB: str(service), PRINCIPAL: principal})


def client(settings: dict[str, str]) -> Kerberos:
    return Kerberos(ClientConfig(table(COMMON), {"bootstrap.servers": "x:1", **settings}))


def client_of(keytab: Path) -> Kerberos:
    return client({"sasl.kerberos.keytab": str(keytab), "sasl.kerberos.service.name": "kafka"})


def authenticated(server: Gssapi, login: Kerberos) -> str:
    exchange, theirs = server.begin(), login.begin("localhost")
    token: bytes | None = theirs.begin()
    while token is not None:
        challenge = exchange.evaluate(token)
        token = theirs.answer(challenge)
    assert theirs.is_done
    return exchange.authorization_id if exchange.is_complete else ""


def test_a_ticket_proves_its_principal_and_serves_again(service: Path, alice: Path) -> None:
    server, login = broker_of(service), client_of(alice)
    assert authenticated(server, login) == f"alice@{REALM}"
    assert authenticated(server, login) == f"alice@{REALM}"


def test_jaas_texts_of_java_have_the_same_options(service: Path, alice: Path) -> None:
    server = broker({JAAS_SETTING: f'{JAAS} keyTab="{service}" principal="kafka/localhost@{REALM}";'})
    login = client({"sasl.jaas.config": f'{JAAS} keyTab="{alice}" principal="alice@{REALM}" serviceName="kafka";'})
    assert authenticated(server, login) == f"alice@{REALM}"


def test_without_a_ticket_there_is_no_authentication(service: Path, kdc: Kdc) -> None:
    with pytest.raises(SaslAuthentication, match=r"ticket cache.*kinit"):
        client({"sasl.kerberos.service.name": "kafka"}).begin("localhost")
    with pytest.raises(SaslAuthentication, match=f"kafka/elsewhere.*Server kafka/elsewhere@{REALM} not found in Kerberos database"):
        client_of(kdc.keytab("bob")).begin("elsewhere")


@pytest.mark.parametrize("token", [b"", b"garbage", b"\x60" + b"\x00" * 100])
def test_bytes_that_are_no_ticket_are_refused(service: Path, token: bytes) -> None:
    exchange = broker_of(service).begin()
    with pytest.raises(SaslFailure, match="not valid"):
        exchange.evaluate(token)
    assert not exchange.is_complete


def test_a_ticket_for_another_service_is_refused(kdc: Kdc, alice: Path) -> None:
    kdc.keytab("other/localhost")
    elsewhere = client({"sasl.kerberos.keytab": str(alice), "sasl.kerberos.service.name": "other"}).begin("localhost")
    with pytest.raises(SaslFailure, match="not valid"):
        broker_of(kdc.keytab("kafka/third"), f"kafka/third@{REALM}").begin().evaluate(elsewhere.begin())


def test_a_client_that_does_not_confirm_the_layer_is_not_authenticated(service: Path, alice: Path) -> None:
    exchange, theirs = broker_of(service).begin(), client_of(alice).begin("localhost")
    theirs.answer(exchange.evaluate(theirs.begin()))
    with pytest.raises(SaslFailure, match="before it knows the security layers"):
        exchange.evaluate(b"x")
    offer = exchange.evaluate(b"")
    for response in (b"", b"\x01\x00\x00\x00", offer[:-1]):
        with pytest.raises(SaslFailure):
            exchange.evaluate(response)
    with pytest.raises(SaslFailure, match="security layer that was not offered"):
        exchange.evaluate(theirs._context.wrap(b"\x04\x00\x00\x00", False).message)
    assert not exchange.is_complete


@pytest.mark.parametrize(
    ("properties", "fix"),
    [
        ({}, "set barnabas.sasl.kerberos.keytab and barnabas.sasl.kerberos.principal"),
        ({KEYTAB: "/nowhere"}, "has no keytab"),
        ({KEYTAB: "/nowhere", PRINCIPAL: "kafka/localhost"}, "/nowhere cannot be read"),
        ({JAAS_SETTING: f"{JAAS};"}, "keyTab and principal in listener.name.sasl_plaintext.gssapi.sasl.jaas.config"),
    ],
)
def test_a_listener_without_a_keytab_does_not_start(kdc: Kdc, properties: dict[str, str], fix: str) -> None:
    with pytest.raises(InvalidConfig, match=fix):
        broker(properties)


def test_a_principal_that_the_keytab_does_not_have_is_named(service: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"cannot use kafka/other@.*klist -k"):
        broker_of(service, f"kafka/other@{REALM}")


def test_a_client_needs_the_name_of_the_service(kdc: Kdc) -> None:
    with pytest.raises(InvalidConfig, match=r"sasl\.kerberos\.service\.name"):
        client({})
