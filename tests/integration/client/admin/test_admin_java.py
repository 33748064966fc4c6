"""The admin client beside Java's, on the same broker: the same calls get the same values, and the same errors in the same words."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
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
    Config,
    ConfigResource,
    ConfigResourceType,
    ConsumerGroupDescription,
    ElectionType,
    FeatureUpdate,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    OpType,
    Outcomes,
    RecordsToDelete,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    TopicDescription,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
)
from barnabas.client.errors import error_for
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition
from tests import kafka
from tests.broker import TopicMaker

pytestmark = pytest.mark.java

ORACLE = Path(__file__).parents[1] / "java" / "AdminOracle.java"
# What differs from one call to the next, and the names of calls, which are those of the methods in each language.
_CHANGING = re.compile(r"(deadlineMs|tries|nextAllowedTryMs)=\d+|timed out at \d+ after \d+ attempt|(?<=Call: )\w+")

_WORDLESS = re.compile(r"! (\d+) $")


def test_both_get_the_same(bootstrap: str, new_topic: TopicMaker) -> None:
    java = told_by_java(bootstrap, prepared(bootstrap, new_topic))
    topic = prepared(bootstrap, new_topic)
    with Admin(bootstrap_servers=bootstrap, default_api_timeout_ms=20_000, request_timeout_ms=10_000) as admin:
        ours = Probe(admin, topic).lines()
    assert [line.replace(topic, "TOPIC") for line in ours] == java


def prepared(bootstrap: str, new_topic: TopicMaker) -> str:
    topic = new_topic("probed", partitions=2)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce(topic, b"value", partition=0, timestamp=1000 + number)
    assert producer.flush(30) == 0
    return topic


def told_by_java(bootstrap: str, topic: str) -> list[str]:
    jars = kafka.available(kafka.prepare)
    command = kafka.source_command(jars, ORACLE, bootstrap, topic)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    lines = [_CHANGING.sub("", line.replace(topic, "TOPIC")) for line in done.stdout.splitlines()]
    # A broker may send an empty text with an error. Java shows it; here it has the words of its code.
    return [_WORDLESS.sub(lambda match: f"! {match[1]} {error_for(int(match[1]))}", line) for line in lines]


class Probe:
    """The same calls in the same order as the Java program makes them."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self.admin = admin
        self.topic = topic
        self.first, self.second, self.gone = TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition("not-there", 0)
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        self.topics()
        self.configs()
        self.partitions()
        self.groups()
        self.rest()
        return [_CHANGING.sub("", line) for line in self._lines]

    def topics(self) -> None:
        admin, topic = self.admin, self.topic
        made = admin.create_topics(
            [
                NewTopic("probe-a", 2, 1, configs={"retention.ms": "5000"}),
                NewTopic(topic, 1, 1),
                NewTopic("probe/b", 1, 1),
                NewTopic("probe-none", 0, 1),
                NewTopic("probe-wide", 1, 7),
                NewTopic("probe-set", 1, 1, configs={"no.such": "1"}),
                NewTopic("probe-value", 1, 1, configs={"retention.ms": "soon"}),
                NewTopic("probe-far", replicas_assignments={0: [77]}),
                NewTopic("probe-gap", replicas_assignments={1: [1]}),
                NewTopic("", 1, 1),
            ]
        )
        self.each("createTopics", made, nothing)
        self.one("createTopics.partitions probe-a", lambda: made["probe-a"].num_partitions)
        self.each("createTopics.validate", admin.create_topics([NewTopic("probe-c", 3, 1)], validate_only=True), nothing)
        self.each("describeTopics", admin.describe_topics([topic, "not-there", ""]), description)
        increases = {
            "probe-a": NewPartitions.increase_to(3),
            topic: NewPartitions.increase_to(1),
            "not-there": NewPartitions.increase_to(3),
        }
        self.each("createPartitions", admin.create_partitions(increases))
        self.each("createPartitions.same", admin.create_partitions({topic: 2}))
        self.each("createPartitions.assigned", admin.create_partitions({topic: NewPartitions.increase_to(4, [[1]])}))
        self.each("deleteTopics", admin.delete_topics(["probe-a", "not-there", ""]))

    def configs(self) -> None:
        admin = self.admin
        topic, gone = ConfigResource(ConfigResourceType.TOPIC, self.topic), ConfigResource(ConfigResourceType.TOPIC, "not-there")
        group = ConfigResource(ConfigResourceType.GROUP, "probe-group")
        self.each("describeConfigs", admin.describe_configs([topic, gone], include_synonyms=True), config)
        changes = {topic: [AlterConfigOp("retention.ms", "soon")], gone: [AlterConfigOp("retention.ms", "1")]}
        self.each("incrementalAlterConfigs", admin.incremental_alter_configs(changes))
        append = [AlterConfigOp("retention.ms", "1", OpType.APPEND)]
        self.each("incrementalAlterConfigs.append", admin.incremental_alter_configs({topic: append}))
        twice = [AlterConfigOp("retention.ms", "1"), AlterConfigOp("retention.ms", "2")]
        self.each("incrementalAlterConfigs.twice", admin.incremental_alter_configs({topic: twice}))
        of_group = [AlterConfigOp("consumer.session.timeout.ms", "1")]
        self.each("incrementalAlterConfigs.group", admin.incremental_alter_configs({group: of_group}))

    def partitions(self) -> None:
        admin, first, second, gone = self.admin, self.first, self.second, self.gone
        for spec in (
            OffsetSpec.earliest(),
            OffsetSpec.latest(),
            OffsetSpec.max_timestamp(),
            OffsetSpec.for_timestamp(1001),
            OffsetSpec.for_timestamp(9000),
            OffsetSpec.earliest_local(),
            OffsetSpec.latest_tiered(),
        ):
            self.each("listOffsets", admin.list_offsets({first: spec, second: spec}), offset)
        self.each("listOffsets.late", admin.list_offsets({gone: OffsetSpec.latest()}, timeout_ms=300))
        records = {first: RecordsToDelete.before_offset(1), second: RecordsToDelete.before_offset(5)}
        self.each("deleteRecords", admin.delete_records(records), lambda deleted: deleted.low_watermark)
        self.one("electLeaders", lambda: elected(admin.elect_leaders(ElectionType.PREFERRED, [first, gone])))
        self.one("electLeaders.all", lambda: elected(admin.elect_leaders(ElectionType.PREFERRED)))
        self.each("alterPartitionReassignments", admin.alter_partition_reassignments({first: [1], second: [1, 77], gone: [1]}))
        self.each("alterPartitionReassignments.cancel", admin.alter_partition_reassignments({first: None}))
        self.one("listPartitionReassignments", lambda: admin.list_partition_reassignments())
        self.each("describeLogDirs.late", admin.describe_log_dirs([4711], timeout_ms=300))
        replica = TopicPartitionReplica(self.topic, 0, 1)
        self.each("alterReplicaLogDirs", admin.alter_replica_log_dirs({replica: "/no/such/dir"}))
        self.each("describeProducers", admin.describe_producers([first]), len)

    def groups(self) -> None:
        admin, first, gone = self.admin, self.first, self.gone
        offsets = {first: OffsetAndMetadata(2, "note"), gone: OffsetAndMetadata(1)}
        self.each("alterConsumerGroupOffsets", admin.alter_consumer_group_offsets("probe-group", offsets))
        self.one("listConsumerGroupOffsets", lambda: committed(admin.list_consumer_group_offsets("probe-group")["probe-group"]))
        self.one("listConsumerGroupOffsets.none", lambda: admin.list_consumer_group_offsets("nobody")["nobody"])
        self.each("describeConsumerGroups", admin.describe_consumer_groups(["probe-group", "nobody"]), consumer_group)
        self.each(
            "describeClassicGroups",
            admin.describe_classic_groups(["probe-group", "nobody"]),
            lambda group: f"{group.group_id} {group.protocol} {group.protocol_data} {group.group_state.name}",
        )
        self.one("listGroups", self.listed_groups)
        self.each("deleteConsumerGroupOffsets", admin.delete_consumer_group_offsets("probe-group", [first, gone]))
        self.each("deleteConsumerGroupOffsets.none", admin.delete_consumer_group_offsets("nobody", [first]))
        self.each("deleteConsumerGroups", admin.delete_consumer_groups(["probe-group", "nobody"]))
        self.each("describeShareGroups", admin.describe_share_groups(["nobody"]))
        self.each("describeStreamsGroups", admin.describe_streams_groups(["nobody"]))
        self.one("describeTransactions", lambda: admin.describe_transactions(["nobody"])["nobody"])
        for name, pattern in (("listTransactions", "nobody.*"), ("listTransactions.pattern", "(")):
            self.one(name, lambda pattern=pattern: sum(map(len, admin.list_transactions(transactional_id_pattern=pattern).values())))

    def listed_groups(self) -> str:
        probes = [one for one in self.admin.list_groups() if one.group_id.startswith("probe-")]
        return ",".join(f"{one.group_id} {one.type} {one.protocol} {one.group_state}" for one in probes)

    def rest(self) -> None:
        admin = self.admin
        pattern = ResourcePattern(ResourceType.TOPIC, "t")
        rule = AclBinding(pattern, AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW))
        vague = AclBinding(pattern, AccessControlEntry("User:a", "*", AclOperation.UNKNOWN, AclPermissionType.ALLOW))
        self.one("describeAcls", lambda: admin.describe_acls())
        self.one("createAcls", lambda: admin.create_acls([rule])[rule])
        self.one("createAcls.vague", lambda: admin.create_acls([vague])[vague])
        self.one("deleteAcls", lambda: sum(map(len, admin.delete_acls([AclBindingFilter.ANY]).values())))
        self.one("describeClientQuotas", lambda: admin.describe_client_quotas())
        entity = ClientQuotaEntity({"planet": "mars"})
        change = ClientQuotaAlteration(entity, {"producer_byte_rate": 1.0})
        self.one("alterClientQuotas", lambda: admin.alter_client_quotas([change])[entity])
        self.one("describeUserScramCredentials", lambda: len(admin.describe_user_scram_credentials().all()))
        self.one("describeUserScramCredentials.none", lambda: admin.describe_user_scram_credentials(["nobody"])["nobody"])
        sha = ScramMechanism.SCRAM_SHA_256
        self.each("alterUserScramCredentials", admin.alter_user_scram_credentials([UserScramCredentialDeletion("nobody", sha)]))
        self.one("createDelegationToken", lambda: admin.create_delegation_token())
        self.one("describeDelegationToken", lambda: admin.describe_delegation_token())
        self.one("describeFeatures", self.features)
        self.one("updateFeatures", lambda: admin.update_features({"no.such": FeatureUpdate(1)})["no.such"])
        self.one("describeMetadataQuorum", lambda: admin.describe_metadata_quorum().leader_id)
        self.one("unregisterBroker", lambda: admin.unregister_broker(77))
        self.one("listClientMetricsResources", lambda: admin.list_config_resources([ConfigResourceType.CLIENT_METRICS]))

    def features(self) -> str:
        supported = self.admin.describe_features().supported_features
        return ",".join(f"{name} {one.min_version} {one.max_version}" for name, one in sorted(supported.items()))

    def each(self, call: str, outcomes: Outcomes[Any, Any], text: Callable[[Any], object] = lambda value: value) -> None:
        named = {key.name if isinstance(key, ConfigResource) else str(key): key for key in outcomes}
        for name in sorted(named):
            self.one(f"{call} {name}", lambda name=name: text(outcomes[named[name]]))

    def one(self, name: str, call: Callable[..., object]) -> None:
        try:
            value = call()
            self._lines.append(f"{name} = {'null' if value is None else value}")
        except KafkaError as error:
            self._lines.append(f"{name} ! {problem(error)}")


