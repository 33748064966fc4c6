# Compiled by mypyc: src/compiled.toml lists this module.
"""The transactional ids of one partition of `__transaction_state`.

`transactions` is the result of replaying the log. An operation writes one step of one transactional id. Until the step is committed the id
is *pending*, and no other step may be taken, except to add partitions to the appended state. A prepared transaction gets its markers once
it is committed, and again after every load, until it is complete. No marker may be written for a transaction that is not committed in this
log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, CoordinatorTimer
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.decisions import Expected, NewId, TransactionRefused, decide_end, decide_init
from barnabas.coordinator.transaction.markers import RETRY_BACKOFF_MAX_MS, MarkerSender, MarkerWriter
from barnabas.coordinator.transaction.transaction_metadata import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionMetadata, tombstone
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.protocol.coordinator_records.transaction_log_key import TransactionLogKey
from barnabas.protocol.coordinator_records.transaction_log_value import TransactionLogValue
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

STEPS_AT_ONCE: Final = 50  # so that many transactions in one state do not block the event loop
TOMBSTONES_AT_ONCE: Final = 1_000
ID_BYTES: Final = 1_000  # of a transactional id without its characters
_TIMEOUT_KEY: Final = "transaction-abort"
_EXPIRATION_KEY: Final = "transactionalId-expiration"
_TAKES_PARTITIONS: Final = frozenset({TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})

R = TypeVar("R")
Action = Callable[[], None]
Write = Callable[[Callable[[], CoordinatorResult[None]]], None]

log = logging.getLogger(__name__)


class ProducerAnswer(NamedTuple):
    """An error code or, without an error, the producer id and epoch that the producer continues with."""

    code: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


class _Pending(NamedTuple):
    """A step that is being appended or is appended, and is not committed yet."""

    before: TransactionMetadata | None
    after: TransactionMetadata | None  # None when the id expires


class TransactionCoordinatorShard:
    """`write` runs an operation of this shard like that of a request; `coordinator_epoch` returns the leader epoch of the partition.
    `memory` counts the transactional ids of all shards of a broker."""

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        timer: CoordinatorTimer,
        sender: MarkerSender,
        write: Write,
        *,
        transaction_version: Callable[[], int],
        coordinator_epoch: Callable[[], int],
        memory: MemoryAccount | None = None,
    ) -> None:
        self.memory = MemoryAccount(config.barnabas_transactional_ids_max_bytes) if memory is None else memory
        self.transactions: dict[str, TransactionMetadata] = {}
        self.markers = MarkerWriter(sender, timer, coordinator_epoch, self._markers_written)
        self._config = config
        self._clock = clock
        self._timer = timer
        self._write = write
        self._transaction_version = transaction_version
        self._pending: dict[str, list[_Pending]] = {}  # in log order
        self._ongoing: set[str] = set()
        self._is_loaded = False
        self._until_complete: dict[str, list[Action]] = {}

    # -- requests

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Expected | None, new_id: NewId
    ) -> CoordinatorResult[ProducerAnswer]:
        if self._is_busy(transactional_id):
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
        now_ms = self._clock.now_ms()
        before = self.transactions.get(transactional_id)
        current = before
        if current is None:
            if not self.memory.has_room(_size(transactional_id)):
                raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            current = TransactionMetadata(transactional_id, new_id(), timeout_ms=timeout_ms, last_update_timestamp=now_ms)
        after = decide_init(current, timeout_ms, expected, new_id, self._transaction_version(), now_ms)
        if after.state.is_prepared:
            return self._step(before, after, ProducerAnswer(int(ErrorCode.CONCURRENT_TRANSACTIONS)))
        return self._step(before, after, ProducerAnswer(int(ErrorCode.NONE), after.producer_id, after.producer_epoch))

    def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: frozenset[TopicPartition], client_version: int
    ) -> CoordinatorResult[int]:
        current = self.visible(transactional_id)
        if self._is_busy(transactional_id):
            current = self._appended(transactional_id, producer_id, epoch)
        if current is None or current.producer_id != producer_id:
            raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if current.producer_epoch != epoch:
            raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
        if current.state is TransactionState.ONGOING and partitions <= current.partitions:
            return CoordinatorResult(response=int(ErrorCode.NONE))
        after = current.with_partitions(partitions, client_version, self._clock.now_ms())
        return self._step(current, after, int(ErrorCode.NONE))

    def verify_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        current = self.visible(transactional_id)
        if current is None or current.producer_id != producer_id:
            raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if current.producer_epoch != epoch:
            raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
        if current.state.is_prepared:
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            partition: int(ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE)
            for partition in partitions
        }

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, new_id: NewId, *, committed: bool, client_version: int
    ) -> CoordinatorResult[ProducerAnswer]:
        """The response holds the producer id and epoch that the producer continues with."""
        current = self.visible(transactional_id)
        now_ms = self._clock.now_ms()
        after = decide_end(
            current,
            producer_id,
            epoch,
            is_busy=self._is_busy(transactional_id),
            committed=committed,
            client_version=client_version,
            new_id=new_id,
            now_ms=now_ms,
        )
        if after is current:
            return CoordinatorResult(response=ProducerAnswer(int(ErrorCode.NONE), after.producer_id, after.producer_epoch))
        completed = after.completed(now_ms)
        return self._step(current, after, ProducerAnswer(int(ErrorCode.NONE), completed.producer_id, completed.producer_epoch))

    def when_complete(self, transactional_id: str, action: Action) -> None:
        """Call `action` when the transaction that is ending is complete: all partitions have its markers and its end is in the log. Calls
        it at once when no transaction is ending, and at the latest after add.partitions.to.txn.retry.backoff.max.ms."""
        wait_ms = self._config.add_partitions_to_txn_retry_backoff_max_ms
        current = self.transactions.get(transactional_id)
        if not self._is_loaded or wait_ms <= 0 or current is None or not current.state.is_prepared:
            action()
            return
        self._until_complete.setdefault(transactional_id, []).append(action)
        self._timer.schedule(_answer_key(transactional_id), wait_ms, lambda: _call_all(self._until_complete, transactional_id))

    def visible(self, transactional_id: str) -> TransactionMetadata | None:
        """The committed state of an id."""
        steps = self._pending.get(transactional_id)
        return steps[0].before if steps else self.transactions.get(transactional_id)

    def all_visible(self) -> Iterable[TransactionMetadata]:
        for transactional_id in [*self.transactions, *(pending_id for pending_id in self._pending if pending_id not in self.transactions)]:
            transaction = self.visible(transactional_id)
            if transaction is not None:
                yield transaction

    def _is_busy(self, transactional_id: str) -> bool:
        """Whether a step or the markers are being written."""
        if transactional_id in self._pending:
            return True
        transaction = self.transactions.get(transactional_id)
        return transaction is not None and transaction.state.is_prepared

    def _appended(self, transactional_id: str, producer_id: int, epoch: int) -> TransactionMetadata:
        """The appended, uncommitted state of an id, if partitions may be added to it now. The response then waits until both are
        committed. So neither several leaders that add partitions at once nor the next transaction have to retry."""
        steps = self._pending.get(transactional_id)
        appended = self.transactions.get(transactional_id)
        if not steps or appended is None or steps[-1].after is None or appended.state not in _TAKES_PARTITIONS:
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if (appended.producer_id, appended.producer_epoch) != (producer_id, epoch):
            raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return appended

    # -- steps

    def _step(self, before: TransactionMetadata | None, after: TransactionMetadata, response: R | None) -> CoordinatorResult[R]:
        transactional_id = after.transactional_id
        step = _Pending(before, after)
        self._pending.setdefault(transactional_id, []).append(step)

        def settled(error: Exception | None) -> None:
            self._settle(transactional_id, step)
            if not self._is_loaded:
                return
            reached = self.transactions.get(transactional_id)
            if error is None:
                if after.state.is_prepared:
                    self.markers.start(after)
            elif before is not None and before.state.is_prepared:
                self._later(_complete_key(transactional_id), lambda: self._complete(transactional_id))
            elif reached is not None and reached.state.is_prepared:
                # The step is appended, though not committed, and the client retries: the coordinator has to complete it.
                self._later(_resume_key(transactional_id), lambda: self._resume(transactional_id))

        return CoordinatorResult([after.to_record(self._transaction_version())], response, settled)

    def _settle(self, transactional_id: str, step: _Pending) -> None:
        remaining = [pending for pending in self._pending.pop(transactional_id, ()) if pending is not step]
        if remaining:
            self._pending[transactional_id] = remaining

    def _later(self, key: str, action: Callable[[], CoordinatorResult[None] | None]) -> None:
        self._timer.schedule(key, RETRY_BACKOFF_MAX_MS, action)

    def _resume(self, transactional_id: str) -> CoordinatorResult[None] | None:
        """Start the markers of a transaction once everything appended is committed. Nothing has to be written for that."""

        def settled(error: Exception | None) -> None:
            current = self.transactions.get(transactional_id)
            if not self._is_loaded or current is None or not current.state.is_prepared:
                return
            if error is None:
                self.markers.start(current, is_patient=True)
            else:
                self._later(_resume_key(transactional_id), lambda: self._resume(transactional_id))

        return CoordinatorResult(on_appended=settled)

    def _markers_written(self, prepared: TransactionMetadata) -> None:
        self._run(lambda: self._complete(prepared.transactional_id))

    def _complete(self, transactional_id: str) -> CoordinatorResult[None]:
        current = self.transactions.get(transactional_id)
        if current is None or not current.state.is_prepared or transactional_id in self._pending:
            return CoordinatorResult()
        return self._step(current, current.completed(self._clock.now_ms()), None)

    def _run(self, operation: Callable[[], CoordinatorResult[None]]) -> None:
        self._write(lambda: operation() if self._is_loaded else CoordinatorResult())

    # -- timeouts and expiry

    def _abort_timed_out(self) -> None:
        now_ms = self._clock.now_ms()
        timed_out = [name for name in self._ongoing if self.transactions[name].is_timed_out(now_ms) and name not in self._pending]
        batch = timed_out[:STEPS_AT_ONCE]
        for transactional_id in batch:
            log.info("Aborting the transaction of %s, which took longer than its timeout", transactional_id)
            self._run(partial(self._fence, transactional_id))
        is_stuck = all(transactional_id in self._ongoing for transactional_id in batch)
        interval_ms = self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._timer.schedule(_TIMEOUT_KEY, interval_ms if is_stuck or len(timed_out) == len(batch) else 1, self._abort_timed_out)

    def _fence(self, transactional_id: str) -> CoordinatorResult[None]:
        current = self.transactions.get(transactional_id)
        now_ms = self._clock.now_ms()
        if current is None or not current.is_timed_out(now_ms) or transactional_id in self._pending:
            return CoordinatorResult()
        return self._step(current, current.fenced(self._transaction_version(), now_ms), None)

    def _expire(self) -> CoordinatorResult[None] | None:
        self._timer.schedule(_EXPIRATION_KEY, self._config.transaction_remove_expired_transaction_cleanup_interval_ms, self._expire)
        now_ms, expiration_ms = self._clock.now_ms(), self._config.transactional_id_expiration_ms
        all_expired = (
            metadata
            for metadata in self.transactions.values()
            if metadata.is_expired(now_ms, expiration_ms) and metadata.transactional_id not in self._pending
        )
        expired = list(islice(all_expired, TOMBSTONES_AT_ONCE))
        if not expired:
            return None
        steps = [(metadata.transactional_id, _Pending(metadata, None)) for metadata in expired]
        for transactional_id, step in steps:
            self._pending[transactional_id] = [step]

        def settled(error: Exception | None) -> None:
            for transactional_id, step in steps:
                self._settle(transactional_id, step)
            if error is not None:
                log.warning("Transactional ids that have expired could not be removed for now: %s", error)
            elif self._is_loaded and len(expired) == TOMBSTONES_AT_ONCE:
                self._timer.schedule(_EXPIRATION_KEY, 1, self._expire)

        return CoordinatorResult([tombstone(metadata.transactional_id) for metadata in expired], on_appended=settled, atomic=False)

    # -- the log

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        if not isinstance(record.key, TransactionLogKey):
            raise ValueError(f"Not a record of a transaction log at offset {offset}")
        transactional_id = record.key.transactional_id
        if record.value is None:
            self._ongoing.discard(transactional_id)
            if self.transactions.pop(transactional_id, None) is not None:
                self.memory.used -= _size(transactional_id)
            return
        if not isinstance(record.value, TransactionLogValue):
            raise ValueError(f"Not a record of a transaction log at offset {offset}")
        metadata = TransactionMetadata.of_record(transactional_id, record.value)  # first: it raises for a record that loading has to skip
        self._ongoing.discard(transactional_id)
        steps = self._pending.get(transactional_id)
        if steps and (after := steps[-1].after) is not None:
            metadata = metadata._replace(last_producer_epoch=after.last_producer_epoch)
        if transactional_id not in self.transactions:
            self.memory.used += _size(transactional_id)
        self.transactions[transactional_id] = metadata
        if transactional_id in self._until_complete and not metadata.state.is_prepared:
            self._timer.schedule(_answer_key(transactional_id), 0, lambda: _call_all(self._until_complete, transactional_id))
        if metadata.state is TransactionState.ONGOING:
            self._ongoing.add(transactional_id)

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Never happens: the records of this log are not transactional."""

    def on_loaded(self) -> None:
        self._is_loaded = True
        config = self._config
        self._timer.schedule(_TIMEOUT_KEY, config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._abort_timed_out)
        self._timer.schedule(_EXPIRATION_KEY, config.transaction_remove_expired_transaction_cleanup_interval_ms, self._expire)
        prepared = [metadata for metadata in self.transactions.values() if metadata.state.is_prepared]
        for index, metadata in enumerate(prepared):
            log.info("Going on with the markers of %s, which was left %s", metadata.transactional_id, metadata.state.title)
            delay_ms = index // STEPS_AT_ONCE
            self._timer.schedule(_resume_key(metadata.transactional_id), delay_ms, partial(self._resume, metadata.transactional_id))

    def on_unloaded(self) -> None:
        self._is_loaded = False
        self.markers.cancel_all()
        for transactional_id in list(self._until_complete):  # the end of these transactions is already decided
            _call_all(self._until_complete, transactional_id)
        self.memory.used -= sum(map(_size, self.transactions))


def _size(transactional_id: str) -> int:
    """The bytes that an id holds, without the partitions of its transaction."""
    return ID_BYTES + len(transactional_id)


def _resume_key(transactional_id: str) -> str:
    return f"resume-{transactional_id}"


def _complete_key(transactional_id: str) -> str:
    return f"complete-{transactional_id}"


def _answer_key(transactional_id: str) -> str:
    return f"answer-{transactional_id}"


def _call_all(waiting: dict[str, list[Action]], transactional_id: str) -> None:
    for action in waiting.pop(transactional_id, ()):
        action()
