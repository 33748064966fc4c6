"""Reads a cluster through the admin client, part by part. What a user may not see, or a broker does not offer, becomes a sentence in
`unknown`, and the rest is read all the same.

Many partitions are asked for in pieces, with a turn of the event loop between them, so that pages are answered meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.cluster.cluster import ClusterDescription
from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
from barnabas.client.admin.cluster.log_dirs import LogDirDescription
from barnabas.client.admin.groups.group_descriptions import ConsumerGroupDescription, GroupListing
from barnabas.client.admin.topics.offsets import OffsetSpec
from barnabas.client.admin.topics.reassignments import PartitionReassignment
from barnabas.client.admin.topics.topic_descriptions import TopicDescription
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.console.failures import sentence
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")
_PIECE: Final = 1_000  # partitions or groups of one request
_TOPICS_OF_CONFIGS: Final = 50
_READ_CONFIGS: Final = frozenset({"retention.ms", "retention.bytes", "cleanup.policy", "min.insync.replicas"})
_TIMEOUT_MS: Final = 10_000
CLUSTER_TIMEOUT_MS: Final = 5_000  # the first page of a cluster that does not answer waits this long
NOT_YET: Final = "This is being read, and will be here in some seconds."


@dataclass
class Readings:
    """The last content of each part. A part that could not be read keeps its old content, and has an entry in `unknown`."""

    cluster: ClusterDescription | None = None
    topics: dict[str, TopicDescription] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    configs: dict[str, Mapping[str, str | None]] = field(default_factory=dict)
    log_dirs: dict[int, dict[str, LogDirDescription]] = field(default_factory=dict)
    groups: dict[str, GroupListing] = field(default_factory=dict)
    described_groups: dict[str, ConsumerGroupDescription] = field(default_factory=dict)
    committed: dict[str, dict[TopicPartition, OffsetAndMetadata | None]] = field(default_factory=dict)
    reassignments: dict[TopicPartition, PartitionReassignment] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("groups", "log_dirs"), NOT_YET))


class ClusterReader:
    """`fast` reads what changes from second to second, `slow` the rest. Both fill `readings`."""

    def __init__(self, admin: AsyncAdmin) -> None:
        self._admin = admin
        self.readings = Readings()

    async def fast(self) -> None:
        """Brokers, topics and end offsets. Raises KafkaError if the cluster cannot be reached at all."""
        into = self.readings
        into.cluster = await self._admin.describe_cluster(timeout_ms=CLUSTER_TIMEOUT_MS)
        await self._part("topics", self._topics)
        await self._part("offsets", self._ends)

    async def slow(self) -> None:
        """Log directories, groups with their offsets, start offsets and reassignments."""
        await self._part("offsets", self._starts)
        await self._part("log_dirs", self._log_dirs)
        await self._part("groups", self._groups)
        await self._part("reassignments", self._reassignments)

    async def configs(self) -> None:
        """The settings of all topics that pages show in lists."""
        await self._part("configs", self._configs)

    async def _part(self, name: str, read: Callable[[], Awaitable[None]]) -> None:
        try:
            await read()
            self.readings.unknown.pop(name, None)
        except KafkaError as error:
            self.readings.unknown[name] = sentence(error)

    async def _topics(self) -> None:
        names = list(await self._admin.list_topics(list_internal=True, timeout_ms=_TIMEOUT_MS))
        described: dict[str, TopicDescription] = {}
        for piece in _pieces(sorted(names), 200):
            described |= (await self._admin.describe_topics(piece, timeout_ms=_TIMEOUT_MS)).successes
            await asyncio.sleep(0)
        self.readings.topics = described

    async def _ends(self) -> None:
        self.readings.ends = await self._offsets(OffsetSpec.latest())

    async def _starts(self) -> None:
        self.readings.starts = await self._offsets(OffsetSpec.earliest())

    async def _offsets(self, spec: OffsetSpec) -> dict[TopicPartition, int]:
        led = [
            TopicPartition(topic.name, info.partition)
            for topic in self.readings.topics.values()
            for info in topic.partitions
            if info.leader is not None
        ]
        offsets: dict[TopicPartition, int] = {}
        refused: KafkaError | None = None
        for piece in _pieces(led, _PIECE):
            outcomes = await self._admin.list_offsets(dict.fromkeys(piece, spec), timeout_ms=_TIMEOUT_MS)
            offsets |= {partition: info.offset for partition, info in outcomes.successes.items()}
            refused = next(iter(outcomes.errors.values()), refused)
            await asyncio.sleep(0)
        if refused is not None and not offsets:
            raise refused
        return offsets

    async def _configs(self) -> None:
        configs: dict[str, Mapping[str, str | None]] = {}
        refused: KafkaError | None = None
        for piece in _pieces(list(self.readings.topics), _TOPICS_OF_CONFIGS):
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in piece]
            outcomes = await self._admin.describe_configs(resources, timeout_ms=_TIMEOUT_MS)
            for resource, config in outcomes.successes.items():
                configs[resource.name] = {entry.name: entry.value for entry in config.entries if entry.name in _READ_CONFIGS}
            refused = next(iter(outcomes.errors.values()), refused)
            await asyncio.sleep(0)
        self.readings.configs = configs
        if refused is not None and not configs:
            raise refused

    async def _log_dirs(self) -> None:
        cluster = self.readings.cluster
        outcomes = await self._admin.describe_log_dirs([node.id for node in cluster.nodes] if cluster else [], timeout_ms=_TIMEOUT_MS)
        self.readings.log_dirs = outcomes.successes
        for error in outcomes.errors.values():
            raise error

    async def _groups(self) -> None:
        into = self.readings
        listing = await self._admin.list_groups(timeout_ms=_TIMEOUT_MS)
        into.groups = {group.group_id: group for group in listing.valid}
        consumers = [group.group_id for group in listing.valid if group.is_consumer_group]
        described: dict[str, ConsumerGroupDescription] = {}
        committed: dict[str, dict[TopicPartition, OffsetAndMetadata | None]] = {}
        for piece in _pieces(consumers, 100):
            described |= (await self._admin.describe_consumer_groups(piece, timeout_ms=_TIMEOUT_MS)).successes
            committed |= (await self._admin.list_consumer_group_offsets(dict.fromkeys(piece), timeout_ms=_TIMEOUT_MS)).successes
            await asyncio.sleep(0)
        into.described_groups, into.committed = described, committed
        for error in listing.errors:
            raise error

    async def _reassignments(self) -> None:
        self.readings.reassignments = await self._admin.list_partition_reassignments(timeout_ms=_TIMEOUT_MS)


def _pieces(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def leaders(topics: Iterable[TopicDescription]) -> dict[TopicPartition, int]:
    """The broker that leads each partition."""
    return {TopicPartition(topic.name, info.partition): info.leader.id for topic in topics for info in topic.partitions if info.leader}
