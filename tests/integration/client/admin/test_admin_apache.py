"""The admin client against Apache Kafka for what our broker does not have yet: rules, quotas, credentials, tokens, reassignments, moves
between directories, share groups, features, and controllers spoken to directly."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Admin,
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    GroupState,
    KafkaPrincipal,
    NewPartitionReassignment,
    NewTopic,
    OffsetSpec,
    PatternType,
    RaftVoterEndpoint,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    SharePartitionOffsetInfo,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.client.errors import (
    BrokerIdNotRegistered,
    DelegationTokenNotFound,
    InvalidUpdateVersion,
    NoReassignmentInProgress,
    ResourceNotFound,
    SaslAuthentication,
    ThrottlingQuotaExceeded,
    Timeout,
    TopicAuthorization,
    UnacceptableCredential,
    UnsupportedByAuthentication,
)
from barnabas.errors import GroupIdNotFound, InvalidReplicaAssignment, InvalidRequest, KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests import broker, kafka_server

pytestmark = pytest.mark.java

WAIT_S = 30
LISTENERS = ("PLAINTEXT", "SASL", "CONTROLLER")
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}"{};'


@dataclass(frozen=True)
class Kafka:
    """Addresses of the listeners: PLAINTEXT, where everybody may do everything, SASL, and the controller's."""

    plaintext: str
    sasl: str
    controller: str

    def client(self, mechanism: str, jaas: str) -> Admin:
        return Admin(
            {
                "bootstrap.servers": self.sasl,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": jaas,
            }
        )


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Generator[Kafka, None, None]:
    directory: Path = tmp_path_factory.mktemp("kafka")
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in LISTENERS]
        ports = dict(zip(LISTENERS, (one.getsockname()[1] for one in sockets), strict=True))
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    settings = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl.plain.sasl.jaas.config": PLAIN.format("alice", "secret").replace(";", ' user_alice="secret";'),
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "delegation.token.secret.key": "a key",
        "log.dirs": f"{kafka_server.logs_of(directory)},{directory / 'more'}",
    }
    command = kafka_server.command(directory, 1, ports["PLAINTEXT"], ports["CONTROLLER"], settings)
    with broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        yield Kafka(*(f"127.0.0.1:{ports[name]}" for name in LISTENERS))


@pytest.fixture(scope="module")
def admin(kafka: Kafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.plaintext) as client:
        yield client


