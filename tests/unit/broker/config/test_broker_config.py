from __future__ import annotations

import os
import re

import pytest

from barnabas.broker.config import BrokerConfig, validate_topic
from barnabas.config_def import LONG_MAX, InvalidConfig
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.properties import parse_properties

# server.properties as Apache Kafka 4.2 ships it, without its comments.
KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
log.retention.hours=168
log.segment.bytes=1073741824
"""
# And of Kafka 3.9 in ZooKeeper mode.
ZOOKEEPER = """
broker.id=0
num.network.threads=3
log.dirs=/tmp/kafka-logs
offsets.topic.replication.factor=1
log.retention.hours=168
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("__", "-").replace("_", "."): text for name, text in properties.items()})


def endpoints(listed: list[EndPoint]) -> list[str]:
    return [str(endpoint) for endpoint in listed]


def refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(message)}"):
        BrokerConfig.from_properties(properties)


def test_a_broker_needs_no_settings() -> None:
    broker = BrokerConfig.from_properties({})
    assert (broker.broker_id, broker.log_dirs, endpoints(broker.listeners)) == (-1, ("/tmp/kafka-logs",), ["PLAINTEXT://:9092"])


def test_the_server_properties_of_kraft_are_taken_as_they_are() -> None:
    broker = BrokerConfig.from_properties(parse_properties(KRAFT))
    assert (broker.unknown, broker.broker_id, broker.log_dirs) == ([], 1, ("/tmp/kraft-combined-logs",))
    assert endpoints(broker.broker_listeners) == ["PLAINTEXT://:9092"]
    assert endpoints(broker.advertised_listeners) == ["PLAINTEXT://localhost:9092"]


def test_the_server_properties_of_zookeeper_mode_are_taken_as_they_are() -> None:
    broker = BrokerConfig.from_properties(parse_properties(ZOOKEEPER))
    assert (broker.unknown, broker.broker_id, broker["zookeeper.connect"]) == ([], 0, "localhost:2181")


def test_a_name_nobody_knows_is_reported_and_kept() -> None:
    broker = config(foo="bar", my_own="5")
    assert (broker.unknown, broker.properties["foo"]) == (["foo", "my.own"], "bar")


def test_names_for_a_listener_or_a_plugin_are_not_unknown() -> None:
    names = (
        "listener.name.plaintext.ssl.keystore.location",
        "listener.name.a.plain.sasl.jaas.config",
        "rsm.config.x",
        "config.providers.a.b",
    )
    assert BrokerConfig.from_properties(dict.fromkeys(names, "x")).unknown == []


def test_a_listeners_setting_that_is_none_is_unknown() -> None:
    assert BrokerConfig.from_properties({"listener.name.plaintext.foo": "1"}).unknown == ["listener.name.plaintext.foo"]


def test_what_is_dynamic_only_is_not_taken_from_the_file() -> None:
    broker = BrokerConfig.from_properties({"leader.replication.throttled.rate": "5"})
    assert (broker.unknown, broker["leader.replication.throttled.rate"]) == (["leader.replication.throttled.rate"], 2**63 - 1)


def test_values_have_their_types() -> None:
    broker = config(num_io_threads=" 5 ", log_cleaner_enable="FALSE", log_cleaner_io_buffer_load_factor="0.5", broker_rack="r1")
    assert (broker.number("num.io.threads"), broker.flag("log.cleaner.enable")) == (5, False)
    assert (broker.ratio("log.cleaner.io.buffer.load.factor"), broker.text("broker.rack")) == (0.5, "r1")
    assert broker.items("sasl.enabled.mechanisms") == ("GSSAPI",)


def test_a_setting_of_kafka_that_does_not_exist_is_an_error_of_ours() -> None:
    with pytest.raises(KeyError):
        BrokerConfig.from_properties({})["no.such.setting"]


