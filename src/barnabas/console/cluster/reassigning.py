"""Reassignments in progress: what is copied, how far it is, and the throttle. Sizes are those of the log directories."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.administration import replica_moves
from barnabas.administration.copy_progress import CopiedBytes, Copy, CopyProgress, pending_copies
from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType, ConfigSource
from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType
from barnabas.client.admin.topics.reassignments import PartitionReassignment
from barnabas.console.cluster.snapshot import ClusterSnapshot, PartitionSnapshot
from barnabas.topic_partition import TopicPartition

_TOPICS_OF_CONFIGS: Final = 50
_EVERY_REPLICA: Final = "*"  # an operator's own list, which no reassignment has set


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """`copied` and `size` are bytes of all new replicas together."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    caught_up: tuple[int, ...]
    copied: int
    size: int

    @property
    def left(self) -> int:
        return max(0, self.size - self.copied)

    @property
    def share(self) -> float:
        """How much is copied. A partition without records counts its replicas."""
        if self.size:
            return min(1.0, self.copied / self.size)
        return len(self.caught_up) / len(self.adding) if self.adding else 1.0


@dataclass(frozen=True, slots=True)
class BrokerThrottle:
    """The bounds on copies of one broker, in bytes a second; None where there is none."""

    broker: int
    leader_rate: int | None
    follower_rate: int | None


@dataclass(frozen=True, slots=True)
class Reassigning:
    """All reassignments at one moment. `total` has the progress of the copies since the page was first opened."""

    partitions: tuple[MovingPartition, ...]
    throttles: tuple[BrokerThrottle, ...]
    total: CopiedBytes | None

    @property
    def left(self) -> int:
        return sum(partition.left for partition in self.partitions)


class ReassignmentWatch:
    """Reads the reassignments of a cluster, and remembers the copies from one look to the next, for the time that is left."""

    def __init__(self, admin: AsyncAdmin) -> None:
        self._admin = admin
        self._progress: CopyProgress | None = None
        self._copies: frozenset[Copy] = frozenset()
        self._lock = asyncio.Lock()

    async def read(self, snapshot: ClusterSnapshot) -> Reassigning:
        """The reassignments, read now. Raises KafkaError."""
        async with self._lock:
            under_way = await self._admin.list_partition_reassignments()
            throttles = await self._throttles([broker.id for broker in snapshot.brokers])
            if not under_way:
                self._progress, self._copies = None, frozenset()
                return Reassigning((), throttles, None)
            partitions = {key: known for key in under_way if (known := _partition(snapshot, key)) is not None}
            sizes = await self._sizes(under_way, partitions)
            rows = tuple(_moving(key, moving, partitions.get(key), sizes) for key, moving in sorted(under_way.items()))
            return Reassigning(rows, throttles, self._advance(under_way, partitions, sizes))

    def _advance(
        self,
        under_way: Mapping[TopicPartition, PartitionReassignment],
        partitions: Mapping[TopicPartition, PartitionSnapshot],
        sizes: Mapping[Copy, int],
    ) -> CopiedBytes | None:
        copies = pending_copies((key, moving.adding_replicas) for key, moving in under_way.items())
        if not copies <= self._copies:
            self._copies = frozenset(copies)
            self._progress = CopyProgress({copy: _leader_size(copy[0], partitions, sizes) for copy in copies})
        if self._progress is None:
            return None
        pending = {(key, broker) for key, broker in copies if key not in partitions or broker not in partitions[key].isr}
        return self._progress.at(time.monotonic(), pending, sizes)

    async def _sizes(
        self, under_way: Mapping[TopicPartition, PartitionReassignment], partitions: Mapping[TopicPartition, PartitionSnapshot]
    ) -> dict[Copy, int]:
        """The bytes of the replicas that are copied, and of their leaders."""
        brokers = {broker for moving in under_way.values() for broker in moving.adding_replicas}
        brokers |= {partition.leader for partition in partitions.values() if partition.leader is not None}
        outcomes = await self._admin.describe_log_dirs(sorted(brokers))
        return {
            (partition, broker): info.size
            for broker, log_dirs in outcomes.successes.items()
            for log_dir in log_dirs.values()
            for partition, info in log_dir.replica_infos.items()
            if partition in under_way and not info.is_future
        }

    async def _throttles(self, brokers: Iterable[int]) -> tuple[BrokerThrottle, ...]:
        resources = [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in brokers]
        outcomes = await self._admin.describe_configs(resources)
        rows: list[BrokerThrottle] = []
        for resource, config in outcomes.successes.items():
            rates = [
                int(config[name].value or "")
                if name in config and config[name].source is not ConfigSource.DEFAULT_CONFIG and (config[name].value or "").isdigit()
                else None
                for name in replica_moves.REPLICATION_THROTTLES
            ]
            if any(rate is not None for rate in rates):
                rows.append(BrokerThrottle(int(resource.name), *rates))
        return tuple(rows)


