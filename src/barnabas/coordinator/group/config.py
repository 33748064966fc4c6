"""The settings of the group coordinator, with Kafka's names and defaults; names that begin with `barnabas` are our own.

The broker makes one from its configuration, which has already checked the bounds. The coordinator never changes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from barnabas.coordinator.group.group_memory import GroupMemory
from barnabas.coordinator.parsed_config import ParsedConfig

INT_MAX: Final = 2**31 - 1
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000  # not a setting in Kafka either


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: the directions in which a group with members may change its protocol."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrade_enabled(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrade_enabled(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = INT_MAX
    group_new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_coordinator_append_linger_ms: int = -1

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_size: int = INT_MAX
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_consumer_regex_refresh_interval_ms: int = 600_000

    barnabas_group_max_bytes: int = 33_554_432
    barnabas_groups_max_bytes: int = 268_435_456
    barnabas_offsets_max_bytes: int = 536_870_912

    offset_metadata_max_bytes: int = 4_096
    offsets_commit_required_acks: int = -1
    offsets_commit_timeout_ms: int = 5_000
    offsets_load_buffer_size: int = 5_242_880
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: int = 0
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 104_857_600

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000

    def memory(self) -> GroupMemory:
        """New accounts with these limits, to be shared by all shards of a broker."""
        return GroupMemory(self.barnabas_group_max_bytes, self.barnabas_groups_max_bytes, self.barnabas_offsets_max_bytes)

    def is_protocol_enabled(self, name: str) -> bool:
        return name in self.group_coordinator_rebalance_protocols

    @classmethod
    def of(cls, config: ParsedConfig) -> GroupCoordinatorConfig:
        """From a broker's parsed configuration; a setting that it lacks keeps its default."""
        values: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            with suppress(KeyError):
                values[name] = config[name.replace("_", ".")]
        for name in ("group_coordinator_rebalance_protocols", "group_consumer_assignors"):
            if name in values:
                values[name] = tuple(values[name])
        if "group_consumer_migration_policy" in values:
            values["group_consumer_migration_policy"] = MigrationPolicy(values["group_consumer_migration_policy"].lower())
        return cls(**values)
