"""A snapshot of the metadata of a member's topics, and whether it has changed.

This class matches a subscription pattern against the existing topics. The leader of a classic group detects added partitions with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.clock import Clock
from barnabas.client.cluster import Node
from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.errors import Timeout
from barnabas.client.network.metadata import Metadata

Snapshot = dict[str, list[frozenset[str | None]]]  # by topic, the racks of each partition; empty sets for a member without a rack


class MetadataWatch:
    def __init__(self, metadata: Metadata, subscriptions: Subscriptions, rack: str) -> None:
        self.seen: Snapshot = {}
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._has_rack = bool(rack)
        self._seen_version = -1

    @property
    def has_changed(self) -> bool:
        return self._metadata.update_version > self._seen_version

    def look(self) -> None:
        """Takes a new snapshot if the metadata has changed."""
        if self.has_changed:
            self.look_again()

    def look_again(self) -> None:
        """Takes a new snapshot, also when only the set of relevant topics has changed."""
        self._seen_version = self._metadata.update_version
        cluster = self._metadata.cluster
        if self._subscriptions.has_pattern_subscription():
            topics = frozenset(filter(self._subscriptions.matches_subscribed_pattern, cluster.topics))
            if self._subscriptions.subscribe_from_pattern(topics):
                self._metadata.request_update_for_new_topics()
        self.seen = {
            topic: [self._racks(info.replicas) for info in infos]
            for topic in self._subscriptions.metadata_topics()
            if (infos := cluster.partitions_for_topic(topic))
        }

    async def refresh(self, deadline_ms: int, clock: Clock) -> bool:
        """Whether the metadata is newer than this call, or too recent to be requested again."""
        now_ms = clock.monotonic_ms()
        if self._metadata.time_to_allow_update(now_ms) == 0:
            self._metadata.request_update()
        if not self._metadata.update_requested:
            return True
        try:
            await self._metadata.wait_for_update(self._metadata.update_version, max(0, deadline_ms - now_ms))
        except Timeout:
            return False
        return True

    def _racks(self, replicas: Sequence[Node]) -> frozenset[str | None]:
        return frozenset(node.rack for node in replicas) if self._has_rack else frozenset()
