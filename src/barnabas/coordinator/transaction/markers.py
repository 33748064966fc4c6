# Compiled by mypyc: src/compiled.toml lists this module.
"""Writes the end markers of decided transactions to all their partitions.

The layer between a shard, whose log holds the prepared transaction, and the sender, which reaches the partition leaders. It sends, retries
what failed temporarily, and calls the shard when nothing is left. It must never do so before every partition has its marker or is
deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from barnabas.coordinator.result import CoordinatorTimer
from barnabas.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION, EPOCH_MAX, TransactionMetadata
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

RETRY_BACKOFF_MS: Final = 50
RETRY_BACKOFF_MAX_MS: Final = 1_000
PATIENT_ATTEMPTS: Final = 9  # about five seconds; a broker receives the partitions of its cluster long before that

log = logging.getLogger(__name__)

_WRITTEN: Final = frozenset(
    {
        int(ErrorCode.NONE),
        # A log that cannot store the marker stores no records of the transaction either.
        int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        int(ErrorCode.UNSUPPORTED_VERSION),
    }
)
_FENCED: Final = frozenset({int(ErrorCode.INVALID_PRODUCER_EPOCH), int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)})


class Marker(NamedTuple):
    """An end marker of one producer, to be written to each of the partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int  # from 2 on the epoch is newer than that of every record of the transaction


class MarkerSender(Protocol):
    """Sends markers to the leaders of partitions, on this broker or others."""

    def exists(self, partition: TopicPartition) -> bool:
        """False when the cluster has no such partition; True when in doubt, because a partition reported as deleted gets no marker."""

    def send(self, marker: Marker, on_done: Callable[[Mapping[TopicPartition, int]], None]) -> None:
        """Write the marker. `on_done` receives the error code of each partition, all together or in parts, each partition exactly once.

        It may be called before `send` returns. An unknown or unreachable leader gives NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT or another
        retriable code, and the marker is sent again.
        """


class _Round:
    """One transaction whose markers are in flight."""

    __slots__ = ("attempts", "failed", "in_flight", "is_patient", "metadata", "missing")

    def __init__(self, metadata: TransactionMetadata, is_patient: bool) -> None:
        self.metadata = metadata
        self.is_patient = is_patient
        self.missing = set(metadata.partitions)
        self.in_flight = 0  # partitions sent and not answered
        self.failed: set[TopicPartition] = set()
        self.attempts = 0


class MarkerWriter:
    """The markers of one shard. `on_written` is called once for each started transaction, unless it is cancelled or fenced."""

    def __init__(
        self,
        sender: MarkerSender,
        timer: CoordinatorTimer,
        coordinator_epoch: Callable[[], int],
        on_written: Callable[[TransactionMetadata], None],
    ) -> None:
        self._sender = sender
        self._timer = timer
        self._coordinator_epoch = coordinator_epoch
        self._on_written = on_written
        self._rounds: dict[str, _Round] = {}

    def start(self, metadata: TransactionMetadata, *, is_patient: bool = False) -> None:
        """`metadata` is prepared and committed in the log. With `is_patient` a missing partition does not count as deleted at once: a
        broker that has just started receives its partitions one after the other."""
        if not metadata.state.is_prepared:
            raise ValueError(f"Transaction {metadata.transactional_id} is {metadata.state.title}, there is nothing to mark")
        round_ = _Round(metadata, is_patient)
        self._rounds[metadata.transactional_id] = round_
        self._send(round_, metadata.partitions)

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """The partitions that have no marker yet; None when no markers are in flight."""
        round_ = self._rounds.get(transactional_id)
        return None if round_ is None else frozenset(round_.missing)

    def cancel_all(self) -> None:
        """Another coordinator continues from the log. Markers already sent may still be written."""
        for transactional_id in self._rounds:
            self._timer.cancel(_retry_key(transactional_id))
        self._rounds.clear()

    def __len__(self) -> int:
        return len(self._rounds)

    def _send(self, current: _Round, partitions: frozenset[TopicPartition]) -> None:
        metadata = current.metadata
        existing = sorted(partition for partition in partitions if self._sender.exists(partition))
        absent = partitions.difference(existing)
        current.failed.clear()
        current.in_flight = len(existing)
        if absent and current.is_patient and current.attempts < PATIENT_ATTEMPTS:
            current.failed |= absent
        elif absent:
            log.info("%s needs no markers in %s, which are gone", metadata.transactional_id, ", ".join(map(str, sorted(absent))))
            current.missing -= absent
        if not existing:
            self._settle(current)
            return
        version = metadata.client_transaction_version
        if metadata.producer_epoch == EPOCH_MAX:
            version = min(version, EPOCH_BUMP_VERSION - 1)  # the records may already have the last epoch
        marker = Marker(
            metadata.transactional_id,
            metadata.producer_id,
            metadata.producer_epoch,
            self._coordinator_epoch(),
            metadata.state is TransactionState.PREPARE_COMMIT,
            tuple(existing),
            version,
        )
        self._sender.send(marker, lambda errors: self._answered(current, marker, errors))

    def _answered(self, current: _Round, marker: Marker, errors: Mapping[TopicPartition, int]) -> None:
        transactional_id = current.metadata.transactional_id
        if self._rounds.get(transactional_id) is not current:
            return  # cancelled or restarted since the marker was sent
        for partition, code in errors.items():
            current.in_flight -= 1
            if code in _WRITTEN:
                current.missing.discard(partition)
            elif code in _FENCED and marker.coordinator_epoch >= self._coordinator_epoch():
                log.info("The markers of %s are another coordinator's: %s-%d said %d", transactional_id, *partition, code)
                del self._rounds[transactional_id]
                return
            else:
                current.failed.add(partition)
        if current.in_flight <= 0:
            self._settle(current)

    def _settle(self, current: _Round) -> None:
        if current.failed:
            self._retry_later(current)
            return
        del self._rounds[current.metadata.transactional_id]
        self._on_written(current.metadata)

    def _retry_later(self, current: _Round) -> None:
        def again() -> None:
            if self._rounds.get(current.metadata.transactional_id) is current:
                self._send(current, frozenset(current.failed))

        delay_ms = min(RETRY_BACKOFF_MS << min(current.attempts, 10), RETRY_BACKOFF_MAX_MS)
        current.attempts += 1
        log.info(
            "Markers of %s in %d partitions failed for now; again in %d ms",
            current.metadata.transactional_id,
            len(current.failed),
            delay_ms,
        )
        self._timer.schedule(_retry_key(current.metadata.transactional_id), delay_ms, again)


def _retry_key(transactional_id: str) -> str:
    return f"markers-{transactional_id}"