async def set_throttle(admin: AsyncAdmin, planned: replica_moves.Moves, rate: int, alive: Iterable[int]) -> None:
    """Bounds the copies of these moves. The lists of topics are set first, so that they show that a throttle is left."""
    running = set(alive)
    brokers = [broker for broker in replica_moves.moving_brokers(planned) if broker in running]
    await _set(admin, ConfigResourceType.TOPIC, replica_moves.topic_throttles(planned))
    await _set(admin, ConfigResourceType.BROKER, replica_moves.broker_throttles(brokers, rate))


async def remove_throttle(admin: AsyncAdmin, topics: Iterable[str], brokers: Iterable[int]) -> int:
    """Removes the rates of the brokers, then the lists of the topics that have one. Returns the number of these topics."""
    await _delete(
        admin, [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in brokers], replica_moves.REPLICATION_THROTTLES
    )
    names = sorted(topics)
    listed: list[ConfigResource] = []
    for start in range(0, len(names), _TOPICS_OF_CONFIGS):
        piece = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names[start : start + _TOPICS_OF_CONFIGS]]
        configs = (await admin.describe_configs(piece)).successes
        listed += [
            resource
            for resource, config in configs.items()
            if any(name in config and config[name].value not in (None, "", _EVERY_REPLICA) for name in replica_moves.TOPIC_THROTTLES)
        ]
    await _delete(admin, listed, replica_moves.TOPIC_THROTTLES)
    return len(listed)


async def _set(admin: AsyncAdmin, kind: ConfigResourceType, settings: replica_moves.Settings) -> None:
    changes = {
        ConfigResource(kind, name): [AlterConfigOp(key, value) for key, value in values.items()] for name, values in settings.items()
    }
    if changes:
        (await admin.incremental_alter_configs(changes)).all()


async def _delete(admin: AsyncAdmin, resources: list[ConfigResource], names: Iterable[str]) -> None:
    operations = [AlterConfigOp(name, None, OpType.DELETE) for name in names]
    if resources:
        (await admin.incremental_alter_configs(dict.fromkeys(resources, operations))).all()


def _partition(snapshot: ClusterSnapshot, key: TopicPartition) -> PartitionSnapshot | None:
    topic = snapshot.topics.get(key.topic)
    return next((one for one in topic.partitions if one.partition == key.partition), None) if topic is not None else None


def _leader_size(key: TopicPartition, partitions: Mapping[TopicPartition, PartitionSnapshot], sizes: Mapping[Copy, int]) -> int:
    leader = partitions[key].leader if key in partitions else None
    return sizes.get((key, leader), 0) if leader is not None else 0


def _moving(
    key: TopicPartition, moving: PartitionReassignment, known: PartitionSnapshot | None, sizes: Mapping[Copy, int]
) -> MovingPartition:
    whole = 0 if known is None or known.leader is None else sizes.get((key, known.leader), 0)
    caught_up = tuple(broker for broker in moving.adding_replicas if known is not None and broker in known.isr)
    copied = sum(whole if broker in caught_up else min(whole, sizes.get((key, broker), 0)) for broker in moving.adding_replicas)
    return MovingPartition(
        key, moving.replicas, moving.adding_replicas, moving.removing_replicas, caught_up, copied, whole * len(moving.adding_replicas)
    )
