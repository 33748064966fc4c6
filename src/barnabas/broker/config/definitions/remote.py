"""Tiered storage. The settings are known and described; Barnabas keeps all data on local disks.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, LOW, MEDIUM, READ_ONLY, STRING, BrokerConfigKey, key
from barnabas.config_def import LONG_MAX, NonEmptyString, Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY,
        "Whether the broker starts the parts that tiered storage needs."),
    key("remote.log.storage.manager.class.name", STRING, None, NonEmptyString(), MEDIUM, READ_ONLY,
        "The class that stores segments remotely."),
    key("remote.log.storage.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY,
        "Where that class is found."),
    key("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NonEmptyString(), MEDIUM, READ_ONLY,
        "Prefix of the settings passed to that class."),
    key("remote.log.metadata.manager.class.name", STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NonEmptyString(), MEDIUM, READ_ONLY,
        "The class that remembers which segments are stored remotely."),
    key("remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY,
        "Where that class is found."),
    key("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NonEmptyString(), MEDIUM, READ_ONLY,
        "Prefix of the settings passed to that class."),
    key("remote.log.metadata.manager.listener.name", STRING, None, NonEmptyString(), MEDIUM, READ_ONLY,
        "The listener that class connects to."),
    key("remote.log.metadata.custom.metadata.max.bytes", INT, 128, Range(0), LOW, READ_ONLY,
        "The most a storage plugin may remember of its own about a segment."),
    key("remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, Range(1), LOW, CLUSTER_WIDE,
        "Local disk for the indexes of remote segments."),
    key("remote.log.manager.thread.pool.size", INT, 2, Range(1), MEDIUM, READ_ONLY,
        "Threads of the remote log manager."),
    key("remote.log.manager.copier.thread.pool.size", INT, 10, Range(1), MEDIUM, CLUSTER_WIDE,
        "Threads that copy segments out."),
    key("remote.log.manager.expiration.thread.pool.size", INT, 10, Range(1), MEDIUM, CLUSTER_WIDE,
        "Threads that delete expired remote segments."),
    key("remote.log.manager.follower.thread.pool.size", INT, 2, Range(1), MEDIUM, CLUSTER_WIDE,
        "Threads that work for follower partitions."),
    key("remote.log.manager.task.interval.ms", LONG, 30_000, Range(1), LOW, READ_ONLY,
        "How often segments to copy or delete are looked for."),
    key("remote.log.manager.task.retry.backoff.ms", LONG, 500, Range(1), LOW, READ_ONLY,
        "The first pause after a failed remote task.", hidden=True),
    key("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, Range(1), LOW, READ_ONLY,
        "The longest pause after failed remote tasks.", hidden=True),
    key("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, Range(0, 0.5), LOW, READ_ONLY,
        "By which share those pauses vary.", hidden=True),
    key("remote.log.reader.threads", INT, 10, Range(1), MEDIUM, CLUSTER_WIDE,
        "Threads that read from remote storage."),
    key("remote.log.reader.max.pending.tasks", INT, 100, Range(1), MEDIUM, READ_ONLY,
        "Remote reads that may wait; more are refused."),
    key("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, Range(1), MEDIUM, CLUSTER_WIDE,
        "How much is copied out a second at most."),
    key("remote.log.manager.copy.quota.window.num", INT, 11, Range(1), MEDIUM, READ_ONLY,
        "Samples kept for the quota on copying."),
    key("remote.log.manager.copy.quota.window.size.seconds", INT, 1, Range(1), MEDIUM, READ_ONLY,
        "Length of a sample of the quota on copying."),
    key("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, Range(1), MEDIUM, CLUSTER_WIDE,
        "How much is read from remote storage a second at most."),
    key("remote.log.manager.fetch.quota.window.num", INT, 11, Range(1), MEDIUM, READ_ONLY,
        "Samples kept for the quota on remote reads."),
    key("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, Range(1), MEDIUM, READ_ONLY,
        "Length of a sample of the quota on remote reads."),
    key("remote.fetch.max.wait.ms", INT, 500, Range(1), MEDIUM, CLUSTER_WIDE,
        "How long a fetch waits for remote data."),
    key("remote.list.offsets.request.timeout.ms", LONG, 30_000, Range(1), MEDIUM, CLUSTER_WIDE,
        "How long a lookup of offsets waits for remote data."),
    key("log.local.retention.ms", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE,
        "Default of the topic setting local.retention.ms."),
    key("log.local.retention.bytes", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE,
        "Default of the topic setting local.retention.bytes."),
)
# fmt: on