def test_broker_id_and_node_id_are_one() -> None:
    assert config(node_id="3").broker_id == 3
    assert config(broker_id="3")["node.id"] == 3


def test_log_dirs_wins_over_log_dir_and_names_each_once() -> None:
    assert config(log_dir="/x").log_dirs == ("/x",)
    assert config(log_dir="/x", log_dirs="/a, /b").log_dirs == ("/a", "/b")
    assert config(log_dirs="/a,/a").log_dirs == ("/a",)


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.ms": "-5"}, -1),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_retention_is_in_milliseconds_before_minutes_before_hours(properties: dict[str, str], retention_ms: int) -> None:
    broker = BrokerConfig.from_properties(properties)
    assert broker.topic_default("retention.ms") == retention_ms
    assert broker.log_config().retention_ms == retention_ms


def test_logs_take_their_defaults_from_the_broker() -> None:
    log = config(
        log_roll_hours="2", log_flush_scheduler_interval_ms="9", log_cleanup_policy="compact", compression_type="zstd"
    ).log_config()
    assert (log.segment_ms, log.flush_ms, log.compact, log.codec) == (7_200_000, 9, True, 4)


@pytest.mark.parametrize(
    ("listeners", "found"),
    [
        ("PLAINTEXT://host:9092", ["PLAINTEXT://host:9092"]),
        ("plaintext://host:9092", ["PLAINTEXT://host:9092"]),
        (" PLAINTEXT://host:9092 , SSL://host:9093 ", ["PLAINTEXT://host:9092", "SSL://host:9093"]),
        ("PLAINTEXT://[::]:9092", ["PLAINTEXT://[::]:9092"]),
        ("PLAINTEXT://[fe80::1%eth0]:9092", ["PLAINTEXT://[fe80::1%eth0]:9092"]),
        ("PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092", ["PLAINTEXT://127.0.0.1:9092", "SSL://[::1]:9092"]),
        ("PLAINTEXT://:0,SSL://:0", ["PLAINTEXT://:0", "SSL://:0"]),
    ],
)
def test_listeners_are_read(listeners: str, found: list[str]) -> None:
    assert endpoints(config(listeners=listeners).listeners) == found


def test_a_listener_without_a_host_is_on_all_interfaces() -> None:
    assert config().listeners == [EndPoint("PLAINTEXT")]


def test_listeners_may_have_names_of_their_own() -> None:
    broker = config(
        listeners="A://h:1,B://h:2,C://h:3",
        listener_security_protocol_map="a:PLAINTEXT,B:ssl,C:PLAINTEXT",
        inter_broker_listener_name="b",
        control_plane_listener_name="C",
    )
    assert (broker.inter_broker_listener_name, broker.inter_broker_security_protocol) == ("B", SecurityProtocol.SSL)
    assert endpoints(broker.data_plane_listeners) == ["A://h:1", "B://h:2"]
    assert broker.listeners_of_brokers == {"B", "C"}


def test_a_listener_that_brokers_share_with_clients_is_not_one_of_brokers() -> None:
    assert config().listeners_of_brokers == set()
    both = config(
        listeners="PLAINTEXT://h:1,C://h:2", listener_security_protocol_map="PLAINTEXT:PLAINTEXT,C:SSL", control_plane_listener_name="C"
    )
    assert both.listeners_of_brokers == {"C"}


def test_advertised_listeners_may_share_a_port() -> None:
    broker = config(listeners="PLAINTEXT://h:1,SSL://h:2", advertised_listeners="PLAINTEXT://lb:9,SSL://lb:9")
    assert endpoints(broker.advertised_listeners) == ["PLAINTEXT://lb:9", "SSL://lb:9"]


