"""The settings of one log: Kafka's topic configs, checked and typed.

A `LogConfig` never changes; altering a topic creates a new one. Names, defaults and limits come from the table in `topic_configs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

from barnabas.config_def import INT_MAX, LONG_MAX, InvalidConfig
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME
from barnabas.records.codecs.compression import codec_id
from barnabas.storage.topic_configs import SEGMENT_BYTES_MIN, TIMESTAMP_DIFFERENCE, topic_config_key

__all__ = ["INT_MAX", "LONG_MAX", "SEGMENT_BYTES_MIN", "InvalidConfig", "LogConfig"]

# Overrides segment.bytes, without a lower limit: for tests.
_SMALL_SEGMENTS: Final = "internal.segment.bytes"
_TIMESTAMP_TYPES: Final = {"CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}


def _as_it_is(value: Any) -> Any:
    return value


def _config(name: str, convert: Callable[[Any], Any] = _as_it_is, any_case: bool = False) -> Any:
    """A field with the default of the table; `convert` turns the value of the setting into the value of the field."""
    default = convert(topic_config_key(name).default)
    return field(default=default, metadata={"name": name, "convert": convert, "any_case": any_case})


def _codec(name: str) -> int | None:
    """The codec to store batches with; None keeps the codec of the producer."""
    if name == "producer":
        return None
    return 0 if name == "uncompressed" else codec_id(name)


@dataclass(frozen=True)
class LogConfig:
    segment_bytes: int = _config("segment.bytes")
    segment_ms: int = _config("segment.ms")
    segment_jitter_ms: int = _config("segment.jitter.ms")
    segment_index_bytes: int = _config("segment.index.bytes")
    index_interval_bytes: int = _config("index.interval.bytes")
    preallocate: bool = _config("preallocate")

    max_message_bytes: int = _config("max.message.bytes")
    codec: int | None = _config("compression.type", _codec, any_case=True)
    gzip_level: int = _config("compression.gzip.level")
    lz4_level: int = _config("compression.lz4.level")
    zstd_level: int = _config("compression.zstd.level")
    timestamp_type: int = _config("message.timestamp.type", _TIMESTAMP_TYPES.__getitem__)
    timestamp_before_max_ms: int = _config("message.timestamp.before.max.ms")
    timestamp_after_max_ms: int = _config("message.timestamp.after.max.ms")
    timestamp_difference_max_ms: int = _config(TIMESTAMP_DIFFERENCE)
    down_conversion: bool = _config("message.downconversion.enable")

    flush_messages: int = _config("flush.messages")
    flush_ms: int = _config("flush.ms")

    cleanup_policy: frozenset[str] = _config("cleanup.policy", frozenset, any_case=True)
    retention_ms: int = _config("retention.ms")
    retention_bytes: int = _config("retention.bytes")
    file_delete_delay_ms: int = _config("file.delete.delay.ms")
    delete_retention_ms: int = _config("delete.retention.ms")
    min_compaction_lag_ms: int = _config("min.compaction.lag.ms")
    max_compaction_lag_ms: int = _config("max.compaction.lag.ms")
    min_cleanable_dirty_ratio: float = _config("min.cleanable.dirty.ratio")

    min_insync_replicas: int = _config("min.insync.replicas")
    unclean_leader_election: bool = _config("unclean.leader.election.enable")

    leader_throttled_replicas: tuple[str, ...] = _config("leader.replication.throttled.replicas")
    follower_throttled_replicas: tuple[str, ...] = _config("follower.replication.throttled.replicas")

    @cached_property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @cached_property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @cached_property
    def segment_ms_max(self) -> int:
        """The age at which the active segment is rolled: a compacted log must close it in time for max.compaction.lag.ms."""
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @cached_property
    def segment_jitter_ms_max(self) -> int:
        """How much earlier a segment may be rolled, so that not all roll at once. At most segment.ms, or every append would roll."""
        return min(self.segment_jitter_ms, self.segment_ms)

    def level(self, codec: int) -> int | None:
        """The configured compression level of a codec; None if the codec has no levels."""
        return {1: self.gzip_level, 3: self.lz4_level, 4: self.zstd_level}.get(codec)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], defaults: LogConfig | None = None) -> LogConfig:
        """A config from settings as Kafka writes them, on top of the broker's defaults."""
        by_name = {f.metadata["name"]: f for f in fields(cls)}
        values: dict[str, Any] = {} if defaults is None else {f.name: getattr(defaults, f.name) for f in fields(cls)}
        for name, text in properties.items():
            key, used = topic_config_key(name), by_name.get(name)
            # Compact is accepted for compact, as older versions of Kafka stored it; requests of clients are checked strictly elsewhere.
            value = key.parse(text.lower() if used is not None and used.metadata["any_case"] else text)
            if used is not None:
                values[used.name] = used.metadata["convert"](value)
        if _SMALL_SEGMENTS in properties:
            values["segment_bytes"] = topic_config_key(_SMALL_SEGMENTS).parse(properties[_SMALL_SEGMENTS])
        config = cls(**values)._with_timestamp_difference()
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise InvalidConfig(
                f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms}) > "
                f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
            )
        return config

    def _with_timestamp_difference(self) -> LogConfig:
        """The bounds of timestamps that have their default are those of message.timestamp.difference.max.ms, as in Kafka 3.9.

        The defaults of the broker count as values of the topic here: a topic's difference does not replace a bound of the broker."""
        difference = self.timestamp_difference_max_ms
        if difference == LONG_MAX:
            return self
        before, after = self.timestamp_before_max_ms, self.timestamp_after_max_ms
        return replace(
            self,
            timestamp_before_max_ms=difference if before == LogConfig.timestamp_before_max_ms else before,
            timestamp_after_max_ms=difference if after in (LogConfig.timestamp_after_max_ms, LONG_MAX) else after,
        )
