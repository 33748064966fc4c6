"""Producer, consumer and admin with Apache Kafka and our broker, both secured: every way to be secure, from end to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, NewTopic, Producer
from barnabas.client.errors import AuthenticationError, SaslAuthentication, SslAuthentication
from barnabas.client.metrics.metrics import Metric, MetricName
from tests.integration.client.records import DEADLINE_S, numbered, poll_until
from tests.integration.client.secure_kafka import SCRAM, SESSION_MS, SecureKafka, with_sasl, with_tls, with_token
from tests.integration.tools_ours.test_status_and_shell import tool

Settings = dict[str, object]
PASSWORDS = ("PLAIN", *SCRAM)


def over_tls(kafka: SecureKafka, settings: Settings) -> Settings:
    return with_tls(kafka.certificates) | settings | {"security_protocol": "SASL_SSL"}


WAYS: dict[str, tuple[str, Callable[[SecureKafka], Settings]]] = {
    "TLS": ("TLS", lambda kafka: with_tls(kafka.certificates)),
    "mutual TLS": ("MUTUAL", lambda kafka: with_tls(kafka.certificates, ssl_keystore_location=str(kafka.certificates.client_store))),
    "OAUTHBEARER": ("SASL", lambda kafka: with_token()),
    "OAUTHBEARER over TLS": ("SASLTLS", lambda kafka: over_tls(kafka, with_token())),
    "PLAIN": ("SASL", lambda kafka: with_sasl("PLAIN")),
    "PLAIN over TLS": ("SASLTLS", lambda kafka: over_tls(kafka, with_sasl("PLAIN"))),
    "SCRAM-SHA-256": ("SASL", lambda kafka: with_sasl("SCRAM-SHA-256")),
    "SCRAM-SHA-256 over TLS": ("SASLTLS", lambda kafka: over_tls(kafka, with_sasl("SCRAM-SHA-256"))),
    "SCRAM-SHA-512": ("SASL", lambda kafka: with_sasl("SCRAM-SHA-512")),
    "SCRAM-SHA-512 over TLS": ("SASLTLS", lambda kafka: over_tls(kafka, with_sasl("SCRAM-SHA-512"))),
}
all_ways = pytest.mark.parametrize("way", WAYS)


def settings_of(kafka: SecureKafka, way: str) -> dict[str, Any]:
    listener, settings = WAYS[way]
    return {"bootstrap_servers": kafka.addresses[listener]} | settings(kafka)


def topic_for(way: str, hint: str) -> str:
    return f"{hint}-{way.replace(' ', '-')}"


@all_ways
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_a_transaction_wrote_is_read_by_a_group(secure: SecureKafka, way: str, protocol: str) -> None:
    settings, topic = settings_of(secure, way), topic_for(way, protocol)
    with Admin(**settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)]).all()
        with Producer(**settings, transactional_id=topic) as producer:
            producer.init_transactions()
            with producer.transaction():
                sent = [producer.send(topic, value) for value in numbered(20)]
            assert [delivery.result(DEADLINE_S).offset for delivery in sent] == list(range(20))
        reading = {"group_id": topic, "auto_offset_reset": "earliest", "group_protocol": protocol, "isolation_level": "read_committed"}
        with Consumer[Any, Any](**settings, **reading) as consumer:
            consumer.subscribe([topic])
            assert [record.value for record in poll_until(consumer, 20)] == numbered(20)
            consumer.commit_sync()
        (offset,) = admin.list_consumer_group_offsets(topic).all()[topic].values()
        assert offset is not None and offset.offset == 21  # behind the transaction's marker


@pytest.mark.parametrize("way", ["mutual TLS", "OAUTHBEARER over TLS", "SCRAM-SHA-512 over TLS"])
def test_the_faces_on_asyncio_are_let_in_too(secure: SecureKafka, way: str) -> None:
    settings, topic = settings_of(secure, way), topic_for(way, "asyncio")

    async def main() -> list[Any]:
        async with AsyncAdmin(**settings) as admin:
            (await admin.create_topics([NewTopic(topic, 1, 1)])).all()
        async with AsyncProducer(**settings) as producer:
            for value in numbered(20):
                await producer.send(topic, value)
            await producer.flush()
        async with AsyncConsumer[Any, Any](**settings, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            read: list[Any] = []
            while len(read) < 20:
                read += [record.value for record in await consumer.poll(1)]
            return read

    assert asyncio.run(asyncio.wait_for(main(), DEADLINE_S)) == numbered(20)


@all_ways
def test_a_tool_logs_in_with_its_command_config(secure: SecureKafka, way: str, tmp_path: Path) -> None:
    settings, topic = settings_of(secure, way), topic_for(way, "tool")
    bootstrap, path = settings.pop("bootstrap_servers"), tmp_path / "client.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items()))
    login = ("--bootstrap-server", bootstrap, "--command-config", str(path))
    assert tool("topics", *login, "--create", "--topic", topic).out == f"Created topic {topic}.\n"


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_wrong_password_reaches_the_callers_of_all_three_clients(secure: SecureKafka, mechanism: str) -> None:
    refused(SaslAuthentication, with_sasl(mechanism, sasl_password="guessed", bootstrap_servers=secure.addresses["SASL"]))


def test_a_token_that_is_not_believed_reaches_the_callers_of_all_three_clients(secure: SecureKafka) -> None:
    given = {"sasl_login_callback_handler_class": lambda: "no.token.this", "bootstrap_servers": secure.addresses["SASL"]}
    refused(SaslAuthentication, {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"} | given)


def test_a_broker_that_is_not_believed_is_told_to_the_callers_of_all_three_clients(secure: SecureKafka) -> None:
    stranger = {"security_protocol": "SSL", "ssl_truststore_location": str(secure.certificates.stranger)}
    refused(SslAuthentication, stranger | {"bootstrap_servers": secure.addresses["TLS"]})


def refused(error: type[AuthenticationError], settings: dict[str, Any]) -> None:
    with Admin(**settings) as admin, pytest.raises(error):
        admin.list_topics()
    with Producer(**settings) as producer, pytest.raises(error):
        producer.send("t", b"v").result(DEADLINE_S)
    with Consumer[Any, Any](**settings, group_id="g") as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(error):
            poll_until(consumer, 1)
        with pytest.raises(error):
            consumer.partitions_for("t")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_sessions_are_renewed_while_records_come_and_go(secure: SecureKafka, mechanism: str) -> None:
    """The broker would end connections that are used after their session: nothing is lost, and no connection is made anew."""
    settings: dict[str, Any] = with_sasl(mechanism, bootstrap_servers=secure.addresses["SHORT"])
    topic = topic_for(mechanism, "renewed")
    with Admin(**settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)]).all()
    with Producer(**settings) as producer, Consumer[Any, Any](**settings, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        until = time.monotonic() + 2 * SESSION_MS / 1000
        sent: list[bytes] = []
        read: list[Any] = []
        while time.monotonic() < until or len(read) < len(sent):
            if time.monotonic() < until:
                sent.append(b"%d" % len(sent))
                producer.send(topic, sent[-1])
            read += [record.value for record in consumer.poll(0.05)]
            assert time.monotonic() < until + DEADLINE_S
        assert read == sent
        for metrics in (producer.metrics(), consumer.metrics()):
            assert measured(metrics, "successful-reauthentication-total") >= 1
            assert measured(metrics, "failed-reauthentication-total") == 0


def measured(metrics: dict[MetricName, Metric], name: str) -> float:
    (found,) = [metric for known, metric in metrics.items() if known.name == name]
    value = found.metric_value()
    assert isinstance(value, float)
    return value
