"""Two brokers that authenticate at each other by Kerberos."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from barnabas.client import Admin, NewTopic, Producer
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.kerberos import REALM, Kdc

pytestmark = pytest.mark.timeout(300)


class KerberosBroker(BrokerProcess):
    SECURITY = "SASL_PLAINTEXT"


@pytest.fixture
def two(kdc: Kdc, tmp_path: Path) -> Generator[Cluster, None, None]:
    settings = {
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "barnabas.sasl.kerberos.keytab": str(kdc.keytab("kafka/127.0.0.1")),
        "barnabas.sasl.kerberos.principal": f"kafka/127.0.0.1@{REALM}",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:kafka;User:operator",
        "connections.max.reauth.ms": "2000",
        "min.insync.replicas": "2",
    }
    with zookeeper.running(tmp_path / "zookeeper") as ensemble:
        cluster = Cluster(tmp_path, ensemble.address, brokers=0)
        cluster.brokers = {number: KerberosBroker(number, tmp_path, ensemble.address, settings) for number in (1, 2)}
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.end()


def test_brokers_replicate_with_tickets(two: Cluster, kdc: Kdc) -> None:
    client = {
        "bootstrap.servers": two.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": str(kdc.keytab("operator")),
    }
    with Admin(client) as admin, Producer({**client, "acks": "all"}) as producer:
        admin.create_topics([NewTopic("t", 2, 2)])
        for delivery in [producer.send("t", b"%d" % number, partition=number % 2) for number in range(10)]:
            delivery.result(60)
    assert two.tracebacks() == []
