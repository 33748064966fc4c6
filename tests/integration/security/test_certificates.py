"""Certificates of brokers and clients: the identity they give, the errors of bad ones, and their replacement under load."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from cryptography import x509

from barnabas.client import Admin, ConfigResource, KafkaError, NewTopic, Producer
from barnabas.client.admin import AlterConfigOp, ConfigResourceType
from barnabas.client.errors import SslAuthentication
from barnabas.testing import EmbeddedBroker, broker
from tests.unit.security.certificates import authority, key_store

HOSTS = ("localhost", "127.0.0.1")
DEADLINE_S = 60


class Place:
    """A directory with stores, and the settings that name them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = self.written("ca.pem", authority().own.pem)

    def written(self, name: str, text: str) -> str:
        """Replaces the file at once, as `mv` does."""
        new = self.path / f"{name}.new"
        new.write_text(text)
        os.replace(new, self.path / name)
        return str(self.path / name)

    def broker_settings(self, store: str, **more: str) -> dict[str, str]:
        return {
            "listeners": "SSL://127.0.0.1:0",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.location": self.written("broker.pem", store),
            "ssl.truststore.location": self.ca,
            "barnabas.ssl.reload.interval.ms": "100",
        } | {name.replace("_", "."): value for name, value in more.items()}

    def client(self, kafka: EmbeddedBroker, **more: str) -> dict[str, str]:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "SSL", "ssl.truststore.location": self.ca}
        return settings | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def serial_number(kafka: EmbeddedBroker) -> int:
    """Of the certificate that a new connection gets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((kafka.host, kafka.port), DEADLINE_S) as raw, context.wrap_socket(raw) as tls:
        certificate = tls.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate).serial_number


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_authorizer_knows_a_client_by_its_certificate(place: Place) -> None:
    settings = place.broker_settings(
        key_store("broker", *HOSTS),
        ssl_client_auth="required",
        ssl_principal_mapping_rules="RULE:^CN=(.*)$/$1/L",
        authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
        super_users="User:ann;User:broker",
    )
    with broker(config=settings) as kafka:
        with Admin(place.client(kafka, ssl_keystore_location=place.written("ann.pem", key_store("Ann")))) as ann:
            ann.create_topics([NewTopic("orders", 1, 1)]).all()
        with Admin(place.client(kafka, ssl_keystore_location=place.written("bob.pem", key_store("Bob")))) as bob:
            with pytest.raises(KafkaError, match=r"(?i)authoriz"):
                bob.create_topics([NewTopic("others", 1, 1)]).all()
            assert list(bob.list_topics()) == []
        stranger = place.written("eve.pem", key_store("Ann", ca="a stranger's CA"))
        for refused in ({}, {"ssl_keystore_location": stranger}):
            with pytest.raises(KafkaError), Admin(place.client(kafka, default_api_timeout_ms="10000", **refused)) as nobody:
                nobody.list_topics()


@pytest.mark.parametrize(
    ("store", "says", "librdkafka_says"),
    [
        (key_store("broker", *HOSTS, days=-1), "certificate has expired", "certificate verify failed"),
        (key_store("broker", "elsewhere.example"), r"IP address mismatch.*not valid for '127\.0\.0\.1'", "certificate verify failed"),
    ],
    ids=["expired", "wrong-host"],
)
def test_clients_refuse_a_bad_certificate_at_once(place: Place, store: str, says: str, librdkafka_says: str) -> None:
    with broker(config=place.broker_settings(store)) as kafka:
        with pytest.raises(SslAuthentication, match=says), Admin(place.client(kafka)) as admin:
            admin.list_topics()
        errors: list[str] = []
        settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "SSL", "ssl.ca.location": place.ca}
        settings["error_cb"] = lambda error: errors.append(str(error))
        client = AdminClient(settings)
        wait_for(lambda: client.poll(0.1) >= 0 and bool(errors))
        assert librdkafka_says in errors[0]


def test_a_certificate_is_replaced_under_load(place: Place) -> None:
    """By a new file, then by a dynamic setting: no record is lost, no connection ends, and new connections get the new certificate."""
    with broker(config=place.broker_settings(key_store("broker", *HOSTS))) as kafka, Producer(place.client(kafka)) as producer:
        stop, sent = Event(), [0]

        def send() -> None:
            while not stop.is_set():
                producer.send("load", b"value").result(DEADLINE_S)
                sent[0] += 1

        load = Thread(target=send)
        load.start()
        try:
            wait_for(lambda: sent[0] > 10)
            connections = closed_connections(producer)
            first = serial_number(kafka)
            place.written("broker.pem", key_store("broker", *HOSTS))
            wait_for(lambda: serial_number(kafka) != first)
            second = serial_number(kafka)
            with Admin(place.client(kafka)) as admin:
                with pytest.raises(KafkaError, match="DistinguishedName does not match"):
                    alter(admin, place.written("other.pem", key_store("another", *HOSTS)))
                assert serial_number(kafka) == second
                alter(admin, place.written("third.pem", key_store("broker", *HOSTS)))
            wait_for(lambda: serial_number(kafka) not in (first, second))
            reached = sent[0]
            wait_for(lambda: sent[0] > reached)
            assert closed_connections(producer) == connections
        finally:
            stop.set()
            load.join(DEADLINE_S)
        assert not load.is_alive()


def closed_connections(producer: Producer[bytes, bytes]) -> float:
    (total,) = [metric.metric_value() for name, metric in producer.metrics().items() if name.name == "connection-close-total"]
    assert isinstance(total, float)
    return total


def alter(admin: Admin, store: str) -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    admin.incremental_alter_configs({resource: [AlterConfigOp("listener.name.ssl.ssl.keystore.location", store)]}).all()


@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs Java's keytool")
def test_stores_of_javas_keytool_are_read(place: Place) -> None:
    def keytool(*arguments: str) -> None:
        subprocess.run(
            ["keytool", *arguments, "-storepass", "changeit"], check=True, capture_output=True, cwd=place.path, timeout=DEADLINE_S
        )

    key = ["-genkeypair", "-alias", "broker", "-dname", "CN=broker,O=Example", "-keyalg", "RSA", "-validity", "2"]
    keytool(*key, "-ext", "san=dns:localhost,ip:127.0.0.1", "-keystore", "broker.p12", "-storetype", "PKCS12")
    keytool("-exportcert", "-alias", "broker", "-keystore", "broker.p12", "-file", "broker.der")
    keytool("-importcert", "-noprompt", "-alias", "kafka", "-file", "broker.der", "-keystore", "trust.p12", "-storetype", "PKCS12")
    stores = {
        "ssl.keystore.location": str(place.path / "broker.p12"),
        "ssl.keystore.password": "changeit",
        "ssl.truststore.location": str(place.path / "trust.p12"),
        "ssl.truststore.password": "changeit",
    }
    settings = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL", "ssl.client.auth": "required"}
    with broker(config=settings | stores) as kafka, Admin(place.client(kafka) | stores) as admin:
        assert list(admin.list_topics()) == []
