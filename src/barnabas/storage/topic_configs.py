"""The settings of a topic, as one table: those of Kafka 4.2 and three that Kafka 3.9 still had, each with the broker settings that give its
default.

LogConfig takes defaults, types and limits from this table, CreateTopics and AlterConfigs check against it, DescribeConfigs shows it. Broker
settings appear here by name only: storage does not import the broker's table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from barnabas.config_def import (
    LONG_MAX,
    ConfigKey,
    GzipLevel,
    Importance,
    InvalidConfig,
    KafkaVersion,
    ListOf,
    OneOf,
    Range,
    Type,
    Validator,
    invalid,
    table,
)

COMPRESSION_TYPES: Final = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
TIMESTAMP_TYPES: Final = OneOf(("CreateTime", "LogAppendTime"))
CLEANUP_POLICIES: Final = ListOf(("compact", "delete"))

# As in Kafka up to 3.9. Kafka 4 rejects less than 1 MiB, but topics that a broker adopts from Kafka 3.9 may have less.
SEGMENT_BYTES_MIN: Final = 14

TIMESTAMP_DIFFERENCE: Final = "message.timestamp.difference.max.ms"
# The settings that replace it. Its value counts for those that have their default.
TIMESTAMP_BOUNDS: Final = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS


@dataclass(frozen=True)
class Synonym:
    """A broker setting that is used if the topic has no value, and its unit in milliseconds (1 for other settings)."""

    name: str
    unit: int = 1


@dataclass(frozen=True)
class TopicConfigKey(ConfigKey):
    # The first that has a value is used.
    synonyms: tuple[Synonym, ...] = ()


class ThrottledReplicas:
    _ENTRY: Final = re.compile(r"[0-9]+:[0-9]+")

    def check(self, name: str, value: Any) -> None:
        if value == ("*",) or all(self._ENTRY.fullmatch(entry.strip()) for entry in value):
            return
        message = f"{name} must be the literal '*' or a list of replicas in the following format: {self}"
        raise invalid(name, f"[{', '.join(value)}]", message)

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _key(name: str, kind: Type, default: Any, validator: Validator | None, synonyms: str, doc: str, hidden: bool = False) -> TopicConfigKey:
    units = {"minutes": _MINUTE_MS, "hours": _HOUR_MS}
    parsed = tuple(Synonym(synonym, units.get(synonym.rsplit(".", 1)[-1], 1)) for synonym in synonyms.split())
    return TopicConfigKey(name, kind, default, validator, Importance.MEDIUM, doc, hidden, parsed)


# fmt: off
TOPIC_CONFIGS: Final = table((
    _key("cleanup.policy", Type.LIST, ("delete",), CLEANUP_POLICIES, "log.cleanup.policy",
         "What becomes of old segments: delete drops them by age or size, compact keeps the latest record of each key; or both."),
    _key("compression.gzip.level", Type.INT, -1, GzipLevel(), "compression.gzip.level",
         "How hard gzip tries when compression.type is gzip; -1 is its own default."),
    _key("compression.lz4.level", Type.INT, 9, Range(1, 17), "compression.lz4.level",
         "How hard lz4 tries when compression.type is lz4."),
    _key("compression.type", Type.STRING, "producer", COMPRESSION_TYPES, "compression.type",
         "The codec batches are stored in: producer leaves them as they were sent, any other makes the broker compress them."),
    _key("compression.zstd.level", Type.INT, 3, Range(-131_072, 22), "compression.zstd.level",
         "How hard zstd tries when compression.type is zstd."),
    _key("delete.retention.ms", Type.LONG, _DAY_MS, Range(0), "log.cleaner.delete.retention.ms",
         "How long a compacted log keeps tombstones and transaction markers, so that a slow reader still sees the deletion."),
    _key("file.delete.delay.ms", Type.LONG, 60_000, Range(0), "log.segment.delete.delay.ms",
         "How long a file stays on disk under its .deleted name before it is unlinked."),
    _key("flush.messages", Type.LONG, LONG_MAX, Range(1), "log.flush.interval.messages",
         "After so many records the log is synced to the device. Replication usually serves better than a small number here."),
    _key("flush.ms", Type.LONG, LONG_MAX, Range(0), "log.flush.interval.ms log.flush.scheduler.interval.ms",
         "After so long the log is synced to the device, if something was appended."),
    _key("follower.replication.throttled.replicas", Type.LIST, (), ThrottledReplicas(), "",
         "Replicas whose fetching as a follower is throttled: partition:broker pairs, or * for all."),
    _key("index.interval.bytes", Type.INT, 4096, Range(0), "log.index.interval.bytes",
         "Bytes of log between two entries of the offset index. Fewer make lookups shorter and the index longer."),
    _key("internal.segment.bytes", Type.INT, None, None, "",
         "Overrides segment.bytes without its lower limit, for tests.", hidden=True),
    _key("leader.replication.throttled.replicas", Type.LIST, (), ThrottledReplicas(), "",
         "Replicas whose serving as a leader is throttled: partition:broker pairs, or * for all."),
    _key("local.retention.bytes", Type.LONG, -2, Range(-2), "log.local.retention.bytes",
         "With tiered storage: bytes of a partition kept on local disk; -2 takes retention.bytes."),
    _key("local.retention.ms", Type.LONG, -2, Range(-2), "log.local.retention.ms",
         "With tiered storage: how long segments stay on local disk; -2 takes retention.ms."),
    _key("max.compaction.lag.ms", Type.LONG, LONG_MAX, Range(1), "log.cleaner.max.compaction.lag.ms",
         "A record of a compacted log waits no longer than this before it may be compacted away."),
    _key("max.message.bytes", Type.INT, 1_048_588, Range(0), "message.max.bytes",
         "The largest batch that is accepted, after compression. Consumers can always read one batch, however large."),
    _key("message.downconversion.enable", Type.BOOLEAN, True, None, "log.message.downconversion.enable",
         "Whether batches are converted for consumers that are too old to read them. Kafka 4 no longer has this setting.", hidden=True),
    _key("message.format.version", Type.STRING, "3.0-IV1", KafkaVersion(), "log.message.format.version",
         "The version whose message format was written. Kafka ignores it from 3.0 on.", hidden=True),
    _key("message.timestamp.after.max.ms", Type.LONG, _HOUR_MS, Range(0), "log.message.timestamp.after.max.ms",
         "How far ahead of the broker's clock the timestamp of a record may be. Not looked at under LogAppendTime."),
    _key("message.timestamp.before.max.ms", Type.LONG, LONG_MAX, Range(0), "log.message.timestamp.before.max.ms",
         "How far behind the broker's clock the timestamp of a record may be. Not looked at under LogAppendTime."),
    _key(TIMESTAMP_DIFFERENCE, Type.LONG, LONG_MAX, Range(0), "log.message.timestamp.difference.max.ms",
         "How far a timestamp may be from the broker's clock, either way. The before and after settings replace it.", hidden=True),
    _key("message.timestamp.type", Type.STRING, "CreateTime", TIMESTAMP_TYPES, "log.message.timestamp.type",
         "Whose clock dates a record: the producer's (CreateTime) or the broker's (LogAppendTime)."),
    _key("min.cleanable.dirty.ratio", Type.DOUBLE, 0.5, Range(0, 1), "log.cleaner.min.cleanable.ratio",
         "The share of a compacted log that must be dirty before the cleaner takes it up. Lower means less waste and more work."),
    _key("min.compaction.lag.ms", Type.LONG, 0, Range(0), "log.cleaner.min.compaction.lag.ms",
         "A record of a compacted log is left alone at least this long."),
    _key("min.insync.replicas", Type.INT, 1, Range(1), "min.insync.replicas",
         "With acks=all a write needs so many replicas in sync, or it is refused with NOT_ENOUGH_REPLICAS."),
    _key("preallocate", Type.BOOLEAN, False, None, "log.preallocate",
         "Whether a new segment takes its whole size on disk at once."),
    _key("remote.log.copy.disable", Type.BOOLEAN, False, None, "",
         "With tiered storage: nothing more is copied out, what is there can still be read."),
    _key("remote.log.delete.on.disable", Type.BOOLEAN, False, None, "",
         "With tiered storage: turning it off for the topic also deletes what was copied out."),
    _key("remote.storage.enable", Type.BOOLEAN, False, None, "",
         "Whether segments of the topic are copied to tiered storage."),
    _key("retention.bytes", Type.LONG, -1, None, "log.retention.bytes",
         "How large a partition may grow before its oldest segments are deleted; -1 is without limit."),
    _key("retention.ms", Type.LONG, 7 * _DAY_MS, Range(-1), "log.retention.ms log.retention.minutes log.retention.hours",
         "How long records are kept before their segment is deleted; -1 is for ever."),
    _key("segment.bytes", Type.INT, 1024**3, Range(SEGMENT_BYTES_MIN), "log.segment.bytes",
         "The size of a segment file. Records are deleted and compacted by whole segments."),
    _key("segment.index.bytes", Type.INT, 10 * 1024**2, Range(4), "log.index.size.max.bytes",
         "The size of the index of a segment; a full index ends the segment."),
    _key("segment.jitter.ms", Type.LONG, 0, Range(0), "log.roll.jitter.ms log.roll.jitter.hours",
         "Up to this much earlier than segment.ms a segment is rolled, by chance, so that not all are rolled at once."),
    _key("segment.ms", Type.LONG, 7 * _DAY_MS, Range(1), "log.roll.ms log.roll.hours",
         "After this time a segment is rolled even if it is not full, so that retention can reach it."),
    _key("unclean.leader.election.enable", Type.BOOLEAN, False, None, "unclean.leader.election.enable",
         "Whether a replica that is not in sync may lead when no other is left: the partition is back sooner, and records are lost."),
))
# fmt: on


def topic_config_key(name: str) -> TopicConfigKey:
    """The definition of a setting; raises InvalidConfig for an unknown name."""
    key = TOPIC_CONFIGS.get(name)
    if not isinstance(key, TopicConfigKey):
        raise InvalidConfig(f"Unknown topic config name: {name}")
    return key
