"""The parts of the admin client that planning needs: topics and offsets, and commits to a group.

Spark starts a Python process for each query to plan it, so that every import delays the query. All operations are the admin client's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.admin.calls import Calls, CallSettings
from barnabas.client.admin.config import admin_config
from barnabas.client.admin.directory import MetadataDirectory
from barnabas.client.admin.topics.offsets import OffsetCalls
from barnabas.client.admin.topics.topics import TopicCalls
from barnabas.client.clock import SystemClock
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.topic_partition import TopicPartition


class PlanningAdmin(TopicCalls, OffsetCalls):
    """Used on one event loop; must be closed. Raises InvalidConfig."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        config = admin_config(settings, {})
        clock = SystemClock()
        metadata = Metadata(config, clock=clock, allow_auto_topic_creation=False)
        self._network = NetworkClient(config, metadata, clock=clock, metrics=Metrics(clock), metric_group="spark")
        self._started = False
        self._calls = Calls(
            self._network,
            MetadataDirectory(metadata, self._network, self._start),
            CallSettings(config["default.api.timeout.ms"], config["request.timeout.ms"], config["retries"]),
            clock,
            ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"]),
            failures=metadata.failures,
        )

    async def reach(self, timeout_ms: int | None) -> None:
        """Returns once a broker has answered. Raises Timeout; with None after default.api.timeout.ms."""
        await self._calls.brokers(self._calls.begin("reach", timeout_ms))

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits offsets to a group without members."""
        from barnabas.client.admin.groups.group_offsets import GroupOffsetCalls

        class Committing(GroupOffsetCalls):
            _calls = self._calls

        whole = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
        (await Committing().alter_consumer_group_offsets(group_id, whole)).all()

    async def close(self, timeout_ms: int) -> None:
        await self._calls.close(timeout_ms)
        await self._network.close()

    async def _start(self) -> None:
        if not self._started:
            self._started = True
            try:
                await self._network.start()
            except BaseException:
                self._started = False
                raise
