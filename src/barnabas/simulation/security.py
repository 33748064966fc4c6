"""A secured simulated cluster: SASL with SCRAM for clients and brokers, sessions that expire, and an authorizer.

The application has the ACLs that it needs. An operator gives a guest an ACL and takes it away again, while faults happen. A stranger can
authenticate and has no ACL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final

from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.broker.security.session import Session
from barnabas.client.network.sasl.scram import Scram
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.new_user import NewUser
from barnabas.security.operations import AclOperation
from barnabas.security.principal import USER_TYPE, KafkaPrincipal
from barnabas.security.scram import ITERATIONS_MIN, ScramCredential
from barnabas.simulation.client import METADATA_VERSION, RETRY_S, Login, SimulatedClient
from barnabas.simulation.cluster import SimulatedCluster

MECHANISM: Final = "SCRAM-SHA-256"
BROKER, OPERATOR, APPLICATION, GUEST, STRANGER = "broker", "operator", "application", "guest", "stranger"
SETTINGS: Final = {
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": MECHANISM,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    "barnabas.sasl.inter.broker.username": BROKER,
    "barnabas.sasl.inter.broker.password": f"{BROKER}-secret",
    "connections.max.reauth.ms": "6000",  # so that sessions end during a history
    "connection.failed.authentication.delay.ms": "0",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:{BROKER};User:{OPERATOR}",
}
CHANGE_S: Final = (0.5, 4.0)  # between two changes of the guest's ACL
VISIT_S: Final = 0.7
ACLS_VERSION: Final = 2


def password_of(user: str) -> str:
    return f"{user}-secret"


def login_of(user: str) -> Login:
    """Of the simple clients."""
    return MECHANISM, lambda: Scram(MECHANISM, user, password_of(user))


def new_users() -> list[NewUser]:
    """With a constant salt, so that a history depends on its seed alone."""
    names = (BROKER, OPERATOR, APPLICATION, GUEST, STRANGER)
    credentials = [ScramCredential.of_password(MECHANISM, password_of(name), name.encode(), ITERATIONS_MIN) for name in names]
    return [NewUser(name, MECHANISM, credential) for name, credential in zip(names, credentials, strict=True)]


def client_settings(user: str) -> dict[str, object]:
    """Of the real clients."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password_of(user),
    }


def acls_of_application(topics: Iterable[str], group_id: str, transactional_id: str) -> list[AclCreation]:
    operations = (AclOperation.READ, AclOperation.WRITE)
    return [
        *(_allow(APPLICATION, operation, ResourceType.TOPIC, topic) for topic in topics for operation in operations),
        _allow(APPLICATION, AclOperation.READ, ResourceType.GROUP, group_id),
        _allow(APPLICATION, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id),
    ]


class AclChanges:
    """The operator's work. `is_allowed` is the last state that a broker has confirmed for the guest; None while a change is in flight."""

    def __init__(self, client: SimulatedClient, topic: str, random: Random) -> None:
        self.is_allowed: bool | None = False
        self._client = client
        self._topic = topic
        self._random = random
        self._is_over = False

    async def create(self, creations: list[AclCreation]) -> None:
        while True:
            response = await self._client.ask_any_broker(CreateAclsRequest(creations), ACLS_VERSION)
            if all(result.error_code == ErrorCode.NONE for result in response.results):
                return
            await asyncio.sleep(RETRY_S)

    async def make(self) -> None:
        while not self._is_over:
            await asyncio.sleep(self._random.uniform(*CHANGE_S))
            is_allowed = not self.is_allowed
            self.is_allowed = None
            while not await self._is_changed(is_allowed):
                await asyncio.sleep(RETRY_S)
            self.is_allowed = is_allowed

    def end(self) -> None:
        """No change begins after the one that may be in flight."""
        self._is_over = True

    async def _is_changed(self, is_allowed: bool) -> bool:
        allow = _allow(GUEST, AclOperation.DESCRIBE, ResourceType.TOPIC, self._topic)
        fields = [getattr(allow, name) for name in AclCreation.FIELDS]
        request: Message = CreateAclsRequest([allow]) if is_allowed else DeleteAclsRequest([DeleteAclsFilter(*fields)])
        response = await self._client.ask_any_broker(request, ACLS_VERSION)
        if is_allowed:
            return bool(response.results[0].error_code == ErrorCode.NONE)
        result = response.filter_results[0]
        return not result.error_code and not any(deleted.error_code for deleted in result.matching_acls)


class Visitor:
    """Asks the brokers, one after the other, for a topic. `wrong` has the responses that a user without ACLs must not get."""

    def __init__(self, client: SimulatedClient, topic: str, has_access: bool) -> None:
        self.wrong: list[str] = []
        self._client = client
        self._topic = topic
        self._has_access = has_access

    async def visit(self) -> None:
        request = MetadataRequest([MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False)
        while True:
            response = await self._client.ask_any_broker(request, METADATA_VERSION)
            error = response.topics[0].error_code
            if not self._has_access and error != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self.wrong.append(f"a user without ACLs got error {error} for {self._topic} instead of TOPIC_AUTHORIZATION_FAILED")
            await asyncio.sleep(VISIT_S)


def disobedient(cluster: SimulatedCluster, topic: str, is_allowed: bool, host: str) -> list[str]:
    """The brokers whose authorizer decides otherwise about the guest. With the host of the guest: an authorizer may remember what it has
    decided about its requests."""
    session = Session(KafkaPrincipal(USER_TYPE, GUEST), host)
    action = Action(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    return [
        f"{broker.host} {'denies' if is_allowed else 'allows'} what the ACLs {'allow' if is_allowed else 'deny'}"
        for broker in cluster.brokers.values()
        if broker.broker is not None
        and broker.broker.access.authorizer is not None
        and broker.broker.access.authorizer.authorize(session, action) != is_allowed
    ]


def _allow(user: str, operation: AclOperation, resource_type: ResourceType, name: str) -> AclCreation:
    return AclCreation(
        int(resource_type), name, int(PatternType.LITERAL), f"User:{user}", "*", int(operation), int(AclPermissionType.ALLOW)
    )
