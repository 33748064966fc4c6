# Compiled by mypyc: src/compiled.toml lists this module.
"""The producers of one partition: their ids and epochs, their last batches, and their open transactions.

The Log checks a batch of an idempotent or transactional producer here before it writes it, and updates this state afterwards. The open
transactions determine the last stable offset. The state is a fold over the log; snapshots at segment boundaries make replaying short. This
module neither writes to the log nor reads from it.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Final

from barnabas.errors import CorruptSnapshot, InvalidProducerEpoch, InvalidTxnState
from barnabas.records.batch import NO_PRODUCER_ID, Batch
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.append import CompletedTxn, ProducerAppendInfo, TxnMetadata
from barnabas.storage.producers.entry import NO_OFFSET, BatchMetadata, ProducerStateEntry
from barnabas.storage.producers.snapshot import ProducerSnapshots
from barnabas.storage.producers.verification import SENTINEL, VerificationGuard, VerificationStateEntry
from barnabas.topic_partition import TopicPartition

__all__ = [
    "BatchMetadata",
    "CompletedTxn",
    "ProducerAppendInfo",
    "ProducerStateConfig",
    "ProducerStateEntry",
    "ProducerStateManager",
    "TxnMetadata",
]

_log = logging.getLogger(__name__)

_EVICTION_CANDIDATES: Final = 16  # producers that are compared to find one that can be forgotten
LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000


class ProducerStateConfig:
    """Broker settings that all partitions share and that may change while the broker runs."""

    def __init__(
        self,
        producer_id_expiration_ms: int = 86_400_000,
        transaction_verification_enabled: bool = True,
        max_transaction_timeout_ms: int = 900_000,
        producers_max: int = 20_000,
    ) -> None:
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.transaction_verification_enabled = transaction_verification_enabled
        self.max_transaction_timeout_ms = max_transaction_timeout_ms
        self.producers_max = producers_max  # of one partition


class ProducerStateManager:
    def __init__(self, files: AnyFiles, directory: str, partition: TopicPartition, config: ProducerStateConfig | None = None) -> None:
        self.partition = str(partition)
        self.config = config or ProducerStateConfig()
        self.snapshots = ProducerSnapshots(files, directory)
        self.map_end_offset = 0  # the state includes all records below
        self._last_snapshot_offset = 0
        self._producers: dict[int, ProducerStateEntry] = {}
        self._verifications: dict[int, VerificationStateEntry] = {}
        self._ongoing = _Transactions()
        self._unreplicated = _Transactions()  # ended, with markers above the high watermark
        self._unsynced: list[str] = []

    # -- lookups

    @property
    def active_producers(self) -> dict[int, ProducerStateEntry]:
        return self._producers

    @property
    def is_empty(self) -> bool:
        return not self._producers and not self._unreplicated.by_first_offset

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        return self._producers.get(producer_id)

    def find_duplicate(self, batch: Batch) -> BatchMetadata | None:
        """The batch in the log of which this one is a retry."""
        entry = self._producers.get(batch.producer_id)
        return None if entry is None else entry.find_duplicate(batch)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return entry is not None and entry.current_txn_first_offset != NO_OFFSET and entry.producer_epoch == producer_epoch

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        txn = self._ongoing.first
        return None if txn is None else txn.first_offset.offset

    @property
    def first_unstable_offset(self) -> LogOffset | None:
        """The first offset of the oldest transaction that is open, or whose marker is not replicated yet: read_committed stops here."""
        ongoing, unreplicated = self._ongoing.first, self._unreplicated.first
        if ongoing is None:
            return None if unreplicated is None else unreplicated.first_offset
        if unreplicated is None or ongoing.first_offset.offset < unreplicated.first_offset.offset:
            return ongoing.first_offset
        return unreplicated.first_offset

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset after a transaction is completed, for the transaction index. Called before `complete_txn`."""
        for offset in self._ongoing.first_offsets:
            if self._ongoing.by_first_offset[offset].producer_id != completed.producer_id:
                return offset
        return completed.last_offset + 1

    def has_late_transaction(self, now_ms: int) -> bool:
        """Whether the oldest open transaction has outlived the longest timeout that a producer may set: its coordinator has lost it."""
        txn = self._ongoing.first
        entry = None if txn is None else self._producers.get(txn.producer_id)
        if entry is None or entry.last_timestamp <= 0:
            return False
        return now_ms - entry.last_timestamp > self.config.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    # -- appending

    def prepare_update(self, producer_id: int, origin: int) -> ProducerAppendInfo:
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = ProducerStateEntry(producer_id)
        verification = self._verifications.get(producer_id) if self._verifications else None
        return ProducerAppendInfo(self.partition, producer_id, entry, origin, verification)

    def update(self, info: ProducerAppendInfo) -> None:
        """Applies an append whose batches are in the log."""
        if info.producer_id == NO_PRODUCER_ID:
            raise ValueError(f"Invalid producer id {info.producer_id} passed to update for partition {self.partition}")
        entry = self._producers.get(info.producer_id)
        if entry is None:
            self._producers[info.producer_id] = info.updated
            if len(self._producers) > self.config.producers_max:
                self._forget_one_producer()
        else:
            entry.absorb(info.updated)
        if info.started is not None:
            for txn in info.started:
                self._ongoing.add(txn)

    def complete_txn(self, completed: CompletedTxn) -> None:
        """A marker is in the log and in the transaction index. Readers may read past it when it is replicated."""
        txn = self._ongoing.remove(completed.first_offset)
        if txn is None:
            raise ValueError(
                f"Attempted to complete transaction CompletedTxn(producerId={completed.producer_id}, "
                f"firstOffset={completed.first_offset}, lastOffset={completed.last_offset}, isAborted={completed.is_aborted}) "
                f"on partition {self.partition} which was not started"
            )
        txn.last_offset = completed.last_offset
        self._unreplicated.add(txn)

    def update_map_end_offset(self, offset: int) -> None:
        self.map_end_offset = offset

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        if self._unreplicated.by_first_offset:
            self._unreplicated.remove_ended_below(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        self._unreplicated.remove_ended_below(log_start_offset)
        if self.map_end_offset < log_start_offset:
            self.map_end_offset = log_start_offset
        latest = self.snapshots.latest
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    def remove_expired(self, now_ms: int, monotonic_ms: int) -> None:
        """Removes producers without records for producer.id.expiration.ms, except those with an open transaction. Wall time is compared
        with the timestamps of records; verifications have no records, so their age is measured in monotonic time."""
        for producer_id in [i for i, entry in self._producers.items() if self._is_expired(entry, now_ms)]:
            del self._producers[producer_id]
        limit_ms = monotonic_ms - self.config.producer_id_expiration_ms
        for producer_id in [i for i, verification in self._verifications.items() if verification.created_ms <= limit_ms]:
            del self._verifications[producer_id]

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        return entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= self.config.producer_id_expiration_ms

    def _forget_one_producer(self) -> None:
        """Removes one producer as if it had expired: of some candidates, the one whose last batch has the lowest offset, which no client
        can forge. A producer with an open transaction stays. The other candidates move to the end of the order."""
        candidates = list(islice(self._producers.values(), _EVICTION_CANDIDATES))
        without_txn = [entry for entry in candidates if entry.current_txn_first_offset == NO_OFFSET]
        oldest = min(without_txn, key=lambda entry: entry.last_data_offset, default=None)
        for entry in candidates:
            del self._producers[entry.producer_id]
            if entry is not oldest:
                self._producers[entry.producer_id] = entry

    # -- verification of transactions (KIP-890)

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, supports_epoch_bump: bool, monotonic_ms: int
    ) -> VerificationGuard:
        """The guard for a request to the coordinator; SENTINEL if the transaction is already open in this partition."""
        self._require_epoch(producer_id, producer_epoch)
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return SENTINEL
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = VerificationStateEntry(monotonic_ms, sequence, producer_epoch, supports_epoch_bump)
            if len(self._verifications) >= self.config.producers_max:
                del self._verifications[next(iter(self._verifications))]  # the oldest: its producer must verify again
            self._verifications[producer_id] = verification
        verification.maybe_update_lowest_sequence_and_epoch(sequence, producer_epoch)
        return verification.guard

    def _require_epoch(self, producer_id: int, producer_epoch: int) -> None:
        entry = self._producers.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {producer_id} is {producer_epoch}, which is smaller than the last seen epoch {entry.producer_epoch}"
            )

    def verification_entry(self, producer_id: int) -> VerificationStateEntry | None:
        return self._verifications.get(producer_id)

    def clear_verification(self, producer_id: int) -> None:
        """The transaction has a first offset in this partition, or has ended: the guard is no longer needed."""
        self._verifications.pop(producer_id, None)

    def require_verified(self, batch: Batch, presented: VerificationGuard) -> None:
        """Raises InvalidTxnState for a batch that would open a transaction that the coordinator has not verified."""
        if not batch.is_transactional or batch.is_control:
            return
        if self.has_ongoing_transaction(batch.producer_id, batch.producer_epoch):
            return
        self._require_epoch(batch.producer_id, batch.producer_epoch)  # first, so that a zombie gets the error for its epoch
        if not self.config.transaction_verification_enabled:
            return
        verification = self._verifications.get(batch.producer_id)
        if verification is None or not verification.guard.verify(presented):
            raise InvalidTxnState("Record was not part of an ongoing transaction")

    # -- snapshots

    @property
    def latest_snapshot_offset(self) -> int | None:
        return self.snapshots.latest

    @property
    def oldest_snapshot_offset(self) -> int | None:
        return self.snapshots.oldest

    def take_snapshot(self, sync: bool = True) -> str | None:
        """Writes the state at `map_end_offset`, unless that offset has a snapshot; returns the path of the file if one was written."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self.snapshots.write(self.map_end_offset, self._producers.values(), sync)
        if path is None:
            _log.warning("No producer snapshot of %s at offset %d: too many producer ids", self.partition, self.map_end_offset)
            return None
        _log.info(
            "Wrote producer snapshot of %s at offset %d with %d producer ids", self.partition, self.map_end_offset, len(self._producers)
        )
        if not sync:
            self._unsynced.append(path)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def take_unsynced_snapshots(self) -> list[str]:
        """The paths of snapshots written without a sync since the last call. The caller syncs them."""
        paths, self._unsynced = self._unsynced, []
        return paths

    def unsynced_again(self, paths: Sequence[str]) -> None:
        """These could not be synced: the next call of `take_unsynced_snapshots` returns them again."""
        self._unsynced = [*paths, *self._unsynced]

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Loads the latest snapshot within the log; the caller replays from `map_end_offset` on.

        The log is never truncated below the high watermark, so transactions that wait for it may be dropped.
        """
        for offset in list(self.snapshots.offsets):
            if offset > log_end_offset or offset <= log_start_offset:
                self._remove_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._clear()
        self._load_from_snapshot(log_start_offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._clear()
        for snapshot in list(self.snapshots.offsets):
            self._remove_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def delete_snapshots_before(self, offset: int) -> None:
        for snapshot in list(self.snapshots.offsets):
            if snapshot < offset:
                self._remove_snapshot(snapshot)

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        self.snapshots.remove_stray(segment_base_offsets)

    def mark_snapshot_for_deletion(self, offset: int) -> Callable[[], None] | None:
        """Renames the snapshot of a segment that is being deleted; returns the call that removes the file later."""
        self._forget_unsynced(offset)
        return self.snapshots.mark_for_deletion(offset)

    def moved_to(self, directory: str) -> None:
        """The directory of the log was renamed."""
        self._unsynced = [f"{directory}/{path.rpartition('/')[2]}" for path in self._unsynced]
        self.snapshots.directory = directory

    def _load_from_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        while (offset := self.snapshots.latest) is not None:
            try:
                entries = self.snapshots.read(offset)
            except CorruptSnapshot as e:
                _log.warning("Failed to load producer snapshot of %s at offset %d: %s", self.partition, offset, e)
                self._remove_snapshot(offset)
                continue
            for entry in entries:
                if not self._is_expired(entry, now_ms):
                    self._load_entry(entry)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def _load_entry(self, entry: ProducerStateEntry) -> None:
        self._producers[entry.producer_id] = entry
        if entry.current_txn_first_offset != NO_OFFSET:
            self._ongoing.add(TxnMetadata(entry.producer_id, LogOffset(entry.current_txn_first_offset)))

    def _remove_snapshot(self, offset: int) -> None:
        self._forget_unsynced(offset)
        self.snapshots.remove(offset)

    def _forget_unsynced(self, offset: int) -> None:
        path = self.snapshots.path(offset)
        if path in self._unsynced:
            self._unsynced.remove(path)

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()


class _Transactions:
    """Transactions by their first offset, with quick access to the lowest."""

    def __init__(self) -> None:
        self.by_first_offset: dict[int, TxnMetadata] = {}
        self.first_offsets: list[int] = []  # sorted

    @property
    def first(self) -> TxnMetadata | None:
        return self.by_first_offset[self.first_offsets[0]] if self.first_offsets else None

    def add(self, txn: TxnMetadata) -> None:
        offset = txn.first_offset.offset
        if offset not in self.by_first_offset:
            insort(self.first_offsets, offset)
        self.by_first_offset[offset] = txn

    def remove(self, first_offset: int) -> TxnMetadata | None:
        txn = self.by_first_offset.pop(first_offset, None)
        if txn is not None:
            del self.first_offsets[bisect_left(self.first_offsets, first_offset)]
        return txn

    def remove_ended_below(self, offset: int) -> None:
        """Transactions are added in the order in which they end, so none after the first that ended above the offset ended below it."""
        ended: list[int] = []
        for first_offset, txn in self.by_first_offset.items():
            if txn.last_offset >= offset:
                break
            ended.append(first_offset)
        for first_offset in ended:
            self.remove(first_offset)

    def clear(self) -> None:
        self.by_first_offset.clear()
        self.first_offsets.clear()
