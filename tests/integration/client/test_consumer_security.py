"""A consumer and an Apache Kafka that wants to know who it is: read over SASL and TLS, and be refused in a poll."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import AuthenticationError
from tests import broker, certificates
from tests.integration.client import secure_kafka
from tests.integration.client.records import numbered, poll_until, produce
from tests.integration.client.secure_kafka import PASSWORD, USER, SecureKafka

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecureKafka, None, None]:
    made = certificates.make(tmp_path_factory.mktemp("certificates"))
    with secure_kafka.running(tmp_path_factory.mktemp("secure"), made) as running:
        yield running


@pytest.fixture(scope="module")
def topic(kafka: SecureKafka, worker_id: str) -> str:
    name = broker.topic_maker(kafka.addresses["PLAINTEXT"], worker_id)("secure")
    produce(kafka.addresses["PLAINTEXT"], name, numbered(100))
    return name


def member(kafka: SecureKafka, listener: str, group: str, **settings: object) -> Consumer[bytes, bytes]:
    given = {"bootstrap.servers": kafka.addresses[listener], "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer(given | settings)


def with_password(password: str = PASSWORD) -> dict[str, object]:
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{password}";'
    return {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}


def test_a_group_reads_over_sasl_and_tls(kafka: SecureKafka, topic: str) -> None:
    tls = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(kafka.certificates.authority)}
    with member(kafka, "SASLTLS", "secure", **{"security.protocol": "SASL_SSL"}, **tls, **with_password()) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in poll_until(consumer, 100)] == numbered(100)
        consumer.commit_sync()


def test_a_wrong_password_is_told_by_the_poll(kafka: SecureKafka, topic: str) -> None:
    with member(kafka, "SASL", "refused", **{"security.protocol": "SASL_PLAINTEXT"}, **with_password("wrong")) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(AuthenticationError):
            poll_until(consumer, 1)
        with pytest.raises(AuthenticationError):
            consumer.partitions_for(topic)
