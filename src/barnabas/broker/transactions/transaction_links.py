"""Transactions over several brokers: sends end markers to the leaders of partitions, and verifications to transaction coordinators.

Markers and verifications for this broker itself go to `LocalMarkers` and `LocalVerifier` without a network request. If another broker
cannot be reached, the caller gets a retriable error code; the classes of this module do not retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.links.per_broker_batches import PerBrokerBatches
from barnabas.broker.scheduling.turns import slices
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.transactions.transaction_markers import LocalMarkers, OnDone
from barnabas.broker.transactions.transaction_verification import LocalVerifier
from barnabas.coordinator.transaction.markers import Marker
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from barnabas.topic_name import TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator

MARKERS_VERSION: Final = 2
ADD_PARTITIONS_VERSION: Final = 5
ELEMENTS_AT_ONCE: Final = 5_000  # per request; a broker accepts 10,000 in AddPartitionsToTxn, and more in WriteTxnMarkers
PARTITIONS_AT_ONCE: Final = 2_000  # per marker
IN_FLIGHT_MAX: Final = 5  # the number of requests of one connection that a broker handles at once (`pipelined_requests_max`)

_NETWORK_EXCEPTION: Final = int(ErrorCode.NETWORK_EXCEPTION)
_NOT_LEADER_OR_FOLLOWER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)

_log = logging.getLogger(__name__)


class ClusterMarkers:
    """Sends end markers to the leaders of partitions on all brokers (implements `MarkerSender`)."""

    def __init__(self, local: LocalMarkers, cache: MetadataCache, cluster: ClusterMember) -> None:
        self._local = local
        self._cache = cache
        self._cluster = cluster
        self._links = cluster.new_links(f"broker-{cache.broker_id}-markers", IN_FLIGHT_MAX)
        self._requests: PerBrokerBatches[tuple[Marker, OnDone]] = PerBrokerBatches(
            self._send_batch, ELEMENTS_AT_ONCE, IN_FLIGHT_MAX, lambda pending: _elements(pending[0].partitions)
        )

    def exists(self, partition: TopicPartition) -> bool:
        return self._local.exists(partition)

    def send(self, marker: Marker, on_done: OnDone) -> None:
        here: list[TopicPartition] = []
        elsewhere: dict[int, list[TopicPartition]] = {}
        for partition in sorted(marker.partitions):
            state = self._cache.partition_info(partition.topic, partition.partition)
            if state is None or state.leader < 0 or state.leader == self._cache.broker_id:
                here.append(partition)
            else:
                elsewhere.setdefault(state.leader, []).append(partition)
        for leader, partitions in elsewhere.items():
            for part in slices(partitions, PARTITIONS_AT_ONCE):
                self._requests.put(leader, (marker._replace(partitions=tuple(part)), on_done))
        if here:
            self._local.send(marker._replace(partitions=tuple(here)), on_done)

    async def close(self) -> None:
        await self._requests.close()
        await self._links.close()

    async def _send_batch(self, broker_id: int, batch: list[tuple[Marker, OnDone]]) -> None:
        """A producer has one transaction at a time. Two of its markers in one batch are therefore for different partitions of one
        transaction, so producer id and partition identify a result."""
        request = WriteTxnMarkersRequest([_writable(marker) for marker, _ in batch])
        codes: dict[tuple[int, TopicPartition], int] = {}
        try:
            response = await _ask(self._links, self._cluster, broker_id, request, MARKERS_VERSION)
            for result in cast("WriteTxnMarkersResponse", response).markers:
                for topic in result.topics:
                    for partition in topic.partitions:
                        codes[result.producer_id, TopicPartition(topic.name, partition.partition_index)] = partition.error_code
        except KafkaError as error:
            _log.info("Broker %d did not accept %d end markers: %s", broker_id, len(batch), error)
        for marker, on_done in batch:
            on_done({partition: codes.get((marker.producer_id, partition), _NOT_LEADER_OR_FOLLOWER) for partition in marker.partitions})


def _writable(marker: Marker) -> WritableTxnMarker:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for partition in marker.partitions:
        topics.setdefault(partition.topic, WritableTxnMarkerTopic(partition.topic, [])).partition_indexes.append(partition.partition)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        topics=list(topics.values()),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


class _RemoteVerification(NamedTuple):
    transaction: AddPartitionsToTxnTransaction
    partitions: list[TopicPartition]
    on_done: Callable[[Mapping[TopicPartition, int]], None]


class ClusterVerifier:
    """Sends verifications to the transaction coordinators on all brokers (implements `TransactionVerifier`)."""

    def __init__(self, local: LocalVerifier, coordinator: TransactionCoordinator, cache: MetadataCache, cluster: ClusterMember) -> None:
        self._local = local
        self._coordinator = coordinator
        self._cache = cache
        self._cluster = cluster
        self._links = cluster.new_links(f"broker-{cache.broker_id}-transactions", IN_FLIGHT_MAX)
        self._requests: PerBrokerBatches[_RemoteVerification] = PerBrokerBatches(
            self._send_batch, ELEMENTS_AT_ONCE, IN_FLIGHT_MAX, lambda pending: _elements(pending.partitions)
        )

    def add_or_verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        *,
        add: bool,
        on_done: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        leader = self._leader(transactional_id)
        if leader < 0 or leader == self._cache.broker_id:
            self._local.add_or_verify(transactional_id, producer_id, producer_epoch, partitions, add=add, on_done=on_done)
            return
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, AddPartitionsToTxnTopic(partition.topic, [])).partitions.append(partition.partition)
        transaction = AddPartitionsToTxnTransaction(transactional_id, producer_id, producer_epoch, not add, list(topics.values()))
        self._requests.put(leader, _RemoteVerification(transaction, partitions, on_done))

    async def close(self) -> None:
        await self._requests.close()
        await self._links.close()

    def _leader(self, transactional_id: str) -> int:
        try:
            partition = self._coordinator.partition_for(transactional_id)
        except KafkaError:
            return -1
        state = self._cache.partition_info(TRANSACTION_STATE, partition)
        return -1 if state is None else state.leader

    async def _send_batch(self, broker_id: int, batch: list[_RemoteVerification]) -> None:
        request = AddPartitionsToTxnRequest(transactions=[pending.transaction for pending in batch])
        codes: dict[tuple[str, TopicPartition], int] = {}
        missing = _NETWORK_EXCEPTION
        try:
            response = cast(
                "AddPartitionsToTxnResponse", await _ask(self._links, self._cluster, broker_id, request, ADD_PARTITIONS_VERSION)
            )
            missing = response.error_code or _NETWORK_EXCEPTION
            for result in response.results_by_transaction:
                for topic in result.topic_results:
                    for partition in topic.results_by_partition:
                        key = result.transactional_id, TopicPartition(topic.name, partition.partition_index)
                        codes[key] = partition.partition_error_code
        except KafkaError as error:
            _log.info("Broker %d did not verify %d transactions: %s", broker_id, len(batch), error)
        for pending in batch:
            transactional_id = pending.transaction.transactional_id
            pending.on_done({partition: codes.get((transactional_id, partition), missing) for partition in pending.partitions})


def _elements(partitions: Sequence[TopicPartition]) -> int:
    """The most elements that one transaction adds to a request: itself, and a topic and a partition for each partition."""
    return 1 + 2 * len(partitions)


async def _ask(links: BrokerLinks, cluster: ClusterMember, broker_id: int, request: Message, version: int) -> Message:
    endpoint = cluster.endpoint_of(broker_id)
    if endpoint is not None:
        links.set_endpoint(broker_id, endpoint)
    return await links.ask(broker_id, request, version)
