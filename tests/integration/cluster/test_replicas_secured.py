"""Three brokers that trust nobody: TLS with certificates on both sides between them, and to a ZooKeeper that knows them by a password."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NoAuth
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests import certificates
from tests.certificates import Certificates
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster import secured_zookeeper
from tests.integration.cluster.describing import until
from tests.integration.cluster.records import segment_bytes
from tests.integration.cluster.secured_zookeeper import Ports

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]  # three brokers and Java on a machine that may be busy

COUNT = 100
START_TIMEOUT_S = 60
DIGEST = "BARNABAS_ZOOKEEPER_DIGEST"


class SecuredBroker(BrokerProcess):
    SECURITY = "SSL"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def ensemble_with_tls(files: Certificates, tmp_path: Path) -> Generator[Ports, None, None]:
    with secured_zookeeper.running(tmp_path, files) as ports:
        yield ports


@pytest.fixture
def secured(ensemble_with_tls: Ports, files: Certificates, tmp_path: Path) -> Generator[Cluster, None, None]:
    stores = {
        "keystore.type": "PEM",
        "keystore.location": str(files.server_store),
        "truststore.type": "PEM",
        "truststore.location": str(files.authority),
    }
    settings = {
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        # Brokers and clients are the subjects of their certificates.
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:CN=localhost;User:CN=the-client",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.set.acl": "true",
        **{f"{prefix}.{name}": value for prefix in ("ssl", "zookeeper.ssl") for name, value in stores.items()},
    }
    address = f"127.0.0.1:{ensemble_with_tls.secure}/under/a/chroot"
    cluster = Cluster(tmp_path, address, settings)
    cluster.brokers = {number: SecuredBroker(number, tmp_path, address, settings) for number in cluster.brokers}
    for broker in cluster.brokers.values():
        broker.environment[DIGEST] = "broker:secret"
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def test_three_brokers_replicate_in_tls_and_their_nodes_are_theirs(secured: Cluster, ensemble_with_tls: Ports, files: Certificates) -> None:
    client = {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.authority),
        "ssl.certificate.location": str(files.client_store),
        "ssl.key.location": str(files.client_store),
    }
    admin = AdminClient({**client})
    admin.create_topics([NewTopic("t", 3, 3, config={"min.insync.replicas": "2"})], request_timeout=60)["t"].result(timeout=60)
    write(client, range(COUNT))
    secured.brokers[2].kill()
    write(client, range(COUNT, 2 * COUNT))
    secured.brokers[2].start()
    secured.brokers[2].wait_ready()
    until(
        lambda: all(set(partition.isrs) == {1, 2, 3} for partition in admin.list_topics("t", timeout=5).topics["t"].partitions.values()),
        "in sync",
    )
    until(lambda: len({everything(broker) for broker in secured.brokers.values()}) == 1, "the same files")
    assert read(client, 2 * COUNT) == list(range(2 * COUNT))
    asyncio.run(check_nodes_are_closed(f"127.0.0.1:{ensemble_with_tls.open}/under/a/chroot"))
    assert secured.tracebacks() == []


def everything(broker: BrokerProcess) -> bytes:
    return b"".join(segment_bytes(broker.data, "t", number) for number in range(3))


def write(client: dict[str, str], numbers: range) -> None:
    producer = Producer({**client, "acks": "all"})
    failures: list[object] = []
    for number in numbers:
        producer.produce("t", str(number).encode(), partition=number % 3, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(120) == 0
    assert set(failures) == {None}


def read(client: dict[str, str], count: int) -> list[int]:
    consumer = Consumer({**client, "group.id": "check", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", number, 0) for number in range(3)])
    lengths: list[int] = []
    deadline = time.monotonic() + START_TIMEOUT_S
    while len(lengths) < count and time.monotonic() < deadline:
        lengths += [int(message.value() or b"") for message in consumer.consume(500, timeout=0.5) if message.error() is None]
    consumer.close()
    return sorted(lengths)


async def check_nodes_are_closed(address: str) -> None:
    """Somebody without the password may read what is no secret, and change nothing."""
    tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
    await tree.connect()
    try:
        assert await tree.exists("/brokers/topics/t") is not None
        with pytest.raises(NoAuth):
            await tree.set_data("/brokers/topics/t", b"{}")
        with pytest.raises(NoAuth):
            await tree.set_data("/controller_epoch", b"99")
    finally:
        await tree.close()
