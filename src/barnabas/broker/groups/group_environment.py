# Compiled by mypyc: src/compiled.toml lists this module.
"""What the group coordinator asks of its broker besides a log: the topics of the cluster, the settings of groups, ids for members.

Its questions are passed on to the metadata cache and the configs, and answered at once: nothing in here may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Final

from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.uuid import UUID_SIZE, Uuid

# The bits of a UUID that say which kind of UUID it is, and what they are in one that is random.
_UUID_FIXED: Final = 0xF000_C000_0000_0000_0000
_UUID_VERSION_4: Final = 0x4000_8000_0000_0000_0000


class CachedTopics:
    """The topics of the cluster as the metadata cache has them (`TopicsImage`)."""

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
    """What GROUP resources set for themselves (`GroupConfigs`). The values were checked when they were set."""

    def __init__(self, groups: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._groups = groups

    def consumer_session_timeout_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.session.timeout.ms")

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.heartbeat.interval.ms")

    def _number(self, group_id: str, name: str) -> int | None:
        found = self._groups().get(group_id, {}).get(name)
        return None if found is None else int(found)


class MemberIds:
    """Ids for members that have none. Both protocols have their own form of the same 128 random bits."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def classic(self) -> str:
        bits = self._random.getrandbits(8 * UUID_SIZE)
        digits = f"{bits & ~_UUID_FIXED | _UUID_VERSION_4:032x}"  # as uuid.uuid4 does, and several times as fast
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def consumer(self) -> str:
        return str(Uuid.random(self._random))