def test_a_listeners_own_setting_wins_over_the_common_one() -> None:
    broker = BrokerConfig.from_properties(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": "special",
            "sasl.jaas.config": "common",
        }
    )
    assert broker.for_listener("INTERNAL", "sasl.enabled.mechanisms") == ("SCRAM-SHA-512", "PLAIN")
    assert broker.for_listener("EXTERNAL", "sasl.enabled.mechanisms") == ("PLAIN",)
    assert broker.for_listener("INTERNAL", "sasl.jaas.config", "PLAIN") == "special"
    assert broker.for_listener("INTERNAL", "sasl.jaas.config", "SCRAM-SHA-512") == "common"


def test_a_wrong_value_for_a_listener_is_refused_by_its_base_name() -> None:
    refused({"listener.name.a.max.connections": "x"}, "Invalid value x for configuration max.connections: Not a number of type INT")


A_B = {"listeners": "A://h:1,B://h:2", "listener.security.protocol.map": "A:PLAINTEXT,B:SSL"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listeners": ""}, "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        (
            {"listeners": "PLAINTEXT://localhost:9092,PLAINTEXT://localhost:9093"},
            "Each listener must have a different name, listeners: [PLAINTEXT://localhost:9092, PLAINTEXT://localhost:9093]",
        ),
        (
            {"listeners": "PLAINTEXT://h:9092,SSL://h:9092"},
            "Each listener must have a different port, listeners: [PLAINTEXT://h:9092, SSL://h:9092]",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9092"},
            "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
            "listeners: [PLAINTEXT://127.0.0.1:9092, SSL://127.0.0.2:9092], port: 9092",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092,SASL_SSL://127.0.0.3:9092"},
            "Each listener must have a different port unless exactly one listener has an IPv4 address and the other IPv6 address, ",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092,SASL_SSL://host:9092"},
            "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners:",
        ),
        (
            {"listeners": "foo://host:9092"},
            "Error creating broker listeners from '[foo://host:9092]': No security protocol defined for listener FOO",
        ),
        (
            {"listeners": "PLAINTEXT://host"},
            "Error creating broker listeners from '[PLAINTEXT://host]': Unable to parse PLAINTEXT://host to a broker endpoint",
        ),
        (
            {"listeners": "PLAINTEXT://host:99999"},
            "Error creating broker listeners from '[PLAINTEXT://host:99999]': The port of PLAINTEXT://host:99999 must be between",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092"},
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
        ),
        (
            {"listeners": "PLAINTEXT://host:9092", "advertised.listeners": "SSL://host:9093"},
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are SSL",
        ),
        (
            {"listeners": "PLAINTEXT://host:9092", "advertised.listeners": "PLAINTEXT://a:1,SSL://host:9093"},
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
            "Found PLAINTEXT,SSL. The valid options based on the current configuration are PLAINTEXT",
        ),
        (
            {**A_B, "inter.broker.listener.name": "C"},
            "Listener with name C defined in inter.broker.listener.name not found in listener.security.protocol.map.",
        ),
        (
            {**A_B, "inter.broker.listener.name": "B", "security.inter.broker.protocol": "SSL"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (A_B, "inter.broker.listener.name must be a listener name defined in advertised.listeners."),
        ({**A_B, "inter.broker.listener.name": ""}, "The provided listener name is null or empty string"),
        (
            {**A_B, "inter.broker.listener.name": "A", "control.plane.listener.name": "A"},
            "control.plane.listener.name, when defined, should have a different value from the inter broker listener name. "
            "Currently they both have the value A",
        ),
        (
            {**A_B, "inter.broker.listener.name": "A", "control.plane.listener.name": "D"},
            "Listener with D defined in control.plane.listener.name not found in listener.security.protocol.map.",
        ),
        ({"listener.security.protocol.map": "A:FOO"}, "Invalid security protocol `FOO` defined in listener.security.protocol.map"),
        ({"listener.security.protocol.map": "A"}, "Error parsing configuration property 'listener.security.protocol.map'"),
        ({"listener.security.protocol.map": "A:PLAINTEXT,a:SSL"}, "Error parsing configuration property 'listener.security.protocol.map'"),
        ({"early.start.listeners": "FOO"}, "early.start.listeners contains listener FOO, but this is not contained in listeners or "),
        ({"log.dirs": ""}, "Configuration 'log.dirs' must not be empty."),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.hours": "0"}, "Invalid value 0 for configuration log.roll.hours: Value must be at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.minutes": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."),
        ({"log.cleaner.threads": "0"}, "Invalid value 0 for configuration log.cleaner.threads: Value must be at least 1"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms"),
        ({"replica.lag.time.max.ms": "100"}, "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property"),
        ({"max.connections.per.ip.overrides": "a b:5"}, "max.connections.per.ip.overrides contains invalid addresses : a b"),
        (
            {"max.connections.per.ip.overrides": "127.0.0.1:x"},
            "Invalid value 127.0.0.1:x for configuration max.connections.per.ip.overrides",
        ),
        ({"max.connections.per.ip.overrides": "127.0.0.1"}, "Error parsing configuration property 'max.connections.per.ip.overrides'"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"),
        (
            {"connection.failed.authentication.delay.ms": "700000"},
            "connection.failed.authentication.delay.ms=700000 should always be less than connections.max.idle.ms=600000 to prevent",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://h:1",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            },
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for",
        ),
        ({"broker.id": "2", "node.id": "1"}, "You must set `node.id` to the same value as `broker.id`."),
        ({"broker.id": "1001"}, "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id"),
        ({"broker.id": "-1", "broker.id.generation.enable": "false"}, "broker.id must be greater than or equal to 0"),
        ({"process.roles": "broker"}, "Missing configuration `node.id` which is required when `process.roles` is defined"),
        ({"process.roles": "controller", "node.id": "1"}, "process.roles must contain broker"),
        ({"zookeeper.metadata.migration.enable": "true"}, "zookeeper.metadata.migration.enable must be false"),
        (
            {"group.consumer.heartbeat.interval.ms": "1"},
            "group.consumer.heartbeat.interval.ms must be greater than or equal to group.consumer",
        ),
        (
            {"group.consumer.session.timeout.ms": "100000"},
            "group.consumer.session.timeout.ms must be less than or equal to group.consumer.max",
        ),
        (
            {"group.share.min.session.timeout.ms": "70000"},
            "group.share.max.session.timeout.ms must be greater than or equal to group.share.min",
        ),
        (
            {"group.streams.heartbeat.interval.ms": "50000", "group.streams.max.heartbeat.interval.ms": "60000"},
            "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms",
        ),
        (
            {"inter.broker.protocol.version": "new"},
            "Invalid value new for configuration inter.broker.protocol.version: Version new is not a valid version",
        ),
        ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
        ({"compression.type": "foo"}, "Invalid value foo for configuration compression.type: String must be one of: uncompressed, zstd,"),
        (
            {"compression.gzip.level": "0"},
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal",
        ),
        ({"group.coordinator.rebalance.protocols": "classic,foo"}, "Invalid value foo for configuration group.coordinator.rebalance."),
        ({"controller.quorum.voters": "a"}, "Invalid configuration value for controller.quorum.voters. Each entry should be in the form"),
        ({"controller.quorum.bootstrap.servers": "a"}, "Failed to parse host name from a for the configuration controller.quorum."),
    ],
)
def test_what_cannot_be_is_refused_in_kafkas_words(properties: dict[str, str], message: str) -> None:
    refused(properties, message)


def test_a_port_of_ten_thousand_digits_is_refused() -> None:
    refused({"listeners": "PLAINTEXT://h:" + "9" * 10_000}, "Error creating broker listeners from")


def test_no_connections_but_from_named_hosts_is_possible() -> None:
    broker = config(max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:5, ::1:7")
    assert broker.max_connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 7}


def test_a_kraft_node_may_have_any_id() -> None:
    assert config(process_roles="broker", node_id="3000").broker_id == 3000


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"foo": "x"}, "Unknown topic config name: foo"),
        ({"message.format.name": "3.0"}, "Unknown topic config name: message.format.name"),
        ({"cleanup.policy": "COMPACT"}, "Invalid value COMPACT for configuration cleanup.policy: String must be one of: compact, delete"),
        ({"cleanup.policy": "delete,,compact"}, "Configuration 'cleanup.policy' values must not be empty."),
        ({"compression.type": "ZSTD"}, "Invalid value ZSTD for configuration compression.type: String must be one of:"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled in the broker."),
        (
            {"leader.replication.throttled.replicas": "1:2,foo"},
            "Invalid value [1:2, foo] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must "
            "be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "3"}, "conflict topic config setting min.compaction.lag.ms (5) >"),
    ],
)
def test_what_a_topic_cannot_have_is_refused_in_kafkas_words(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(message)}"):
        validate_topic(properties, config())


