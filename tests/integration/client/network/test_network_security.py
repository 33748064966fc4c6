"""TLS and SASL of the clients' network, against Apache Kafka and our broker, which have a listener for each."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import (
    AuthenticationError,
    Disconnected,
    IllegalSaslState,
    SaslAuthentication,
    SslAuthentication,
    Timeout,
    UnsupportedSaslMechanism,
)
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from tests import certificates
from tests.certificates import Certificates
from tests.client_network import network, on_loop
from tests.integration.client.secure_kafka import PASSWORD, SCRAM, SESSION_MS, USER, SecureKafka, with_sasl, with_tls, with_token


@pytest.fixture(scope="module")
def kafka(secure: SecureKafka) -> SecureKafka:
    return secure


@pytest.fixture(scope="module")
def files(kafka: SecureKafka) -> Certificates:
    return kafka.certificates


async def ask(client: NetworkClient, timeout_ms: int = 5000) -> str:
    """Where the broker says it is, asked over the bootstrap connection and over its own."""
    first = brokers(await client.send_to_any(DescribeClusterRequest(), timeout_ms=timeout_ms))
    if client.metadata.cluster.is_bootstrap:
        await client.metadata.wait_for_update(client.metadata.request_update(), timeout_ms)
    assert brokers(await client.send(1, DescribeClusterRequest(), timeout_ms=timeout_ms)) == first
    return first[0]


def brokers(response: Message) -> list[str]:
    assert isinstance(response, DescribeClusterResponse)
    return [f"{broker.host}:{broker.port}" for broker in response.brokers]


def asked(kafka: SecureKafka, listener: str, **settings: Any) -> None:
    """Passes where the broker answers; raises what the client raises."""

    async def run() -> None:
        async with network(kafka.addresses[listener], **settings) as client:
            assert await ask(client) == kafka.addresses[listener]

    on_loop(run)


def test_tls_with_files(kafka: SecureKafka, files: Certificates) -> None:
    asked(kafka, "TLS", **with_tls(files))


def test_tls_with_pem_in_the_settings(kafka: SecureKafka, files: Certificates) -> None:
    asked(kafka, "TLS", security_protocol="SSL", ssl_truststore_certificates=files.authority.read_text())


def test_tls_12(kafka: SecureKafka, files: Certificates) -> None:
    asked(kafka, "TLS", **with_tls(files, ssl_enabled_protocols="TLSv1.2"))


def test_a_certificate_of_a_stranger_is_not_trusted(kafka: SecureKafka, files: Certificates) -> None:
    with pytest.raises(SslAuthentication, match=r"ssl\.truststore"):
        asked(kafka, "TLS", security_protocol="SSL", ssl_truststore_location=str(files.stranger))


def test_a_certificate_of_another_host_is_refused_unless_hosts_are_not_checked(kafka: SecureKafka, files: Certificates) -> None:
    elsewhere = kafka.addresses["TLS"].replace("localhost", "127.0.0.2")

    async def connect(**settings: Any) -> None:
        async with network(elsewhere, **with_tls(files, **settings)) as client:
            await client.send_to_any(DescribeClusterRequest(), timeout_ms=5000)

    with pytest.raises(SslAuthentication, match="names the host"):
        on_loop(connect)
    on_loop(connect, ssl_endpoint_identification_algorithm="")


def test_mutual_tls(kafka: SecureKafka, files: Certificates) -> None:
    asked(kafka, "MUTUAL", **with_tls(files, ssl_keystore_location=str(files.client_store)))


def test_mutual_tls_with_pem_in_the_settings(kafka: SecureKafka, files: Certificates) -> None:
    key, begin, chain = files.client_store.read_text().partition("-----BEGIN CERTIFICATE-----")
    store = {"ssl_keystore_key": key, "ssl_keystore_certificate_chain": begin + chain}
    asked(kafka, "MUTUAL", **with_tls(files, **store))


def test_mutual_tls_with_an_encrypted_key(kafka: SecureKafka, files: Certificates) -> None:
    store = {"ssl_keystore_location": str(files.encrypted_client_store), "ssl_key_password": certificates.PASSWORD}
    asked(kafka, "MUTUAL", **with_tls(files, **store))


def test_a_broker_that_wants_a_certificate_and_gets_none(kafka: SecureKafka, files: Certificates) -> None:
    with pytest.raises(SslAuthentication, match=r"ssl\.keystore"):
        asked(kafka, "MUTUAL", **with_tls(files))


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_passwords(kafka: SecureKafka, mechanism: str) -> None:
    asked(kafka, "SASL", **with_sasl(mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_passwords_over_tls(kafka: SecureKafka, files: Certificates, mechanism: str) -> None:
    asked(kafka, "SASLTLS", **with_tls(files) | with_sasl(mechanism, security_protocol="SASL_SSL"))


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_a_wrong_password_is_told_in_the_brokers_words(kafka: SecureKafka, mechanism: str) -> None:
    with pytest.raises(SaslAuthentication, match="Authentication failed"):
        asked(kafka, "SASL", **with_sasl(mechanism, sasl_password="guessed"))


def test_passwords_by_jaas_and_by_a_callable(kafka: SecureKafka) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="{USER}" password="{PASSWORD}";'
    both = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    asked(kafka, "SASL", sasl_jaas_config=jaas, **both)
    asked(kafka, "SASL", sasl_client_callback_handler_class=lambda: (USER, PASSWORD), **both)


def test_tokens(kafka: SecureKafka) -> None:
    asked(kafka, "SASL", **with_token())


def test_a_token_the_broker_does_not_believe(kafka: SecureKafka) -> None:
    with pytest.raises(SaslAuthentication, match="invalid_token"):
        asked(
            kafka,
            "SASL",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_login_callback_handler_class=lambda: "no.token.this",
        )


def test_a_mechanism_the_broker_does_not_have(kafka: SecureKafka) -> None:
    with pytest.raises(UnsupportedSaslMechanism, match=r"'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are \["):
        asked(kafka, "SHORT", **with_sasl("SCRAM-SHA-512"))


def test_sasl_to_a_listener_without_it(kafka: SecureKafka) -> None:
    with pytest.raises(IllegalSaslState, match=r"security\.protocol"):
        asked(kafka, "PLAINTEXT", **with_sasl("PLAIN"))


def test_plaintext_to_a_listener_with_sasl(kafka: SecureKafka) -> None:
    with pytest.raises(Disconnected, match=r"security\.protocol"):
        asked(kafka, "SASL")


def refusal(kafka: SecureKafka, listener: str, **settings: Any) -> str:
    async def run() -> str:
        async with network(kafka.addresses[listener], **settings) as client:
            with pytest.raises(Timeout) as raised:
                await ask(client, timeout_ms=500)
            return str(raised.value)

    return on_loop(run)


def test_plaintext_to_a_listener_with_tls_names_the_setting(kafka: SecureKafka) -> None:
    assert "security.protocol" in refusal(kafka, "TLS")


def test_tls_to_a_listener_without_it_names_the_setting(kafka: SecureKafka, files: Certificates) -> None:
    assert "security.protocol" in refusal(kafka, "PLAINTEXT", **with_tls(files))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_session_is_renewed_on_the_same_connection(kafka: SecureKafka, mechanism: str) -> None:
    """The broker closes connections that are used after their session: requests go on well beyond it."""

    async def run() -> None:
        async with network(kafka.addresses["SHORT"], **with_sasl(mechanism)) as client:
            await ask(client)
            until_ms = client.clock.monotonic_ms() + 2 * SESSION_MS
            while client.clock.monotonic_ms() < until_ms:
                await client.send(1, DescribeClusterRequest())
                await client.wait_for_change(50)
            assert measured(client, "successful-reauthentication-total") >= 2
            assert measured(client, "connection-close-total") == 0

    on_loop(run)


def test_a_renewal_that_fails_ends_the_connection(kafka: SecureKafka) -> None:
    passwords = [PASSWORD, PASSWORD]

    async def run() -> None:
        both: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        handler: dict[str, Any] = {
            "sasl_client_callback_handler_class": lambda: (USER, passwords.pop() if passwords else "changed meanwhile")
        }
        async with network(kafka.addresses["SHORT"], **both, **handler) as client:
            await ask(client)
            while client.any_connected():
                await client.wait_for_change(2 * SESSION_MS)
            assert measured(client, "failed-reauthentication-total") >= 1
            with pytest.raises(AuthenticationError):
                await client.send(1, DescribeClusterRequest())

    on_loop(run)


def measured(client: NetworkClient, name: str) -> float:
    metric = client.metrics.find(name, "client-metrics")
    assert metric is not None
    value = metric.metric_value()
    assert isinstance(value, float)
    return value
