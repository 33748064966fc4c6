"""What the group coordinator asks of its broker besides a log: the topics of the cluster, the settings of groups, ids for members.

Its questions are passed on to the metadata cache and the configs, and answered at once: nothing in here may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from uuid import UUID

from barnabas.broker.metadata_cache import MetadataCache
from barnabas.uuid import UUID_SIZE, Uuid


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
        return str(UUID(bytes=self._random.randbytes(UUID_SIZE), version=4))

    def consumer(self) -> str:
        return str(Uuid.random(self._random))
