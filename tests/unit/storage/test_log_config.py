from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import pytest

from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.storage.log_config import INT_MAX, LONG_MAX, InvalidConfig, LogConfig

DEFAULTS = {
    "segment_bytes": 1073741824,
    "segment_ms": 604800000,
    "segment_jitter_ms": 0,
    "segment_index_bytes": 10485760,
    "index_interval_bytes": 4096,
    "preallocate": False,
    "max_message_bytes": 1048588,
    "codec": None,
    "gzip_level": -1,
    "lz4_level": 9,
    "zstd_level": 3,
    "timestamp_type": CREATE_TIME,
    "timestamp_before_max_ms": LONG_MAX,
    "timestamp_after_max_ms": 3600000,
    "timestamp_difference_max_ms": LONG_MAX,
    "down_conversion": True,
    "flush_messages": LONG_MAX,
    "flush_ms": LONG_MAX,
    "cleanup_policy": frozenset({"delete"}),
    "retention_ms": 604800000,
    "retention_bytes": -1,
    "file_delete_delay_ms": 60000,
    "delete_retention_ms": 86400000,
    "min_compaction_lag_ms": 0,
    "max_compaction_lag_ms": LONG_MAX,
    "min_cleanable_dirty_ratio": 0.5,
    "min_insync_replicas": 1,
    "unclean_leader_election": False,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_those_of_kafka(name: str) -> None:
    assert getattr(LogConfig(), name) == DEFAULTS[name]


def test_no_setting_is_without_a_default() -> None:
    assert LogConfig.from_properties({}) == LogConfig()


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("segment.bytes", "14", "segment_bytes", 14),
        ("segment.bytes", "1048576", "segment_bytes", 1048576),
        ("segment.ms", "1", "segment_ms", 1),
        ("segment.jitter.ms", "5", "segment_jitter_ms", 5),
        ("segment.index.bytes", "4", "segment_index_bytes", 4),
        ("index.interval.bytes", "0", "index_interval_bytes", 0),
        ("preallocate", "TRUE", "preallocate", True),
        ("max.message.bytes", " 100 ", "max_message_bytes", 100),
        ("message.timestamp.type", "LogAppendTime", "timestamp_type", LOG_APPEND_TIME),
        ("message.timestamp.before.max.ms", "9", "timestamp_before_max_ms", 9),
        ("message.timestamp.after.max.ms", "9", "timestamp_after_max_ms", 9),
        ("message.timestamp.difference.max.ms", "9", "timestamp_before_max_ms", 9),
        ("message.timestamp.difference.max.ms", "9", "timestamp_after_max_ms", 9),
        ("message.downconversion.enable", "false", "down_conversion", False),
        ("flush.messages", "1", "flush_messages", 1),
        ("flush.ms", "0", "flush_ms", 0),
        ("retention.ms", "-1", "retention_ms", -1),
        ("retention.bytes", "-1", "retention_bytes", -1),
        ("file.delete.delay.ms", "0", "file_delete_delay_ms", 0),
        ("delete.retention.ms", "0", "delete_retention_ms", 0),
        ("min.compaction.lag.ms", "7", "min_compaction_lag_ms", 7),
        ("max.compaction.lag.ms", "7", "max_compaction_lag_ms", 7),
        ("min.cleanable.dirty.ratio", "0.01", "min_cleanable_dirty_ratio", 0.01),
        ("min.insync.replicas", "2", "min_insync_replicas", 2),
        ("unclean.leader.election.enable", "true", "unclean_leader_election", True),
        ("compression.gzip.level", "9", "gzip_level", 9),
        ("compression.lz4.level", "17", "lz4_level", 17),
        ("compression.zstd.level", "-131072", "zstd_level", -131072),
    ],
)
def test_a_setting_is_read_by_kafkas_name(name: str, text: str, attribute: str, value: object) -> None:
    assert getattr(LogConfig.from_properties({name: text}), attribute) == value


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("delete", {"delete"}),
        ("compact", {"compact"}),
        ("compact,delete", {"compact", "delete"}),
        (" Delete , COMPACT ", {"compact", "delete"}),
    ],
)
def test_the_cleanup_policy_is_a_list(text: str, policy: set[str]) -> None:
    config = LogConfig.from_properties({"cleanup.policy": text})
    assert config.cleanup_policy == policy
    assert (config.compact, config.delete) == ("compact" in policy, "delete" in policy)


