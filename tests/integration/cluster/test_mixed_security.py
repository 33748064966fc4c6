"""A broker of ours and one of Apache Kafka 3.9 share SCRAM users, ACLs and delegation tokens: what one writes the other obeys."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.client.errors import AuthenticationError
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.scram import salted_password
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.apache_kafka import PROTOCOL, ApacheKafka
from tests.integration.cluster.conftest import next_chroot

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

OURS, KAFKA = 1, 2
DEADLINE_S = 60
MECHANISM = "SCRAM-SHA-256"
SCRAM_SHA_256 = 1  # its number in requests
ITERATIONS = 4096
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SETTINGS = {
    **PROTOCOL,
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": MECHANISM,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f'{LOGIN} username="admin" password="admin-secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "shared-by-all-brokers",
    "offsets.topic.replication.factor": "1",
    "default.replication.factor": "1",
}


class OurBroker(BrokerProcess):
    SECURITY = "SASL_PLAINTEXT"

    def command(self, properties: Path) -> list[str]:
        return [*super().command(properties), "--add-scram", f"{MECHANISM}=[name=admin,password=admin-secret]"]


class TheirBroker(ApacheKafka):
    SECURITY = "SASL_PLAINTEXT"


@pytest.fixture
def mixed(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> Generator[Cluster, None, None]:
    address = next_chroot(ensemble)
    cluster = Cluster(tmp_path, address, SETTINGS, brokers=0)
    cluster.brokers = {OURS: OurBroker(OURS, tmp_path, address, SETTINGS), KAFKA: TheirBroker(KAFKA, tmp_path, address, SETTINGS)}
    try:
        for broker in cluster.brokers.values():  # ours creates the user with whom both authenticate at each other
            broker.start()
            broker.wait_ready()
        yield cluster
    finally:
        cluster.end()


class Client:
    """Sends requests to a broker of the test's choice."""

    def __init__(self, cluster: Cluster, user: str, password: str, *, is_token: bool = False) -> None:
        jaas = f'{LOGIN} username="{user}" password="{password}" tokenauth={"true" if is_token else "false"};'
        security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas}
        self._links = BrokerLinks(user, Clock(), Random(1), settings=security)
        for number, broker in cluster.brokers.items():
            self._links.set_endpoint(number, EndPoint("SASL_PLAINTEXT", broker.host, broker.port, SecurityProtocol.SASL_PLAINTEXT))

    async def ask(self, broker_id: int, request: Message, version: int) -> Any:
        return await self._links.ask(broker_id, request, version)

    async def close(self) -> None:
        await self._links.close()

    async def may_describe(self, broker_id: int, topic: str) -> bool:
        response = await self.ask(broker_id, MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False), 8)
        return cast("bool", response.topics[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@asynccontextmanager
async def connected(cluster: Cluster, user: str, password: str, *, is_token: bool = False) -> AsyncIterator[Client]:
    client = Client(cluster, user, password, is_token=is_token)
    try:
        yield client
    finally:
        await client.close()


async def until(is_so: Callable[[], Coroutine[Any, Any, bool]], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not await is_so():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        await asyncio.sleep(0.05)


async def is_admitted(cluster: Cluster, broker_id: int, user: str, password: str, *, is_token: bool = False) -> bool:
    async with connected(cluster, user, password, is_token=is_token) as client:
        try:
            await client.may_describe(broker_id, "any")
        except AuthenticationError:
            return False
        return True


def test_what_one_kind_of_broker_writes_the_other_obeys(mixed: Cluster) -> None:
    asyncio.run(check_all(mixed, OURS, KAFKA))
    mixed.brokers[OURS].stop()  # then the other one is the controller, which writes users
    mixed.brokers[OURS].start()
    mixed.brokers[OURS].wait_ready()
    asyncio.run(check_all(mixed, KAFKA, OURS))
    assert mixed.tracebacks() == []


async def check_all(cluster: Cluster, writer: int, reader: int) -> None:
    async with connected(cluster, "admin", "admin-secret") as admin:
        await check_users(cluster, admin, writer, reader)
        await check_acls(cluster, admin, writer, reader)
        await check_tokens(cluster, writer, reader)


async def check_users(cluster: Cluster, admin: Client, writer: int, reader: int) -> None:
    user = user_of(writer)
    salt = b"salt-of-" + user.encode()
    salted = salted_password(MECHANISM, b"secret", salt, ITERATIONS)
    upsertion = ScramCredentialUpsertion(user, SCRAM_SHA_256, ITERATIONS, salt, salted)

    async def is_written(request: AlterUserScramCredentialsRequest) -> bool:
        response = await admin.ask(writer, request, 0)
        return cast("bool", response.results[0].error_code == ErrorCode.NONE)

    await until(lambda: is_written(AlterUserScramCredentialsRequest([], [upsertion])), f"{writer} writes {user}")
    for broker_id in (writer, reader):
        await until(lambda broker_id=broker_id: is_admitted(cluster, broker_id, user, "secret"), f"{broker_id} admits {user}")  # type: ignore[misc]
        assert not await is_admitted(cluster, broker_id, user, "wrong")
    other = ScramCredentialUpsertion("other", SCRAM_SHA_256, ITERATIONS, salt, salted)
    await until(lambda: is_written(AlterUserScramCredentialsRequest([], [other])), f"{writer} writes another user")
    await until(lambda: is_admitted(cluster, reader, "other", "secret"), f"{reader} admits the other user")
    await until(lambda: is_written(AlterUserScramCredentialsRequest([ScramCredentialDeletion("other", SCRAM_SHA_256)], [])), "deleted")

    async def is_gone() -> bool:
        return not await is_admitted(cluster, reader, "other", "secret")

    await until(is_gone, f"{reader} refuses the deleted user")


async def check_acls(cluster: Cluster, admin: Client, writer: int, reader: int) -> None:
    user, topic = user_of(writer), f"of-{writer}-and-more"
    binding = (
        ResourceType.TOPIC,
        f"of-{writer}",
        PatternType.PREFIXED,
        f"User:{user}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    async with connected(cluster, user, "secret") as client:
        assert not await client.may_describe(reader, topic)
        created = await admin.ask(writer, CreateAclsRequest([AclCreation(*map(_plain, binding))]), 2)
        assert created.results[0].error_code == ErrorCode.NONE
        await until(lambda: client.may_describe(reader, topic), f"{reader} obeys the new ACL")
        assert not await client.may_describe(reader, "another")
        deleted = await admin.ask(writer, DeleteAclsRequest([DeleteAclsFilter(*map(_plain, binding))]), 2)
        assert len(deleted.filter_results[0].matching_acls) == 1

        async def is_denied() -> bool:
            return not await client.may_describe(reader, topic)

        await until(is_denied, f"{reader} obeys the deleted ACL")


async def check_tokens(cluster: Cluster, writer: int, reader: int) -> None:
    async with connected(cluster, user_of(writer), "secret") as client:
        token = await client.ask(writer, CreateDelegationTokenRequest(max_lifetime_ms=-1), 2)
        assert token.error_code == ErrorCode.NONE
        password = base64.b64encode(token.hmac).decode()
        await until(lambda: is_admitted(cluster, reader, token.token_id, password, is_token=True), f"{reader} admits the token")
        assert not await is_admitted(cluster, reader, token.token_id, "d3Jvbmc=", is_token=True)
        async with connected(cluster, token.token_id, password, is_token=True) as bearer:
            second = await bearer.ask(reader, CreateDelegationTokenRequest(max_lifetime_ms=-1), 2)
            assert second.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        expired = await client.ask(writer, ExpireDelegationTokenRequest(token.hmac, -1), 2)
        assert expired.error_code == ErrorCode.NONE

        async def is_refused() -> bool:
            return not await is_admitted(cluster, reader, token.token_id, password, is_token=True)

        await until(is_refused, f"{reader} refuses the expired token")


def user_of(broker_id: int) -> str:
    return f"user-of-{broker_id}"


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)
