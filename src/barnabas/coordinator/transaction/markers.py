# Compiled by mypyc: src/compiled.toml lists this module.
"""Gets the end markers of decided transactions into all their partitions.

Between a shard, which has a transaction in its log as prepared, and the sender, which reaches the leaders of the partitions. It asks,
asks again for what failed for the time being, and tells the shard when nothing is left to do. It must never say so before every
partition has its marker or is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from barnabas.coordinator.result import Timer
from barnabas.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION, EPOCH_MAX, TransactionMetadata
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

RETRY_BACKOFF_MS: Final = 50
RETRY_BACKOFF_MAX_MS: Final = 1_000
PATIENT_ATTEMPTS: Final = 9  # about five seconds; the partitions of a cluster are known long before that

log = logging.getLogger(__name__)

_WRITTEN: Final = frozenset(
    {
        int(ErrorCode.NONE),
        # A log that cannot hold the marker holds nothing of the transaction either.
        int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        int(ErrorCode.UNSUPPORTED_VERSION),
    }
)
_FENCED: Final = frozenset({int(ErrorCode.INVALID_PRODUCER_EPOCH), int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)})


class Marker(NamedTuple):
    """What is to be written: an end marker of one producer into each of the partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int  # from 2 on the epoch is newer than that of every record of the transaction


class MarkerSender(Protocol):
    """Reaches the leaders of partitions, this broker or another."""

    def exists(self, partition: TopicPartition) -> bool:
        """False when the cluster has no such partition (any more); True when in doubt, since what is gone gets no marker."""

    def send(self, marker: Marker, on_done: Callable[[Mapping[TopicPartition, int]], None]) -> None:
        """Write the marker. `on_done` gets the error code of each partition, all at once or in parts, each partition exactly once.

        It may be called before `send` returns. A leader that is not known or does not answer is NOT_LEADER_OR_FOLLOWER or
        REQUEST_TIMED_OUT or whatever else may pass: it is sent again.
        """


class _Round:
    """One transaction whose markers are under way."""

    __slots__ = ("attempts", "failed", "in_flight", "is_patient", "metadata", "missing")

    def __init__(self, metadata: TransactionMetadata, is_patient: bool) -> None:
        self.metadata = metadata
        self.is_patient = is_patient
        self.missing = set(metadata.partitions)
        self.in_flight = 0  # partitions that were sent and not answered
        self.failed: set[TopicPartition] = set()
        self.attempts = 0


class MarkerWriter:
    """The markers of one shard. `on_written` is called once for each transaction that was started, unless it is cancelled or fenced."""

    def __init__(
        self, sender: MarkerSender, timer: Timer, coordinator_epoch: Callable[[], int], on_written: Callable[[TransactionMetadata], None]
    ) -> None:
        self._sender = sender
        self._timer = timer
        self._coordinator_epoch = coordinator_epoch
        self._on_written = on_written
        self._rounds: dict[str, _Round] = {}

    def start(self, metadata: TransactionMetadata, *, is_patient: bool = False) -> None:
        """`metadata` is prepared, and the log has it. With `is_patient` a partition that is not there is not gone at once: a broker that
        has just come up hears of its partitions one after the other."""
        if not metadata.state.is_prepared:
            raise ValueError(f"Transaction {metadata.transactional_id} is {metadata.state.title}, there is nothing to mark")
        started = _Round(metadata, is_patient)
        self._rounds[metadata.transactional_id] = started
        self._send(started, metadata.partitions)

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """The partitions that have no marker yet; None when no markers are under way."""
        found = self._rounds.get(transactional_id)
        return None if found is None else frozenset(found.missing)

    def cancel_all(self) -> None:
        """Another coordinator goes on from the log. What was sent may still be written."""
        for transactional_id in self._rounds:
            self._timer.cancel(_retry_key(transactional_id))
        self._rounds.clear()

    def __len__(self) -> int:
        return len(self._rounds)

    def _send(self, current: _Round, wanted: frozenset[TopicPartition]) -> None:
        metadata = current.metadata
        there = sorted(partition for partition in wanted if self._sender.exists(partition))
        absent = wanted.difference(there)
        current.failed.clear()
        current.in_flight = len(there)
        if absent and current.is_patient and current.attempts < PATIENT_ATTEMPTS:
            current.failed |= absent
        elif absent:
            log.info("%s needs no markers in %s, which are gone", metadata.transactional_id, ", ".join(map(str, sorted(absent))))
            current.missing -= absent
        if not there:
            self._settle(current)
            return
        version = metadata.client_transaction_version
        if metadata.producer_epoch == EPOCH_MAX:
            version = min(version, EPOCH_BUMP_VERSION - 1)  # the last epoch may have been that of the records already
        marker = Marker(
            metadata.transactional_id,
            metadata.producer_id,
            metadata.producer_epoch,
            self._coordinator_epoch(),
            metadata.state is TransactionState.PREPARE_COMMIT,
            tuple(there),
            version,
        )
        self._sender.send(marker, lambda errors: self._answered(current, marker, errors))

    def _answered(self, current: _Round, marker: Marker, errors: Mapping[TopicPartition, int]) -> None:
        transactional_id = current.metadata.transactional_id
        if self._rounds.get(transactional_id) is not current:
            return  # cancelled, or begun anew, since it was sent
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
