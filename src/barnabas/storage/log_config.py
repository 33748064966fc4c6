"""The settings of one log: Kafka's topic configs, checked and typed.

A `LogConfig` never changes; altering a topic makes a new one. Names and defaults are those of Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from barnabas.errors import KafkaError
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME
from barnabas.records.compression import codec_id

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
LONG_MIN: Final = -(2**63)

# Segments smaller than this would be more index than log; Kafka refuses them.
SEGMENT_BYTES_MIN: Final = 1024 * 1024


class InvalidConfig(KafkaError):
    code = 40


def _config(name: str, default: Any, parse: Callable[[str, str], Any]) -> Any:
    return field(default=default, metadata={"name": name, "parse": parse})


def _number(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        try:
            value = int(text.strip())
        except ValueError:
            raise InvalidConfig(f"Invalid value {text} for configuration {name}: Not a number of type {_kind(high)}") from None
        if not low <= value <= high:
            bound = f"at least {low}" if value < low else f"no more than {high}"
            raise InvalidConfig(f"Invalid value {value} for configuration {name}: Value must be {bound}")
        return value

    return parse


def _kind(high: int) -> str:
    return "LONG" if high > INT_MAX else "INT"


def _ratio(name: str, text: str) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        raise InvalidConfig(f"Invalid value {text} for configuration {name}: Not a number of type DOUBLE") from None
    if not 0.0 <= value <= 1.0:
        raise InvalidConfig(f"Invalid value {value} for configuration {name}: Value must be between 0 and 1")
    return value


def _flag(name: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidConfig(f"Invalid value {text} for configuration {name}: Expected value to be either true or false")
    return value == "true"


def _policies(name: str, text: str) -> frozenset[str]:
    policies = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if unknown := policies - {"delete", "compact"}:
        raise InvalidConfig(f"Invalid value {sorted(unknown)[0]} for configuration {name}: String must be one of: compact, delete")
    return policies


def _compression(name: str, text: str) -> int | None:
    value = text.strip().lower()
    if value == "producer":
        return None
    if value == "uncompressed":
        return 0
    if value in ("gzip", "snappy", "lz4", "zstd"):
        return codec_id(value)
    raise InvalidConfig(
        f"Invalid value {text} for configuration {name}: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
    )


def _gzip_level(name: str, text: str) -> int:
    level = _number(-1, 9)(name, text)
    if level == 0:
        raise InvalidConfig(f"Invalid value 0 for configuration {name}: Value must be between 1 and 9 or equal to -1")
    return level


def _timestamp_type(name: str, text: str) -> int:
    kinds = {"CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}
    if text.strip() not in kinds:
        raise InvalidConfig(f"Invalid value {text} for configuration {name}: String must be one of: CreateTime, LogAppendTime")
    return kinds[text.strip()]


@dataclass(frozen=True)
class LogConfig:
    segment_bytes: int = _config("segment.bytes", 1024**3, _number(SEGMENT_BYTES_MIN, INT_MAX))
    segment_ms: int = _config("segment.ms", 7 * 86_400_000, _number(1, LONG_MAX))
    segment_jitter_ms: int = _config("segment.jitter.ms", 0, _number(0, LONG_MAX))
    segment_index_bytes: int = _config("segment.index.bytes", 10 * 1024**2, _number(4, INT_MAX))
    index_interval_bytes: int = _config("index.interval.bytes", 4096, _number(0, INT_MAX))
    preallocate: bool = _config("preallocate", False, _flag)

    max_message_bytes: int = _config("max.message.bytes", 1_048_588, _number(0, INT_MAX))
    codec: int | None = _config("compression.type", None, _compression)  # None keeps what the producer chose
    gzip_level: int = _config("compression.gzip.level", -1, _gzip_level)
    lz4_level: int = _config("compression.lz4.level", 9, _number(1, 17))
    zstd_level: int = _config("compression.zstd.level", 3, _number(-131_072, 22))
    timestamp_type: int = _config("message.timestamp.type", CREATE_TIME, _timestamp_type)
    timestamp_before_max_ms: int = _config("message.timestamp.before.max.ms", LONG_MAX, _number(0, LONG_MAX))
    timestamp_after_max_ms: int = _config("message.timestamp.after.max.ms", 3_600_000, _number(0, LONG_MAX))

    flush_messages: int = _config("flush.messages", LONG_MAX, _number(1, LONG_MAX))
    flush_ms: int = _config("flush.ms", LONG_MAX, _number(0, LONG_MAX))

    cleanup_policy: frozenset[str] = _config("cleanup.policy", frozenset({"delete"}), _policies)
    retention_ms: int = _config("retention.ms", 7 * 86_400_000, _number(-1, LONG_MAX))
    retention_bytes: int = _config("retention.bytes", -1, _number(LONG_MIN, LONG_MAX))
    file_delete_delay_ms: int = _config("file.delete.delay.ms", 60_000, _number(0, LONG_MAX))
    delete_retention_ms: int = _config("delete.retention.ms", 86_400_000, _number(0, LONG_MAX))
    min_compaction_lag_ms: int = _config("min.compaction.lag.ms", 0, _number(0, LONG_MAX))
    max_compaction_lag_ms: int = _config("max.compaction.lag.ms", LONG_MAX, _number(1, LONG_MAX))
    min_cleanable_dirty_ratio: float = _config("min.cleanable.dirty.ratio", 0.5, _ratio)

    min_insync_replicas: int = _config("min.insync.replicas", 1, _number(1, INT_MAX))
    unclean_leader_election: bool = _config("unclean.leader.election.enable", False, _flag)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def segment_ms_max(self) -> int:
        """How old an active segment may get: a compacted log must close it in time for max.compaction.lag.ms."""
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @property
    def segment_jitter_ms_max(self) -> int:
        """How much earlier a segment may be rolled, so that not all are at once; never so early that every append does it."""
        return min(self.segment_jitter_ms, self.segment_ms)

    def level(self, codec: int) -> int | None:
        """The configured compression level of a codec; None where the codec has none."""
        return {1: self.gzip_level, 3: self.lz4_level, 4: self.zstd_level}.get(codec)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], defaults: LogConfig | None = None) -> LogConfig:
        """A config from Kafka's names and texts, on top of the broker's defaults."""
        by_name = {f.metadata["name"]: f for f in fields(cls)}
        values: dict[str, Any] = {} if defaults is None else {f.name: getattr(defaults, f.name) for f in fields(cls)}
        for name, text in properties.items():
            if name not in by_name:
                raise InvalidConfig(f"Unknown topic config name: {name}")
            definition = by_name[name]
            values[definition.name] = definition.metadata["parse"](name, text)
        config = cls(**values)
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise InvalidConfig(
                f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms}) > "
                f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
            )
        return config
