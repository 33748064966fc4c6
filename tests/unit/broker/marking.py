"""A broker with partitions that transactions write to, committed offsets, and the appender of end markers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.broker.coordinators.coordinator_log import CoordinatorLog, committed_offset
from barnabas.broker.transactions.transaction_markers import Codes, LocalMarkers, MarkerAppender
from barnabas.coordinator.transaction.markers import Marker
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import TP, Replicas
from tests.unit.broker.verifying import PRODUCER, Verifying
from tests.unit.coordinator.coordinator_host import Answers, Host

OTHER = TopicPartition("orders", 1)
OFFSETS = TopicPartition("__consumer_offsets", 0)
GONE = TopicPartition("gone", 0)


class Marking:
    """A broker with two partitions of `orders` and one of `__consumer_offsets`, each with what coordinates it."""

    def __init__(self, root: Path, **topology: Any) -> None:
        self.replicas = Replicas(root)
        for partition in (TP, OTHER, OFFSETS):
            self.replicas.lead(partition, **topology)
        log: Any = CoordinatorLog(OFFSETS.topic, self.replicas.manager)
        self.groups = Host(log)
        self.appender = MarkerAppender(self.replicas.manager, self.groups.coordinator, self.replicas.config, self.replicas.clock)
        self.verifying = Verifying(self.replicas)
        self.markers = LocalMarkers(self.replicas.cache, self.appender, self.verifying.time)
        self.replicas.manager.on_change_of[OFFSETS.topic] = self._offsets_changed

    def _offsets_changed(self, partition: TopicPartition) -> None:
        self.groups.coordinator.high_watermark_updated(0, committed_offset(self.replicas.log(OFFSETS)))

    def append(self, *partitions: TopicPartition, **how: Any) -> Codes:
        answers = Answers()
        self.appender.append(marker(*partitions, **how), answers.append)
        codes: Codes = answers.one
        return codes

    def send(self, *partitions: TopicPartition, **how: Any) -> list[Codes]:
        answers = Answers()
        self.markers.send(marker(*partitions, **how), answers.append)
        return list(answers)

    def commit_offset(self, offset: int, epoch: int = 0) -> int:
        """In a transaction; its error."""
        answers = Answers()
        topics = [TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, offset)])]
        request = TxnOffsetCommitRequest("t", "g", PRODUCER, epoch, topics=topics)
        guards = self.verifying.verify(sequence=-1, epoch=epoch, partitions=(OFFSETS,)).guards
        self.groups.coordinator.commit_transactional_offsets(
            5, request, answers.append, lambda partition, verified: verified(0, guards.get(OFFSETS))
        )
        code: int = answers.one.topics[0].partitions[0].error_code
        return code

    def committed(self) -> int:
        answers = Answers()
        request = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0])])
        self.groups.coordinator.fetch_offsets(request, False, answers.append)
        offset: int = answers.one.topics[0].partitions[0].committed_offset
        return offset


def marker(
    *partitions: TopicPartition,
    epoch: int = 0,
    committed: bool = True,
    coordinator_epoch: int = 0,
    version: int = 0,
    producer: int = PRODUCER,
) -> Marker:
    return Marker("t", producer, epoch, coordinator_epoch, committed, partitions, version)
