"""The codecs of Kafka's znodes where the dumps of real clusters do not reach: old versions, rare fields, escapes, damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.metadata import paths
from barnabas.metadata.znodes import admin, cluster, configs, consumers, json_text, ordering, security, topics
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
brokers = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
names = st.text("abcXYZ019._-", min_size=1, max_size=20)
partitions = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))

# Orders taken from Scala 2.13.17 and Java 17 themselves.
SCALA_30 = [
    "22",
    "23",
    "24",
    "25",
    "26",
    "27",
    "28",
    "29",
    "10",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "17",
    "18",
    "19",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "20",
    "21",
]
CONFIGS = [
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.type",
]
PROPERTIES_11 = [
    "compression.type",
    "cleanup.policy",
    "file.delete.delay.ms",
    "max.compaction.lag.ms",
    "flush.ms",
    "leader.replication.throttled.replicas",
    "max.message.bytes",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "delete.retention.ms",
    "flush.messages",
]
PROPERTIES_12 = [
    "compression.type",
    "file.delete.delay.ms",
    "max.compaction.lag.ms",
    "leader.replication.throttled.replicas",
    "max.message.bytes",
    "message.timestamp.type",
    "index.interval.bytes",
    "delete.retention.ms",
    "cleanup.policy",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "flush.messages",
]


def test_partitions_stand_in_the_order_of_scalas_mutable_map() -> None:
    assert ordering.scala_mutable(str(number) for number in range(11)) == [str(number) for number in range(11)]
    assert ordering.scala_mutable(str(number) for number in range(12)) == ["11", *(str(number) for number in range(11))]
    assert ordering.scala_mutable(str(number) for number in range(30)) == SCALA_30


def test_listeners_stand_in_the_order_of_scalas_immutable_map() -> None:
    listeners = ["PLAINTEXT", "SSL", "SASL_SSL", "CLIENT", "REPLICATION", "CONTROLLER"]
    assert ordering.scala_immutable(listeners[:4]) == listeners[:4]
    assert ordering.scala_immutable(listeners) == ["CLIENT", "PLAINTEXT", "REPLICATION", "SSL", "SASL_SSL", "CONTROLLER"]


def test_configs_stand_in_the_order_of_javas_properties() -> None:
    assert ordering.java_properties(CONFIGS[:11]) == PROPERTIES_11
    assert ordering.java_properties(CONFIGS) == PROPERTIES_12


@given(st.lists(text, max_size=80))
def test_no_order_loses_or_doubles_a_key(keys: list[str]) -> None:
    for order in (ordering.scala_mutable, ordering.scala_immutable, ordering.java_properties):
        assert sorted(order(keys)) == sorted(set(keys))


def test_control_characters_are_written_as_jackson_does() -> None:
    assert json_text.encode({"a": '\x1f\n"\\u001f é \U0001f600 /'}) == '{"a":"\\u001F\\n\\"\\\\u001f é \U0001f600 /"}'.encode()


@given(st.builds(cluster.ControllerZNode, int32, int64, st.one_of(st.none(), int32)))
def test_a_controller_is_read_as_it_was_written(controller: cluster.ControllerZNode) -> None:
    assert cluster.decode_controller(cluster.encode_controller(controller)) == controller


def test_the_controller_of_an_old_kafka_without_timestamp_is_read() -> None:
    assert cluster.decode_controller(b'{"version":1,"brokerid":3}').broker_id == 3


def test_a_broker_of_version_1_has_one_plaintext_endpoint() -> None:
    broker = cluster.decode_broker(0, b'{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"2233345666"}')
    assert (broker.endpoints, broker.jmx_port) == ((EndPoint("PLAINTEXT", "localhost", 9092),), 9999)


def test_a_broker_of_version_3_names_its_listeners_by_their_protocols() -> None:
    data = (
        b'{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092","SSL://h:9093"],"rack":"dc1"}'
    )
    broker = cluster.decode_broker(0, data)
    assert [endpoint.security_protocol.name for endpoint in broker.endpoints] == ["PLAINTEXT", "SSL"]
    assert broker.rack == "dc1"


def test_a_listener_whose_protocol_nobody_knows_is_an_error_that_names_the_broker() -> None:
    data = b'{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1","endpoints":["CARRIER_PIGEON://h:9092"]}'
    with pytest.raises(json_text.CorruptZNode, match=r"/brokers/ids/0.*CARRIER_PIGEON"):
        cluster.decode_broker(0, data)


def test_a_broker_without_plaintext_registers_no_host_for_old_clients() -> None:
    broker = cluster.BrokerRegistration((EndPoint("CLIENT", "::1", 9093, SecurityProtocol.SASL_SSL),), 5)
    assert cluster.encode_broker(broker) == (
        b'{"features":{},"listener_security_protocol_map":{"CLIENT":"SASL_SSL"},"endpoints":["CLIENT://[::1]:9093"],'
        b'"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"5"}'
    )
    assert cluster.decode_broker(0, cluster.encode_broker(broker)) == broker


def test_supported_features_of_a_broker_are_kept() -> None:
    broker = cluster.BrokerRegistration((), 5, features={"group.version": {"min_version": 0, "max_version": 1}})
    assert cluster.decode_broker(0, cluster.encode_broker(broker)) == broker


@pytest.mark.parametrize("endpoint", ["PLAINTEXT:h:9092", "://h:9092", "PLAINTEXT://h", "PLAINTEXT://[::1:9092"])
def test_an_endpoint_that_is_none_is_damage(endpoint: str) -> None:
    data = b'{"version":5,"jmx_port":-1,"timestamp":"1","endpoints":["%s"]}' % endpoint.encode()
    with pytest.raises(json_text.CorruptZNode, match=r"/brokers/ids/7 .*is not an endpoint"):
        cluster.decode_broker(7, data)


def test_finalized_features_of_both_versions_are_read_and_written() -> None:
    old = b'{"features":{"f":{"max_version_level":2,"min_version_level":2}},"version":1,"status":1}'
    new = b'{"features":{"f":{"max_version_level":2}},"version":2,"status":0}'
    for data in (old, new):
        assert cluster.encode_features(cluster.decode_features(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        b'{"features":{},"version":3,"status":1}',
        b'{"features":{},"version":2,"status":2}',
        b'{"features":{},"version":2}',
        b'{"version":2,"status":1}',
        b'{"features":{"f":{"max_version_level":-1}},"version":2,"status":1}',
        b'{"features":{"f":{"max_version_level":1}},"version":1,"status":1}',
    ],
)
def test_features_that_kafka_would_refuse_are_refused(data: bytes) -> None:
    with pytest.raises(json_text.CorruptZNode, match="/barnabas/features"):
        cluster.decode_features(data, paths.BARNABAS_FEATURES)


def test_only_our_own_node_says_that_a_feature_is_off() -> None:
    data = b'{"features":{"f":{"max_version_level":0}},"version":2,"status":1}'
    off = cluster.decode_features(data, paths.BARNABAS_FEATURES)
    assert off.levels == {"f": 0}
    assert cluster.encode_features(off) == data
    with pytest.raises(json_text.CorruptZNode, match="/feature"):
        cluster.decode_features(data)


assignments = st.builds(topics.ReplicaAssignment, brokers, brokers, brokers)
topic_ids = st.one_of(st.none(), st.binary(min_size=16, max_size=16).map(Uuid))


@given(st.builds(topics.TopicAssignment, st.dictionaries(st.integers(0, 10_000), assignments, max_size=30), topic_ids))
def test_an_assignment_is_read_as_it_was_written(topic: topics.TopicAssignment) -> None:
    assert topics.decode_topic("T", topics.encode_topic(topic)) == topic


def test_assignments_of_versions_1_and_2_are_read_and_written_back() -> None:
    for data in (
        b'{"version":1,"partitions":{"0":[0,1]}}',
        b'{"partitions":{"0":[0,1,2]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[0]},"version":2}',
    ):
        assert topics.encode_topic(topics.decode_topic("T", data)) == data


@given(st.builds(topics.PartitionState, int32, int32, brokers, int32, st.sampled_from([0, 1])))
def test_a_partition_state_is_read_as_it_was_written(state: topics.PartitionState) -> None:
    assert topics.decode_partition_state("T", 0, topics.encode_partition_state(state)) == state


def test_a_recovering_leader_is_noted_where_scala_puts_it() -> None:
    state = topics.PartitionState(1, 5, (1,), 2, topics.RECOVERING)
    expected = b'{"controller_epoch":2,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":5,"isr":[1]}'
    assert topics.encode_partition_state(state) == expected


@given(st.dictionaries(text, text, max_size=30))
def test_a_config_is_read_as_it_was_written(config: dict[str, str]) -> None:
    assert configs.decode_config("topics/T", configs.encode_config(config)) == config


def test_a_config_node_without_data_has_no_configs() -> None:
    assert configs.decode_config("users/alice", None) == configs.decode_config("users/alice", b"") == {}


def test_config_changes_of_both_versions_are_read() -> None:
    assert configs.decode_config_change("/config/changes/x", b'{"version":1,"entity_type":"topics","entity_name":"T"}') == "topics/T"
    assert configs.decode_config_change("/config/changes/x", configs.encode_config_change("users/<default>")) == "users/<default>"


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":3,"entity_path":"topics/T"}',
        b'{"version":2,"entity_path":"nothing/T"}',
        b'{"version":1,"entity_type":"users","entity_name":"x"}',
    ],
)
def test_config_changes_of_unknown_kinds_are_refused(data: bytes) -> None:
    with pytest.raises(json_text.CorruptZNode):
        configs.decode_config_change("/config/changes/x", data)


def test_names_are_sanitized_as_kafka_does() -> None:
    assert configs.sanitize("CN=a b*c+d~é/.-_") == "CN%3Da%20b%2Ac%2Bd%7E%C3%A9%2F.-_"


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_alone_is_a_good_path_and_comes_back(name: str) -> None:
    assert paths.fault_in(paths.config_entity(f"groups/{configs.sanitize(name)}")) is None
    assert configs.desanitize(configs.sanitize(name)) == name


@given(text)
def test_a_sanitized_name_is_a_good_path_and_comes_back(name: str) -> None:
    sanitized = configs.sanitize(name)
    assert configs.desanitize(sanitized) == name
    if name:
        assert paths.fault_in(paths.config_entity(f"users/{sanitized}")) is None


@given(st.dictionaries(partitions, brokers, max_size=10))
def test_a_reassignment_is_read_as_it_was_written(replicas: dict[TopicPartition, tuple[int, ...]]) -> None:
    assert admin.decode_reassignment(admin.encode_reassignment(replicas)) == replicas


@given(st.lists(partitions, max_size=10, unique=True))
def test_partitions_to_elect_or_to_look_at_are_read_as_they_were_written(chosen: list[TopicPartition]) -> None:
    assert admin.decode_preferred_replica_election(admin.encode_preferred_replica_election(chosen)) == chosen
    assert admin.decode_isr_change("/isr_change_notification/isr_change_0000000000", admin.encode_isr_change(chosen)) == chosen


def test_a_failed_log_directory_names_its_broker() -> None:
    assert admin.encode_log_dir_event(3) == b'{"version":1,"broker":3,"event":1}'
    assert admin.decode_log_dir_event("/log_dir_event_notification/log_dir_event_0000000000", admin.encode_log_dir_event(3)) == 3


@given(st.lists(st.builds(security.AclEntry, text, st.sampled_from(["Allow", "Deny"]), text, text), unique=True, max_size=5))
def test_access_lists_are_read_as_they_were_written(acls: list[security.AclEntry]) -> None:
    assert security.decode_acls("/kafka-acl/Topic/T", security.encode_acls(acls)) == acls


def test_access_lists_without_data_are_empty_and_of_another_version_damage() -> None:
    assert security.decode_acls("/kafka-acl/Topic", None) == []
    with pytest.raises(json_text.CorruptZNode):
        security.decode_acls("/kafka-acl/Topic/T", b'{"version":2,"acls":[]}')


@pytest.mark.parametrize("pattern_type", ["LITERAL", "PREFIXED"])
def test_a_change_of_access_lists_is_told_in_the_tree_of_its_pattern(pattern_type: str) -> None:
    pattern = security.AclChange("TOPIC", "a:b", pattern_type)
    assert security.decode_acl_change(security.acl_change_path(pattern) + "0000000000", security.encode_acl_change(pattern)) == pattern


tokens = st.builds(security.TokenZnode, names, text, text, st.lists(text, max_size=3).map(tuple), int64, int64, int64)


@given(tokens)
def test_a_token_is_read_as_it_was_written(token: security.TokenZnode) -> None:
    assert security.decode_token("/delegation_token/tokens/x", security.encode_token(token)) == token


def test_a_token_of_kafka_3_9_is_written_again_as_it_was() -> None:
    by_kafka = (
        b'{"issueTimestamp":1794993782076,"renewers":["User%3Abob"],"tokenRequester":"User%3Aalice","tokenId":"dScB-Nh6TzOBuI7NzyT5Tw",'
        b'"owner":"User%3Aalice","expiryTimestamp":1795080182076,"maxTimestamp":1795598582076,"version":3}'
    )
    assert security.encode_token(security.decode_token("/delegation_token/tokens/dScB-Nh6TzOBuI7NzyT5Tw", by_kafka)) == by_kafka


def test_a_token_stands_in_the_order_of_kafka_and_an_old_one_was_requested_by_its_owner() -> None:
    token = security.TokenZnode("id", "User:a", "User:b", ("User:c",), 1, 3, 2)
    expected = (
        b'{"issueTimestamp":1,"renewers":["User%3Ac"],"tokenRequester":"User%3Ab","tokenId":"id",'
        b'"owner":"User%3Aa","expiryTimestamp":2,"maxTimestamp":3,"version":3}'
    )
    assert security.encode_token(token) == expected
    old = expected.replace(b'"tokenRequester":"User%3Ab",', b"").replace(b'"version":3', b'"version":2')
    assert security.decode_token("/delegation_token/tokens/id", old).requester == "User:a"
    assert security.decode_token_change("/delegation_token/token_changes/x", security.encode_token_change("id")) == "id"


def test_offsets_of_old_consumers_are_numbers() -> None:
    assert consumers.decode_offset("/consumers/g/offsets/T/0", consumers.encode_offset(2**63 - 1)) == 2**63 - 1
    assert consumers.decode_offset("/consumers/g/offsets/T/0", None) is None


@pytest.mark.parametrize(
    "data", [None, b"", b"{", b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b"{}", b'{"version":"x"}', b"[" * 100_000, b'{"a":' * 100_000]
)
def test_damage_in_any_znode_is_told_with_its_path(data: bytes | None) -> None:
    for decode in (
        cluster.decode_controller,
        lambda data: cluster.decode_broker(1, data),
        cluster.decode_cluster_id,
        cluster.decode_features,
        cluster.decode_producer_id_block,
        lambda data: topics.decode_partition_state("T", 0, data),
        lambda data: configs.decode_config_change("/config/changes/x", data),
        admin.decode_reassignment,
        admin.decode_preferred_replica_election,
        lambda data: security.decode_token("/delegation_token/tokens/x", data),
    ):
        with pytest.raises(json_text.CorruptZNode, match=r"The znode /.+ is damaged or from a newer version"):
            decode(data)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner)),
    st.sampled_from(
        ["version", "partitions", "topic_id", "leader", "isr", "config", "acls", "endpoints", "features", "jmx_port", "adding_replicas"]
    ),
)
def test_a_strange_value_in_a_znode_is_damage_and_nothing_else(value: object, key: str) -> None:
    data = json_text.encode({"version": 1, "partitions": {"0": [0]}, "config": {}, "acls": [], "jmx_port": 1, key: value})
    for decode in (
        lambda: topics.decode_topic("T", data),
        lambda: topics.decode_partition_state("T", 0, data),
        lambda: configs.decode_config("topics/T", data),
        lambda: security.decode_acls("/kafka-acl/Topic/T", data),
        lambda: cluster.decode_broker(0, data),
        lambda: cluster.decode_features(data),
        lambda: admin.decode_isr_change("/isr_change_notification/x", data),
    ):
        try:
            decode()
        except json_text.CorruptZNode:
            pass


def test_a_number_that_is_none_is_damage() -> None:
    for data in (None, b"", b"x", b"1 ", b"9" * 30):
        with pytest.raises(json_text.CorruptZNode):
            cluster.decode_controller_epoch(data)


def test_kafkas_paths() -> None:
    assert paths.topic_partition_state("T", 3) == "/brokers/topics/T/partitions/3/state"
    assert paths.acl("Topic", "T") == "/kafka-acl/Topic/T"
    assert paths.acl("Group", "g", "PREFIXED") == "/kafka-acl-extended/prefixed/Group/g"
    assert paths.consumer_offset("g", "T", 0) == "/consumers/g/offsets/T/0"
    assert paths.sequence_number("/config/changes/config_change_0000000012") == 12
    assert [paths.is_sensitive(path) for path in ("/config/users/bob", "/config/topics/T")] == [True, False]


def test_a_path_without_ten_digits_has_no_sequence_number() -> None:
    with pytest.raises(ValueError, match="does not end in 10 digits"):
        paths.sequence_number("/config/changes/x1")


@pytest.mark.parametrize(("path", "is_shown"), [("users/alice", False), ("brokers/1", False), ("topics/orders", True)])
def test_a_damaged_znode_is_shown_unless_it_may_hold_a_secret(path: str, is_shown: bool) -> None:
    with pytest.raises(json_text.CorruptZNode) as raised:
        configs.decode_config(path, b"{geheim")
    assert ("geheim" in str(raised.value)) == is_shown
