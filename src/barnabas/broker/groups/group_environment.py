# Compiled by mypyc: src/compiled.toml lists this module.
"""What the group coordinator needs of its broker besides a log: the topics of the cluster, the configs of groups, member ids.

The metadata cache and the config manager supply them. Every call returns at once; nothing in this module may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Final

from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.uuid import UUID_SIZE, Uuid

# The version and variant bits of a UUID, and their values in version 4 (random).
_UUID_FIXED: Final = 0xF000_C000_0000_0000_0000
_UUID_VERSION_4: Final = 0x4000_8000_0000_0000_0000


class CachedTopics:
    """The topics of the cluster in the metadata cache (implements `TopicsImage`)."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache

    def topic_id(self, name: str, /) -> Uuid | None:
        return self._cache.topic_id(name)

    def topic_name(self, topic_id: Uuid, /) -> str | None:
        return self._cache.topic_name(topic_id)

    def partition_count(self, name: str, /) -> int | None:
        return self._cache.partition_count(name)

    def partition_racks(self, name: str, partition: int, /) -> Collection[str]:
        state = self._cache.partition_info(name, partition)
        if state is None:
            return ()
        racks = (self._cache.rack(broker_id) for broker_id in state.replicas)
        return [rack for rack in racks if rack is not None]

    def names(self) -> Collection[str]:
        return self._cache.topics()


class GroupOverrides:
    """The configs of GROUP resources (implements `GroupConfigs`). The values were validated when they were set."""

    def __init__(self, groups: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._groups = groups

    def consumer_session_timeout_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.session.timeout.ms")

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.heartbeat.interval.ms")

    def _number(self, group_id: str, name: str) -> int | None:
        value = self._groups().get(group_id, {}).get(name)
        return None if value is None else int(value)


class MemberIds:
    """New member ids: 128 random bits, formatted as each of the two group protocols does."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def classic(self) -> str:
        bits = self._random.getrandbits(8 * UUID_SIZE)
        digits = f"{bits & ~_UUID_FIXED | _UUID_VERSION_4:032x}"  # the format of uuid.uuid4, several times as fast
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def consumer(self) -> str:
        return str(Uuid.random(self._random))
