"""Connects the transaction coordinator to its broker: builds it with its log, timers, producer ids, markers and verification.

CoordinatorPartitions passes the changes of the partitions of `__transaction_state` to it, as for every coordinator. Handlers call the
coordinator itself. Produce and TxnOffsetCommit call `verification`. `markers` appends end markers: those of this coordinator and those of
WriteTxnMarkers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.coordinators.coordinator_log import CoordinatorLog, LoopScheduler
from barnabas.broker.coordinators.coordinator_partitions import CoordinatorPartitions
from barnabas.broker.partitions.partition import ACKS_ALL
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.features import TRANSACTION_VERSION, FeatureLevels
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.transactions.producer_ids import ProducerIdManager
from barnabas.broker.transactions.transaction_markers import LocalMarkers, MarkerAppender
from barnabas.broker.transactions.transaction_verification import LocalVerifier, TransactionVerification, TransactionVerifier
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.markers import MarkerSender
from barnabas.topic_name import TRANSACTION_STATE

if TYPE_CHECKING:
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.broker.transactions.transaction_links import ClusterMarkers, ClusterVerifier

_MARKERS: Final = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name="
_VERIFICATION: Final = "kafka.server:type=AddPartitionsToTxnManager,name="
_REPLICAS: Final = "kafka.server:type=ReplicaManager,name="
_COORDINATOR: Final = "kafka.server:type=transaction-coordinator-metrics,name="


class TransactionCoordinatorService:
    """Must be made on the event loop that it runs on."""

    def __init__(
        self,
        config: DynamicBrokerConfig,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        groups: GroupCoordinator,
        producer_ids: ProducerIdManager,
        features: FeatureLevels,
        clock: Clock,
        cluster: ClusterMember | None = None,
    ) -> None:
        self._replica_manager = replica_manager
        self._clock = clock
        settings = TransactionConfig.of(config.current)
        scheduler = LoopScheduler(asyncio.get_running_loop())
        self.markers = MarkerAppender(replica_manager, groups, config, clock)
        markers: MarkerSender = LocalMarkers(metadata_cache, self.markers, scheduler)
        self._links: list[ClusterMarkers | ClusterVerifier] = []
        if cluster is not None:
            from barnabas.broker.transactions.transaction_links import ClusterMarkers, ClusterVerifier

            markers = cluster_markers = ClusterMarkers(LocalMarkers(metadata_cache, self.markers, scheduler), metadata_cache, cluster)
            self._links.append(cluster_markers)
        self.coordinator = TransactionCoordinator(
            settings,
            CoordinatorLog(TRANSACTION_STATE, replica_manager, ACKS_ALL),
            clock,
            scheduler,
            producer_ids,
            markers,
            transaction_version=lambda: features.finalized.get(TRANSACTION_VERSION, 0),
            offsets_partition=groups.partition_for,
        )
        verifier: TransactionVerifier = LocalVerifier(self.coordinator, metadata_cache)
        if cluster is not None:
            local_verifier = LocalVerifier(self.coordinator, metadata_cache)
            verifier = cluster_verifier = ClusterVerifier(local_verifier, self.coordinator, metadata_cache, cluster)
            self._links.append(cluster_verifier)
        self.verification = TransactionVerification(replica_manager, verifier, config, clock, scheduler)
        self._partitions = CoordinatorPartitions(
            TRANSACTION_STATE, settings.transaction_state_log_num_partitions, self.coordinator, replica_manager, metadata_cache
        )

    def start(self) -> None:
        """To be called before the controller starts, so that no change of leadership is missed."""
        self._partitions.start()

    def shutdown(self) -> None:
        """Completes waiting requests with NOT_COORDINATOR. The next coordinator completes decided transactions from the log."""
        self._partitions.shutdown()

    async def close(self) -> None:
        """Closes the links to other brokers. To be called after `shutdown`."""
        for links in self._links:
            await links.close()

    def metrics(self) -> dict[str, int]:
        """The current values of Kafka's metrics of transactions and producers, by the names in Kafka's documentation.
        `skipped-record-count` is not one of Kafka's."""
        now_ms = self._clock.now_ms()
        logs = [partition.log for partition in self._replica_manager.online.values() if partition.log is not None]
        loads = self._partitions.load_times
        return {
            f"{_MARKERS}UnknownDestinationQueueSize": self.coordinator.gauges().get("PendingMarkers", 0),
            f"{_VERIFICATION}VerificationFailureRate": self.verification.failures,
            f"{_REPLICAS}PartitionsWithLateTransactionsCount": sum(log.producers.has_late_transaction(now_ms) for log in logs),
            f"{_REPLICAS}ProducerIdCount": sum(len(log.producers.active_producers) for log in logs),
            f"{_COORDINATOR}partition-load-time-max": loads.longest,
            f"{_COORDINATOR}partition-load-time-avg": loads.average,
            f"{_COORDINATOR}skipped-record-count": self.coordinator.skipped_records,
        }
