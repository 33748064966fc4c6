# Compiled by mypyc: src/compiled.toml lists this module.
"""Appends the end markers of transactions to the logs of partitions.

After a transaction coordinator has decided, every partition of the transaction gets a control record with the outcome. `MarkerAppender`
appends it on this broker, for the local coordinator and for WriteTxnMarkers. A marker for `__consumer_offsets` goes through the group
coordinator, which commits or drops the pending offsets with it. A log rejects a marker if it has seen a newer epoch of the producer or of
its coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition import ACKS_ALL
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.coordinator.faults import error_code
from barnabas.coordinator.gather import Gather
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.partition_log import TransactionProducer
from barnabas.coordinator.shard_timer import Scheduler
from barnabas.coordinator.transaction.markers import Marker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.slices import Records
from barnabas.records.control import end_txn_marker
from barnabas.records.validation.validation import COORDINATOR
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.topic_name import CONSUMER_OFFSETS
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

PARTITIONS_PER_TURN: Final = 100

Codes = Mapping[TopicPartition, int]
OnDone = Callable[[Codes], None]

_UNKNOWN_SERVER_ERROR: Final = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_LEADER_OR_FOLLOWER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)

# Errors of a group coordinator that is absent or still loading. Transaction coordinators get NOT_LEADER_OR_FOLLOWER instead and retry.
_NO_GROUP_COORDINATOR: Final = frozenset(
    {int(ErrorCode.COORDINATOR_NOT_AVAILABLE), int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), int(ErrorCode.NOT_COORDINATOR)}
)


class MarkerAppender:
    """Appends markers to the partitions that this broker leads."""

    def __init__(self, replica_manager: ReplicaManager, groups: GroupCoordinator, config: DynamicBrokerConfig, clock: Clock) -> None:
        self._replica_manager = replica_manager
        self._groups = groups
        self._config = config
        self._clock = clock

    def append(self, marker: Marker, on_done: OnDone) -> None:
        """Calls `on_done` once, with the error code of each partition, when the ISR of the last partition has its marker."""
        try:
            batch = self._batch(marker)
        except ValueError as error:
            _log.info("Refused a marker of producer %d in epoch %d: %s", marker.producer_id, marker.producer_epoch, error)
            on_done(dict.fromkeys(marker.partitions, _UNKNOWN_SERVER_ERROR))
            return
        entries: list[tuple[TopicPartition, Records]] = []
        offsets: list[TopicPartition] = []
        unknown: dict[TopicPartition, int] = {}
        for partition in dict.fromkeys(marker.partitions):
            if self._replica_manager.partition(partition) is None:
                unknown[partition] = _UNKNOWN_TOPIC_OR_PARTITION
            elif partition.topic == CONSUMER_OFFSETS:
                offsets.append(partition)
            else:
                entries.append((partition, Records(batch)))

        def all_done(parts: list[Codes]) -> None:
            on_done({partition: code for part in (unknown, *parts) for partition, code in part.items()})

        gather: Gather[Codes] = Gather(len(offsets) + (1 if entries else 0), all_done)
        for index, partition in enumerate(offsets):
            self._complete(marker, partition, gather.slot(index))
        if entries:
            self._append(marker, entries, gather.slot(len(offsets)))
        gather.all_asked()

    def _batch(self, marker: Marker) -> bytes:
        """Raises ValueError for an invalid producer id, epoch or transaction version."""
        if marker.transaction_version == TRANSACTION_VERSION_UNKNOWN:
            raise ValueError("a leader must know the transaction version")
        return end_txn_marker(marker.committed, marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, self._clock.now_ms())

    def _append(self, marker: Marker, entries: list[tuple[TopicPartition, Records]], on_done: OnDone) -> None:
        call = AppendCall(
            entries,
            lambda results: on_done({result.partition: result.error for result in results}),
            timeout_ms=self._config.current.number("request.timeout.ms"),
            required_acks=ACKS_ALL,
            internal_topics_allowed=True,
            origin=COORDINATOR,
            transaction_version=marker.transaction_version,
        )
        self._replica_manager.append_records(call)

    def _complete(self, marker: Marker, partition: TopicPartition, on_done: OnDone) -> None:
        def done(error: Exception | None) -> None:
            code = 0 if error is None else error_code(error)
            on_done({partition: _NOT_LEADER_OR_FOLLOWER if code in _NO_GROUP_COORDINATOR else code})

        self._groups.complete_transaction(
            partition.partition,
            TransactionProducer(marker.producer_id, marker.producer_epoch, transaction_version=marker.transaction_version),
            marker.coordinator_epoch,
            committed=marker.committed,
            on_done=done,
            timeout_ms=self._config.current.number("request.timeout.ms"),
        )


class LocalMarkers:
    """Sends end markers to partitions that this broker leads (implements `MarkerSender`)."""

    def __init__(self, metadata_cache: MetadataCache, appender: MarkerAppender, scheduler: Scheduler) -> None:
        self._metadata_cache = metadata_cache
        self._appender = appender
        self._scheduler = scheduler

    def exists(self, partition: TopicPartition) -> bool:
        return self._metadata_cache.contains(partition.topic, partition.partition)

    def send(self, marker: Marker, on_done: OnDone) -> None:
        """Appends the marker to the partitions that this broker leads. The others get NOT_LEADER_OR_FOLLOWER, and the coordinator retries.

        `on_done` is called once for the others and once for each PARTITIONS_PER_TURN partitions: a transaction with very many partitions
        takes several loop iterations, so that other work runs in between.
        """
        here: list[TopicPartition] = []
        unreachable: dict[TopicPartition, int] = {}
        for partition in marker.partitions:
            if self._leader(partition) == self._metadata_cache.broker_id:
                here.append(partition)
            else:
                unreachable[partition] = _NOT_LEADER_OR_FOLLOWER
        if unreachable:
            on_done(unreachable)
        for first in range(PARTITIONS_PER_TURN, len(here), PARTITIONS_PER_TURN):
            later = marker._replace(partitions=tuple(here[first : first + PARTITIONS_PER_TURN]))
            self._scheduler.call_later(0, partial(self._appender.append, later, on_done))
        if here:
            self._appender.append(marker._replace(partitions=tuple(here[:PARTITIONS_PER_TURN])), on_done)

    def _leader(self, partition: TopicPartition) -> int:
        state = self._metadata_cache.partition_info(partition.topic, partition.partition)
        return -1 if state is None else state.leader