@pytest.mark.parametrize(
    ("text", "codec"),
    [("producer", None), ("uncompressed", NONE), ("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD), ("ZSTD", ZSTD)],
)
def test_the_compression_type_names_a_codec_or_leaves_it_to_the_producer(text: str, codec: int | None) -> None:
    assert LogConfig.from_properties({"compression.type": text}).codec == codec


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("segment.bytes", "13", "Invalid value 13 for configuration segment.bytes: Value must be at least 14"),
        ("segment.bytes", "many", "Invalid value many for configuration segment.bytes: Not a number of type INT"),
        ("segment.bytes", "2147483648", "Invalid value 2147483648 for configuration segment.bytes"),
        ("segment.ms", "0", "Invalid value 0 for configuration segment.ms: Value must be at least 1"),
        ("segment.ms", "x", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", str(2**63), "Invalid value"),
        ("segment.index.bytes", "3", "Value must be at least 4"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("min.cleanable.dirty.ratio", "1.1", "Invalid value 1.1 for configuration min.cleanable.dirty.ratio"),
        ("min.cleanable.dirty.ratio", "-0.1", "Invalid value -0.1"),
        ("min.cleanable.dirty.ratio", "nan", "Invalid value nan"),
        ("min.cleanable.dirty.ratio", "half", "Not a number of type DOUBLE"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("cleanup.policy", "delete,shred", "Invalid value shred for configuration cleanup.policy"),
        ("compression.type", "brotli", "Invalid value brotli for configuration compression.type"),
        ("compression.gzip.level", "0", "Invalid value 0 for configuration compression.gzip.level"),
        ("compression.gzip.level", "10", "Invalid value 10 for configuration compression.gzip.level"),
        ("compression.lz4.level", "0", "Invalid value 0 for configuration compression.lz4.level"),
        ("compression.zstd.level", "23", "Invalid value 23 for configuration compression.zstd.level"),
        ("message.timestamp.type", "now", "Invalid value now for configuration message.timestamp.type"),
        ("flush.messages", "0", "Value must be at least 1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_setting(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(message)):
        LogConfig.from_properties({name: text})


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"Unknown topic config name: segment\.size"):
        LogConfig.from_properties({"segment.size": "5"})


def test_a_minimal_compaction_lag_above_the_maximal_one_is_refused() -> None:
    message = "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"
    with pytest.raises(InvalidConfig, match=re.escape(message)):
        LogConfig.from_properties({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"})


def test_settings_of_a_topic_stand_on_those_of_the_broker() -> None:
    broker = LogConfig.from_properties({"retention.ms": "5", "flush.ms": "6"})
    topic = LogConfig.from_properties({"flush.ms": "7"}, broker)
    assert (topic.retention_ms, topic.flush_ms) == (5, 7)


def test_a_config_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        LogConfig().segment_bytes = 5  # type: ignore[misc]


def test_a_log_that_is_not_compacted_has_no_compaction_lag() -> None:
    assert LogConfig(segment_ms=1000, max_compaction_lag_ms=10).segment_ms_max == 1000


def test_a_compacted_log_closes_its_segments_in_time_for_compaction() -> None:
    compact = frozenset({"compact"})
    assert LogConfig(segment_ms=1000, max_compaction_lag_ms=10, cleanup_policy=compact).segment_ms_max == 10
    assert LogConfig(segment_ms=1000, max_compaction_lag_ms=5000, cleanup_policy=compact).segment_ms_max == 1000


def test_the_jitter_is_never_longer_than_a_segment_lives() -> None:
    assert LogConfig(segment_ms=1000, segment_jitter_ms=50).segment_jitter_ms_max == 50
    assert LogConfig(segment_ms=1000, segment_jitter_ms=5000).segment_jitter_ms_max == 1000


@pytest.mark.parametrize(("codec", "level"), [(NONE, None), (GZIP, 5), (SNAPPY, None), (LZ4, 6), (ZSTD, 7)])
def test_a_codec_has_its_level(codec: int, level: int | None) -> None:
    assert LogConfig(gzip_level=5, lz4_level=6, zstd_level=7).level(codec) == level


def test_the_largest_numbers_are_taken() -> None:
    assert LogConfig.from_properties({"segment.bytes": str(INT_MAX), "retention.ms": str(LONG_MAX)}).segment_bytes == INT_MAX


def test_segments_for_tests_may_be_of_any_size() -> None:
    assert LogConfig.from_properties({"segment.bytes": "1048576", "internal.segment.bytes": "500"}).segment_bytes == 500


def test_settings_of_tiered_storage_are_checked_and_change_nothing() -> None:
    assert LogConfig.from_properties({"local.retention.ms": "5", "remote.log.copy.disable": "true"}) == LogConfig()
    with pytest.raises(InvalidConfig, match="Value must be at least -2"):
        LogConfig.from_properties({"local.retention.ms": "-3"})


def test_throttled_replicas_are_a_list() -> None:
    config = LogConfig.from_properties({"leader.replication.throttled.replicas": "0:1,1:2", "follower.replication.throttled.replicas": "*"})
    assert (config.leader_throttled_replicas, config.follower_throttled_replicas) == (("0:1", "1:2"), ("*",))


@pytest.mark.parametrize(
    ("broker", "topic", "bounds"),
    [
        ({}, {"difference": "5", "before": "9"}, (9, 5)),
        ({}, {"difference": "5", "after": "9"}, (5, 9)),
        ({}, {"difference": "5", "after": str(LONG_MAX)}, (5, 5)),
        ({"difference": "7"}, {}, (7, 7)),
        ({"before": "9"}, {"difference": "5"}, (9, 5)),  # a bound of the broker counts as one of the topic
        ({"difference": "7"}, {"difference": "5"}, (7, 7)),
        ({"difference": "7"}, {"before": "5"}, (5, 7)),
    ],
)
def test_the_old_bound_of_timestamps_counts_where_before_and_after_have_their_defaults(
    broker: dict[str, str], topic: dict[str, str], bounds: tuple[int, int]
) -> None:
    """As Kafka 3.9 merges the defaults of a broker and the configs of a topic."""
    defaults = LogConfig.from_properties({f"message.timestamp.{name}.max.ms": text for name, text in broker.items()})
    config = LogConfig.from_properties({f"message.timestamp.{name}.max.ms": text for name, text in topic.items()}, defaults)
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == bounds


def test_the_message_format_version_is_checked_and_has_no_effect() -> None:
    assert LogConfig.from_properties({"message.format.version": "0.10.2"}) == LogConfig()
    with pytest.raises(
        InvalidConfig, match=r"Invalid value 9\.9 for configuration message\.format\.version: Version 9\.9 is not a valid version"
    ):
        LogConfig.from_properties({"message.format.version": "9.9"})
