"""The broker: id, topics, policies, quotas, metrics and telemetry.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    READ_ONLY,
    STRING,
    BrokerConfigKey,
    key,
)
from barnabas.config_def import LONG_MAX, GzipLevel, ListOf, Range
from barnabas.storage.topic_configs import COMPRESSION_TYPES

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("broker.id", INT, -1, None, HIGH, READ_ONLY,
        "The number of this broker, unique in its cluster; -1 has one made."),
    key("node.id", INT, None, None, HIGH, READ_ONLY,
        "The number of this node. The same as broker.id, under the name that KRaft uses."),
    key("broker.rack", STRING, None, None, MEDIUM, READ_ONLY,
        "Where the broker stands, for placing replicas apart and for reading from near ones."),
    key("auto.create.topics.enable", BOOLEAN, True, None, HIGH, READ_ONLY,
        "Whether asking for a topic that does not exist creates it."),
    key("delete.topic.enable", BOOLEAN, True, None, HIGH, READ_ONLY,
        "Whether topics may be deleted."),
    key("num.partitions", INT, 1, Range(1), MEDIUM, READ_ONLY,
        "Partitions of a topic created without a number."),
    key("default.replication.factor", INT, 1, None, MEDIUM, READ_ONLY,
        "Replicas of a topic created without a number, automatically or with -1."),
    key("message.max.bytes", INT, 1_048_588, Range(0), HIGH, CLUSTER_WIDE,
        "Default of the topic setting max.message.bytes."),
    key("compression.type", STRING, "producer", COMPRESSION_TYPES, HIGH, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("compression.gzip.level", INT, -1, GzipLevel(), MEDIUM, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("compression.lz4.level", INT, 9, Range(1, 17), MEDIUM, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("compression.zstd.level", INT, 3, Range(-131_072, 22), MEDIUM, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("create.topic.policy.class.name", CLASS, None, None, LOW, READ_ONLY,
        "A policy that may refuse new topics: the dotted path of a Python class."),
    key("alter.config.policy.class.name", CLASS, None, None, LOW, READ_ONLY,
        "A policy that may refuse changes of settings: the dotted path of a Python class."),
    key("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY,
        "Whether the broker hands its leaderships over before it stops."),
    key("server.max.startup.time.ms", LONG, LONG_MAX, Range(0), MEDIUM, READ_ONLY,
        "How long a start may take before it is given up.", hidden=True),
    key("initial.broker.registration.timeout.ms", INT, 60_000, None, MEDIUM, READ_ONLY,
        "How long a starting broker tries to register with the controller."),
    key("quota.window.num", INT, 11, Range(1), LOW, READ_ONLY,
        "Samples kept for client quotas."),
    key("quota.window.size.seconds", INT, 1, Range(1), LOW, READ_ONLY,
        "Length of a sample of client quotas."),
    key("replication.quota.window.num", INT, 11, Range(1), LOW, READ_ONLY,
        "Samples kept for replication quotas."),
    key("replication.quota.window.size.seconds", INT, 1, Range(1), LOW, READ_ONLY,
        "Length of a sample of replication quotas."),
    key("alter.log.dirs.replication.quota.window.num", INT, 11, Range(1), LOW, READ_ONLY,
        "Samples kept for the quota on moves between log directories."),
    key("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, Range(1), LOW, READ_ONLY,
        "Length of a sample of the quota on moves between log directories."),
    key("controller.quota.window.num", INT, 11, Range(1), LOW, READ_ONLY,
        "Samples kept for quotas on changes of topics and partitions."),
    key("controller.quota.window.size.seconds", INT, 1, Range(1), LOW, READ_ONLY,
        "Length of a sample of quotas on changes of topics and partitions."),
    key("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY,
        "A class that decides quotas instead of the configured ones."),
    key("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), ListOf(), LOW, CLUSTER_WIDE,
        "Python classes that are given every metric, by their dotted paths. They derive from "
        "barnabas.broker.reporting.metrics_reporter.MetricsReporter. Kafka's JmxReporter has no effect."),
    key("metrics.num.samples", INT, 2, Range(1), LOW, READ_ONLY,
        "Samples kept to compute a metric."),
    key("metrics.sample.window.ms", LONG, 30_000, Range(1), LOW, READ_ONLY,
        "Length of a sample of a metric."),
    key("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY,
        "From which level on metrics are recorded."),
    key("kafka.metrics.reporters", LIST, (), ListOf(), LOW, READ_ONLY,
        "Classes that are given the Yammer metrics of Kafka."),
    key("kafka.metrics.polling.interval.secs", INT, 10, Range(1), LOW, READ_ONLY,
        "How often the classes of metric.reporters are called."),
    key("telemetry.max.bytes", INT, 1_048_576, Range(1), LOW, READ_ONLY,
        "The most a client may push as telemetry in one request, compressed."),
    key("config.providers", LIST, (), ListOf(), LOW, CLUSTER_WIDE,
        "Names of the providers that resolve references inside settings."),
)
# fmt: on