def until(true: Callable[[], bool]) -> None:
    """Waits for what a controller has decided to reach the broker."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def make(admin: Admin, topic: str, partitions: int = 1) -> str:
    admin.create_topics([NewTopic(topic, partitions, 1)]).all()
    until(lambda: topic in admin.list_topics())
    return topic


def rule(topic: str, operation: AclOperation, principal: str = "User:bob", pattern: PatternType = PatternType.LITERAL) -> AclBinding:
    entry = AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, topic, pattern), entry)


def test_rules_are_added_found_and_deleted(admin: Admin) -> None:
    read, write = rule("acl-t", AclOperation.READ), rule("acl-", AclOperation.WRITE, pattern=PatternType.PREFIXED)
    admin.create_acls([read, write]).all()
    until(lambda: len(admin.describe_acls()) == 2)
    matching = AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, "acl-t", PatternType.MATCH))
    assert set(admin.describe_acls(matching)) == {read, write}
    assert admin.describe_acls(read.to_filter()) == [read]
    assert {deleted.binding for deleted in admin.delete_acls([matching])[matching]} == {read, write}
    until(lambda: admin.describe_acls() == [])


def test_who_may_not_see_a_topic_is_told_so(admin: Admin, kafka: Kafka) -> None:
    topic = make(admin, "hidden")
    sha = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", sha, "password of bob")]).all()
    until(lambda: "bob" in admin.describe_user_scram_credentials())
    with kafka.client("SCRAM-SHA-256", SCRAM.format("bob", "password of bob", "")) as bob:
        assert isinstance(bob.describe_topics([topic]).errors[topic], TopicAuthorization)
        assert bob.list_topics() == {}
        partition = TopicPartition(topic, 0)
        assert isinstance(bob.list_offsets({partition: OffsetSpec.latest()}).errors[partition], TopicAuthorization)
        admin.create_acls([rule(topic, AclOperation.DESCRIBE)]).all()
        until(lambda: list(bob.list_topics()) == [topic])
        assert bob.describe_topics([topic], include_authorized_operations=True)[topic].authorized_operations == frozenset(
            {AclOperation.DESCRIBE}
        )
        assert isinstance(bob.delete_topics([topic]).errors[topic], TopicAuthorization)
    admin.delete_acls([AclBindingFilter.ANY]).all()


def test_credentials_are_set_described_and_deleted(admin: Admin) -> None:
    sha = ScramMechanism.SCRAM_SHA_512
    outcomes = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("carl", ScramCredentialInfo(sha, 8192), b"a password"),
            UserScramCredentialUpsertion("weak", ScramCredentialInfo(sha, 1), b"a password"),
            UserScramCredentialDeletion("nobody", sha),
        ]
    )
    assert outcomes["carl"] is None
    assert isinstance(outcomes.errors["weak"], UnacceptableCredential) and isinstance(outcomes.errors["nobody"], ResourceNotFound)
    until(lambda: "carl" in admin.describe_user_scram_credentials())
    described = admin.describe_user_scram_credentials(["carl", "nobody"])
    assert described["carl"].credential_infos == (ScramCredentialInfo(sha, 8192),)
    assert isinstance(described.errors["nobody"], ResourceNotFound)
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("carl", sha)]).all()
    until(lambda: "carl" not in admin.describe_user_scram_credentials())


def test_a_wrong_password_is_not_tried_again(kafka: Kafka) -> None:
    with kafka.client("PLAIN", PLAIN.format("alice", "wrong")) as admin:
        before = time.monotonic()
        with pytest.raises(SaslAuthentication, match="Invalid username or password"):
            admin.list_topics()
        assert isinstance(admin.create_topics([NewTopic("t")]).errors["t"], SaslAuthentication)
        assert time.monotonic() - before < WAIT_S / 2


def test_a_token_stands_for_its_owner(admin: Admin, kafka: Kafka) -> None:
    with pytest.raises(UnsupportedByAuthentication):
        admin.create_delegation_token()
    with kafka.client("PLAIN", PLAIN.format("alice", "secret")) as alice:
        token = alice.create_delegation_token(renewers=[KafkaPrincipal("User", "bob")], max_lifetime_ms=600_000)
        assert token.token_info.max_timestamp - token.token_info.issue_timestamp == 600_000
        until(lambda: alice.describe_delegation_token() == [token])
        assert alice.describe_delegation_token(owners=[KafkaPrincipal("User", "zoe")]) == []
        jaas = SCRAM.format(token.token_info.token_id, token.hmac_as_base64_string, ' tokenauth="true"')
        with kafka.client("SCRAM-SHA-256", jaas) as worker:
            assert worker.describe_cluster().nodes
        assert alice.renew_delegation_token(token.hmac, renew_time_period_ms=60_000) <= token.token_info.expiry_timestamp
        alice.expire_delegation_token(token.hmac)
        until(lambda: alice.describe_delegation_token() == [])
        with pytest.raises(DelegationTokenNotFound):
            alice.renew_delegation_token(b"no such token")


def test_quotas_are_set_found_and_removed(admin: Admin) -> None:
    user, default = ClientQuotaEntity({"user": "dora"}), ClientQuotaEntity({"client-id": None})
    changes = [ClientQuotaAlteration(user, {"producer_byte_rate": 1024}), ClientQuotaAlteration(default, {"request_percentage": 50.5})]
    admin.alter_client_quotas(changes, validate_only=True).all()
    assert admin.describe_client_quotas() == {}
    admin.alter_client_quotas(changes).all()
    until(lambda: len(admin.describe_client_quotas()) == 2)
    of_dora = ClientQuotaFilter.contains_only([ClientQuotaFilterComponent.of_entity("user", "dora")])
    assert admin.describe_client_quotas(of_dora) == {user: {"producer_byte_rate": 1024.0}}
    defaults = ClientQuotaFilter.contains([ClientQuotaFilterComponent.of_default_entity("client-id")])
    assert admin.describe_client_quotas(defaults) == {default: {"request_percentage": 50.5}}
    wrong = ClientQuotaEntity({"planet": "mars"})
    assert isinstance(admin.alter_client_quotas([ClientQuotaAlteration(wrong, {"producer_byte_rate": 1})]).errors[wrong], InvalidRequest)
    removals = [ClientQuotaAlteration(user, {"producer_byte_rate": None}), ClientQuotaAlteration(default, {"request_percentage": None})]
    admin.alter_client_quotas(removals).all()
    until(lambda: admin.describe_client_quotas() == {})


def test_a_quota_on_changes_is_waited_for_unless_that_is_not_wanted(admin: Admin, kafka: Kafka) -> None:
    entity = ClientQuotaEntity({"client-id": "hasty"})
    admin.alter_client_quotas([ClientQuotaAlteration(entity, {"controller_mutation_rate": 10})]).all()
    until(lambda: entity in admin.describe_client_quotas())
    with Admin(bootstrap_servers=kafka.plaintext, client_id="hasty") as hasty:
        errors: list[KafkaError] = []

        def held_back() -> bool:
            name = f"hasty-{time.monotonic_ns()}"
            outcome = hasty.create_topics([NewTopic(name, 60, 1)], retry_on_quota_violation=False)
            errors.extend(outcome.errors.values())
            return bool(outcome.errors)

        until(held_back)
        assert isinstance(errors[0], ThrottlingQuotaExceeded) and str(errors[0]) == "The throttling quota has been exceeded."
        hasty.create_topics([NewTopic("patient", 1, 1)]).all()
    admin.alter_client_quotas([ClientQuotaAlteration(entity, {"controller_mutation_rate": None})]).all()


def test_partitions_are_reassigned(admin: Admin) -> None:
    topic = make(admin, "reassigned", 3)
    same, nobody, missing = (TopicPartition(topic, number) for number in (0, 1, 9))
    outcomes = admin.alter_partition_reassignments({same: [1], nobody: NewPartitionReassignment([77]), missing: [1]})
    assert outcomes[same] is None
    assert isinstance(outcomes.errors[nobody], InvalidReplicaAssignment) and "77" in str(outcomes.errors[nobody])
    assert [error.code for error in outcomes.errors.values()] == [39, 3]
    assert isinstance(admin.alter_partition_reassignments({same: None}).errors[same], NoReassignmentInProgress)
    assert admin.list_partition_reassignments() == {} == admin.list_partition_reassignments([same])


def test_a_replica_moves_to_another_directory(admin: Admin) -> None:
    replica = TopicPartitionReplica(make(admin, "moved"), 0, 1)
    until(lambda: admin.describe_replica_log_dirs([replica])[replica].current_replica_log_dir is not None)
    here = admin.describe_replica_log_dirs([replica])[replica].current_replica_log_dir
    (there,) = (path for path in admin.describe_log_dirs([1])[1] if path != here)
    admin.alter_replica_log_dirs({replica: there}).all()
    until(lambda: admin.describe_replica_log_dirs([replica])[replica].current_replica_log_dir == there)


def test_share_groups_have_offsets(admin: Admin) -> None:
    topic = make(admin, "shared")
    partition = TopicPartition(topic, 0)
    assert isinstance(admin.describe_share_groups(["share"]).errors["share"], GroupIdNotFound)
    until(lambda: not admin.alter_share_group_offsets("share", {partition: 0}).errors)
    offsets = admin.list_share_group_offsets({"share": None, "none": [partition]})
    assert offsets["share"] == {partition: SharePartitionOffsetInfo(0, 0, None)} and offsets["none"] == {partition: None}
    group = admin.describe_share_groups(["share"])["share"]
    assert (group.group_state, group.members, group.coordinator.id) == (GroupState.EMPTY, (), 1)
    missing = TopicPartition("not-there", 0)
    assert admin.alter_share_group_offsets("share", {missing: 0}).errors[missing].code == 3
    deleted = admin.delete_share_group_offsets("share", [topic, "not-there"])
    assert deleted[topic] is None and deleted.errors["not-there"].code == 3
    admin.delete_share_groups(["share"]).all()
    assert isinstance(admin.describe_streams_groups(["streams"]).errors["streams"], GroupIdNotFound)


def test_features_are_changed_for_the_whole_cluster(admin: Admin) -> None:
    assert admin.update_features({"group.version": FeatureUpdate(1)}, validate_only=True).all() == {"group.version": None}
    errors = admin.update_features({"no.such.feature": FeatureUpdate(1)}).errors
    assert isinstance(errors["no.such.feature"], InvalidUpdateVersion)


def test_the_quorum_is_described(admin: Admin, kafka: Kafka) -> None:
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id == 1 and [voter.replica_id for voter in quorum.voters] == [1] and quorum.observers == ()
    host, _, port = kafka.controller.rpartition(":")
    assert quorum.nodes == {1: (RaftVoterEndpoint("CONTROLLER", host, int(port)),)}
    with pytest.raises(InvalidRequest, match="valid voter"):
        admin.add_raft_voter(9, Uuid.ZERO, [])
    with pytest.raises(InvalidRequest, match="valid voter"):
        admin.remove_raft_voter(9, Uuid.ZERO)


def test_a_broker_that_was_never_there_cannot_be_struck_off(admin: Admin) -> None:
    with pytest.raises(BrokerIdNotRegistered):
        admin.unregister_broker(77)
    assert [node.is_fenced for node in admin.describe_cluster(include_fenced_brokers=True).nodes] == [False]


def test_controllers_are_spoken_to_directly(kafka: Kafka) -> None:
    with Admin(bootstrap_controllers=kafka.controller) as admin:
        (node,) = admin.describe_cluster().nodes
        assert f"{node.host}:{node.port}" == kafka.controller
        assert admin.describe_metadata_quorum().leader_id == 1
        resource = ConfigResource(ConfigResourceType.BROKER, "1")
        admin.incremental_alter_configs({resource: [AlterConfigOp("log.cleaner.threads", "1")]}, validate_only=True).all()
        with pytest.raises(UnsupportedVersion):
            admin.list_topics()


def test_a_broker_without_a_receiver_of_metrics_gives_no_id(kafka: Kafka) -> None:
    with Admin(bootstrap_servers=kafka.plaintext, enable_metrics_push=True) as admin, pytest.raises(Timeout):
        admin.client_instance_id(timeout_ms=500)