def problem(error: KafkaError) -> str:
    return f"{error.code} {error}"


def nothing(_: object) -> None:
    """What Java's futures of these calls give."""


def description(topic: TopicDescription) -> str:
    def nodes(of: tuple[object, ...]) -> str:
        return f"[{', '.join(map(str, of))}]"

    rows = (f"{one.partition}/{one.leader}/{nodes(one.replicas)}/{nodes(one.isr)}" for one in topic.partitions)
    return f"{topic.name} {str(topic.is_internal).lower()} {' '.join(rows)}"


def config(config: Config) -> str:
    def text(value: object) -> str:
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    rows = []
    for entry in sorted(config.entries, key=lambda entry: entry.name):
        synonyms = ",".join(f"{one.name}:{text(one.value)}:{one.source.name}" for one in entry.synonyms)
        fields = (entry.name, entry.value, entry.source.name, entry.is_sensitive, entry.is_read_only, entry.type.name, synonyms)
        rows.append("/".join(map(text, fields)))
    return " ".join(rows)


def offset(listed: ListOffsetsResultInfo) -> str:
    return f"{listed.offset} {listed.timestamp} {'none' if listed.leader_epoch is None else listed.leader_epoch}"


def elected(outcomes: Outcomes[TopicPartition, None]) -> str:
    rows = {str(partition): problem(outcomes.errors[partition]) if partition in outcomes.errors else "none" for partition in outcomes}
    return f"{{{', '.join(f'{name}={rows[name]}' for name in sorted(rows))}}}"


def committed(offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> str:
    rows = ((partition, one) for partition, one in offsets.items() if one is not None)
    return ",".join(f"{partition} {one.offset} {one.metadata} {str(one.leader_epoch is not None).lower()}" for partition, one in rows)


def consumer_group(group: ConsumerGroupDescription) -> str:
    simple = str(group.is_simple_consumer_group).lower()
    return f"{group.group_id} {simple} {len(group.members)} {group.partition_assignor} {group.type.name} {group.group_state.name}"
