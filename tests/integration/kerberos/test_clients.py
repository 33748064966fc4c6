"""Clients with keytabs against our broker, in clear and over TLS: ours, and the Java client of Apache Kafka.

`clients` has all clients that can do GSSAPI, with tickets.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.pandas.types import from_arrow_schema

from barnabas.client import Admin, Consumer, NewTopic, Producer
from barnabas.client.errors import SaslAuthentication, TopicAuthorization
from pyspark_barnabas import DefaultSource
from tests import certificates, kafka
from tests.broker import READY, START_TIMEOUT_S, started
from tests.certificates import Certificates
from tests.integration.tools_ours.test_status_and_shell import tool
from tests.kerberos import REALM, Kdc

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


class Cluster:
    """One broker with GSSAPI on two listeners, whose super user is alice."""

    def __init__(self, directory: Path, kdc: Kdc, files: Certificates) -> None:
        self.kdc = kdc
        self.files = files
        self.directory = directory
        self.keytabs = {name: kdc.keytab(name) for name in ("alice", "mallory")}
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.ports = {"SASL_PLAINTEXT": one.getsockname()[1], "SASL_SSL": other.getsockname()[1]}

    def properties(self) -> dict[str, object]:
        jaas = f'{MODULE} keyTab="{self.kdc.keytab("kafka/localhost")}" principal="kafka/localhost@{REALM}" serviceName="kafka";'
        return {
            "node.id": 1,
            "log.dirs": self.directory / "data",
            "listeners": ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items()),
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas,
            "listener.name.sasl_ssl.gssapi.sasl.jaas.config": jaas,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.files.server_store,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:alice;User:kafka",
            "offsets.topic.replication.factor": 1,
            "connections.max.reauth.ms": 60_000,
        }

    def client(self, user: str, protocol: str) -> dict[str, Any]:
        tls = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.files.authority)} if protocol == "SASL_SSL" else {}
        return {
            "bootstrap.servers": f"localhost:{self.ports[protocol]}",
            "security.protocol": protocol,
            "sasl.mechanism": "GSSAPI",
            "sasl.jaas.config": f'{MODULE} keyTab="{self.keytabs[user]}" principal="{user}@{REALM}" serviceName="kafka";',
            **tls,
        }


@pytest.fixture(scope="module")
def cluster(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster, None, None]:
    directory = tmp_path_factory.mktemp("gssapi")
    made = Cluster(directory, kdc, certificates.make(directory))
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in made.properties().items()))
    with started([sys.executable, "-m", "barnabas", "server", str(path)], READY, START_TIMEOUT_S):
        yield made


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_our_clients(cluster: Cluster, protocol: str) -> None:
    settings, topic = cluster.client("alice", protocol), f"ours-{protocol.lower()}"
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    with Producer(settings) as producer:
        producer.send(topic, b"hello").result(60)
    with Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        assert next(iter(consumer)).value == b"hello"


def test_our_tools(cluster: Cluster) -> None:
    path = cluster.directory / "tool.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in cluster.client("alice", "SASL_SSL").items()))
    login = ("--bootstrap-server", f"localhost:{cluster.ports['SASL_SSL']}", "--command-config", str(path))
    assert tool("topics", *login, "--create", "--topic", "of-a-tool").out == "Created topic of-a-tool.\n"


def test_the_spark_source(cluster: Cluster) -> None:
    """Its writer and its reader, as Spark's tasks call them."""
    settings = cluster.client("alice", "SASL_SSL")
    with Admin(settings) as admin:
        admin.create_topics([NewTopic("spark", 1, 1)])
    options = {f"kafka.{name}": str(value) for name, value in settings.items()}
    rows = pa.RecordBatch.from_pydict({"value": [b"one", b"two"]})
    writer = DefaultSource({**options, "topic": "spark"}).writer(from_arrow_schema(rows.schema), overwrite=False)
    assert isinstance(writer, DataSourceArrowWriter)
    writer.write(iter([rows]))
    source = DefaultSource({**options, "subscribe": "spark"})
    reader = source.reader(source.schema())
    batches: list[Any] = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [value for batch in batches for value in batch.column("value").to_pylist()] == [b"one", b"two"]


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_java_client(cluster: Cluster, protocol: str) -> None:
    topic = f"java-{protocol.lower()}"
    settings = cluster.client("alice", protocol)
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    path = cluster.directory / f"{topic}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = kafka.java(kafka.available(kafka.prepare), kafka.QUIET, f"-Djava.security.krb5.conf={cluster.kdc.config}")
    connecting = ["--bootstrap-server", settings["bootstrap.servers"], "--topic", topic]
    produced = subprocess.run(
        [*command, "org.apache.kafka.tools.ConsoleProducer", *connecting, "--command-config", str(path)],
        input=b"hello\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert produced.returncode == 0, produced.stderr.decode()
    consumed = subprocess.run(
        [
            *command,
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *connecting,
            "--command-config",
            str(path),
            "--from-beginning",
            "--max-messages",
            "1",
        ],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert consumed.stdout == b"hello\n", consumed.stderr.decode()


def test_a_user_without_access_is_authenticated_and_denied(cluster: Cluster) -> None:
    with Producer(cluster.client("mallory", "SASL_SSL")) as producer, pytest.raises(TopicAuthorization):
        producer.send("ours-sasl_ssl", b"!").result(60)


def test_a_client_without_a_ticket_is_not_authenticated(cluster: Cluster) -> None:
    settings = cluster.client("alice", "SASL_PLAINTEXT") | {"sasl.jaas.config": None, "sasl.kerberos.service.name": "kafka"}
    with Admin(settings) as admin, pytest.raises(SaslAuthentication, match="ticket"):
        admin.list_topics()
