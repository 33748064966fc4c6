"""Gives every assigned partition a position: the committed offset of the group, or an offset by the reset strategy, validated with the
leader.

`update` is called in each poll and does not wait: the lookups that it starts run on, and `on_progress` is called when there is more to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.consumer.membership.membership import Membership
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offsets import OffsetFinder
from barnabas.client.consumer.offsets.partition_state import FetchPosition
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import Timeout
from barnabas.client.network.metadata import Metadata
from barnabas.topic_partition import TopicPartition

_log: Final = logging.getLogger(__name__)


class Positions:
    def __init__(
        self,
        subscriptions: SubscriptionState,
        metadata: Metadata,
        offsets: OffsetFinder,
        membership: Membership | None,
        *,
        clock: Clock,
        timeout_ms: int,
        on_progress: Callable[[], None],
    ) -> None:
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._offsets = offsets
        self._membership = membership
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._on_progress = on_progress
        self._committed: asyncio.Task[dict[TopicPartition, OffsetAndMetadata | None]] | None = None

    def update(self) -> None:
        """Starts the necessary lookups. Raises NoOffsetForPartition if no strategy is set, and errors of the coordinator."""
        self._offsets.validate_positions()
        if self._subscriptions.has_all_fetch_positions():
            return
        self._use_committed()
        self._offsets.reset_positions()

    async def close(self) -> None:
        if self._committed is not None:
            self._committed.cancel()
            await asyncio.gather(self._committed, return_exceptions=True)

    def _use_committed(self) -> None:
        committed = self._committed
        if committed is not None and committed.done():
            self._committed = None
            try:
                offsets = committed.result()
            except Timeout:
                offsets = {}
            self._apply_committed(offsets)
        waiting = {
            partition
            for partition in self._subscriptions.initializing_partitions()
            if not self._subscriptions.state(partition).pending_on_assigned_callback
        }
        if not waiting:
            return
        if self._membership is None:
            self._subscriptions.reset_initializing_positions(waiting.__contains__)
        elif self._committed is None:
            deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
            self._committed = asyncio.ensure_future(self._membership.fetch_committed(sorted(waiting), deadline_ms))
            self._committed.add_done_callback(lambda _: self._on_progress())

    def _apply_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        without: set[TopicPartition] = set()
        with self._subscriptions.lock:
            for partition, offset in offsets.items():
                if partition not in self._subscriptions.initializing_partitions():
                    continue  # revoked or positioned by a seek in the meantime
                if offset is None:
                    without.add(partition)
                    continue
                epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
                if epoch >= 0:
                    self._metadata.update_last_seen_epoch_if_newer(partition, epoch)
                leader_id, leader_epoch = self._offsets.leader_of(partition)
                _log.info("Setting offset for partition %s to the committed offset %s", partition, offset.offset)
                self._subscriptions.seek_unvalidated(partition, FetchPosition(offset.offset, epoch, leader_id, leader_epoch))
        if without:
            self._subscriptions.reset_initializing_positions(without.__contains__)
