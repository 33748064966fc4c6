"""The group coordinator's view of topics: their ids, their partition counts, and the racks of their replicas.

The broker implements it with its metadata cache. Both lookups are needed, because a consumer group names partitions by topic id and
subscribes to topics by name. A group stores only a hash of this, and a different hash shows that topics changed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from barnabas.uuid import Uuid


class TopicsImage(Protocol):
    def topic_id(self, name: str, /) -> Uuid | None: ...

    def topic_name(self, topic_id: Uuid, /) -> str | None: ...

    def partition_count(self, name: str, /) -> int | None:
        """None when the topic does not exist."""

    def partition_racks(self, name: str, partition: int, /) -> Collection[str]:
        """The rack of each replica, with repetitions; empty when the brokers have no rack."""

    def names(self) -> Collection[str]: ...
