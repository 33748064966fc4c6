"""What the group coordinator knows of topics: their ids, their sizes, and where their replicas stand.

The broker gives it from its metadata cache. A consumer group names partitions by topic id and subscribes to topics by name: both ways are
asked. Nothing in here is remembered by a group except as a hash, so that a change of the cluster is seen as a difference.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from barnabas.uuid import Uuid


class TopicsImage(Protocol):
    def topic_id(self, name: str, /) -> Uuid | None: ...

    def topic_name(self, topic_id: Uuid, /) -> str | None: ...

    def partition_count(self, name: str, /) -> int | None:
        """None when there is no such topic."""

    def partition_racks(self, name: str, partition: int, /) -> Collection[str]:
        """The racks of the replicas, as often as there are replicas in them; empty where no broker says its rack."""

    def names(self) -> Collection[str]: ...