@pytest.mark.parametrize(
    "properties",
    [
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,compact"},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": ""},
        {"remote.log.copy.disable": "true"},
        {"local.retention.ms": "5"},
        {"retention.bytes": "-7"},
    ],
)
def test_what_a_topic_may_have_is_taken(properties: dict[str, str]) -> None:
    validate_topic(properties, config())


def test_a_topic_stands_on_the_broker() -> None:
    log = validate_topic({"flush.ms": "7", "internal.segment.bytes": "5"}, config(log_retention_ms="9"))
    assert (log.flush_ms, log.retention_ms, log.segment_bytes) == (7, 9, 5)


@pytest.mark.parametrize(
    ("cordoned", "found", "is_cordoned"),
    [("", set(), False), ("/b", {"/b"}, False), ("/b,/a", {"/a", "/b"}, True), ("*", {"/a", "/b"}, True), ("/x/../a", {"/a"}, False)],
)
def test_cordoned_log_dirs_are_some_of_log_dirs(cordoned: str, found: set[str], is_cordoned: bool) -> None:
    broker = config(log_dirs="/a,/b", cordoned_log_dirs=cordoned)
    assert set(broker.cordoned_log_dirs) == found
    assert broker.is_cordoned == is_cordoned


def test_a_relative_log_dir_is_cordoned_by_its_absolute_path() -> None:
    assert config(log_dirs="logs", cordoned_log_dirs=os.path.abspath("logs")).cordoned_log_dirs == {"logs"}


