"""Three brokers with SASL_SSL for clients and for each other, on a ZooKeeper that knows them by TLS and DIGEST-MD5, with an authorizer."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, Consumer, NewTopic, Producer
from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from barnabas.client.errors import KafkaError, TopicAuthorization
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
from tests.integration.cluster.secured_zookeeper import Ports

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]  # three brokers and Java on a machine that may be busy

PARTITIONS = 3
SESSION_MS = 1_500  # short, so that the links between brokers authenticate again several times
USERS = ("broker", "admin")
SETTINGS = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "security.inter.broker.protocol": "SASL_SSL",
    "barnabas.sasl.inter.broker.username": "broker",
    "barnabas.sasl.inter.broker.password": "broker-secret",
    "connections.max.reauth.ms": str(SESSION_MS),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:broker;User:admin",
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.set.acl": "true",
    "barnabas.zookeeper.sasl.username": "kafka",
    "barnabas.zookeeper.sasl.password": "zookeeper-secret",
}


class SecuredBroker(BrokerProcess):
    SECURITY = "SASL_SSL"

    def command(self, properties: Path) -> list[str]:
        return [*super().command(properties), "--add-scram-file", str(properties.parent / "users")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def ensemble_with_users(files: Certificates, tmp_path: Path) -> Generator[Ports, None, None]:
    with secured_zookeeper.running(tmp_path, files, {"kafka": "zookeeper-secret"}) as ports:
        yield ports


@pytest.fixture
def secured(ensemble_with_users: Ports, files: Certificates, tmp_path: Path) -> Generator[Cluster, None, None]:
    (tmp_path / "users").write_text("".join(f"SCRAM-SHA-512=[name={user},password={user}-secret]\n" for user in USERS))
    stores = {
        "keystore.type": "PEM",
        "keystore.location": str(files.server_store),
        "truststore.type": "PEM",
        "truststore.location": str(files.authority),
    }
    settings = {**SETTINGS, **{f"{prefix}.{name}": value for prefix in ("ssl", "zookeeper.ssl") for name, value in stores.items()}}
    address = f"127.0.0.1:{ensemble_with_users.secure}/secured"
    cluster = Cluster(tmp_path, address, settings)
    cluster.brokers = {number: SecuredBroker(number, tmp_path, address, settings) for number in cluster.brokers}
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


class Story:
    def __init__(self, cluster: Cluster, files: Certificates) -> None:
        self.cluster = cluster
        self._files = files
        self.admin = Admin(self.client("admin"))

    def client(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._files.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
        }

    def add_user(self, user: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, f"{user}-secret")])

    def write(self, producer: Producer[Any, Any], value: str) -> None:
        """To each partition, and so to each broker as its leader."""
        for delivery in [producer.send("t", value.encode(), partition=number) for number in range(PARTITIONS)]:
            delivery.result(60)

    def is_written(self, producer: Producer[Any, Any], partition: int) -> bool:
        try:
            producer.send("t", b"probe", partition=partition).result(60)
        except TopicAuthorization:
            return False
        return True

    def is_in_sync(self) -> bool:
        try:
            described = self.admin.describe_topics(["t"])["t"]
        except KafkaError:
            return False
        return all(len(partition.isr) == len(self.cluster.brokers) for partition in described.partitions)


def allow(operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    entry = AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(kind, name, PatternType.LITERAL), entry)


WRITE = allow(AclOperation.WRITE, ResourceType.TOPIC, "t")
READS = [allow(AclOperation.READ, ResourceType.TOPIC, "t"), allow(AclOperation.READ, ResourceType.GROUP, "g")]


def test_three_secured_brokers_replicate_renew_their_sessions_and_obey_a_revoked_acl(
    secured: Cluster, ensemble_with_users: Ports, files: Certificates
) -> None:
    story = Story(secured, files)
    story.admin.create_topics([NewTopic("t", PARTITIONS, 3, configs={"min.insync.replicas": "2"})])
    story.add_user("alice")
    with Producer({**story.client("alice"), "acks": "all"}) as producer:
        until(lambda: not story.is_written(producer, 0), "alice is known and denied")
        story.admin.create_acls([WRITE, *READS])
        for number in range(PARTITIONS):
            until(partial(story.is_written, producer, number), f"alice may write to partition {number}")
        secured.brokers[2].stop()
        story.write(producer, "without")
        secured.brokers[2].start()
        secured.brokers[2].wait_ready()
        until(story.is_in_sync, "all in sync")
        story.write(producer, "again")
        check_reads(story)
        story.admin.delete_acls([WRITE.to_filter()])
        for number in range(PARTITIONS):
            until(lambda number=number: not story.is_written(producer, number), f"partition {number} is closed to alice")  # type: ignore[misc]
    story.admin.close()
    asyncio.run(check_nodes_are_closed(f"127.0.0.1:{ensemble_with_users.open}/secured"))
    assert secured.tracebacks() == []
    assert [broker.id for broker in secured.brokers.values() if "refuses" in broker.said() or "Invalid credentials" in broker.said()] == []


def check_reads(story: Story) -> None:
    with Consumer({**story.client("alice"), "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["t"])
        values: list[bytes | None] = []
        while values.count(b"again") < PARTITIONS:
            values += [record.value for record in consumer.poll(60)]
    assert values.count(b"without") == PARTITIONS


async def check_nodes_are_closed(address: str) -> None:
    """Somebody without the password may read what is no secret, and change nothing."""
    tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
    await tree.connect()
    try:
        assert await tree.exists("/brokers/topics/t") is not None
        with pytest.raises(NoAuth):
            await tree.set_data("/brokers/topics/t", b"{}")
        with pytest.raises(NoAuth):
            await tree.get("/config/users/alice")
    finally:
        await tree.close()
