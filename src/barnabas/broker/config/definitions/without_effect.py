"""The settings that are accepted and have no effect, by reason: of brokers, topics and groups.

They are accepted because files and scripts written for Apache Kafka have them. A broker logs one warning for each that is set. A setting is
in this table, or a module reads it, or `validation.py` refuses it: tests/unit/broker/config/test_every_setting.py. docs/settings.md shows
the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.broker.config.definitions import kraft, remote
from barnabas.security.settings_without_effect import ASSERTIONS, JAVA, JAVA_REASON, KERBEROS, KERBEROS_REASON

_THREADS: Final = "a broker is one event loop, which has no pools of threads"
_KRAFT: Final = "there is no KRaft quorum: the metadata store is embedded, or ZooKeeper"
_TIERED: Final = "there is no tiered storage: all segments stay on local disks"
_SHARE: Final = "share groups are not served"
_STREAMS: Final = "the streams group protocol is not served"
_METRICS: Final = "metrics are read over HTTP (metrics.listener) or by metric.reporters, and not from JMX or sampled windows"
_ASSERTIONS: Final = "brokers do not sign assertions: sasl.oauthbearer.assertion.file names a signed one"
_UNSTABLE: Final = "there are no versions in development"
_FORMAT: Final = "records are always written in the newest format, as Kafka does from inter.broker.protocol.version 3.0 on"
_LINUX: Final = "files on Linux grow as they are written; it is meant for Windows"

# The settings of KRaft that this broker reads all the same.
_READ_KRAFT: Final = ("controller.listener.names", "metadata.log.dir")
_REFUSED_REMOTE: Final = ("remote.log.storage.system.enable",)

_BROKER: Final[Mapping[str, Iterable[str]]] = {
    _THREADS: (
        "background.threads",
        "group.coordinator.threads",
        "num.io.threads",
        "num.network.threads",
    ),
    "all moves between log directories share the idle time of the event loop": ("num.replica.alter.log.dirs.threads",),
    _KRAFT: (
        *(row.name for row in kraft.KEYS if row.name not in _READ_KRAFT),
        "early.start.listeners",
        "sasl.mechanism.controller.protocol",
    ),
    "a broker registers in the metadata store, and waits for an old registration as zookeeper.session.timeout.ms says": (
        "initial.broker.registration.timeout.ms",
    ),
    "a failed log directory is reported through the metadata store, whose session timeout bounds how long that takes": (
        "log.dir.failure.timeout.ms",
    ),
    "the controller elects an unclean leader at once, not at intervals": ("unclean.leader.election.interval.ms",),
    "the records of a request are appended at once": ("group.coordinator.append.linger.ms",),
    _TIERED: (row.name for row in remote.KEYS if row.name not in _REFUSED_REMOTE),
    _SHARE: (
        "group.share.assignors",
        "group.share.delivery.count.limit",
        "group.share.enable",
        "group.share.heartbeat.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.max.heartbeat.interval.ms",
        "group.share.max.record.lock.duration.ms",
        "group.share.max.session.timeout.ms",
        "group.share.max.share.sessions",
        "group.share.max.size",
        "group.share.min.heartbeat.interval.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.min.session.timeout.ms",
        "group.share.partition.max.record.locks",
        "group.share.persister.class.name",
        "group.share.record.lock.duration.ms",
        "group.share.session.timeout.ms",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.compression.codec",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.threads",
        "share.coordinator.write.timeout.ms",
        "share.fetch.purgatory.purge.interval.requests",
    ),
    _STREAMS: (
        "group.streams.heartbeat.interval.ms",
        "group.streams.initial.rebalance.delay.ms",
        "group.streams.max.heartbeat.interval.ms",
        "group.streams.max.session.timeout.ms",
        "group.streams.max.size",
        "group.streams.max.standby.replicas",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.num.standby.replicas",
        "group.streams.session.timeout.ms",
    ),
    JAVA_REASON: (*JAVA, "zookeeper.clientCnxnSocket"),
    KERBEROS_REASON: KERBEROS,
    _ASSERTIONS: ASSERTIONS,
    _METRICS: (
        "auto.include.jmx.reporter",
        "kafka.metrics.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    _UNSTABLE: ("unstable.api.versions.enable", "unstable.feature.versions.enable"),
    _LINUX: ("log.preallocate",),
    _FORMAT: ("log.message.format.version",),
}
_TOPIC: Final[Mapping[str, Iterable[str]]] = {
    _TIERED: ("local.retention.bytes", "local.retention.ms", "remote.log.copy.disable", "remote.log.delete.on.disable"),
    _LINUX: ("preallocate",),
    _FORMAT: ("message.format.version",),
}
_GROUP: Final[Mapping[str, Iterable[str]]] = {
    _SHARE: (
        "share.auto.offset.reset",
        "share.heartbeat.interval.ms",
        "share.isolation.level",
        "share.record.lock.duration.ms",
        "share.session.timeout.ms",
    ),
    _STREAMS: (
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    ),
}


def _by_name(by_reason: Mapping[str, Iterable[str]]) -> Mapping[str, str]:
    return {name: reason for reason, names in by_reason.items() for name in names}


# The reason for each setting.
BROKER_WITHOUT_EFFECT: Final = _by_name(_BROKER)
# Of the entities other than brokers, by the name of their folder in the metadata store.
ENTITIES_WITHOUT_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "topics": _by_name(_TOPIC),
    "groups": _by_name(_GROUP),
}


def warning(name: str, reason: str) -> str:
    return f"The setting {name} has no effect here, because {reason}"