@pytest.mark.parametrize("cordoned", ["/c", "*,/a"])
def test_cordoned_log_dirs_that_are_not_in_log_dirs_are_refused(cordoned: str) -> None:
    with pytest.raises(InvalidConfig, match=r"cordoned\.log\.dirs must be"):
        config(log_dirs="/a,/b", cordoned_log_dirs=cordoned)


def test_the_old_bound_of_timestamps_is_the_default_of_both_bounds() -> None:
    broker = config(log_message_timestamp_difference_max_ms="5")
    assert [broker.topic_default(f"message.timestamp.{name}.max.ms") for name in ("before", "after", "difference")] == [5, 5, 5]
    assert validate_topic({}, broker).timestamp_before_max_ms == 5
    newer = config(log_message_timestamp_difference_max_ms="5", log_message_timestamp_after_max_ms="9")
    assert (newer.log_config().timestamp_before_max_ms, newer.log_config().timestamp_after_max_ms) == (5, 9)
    unbounded = config(log_message_timestamp_after_max_ms=str(LONG_MAX)).log_config()
    assert (unbounded.timestamp_before_max_ms, unbounded.timestamp_after_max_ms) == (LONG_MAX, LONG_MAX)


def test_conversion_for_old_consumers_is_a_default_of_topics() -> None:
    broker = config(log_message_downconversion_enable="false")
    assert not validate_topic({}, broker).down_conversion
    assert validate_topic({"message.downconversion.enable": "true"}, broker).down_conversion
