"""The resources that exist before the first request of the matrix, and the ACLs of its users. The super user makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import SUPER_USER, Acl, Cell, World, on_topic
from tests.integration.security.matrix.connection import connected
from tests.integration.security.matrix.names import (
    ACL_USER,
    CONSUMER_GROUP,
    GROUP,
    GROUP_WITHOUT_OFFSETS,
    OTHER,
    OTHER_GROUP,
    OTHER_TRANSACTION,
    RENEWER,
    SCRAM_USER,
    TOKEN_OWNER,
    TOPIC,
    TRANSACTION,
    WIDE_CONSUMER_GROUP,
)
from tests.integration.security.matrix.peers import Peer
from tests.integration.transactions.wire import Connection, error_codes

_DEADLINE_S = 60
_PAUSE_S = 0.05
_TIMEOUT_MS = 30_000
_TRANSACTION_TIMEOUT_MS = 600_000
_TRANSACTION, _GROUP = 1, 0  # the types of coordinators
_SHA_256 = 1
_ACLS_AT_ONCE = 500
_TOPICS_AT_ONCE = 100


def made(peer: Peer, cells: Callable[[World], Sequence[Cell]]) -> World:
    """Makes topics, groups, a transaction and a token, and gives the users of the cells their ACLs."""
    connection = connected(peer.secured, SUPER_USER)
    try:
        world = World({})
        own_topics = {topic for cell in cells(world) for topic in cell.case.topics(cell)}
        world.topic_ids.update(_create_topics(connection, [TOPIC, OTHER, *sorted(own_topics)]))
        _commit_offsets(connection)
        _join_consumer_groups(connection)
        _open_transactions(connection, world)
        _create_scram_user(connection)
        _create_token(peer, world)
        _create_acls(connection, cells(world))
        return world
    finally:
        connection.close()


def _create_topics(connection: Connection, names: Sequence[str]) -> dict[str, Uuid]:
    _until(lambda: connection.ask(MetadataRequest([], False), 12).brokers, "the broker is not in its own metadata")
    for at in range(0, len(names), _TOPICS_AT_ONCE):
        topics = [CreatableTopic(name, 1, 1) for name in names[at : at + _TOPICS_AT_ONCE]]
        _without_error(connection.ask(CreateTopicsRequest(topics, _TIMEOUT_MS), 5))
    asked = [MetadataRequestTopic(Uuid.ZERO, name) for name in names]
    answer = _until_there_is_no_error(connection, MetadataRequest(asked, False), 12)
    return {topic.name: topic.topic_id for topic in answer.topics}


def _commit_offsets(connection: Connection) -> None:
    _until_there_is_no_error(connection, FindCoordinatorRequest(GROUP, _GROUP), 1)
    for group in (GROUP, OTHER_GROUP, GROUP_WITHOUT_OFFSETS):
        topics = [OffsetCommitRequestTopic(name, Uuid.ZERO, [OffsetCommitRequestPartition()]) for name in (TOPIC, OTHER)]
        _until_there_is_no_error(connection, OffsetCommitRequest(group, topics=topics), 8)


def _join_consumer_groups(connection: Connection) -> None:
    """Groups of the consumer protocol, each with a member; Kafka 3.9.1 has none in ZooKeeper mode."""
    for group, topics in ((CONSUMER_GROUP, [TOPIC]), (WIDE_CONSUMER_GROUP, [TOPIC, OTHER])):
        member = str(Uuid(group.encode().ljust(16, b".")[:16]))
        request = ConsumerGroupHeartbeatRequest(
            group, member, 0, rebalance_timeout_ms=_TIMEOUT_MS, subscribed_topic_names=topics, topic_partitions=[]
        )
        answer = connection.ask(request, 0)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION), answer


def _open_transactions(connection: Connection, world: World) -> None:
    for transactional_id in (TRANSACTION, OTHER_TRANSACTION):
        _until_there_is_no_error(connection, FindCoordinatorRequest(transactional_id, _TRANSACTION), 1)
        producer = _until_there_is_no_error(connection, InitProducerIdRequest(transactional_id, _TRANSACTION_TIMEOUT_MS), 3)
        topics = [AddPartitionsToTxnTopic(name, [0]) for name in (TOPIC, OTHER)]
        request = AddPartitionsToTxnRequest([], transactional_id, producer.producer_id, producer.producer_epoch, topics)
        _until_there_is_no_error(connection, request, 3)
        if transactional_id == TRANSACTION:
            world.producer_id, world.producer_epoch = producer.producer_id, producer.producer_epoch


def _create_scram_user(connection: Connection) -> None:
    user = ScramCredentialUpsertion(SCRAM_USER, _SHA_256, 4096, b"salt", b"x" * 32)
    _without_error(connection.ask(AlterUserScramCredentialsRequest(upsertions=[user]), 0))


def _create_token(peer: Peer, world: World) -> None:
    """A token of its owner, who has no ACL: everybody may create tokens of their own."""
    connection = connected(peer.secured, TOKEN_OWNER)
    try:
        answer = connection.ask(CreateDelegationTokenRequest(renewers=[CreatableRenewers("User", RENEWER)], max_lifetime_ms=-1), 2)
    finally:
        connection.close()
    _without_error(answer)
    world.token_id, world.token_hmac = answer.token_id, answer.hmac


def _create_acls(connection: Connection, cells: Iterable[Cell]) -> None:
    acls = dict.fromkeys((cell.user, acl) for cell in cells for acl in cell.granted)
    creations = [_creation(user, acl) for user, acl in acls if user is not None]
    creations.append(_creation(ACL_USER, on_topic(AclOperation.READ, TOPIC)))
    for at in range(0, len(creations), _ACLS_AT_ONCE):
        _without_error(connection.ask(CreateAclsRequest(creations[at : at + _ACLS_AT_ONCE]), 2))
    every = DescribeAclsRequest(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    _until(
        lambda: sum(len(resource.acls) for resource in connection.ask(every, 2).resources) >= len(creations), "the ACLs are not in force"
    )


def _creation(user: str, acl: Acl) -> AclCreation:
    permission = AclPermissionType.DENY if acl.is_denial else AclPermissionType.ALLOW
    return AclCreation(acl.resource_type, acl.name, PatternType.LITERAL, f"User:{user}", "*", acl.operation, permission)


def _until_there_is_no_error(connection: Connection, request: Any, version: int) -> Any:
    """A coordinator is not available until its topic exists and is loaded, and topics have no leader at first."""
    answers: list[Any] = []

    def is_answered() -> bool:
        answers.append(connection.ask(request, version))
        return not any(error_codes(answers[-1]))

    _until(is_answered, lambda: f"{request}: {answers[-1]}")
    return answers[-1]


def _until(is_done: Callable[[], object], problem: str | Callable[[], str]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not is_done():
        assert time.monotonic() < deadline, problem if isinstance(problem, str) else problem()
        time.sleep(_PAUSE_S)


def _without_error(response: Any) -> None:
    assert not any(error_codes(response)), response
