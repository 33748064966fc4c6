# Compiled by mypyc: src/compiled.toml lists this module.
"""The transaction coordinator, as the request handlers call it: one method per API, which calls `respond` exactly once.

Each method validates the request without the state of the transactional id, finds its partition, runs the operation on the shard, and turns
an error into the response of the API. `respond` may be called before the method returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeVar

from barnabas.coordinator.expression import ExpressionError, compile_expression
from barnabas.coordinator.faults import client_error_code
from barnabas.coordinator.group.group import partition_for
from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.coordinator.partition_log import CoordinatorPartitionLog
from barnabas.coordinator.result import Clock, CoordinatorResult
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard_timer import Scheduler, ShardTimer
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.decisions import Expected, TransactionRefused
from barnabas.coordinator.transaction.markers import MarkerSender
from barnabas.coordinator.transaction.producer_ids import NeedsProducerId, ProducerIds
from barnabas.coordinator.transaction.shard import ProducerAnswer, TransactionCoordinatorShard
from barnabas.coordinator.transaction.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    TransactionMetadata,
)
from barnabas.coordinator.transaction.transaction_state import TransactionState, state_of_title
from barnabas.errors import CoordinatorNotAvailable, KafkaError
from barnabas.protocol.coordinator_log import TRANSACTION_RECORDS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.describe_transactions_response import TopicData
from barnabas.protocol.messages.describe_transactions_response import TransactionState as DescribedTransaction
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.protocol.messages.list_transactions_response import TransactionState as ListedTransaction
from barnabas.records.batch import NO_SEQUENCE
from barnabas.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition

R = TypeVar("R")
Respond = Callable[[R], None]

FETCH_ATTEMPTS_MAX: Final = 10  # an attempt fails when other requests used up the whole block first


class TransactionCoordinator:
    """`transaction_version` returns the finalized level of the feature; `offsets_partition` the partition of a group's offsets."""

    def __init__(
        self,
        config: TransactionConfig,
        partition_log: CoordinatorPartitionLog,
        clock: Clock,
        scheduler: Scheduler,
        producer_ids: ProducerIds,
        markers: MarkerSender,
        *,
        transaction_version: Callable[[], int],
        offsets_partition: Callable[[str], int],
    ) -> None:
        self._config = config
        self._memory = MemoryAccount(config.barnabas_transactional_ids_max_bytes)
        self._clock = clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._transaction_version = transaction_version
        self._offsets_partition = offsets_partition
        self._epochs: dict[int, int] = {}
        self._partition_count = 0  # 0 until `start`
        self._runtime: CoordinatorRuntime[TransactionCoordinatorShard] = CoordinatorRuntime(
            partition_log,
            self._make_shard,
            clock,
            scheduler,
            load_buffer_size=config.transaction_state_log_load_buffer_size,
            topic=TRANSACTION_STATE,
            record_types=TRANSACTION_RECORDS,
            base_sequence=NO_SEQUENCE,
        )

    def _make_shard(self, partition: int, timer: ShardTimer) -> TransactionCoordinatorShard:
        def write(operation: Callable[[], CoordinatorResult[None]]) -> None:
            timeout_ms = self._config.request_timeout_ms
            self._runtime.write(partition, lambda _: operation(), _nothing, _nothing, timeout_ms=timeout_ms)

        return TransactionCoordinatorShard(
            self._config,
            self._clock,
            timer,
            self._markers,
            write,
            transaction_version=self._transaction_version,
            coordinator_epoch=lambda: self._epochs[partition],
            memory=self._memory,
        )

    # -- life cycle

    def start(self, partition_count: int) -> None:
        """`partition_count` is that of `__transaction_state`, or the one it will be created with."""
        self._partition_count = partition_count

    def shutdown(self) -> None:
        self._partition_count = 0
        self._runtime.shutdown()

    def partition_for(self, transactional_id: str) -> int:
        if not self._partition_count:
            raise CoordinatorNotAvailable
        return partition_for(transactional_id, self._partition_count)

    def on_election(self, partition: int, leader_epoch: int) -> Iterator[None]:
        """This broker leads a partition of the topic. The partition is loading until the iterator is exhausted, one slice a step."""
        self._epochs[partition] = max(leader_epoch, self._epochs.get(partition, leader_epoch))
        return self._runtime.load(partition, leader_epoch)

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        self._runtime.unload(partition, leader_epoch)
        if leader_epoch is None:
            self._epochs.pop(partition, None)  # a topic recreated with the same name starts at epoch 0

    def high_watermark_updated(self, partition: int, high_watermark: int) -> None:
        self._runtime.high_watermark_updated(partition, high_watermark)

    # -- producers

    def init_producer_id(self, request: InitProducerIdRequest, version: int, respond: Respond[InitProducerIdResponse]) -> None:
        def answer(result: ProducerAnswer) -> None:
            respond(
                InitProducerIdResponse(
                    error_code=_for_version(result.code, version, _INIT_KNOWS_FENCED),
                    producer_id=result.producer_id,
                    producer_epoch=result.epoch,
                )
            )

        def fail(error: Exception) -> None:
            answer(ProducerAnswer(client_error_code(error)))

        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            fail(TransactionRefused(ErrorCode.INVALID_REQUEST))
            return
        if request.transactional_id is None:
            self._with_ids(lambda: answer(ProducerAnswer(0, self._new_id(), 0)), fail)
            return
        transactional_id = request.transactional_id
        fault = self._init_fault(request, transactional_id)
        if fault is not None:
            answer(ProducerAnswer(int(fault)))
            return
        timeout_ms = NO_TIMEOUT_MS if request.enable_2pc else request.transaction_timeout_ms
        expected = None if request.producer_id == NO_PRODUCER_ID else Expected(request.producer_id, request.producer_epoch)
        self._write(
            transactional_id,
            lambda shard: shard.init_producer_id(transactional_id, timeout_ms, expected, self._new_id),
            answer,
            fail,
        )

    def _init_fault(self, request: InitProducerIdRequest, transactional_id: str) -> ErrorCode | None:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if request.enable_2pc and not self._config.transaction_two_phase_commit_enable:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.keep_prepared_txn:
            return ErrorCode.UNSUPPORTED_VERSION
        if not request.enable_2pc and not 0 < request.transaction_timeout_ms <= self._config.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return None

    # -- partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        version: int,
        respond: Respond[int],
    ) -> None:
        """One transaction of an AddPartitionsToTxn of this version. All its partitions get the same code."""

        def answer(code: int) -> None:
            respond(_for_version(code, version, _ADD_PARTITIONS_KNOWS_FENCED))

        self._add(transactional_id, producer_id, epoch, partitions, _client_version(version, _ADD_PARTITIONS_OF_BROKERS), answer)

    def add_offsets(self, request: AddOffsetsToTxnRequest, version: int, respond: Respond[AddOffsetsToTxnResponse]) -> None:
        """The transaction will commit offsets of a group: adds the partition of those offsets to it."""

        def answer(code: int) -> None:
            respond(AddOffsetsToTxnResponse(error_code=_for_version(code, version, _ADD_OFFSETS_KNOWS_FENCED)))

        try:
            partition = TopicPartition(CONSUMER_OFFSETS, self._offsets_partition(request.group_id))
        except KafkaError as error:
            answer(client_error_code(error))
            return
        self._add(request.transactional_id, request.producer_id, request.producer_epoch, [partition], 0, answer)

    def _add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int,
        answer: Respond[int],
    ) -> None:
        if not transactional_id:
            answer(int(ErrorCode.INVALID_REQUEST))
            return
        added = frozenset(partitions)
        self._write(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, producer_id, epoch, added, client_version),
            answer,
            lambda error: answer(client_error_code(error)),
        )

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        respond: Respond[dict[TopicPartition, int]],
    ) -> None:
        """Whether the partitions belong to the open transaction of this producer (KIP-890): an error code for each."""
        verified = tuple(partitions)

        def fail(error: Exception) -> None:
            code = client_error_code(error)
            respond(dict.fromkeys(verified, code))

        if not transactional_id:
            fail(TransactionRefused(ErrorCode.INVALID_REQUEST))
            return
        self._read(transactional_id, lambda shard: shard.verify_partitions(transactional_id, producer_id, epoch, verified), respond, fail)

    # -- the end of a transaction

    def end_txn(self, request: EndTxnRequest, version: int, respond: Respond[EndTxnResponse]) -> None:
        """Responds when all partitions have their markers, but no later than a short time after the end is decided: a producer that starts
        its next transaction earlier would receive CONCURRENT_TRANSACTIONS."""
        client_version = _client_version(version, _END_WITH_BUMP)

        def answer(result: ProducerAnswer) -> None:
            response = EndTxnResponse(error_code=_for_version(result.code, version, _END_KNOWS_FENCED))
            if client_version >= EPOCH_BUMP_VERSION:
                response.producer_id, response.producer_epoch = result.producer_id, result.epoch
            respond(response)

        def decided(result: ProducerAnswer) -> None:
            shard = self._runtime.shard(self.partition_for(request.transactional_id)) if self._partition_count else None
            if shard is None:
                answer(result)
            else:
                shard.when_complete(request.transactional_id, lambda: answer(result))

        def fail(error: Exception) -> None:
            answer(ProducerAnswer(client_error_code(error)))

        if not request.transactional_id:
            fail(TransactionRefused(ErrorCode.INVALID_REQUEST))
            return
        self._write(
            request.transactional_id,
            lambda shard: shard.end(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                self._new_id,
                committed=request.committed,
                client_version=client_version,
            ),
            decided,
            fail,
        )

    # -- administration

    def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """The committed state of all loaded partitions."""
        if not self._partition_count:
            return ListTransactionsResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        if self._runtime.is_loading:
            return ListTransactionsResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        try:
            matches_pattern = _id_filter(request.transactional_id_pattern)
        except ExpressionError:
            return ListTransactionsResponse(error_code=int(ErrorCode.INVALID_REGULAR_EXPRESSION))
        states = {state for title in request.state_filters if (state := state_of_title(title)) is not None}
        unknown = [title for title in dict.fromkeys(request.state_filters) if state_of_title(title) is None]
        producer_ids = set(request.producer_id_filters)
        now_ms = self._clock.now_ms()

        def is_included(transaction: TransactionMetadata) -> bool:
            if producer_ids and transaction.producer_id not in producer_ids:
                return False
            if request.state_filters and transaction.state not in states:
                return False
            if request.duration_filter >= 0 and now_ms - transaction.start_timestamp <= request.duration_filter:
                return False
            return matches_pattern(transaction.transactional_id)

        return ListTransactionsResponse(
            unknown_state_filters=unknown,
            transaction_states=[
                ListedTransaction(transaction.transactional_id, transaction.producer_id, transaction.state.title)
                for shard in self._runtime.shards()
                for transaction in shard.all_visible()
                if is_included(transaction)
            ],
        )

    def describe_transaction(self, transactional_id: str, respond: Respond[DescribedTransaction]) -> None:
        def fail(error: Exception) -> None:
            respond(DescribedTransaction(error_code=client_error_code(error), transactional_id=transactional_id))

        if not self._partition_count:
            fail(CoordinatorNotAvailable())
        elif not transactional_id:
            fail(TransactionRefused(ErrorCode.INVALID_REQUEST))
        else:
            self._read(transactional_id, lambda shard: _describe(shard, transactional_id), respond, fail)

    @property
    def skipped_records(self) -> int:
        """The number of records of `__transaction_state` that could not be read while partitions were loaded."""
        return self._runtime.skipped_records

    def gauges(self) -> dict[str, int]:
        """The number of transactional ids by state, and the number with markers in flight."""
        counts: Counter[str] = Counter()
        for shard in self._runtime.shards():
            counts["PendingMarkers"] += len(shard.markers)
            for transaction in shard.transactions.values():
                counts[transaction.state.title] += 1
        return dict(counts)

    # -- common

    def _new_id(self) -> int:
        producer_id = self._producer_ids.take()
        if producer_id is None:
            raise NeedsProducerId
        return producer_id

    def _with_ids(self, action: Callable[[], None], fail: Callable[[Exception], None], attempts: int = 0) -> None:
        """Run `action`. If it needs a producer id, fetch a block of ids and run it again."""
        try:
            action()
        except NeedsProducerId as error:
            self._fetch_ids(error, lambda: self._with_ids(action, fail, attempts + 1), fail, attempts)

    def _fetch_ids(self, needed: Exception, again: Callable[[], None], fail: Callable[[Exception], None], attempts: int) -> None:
        if attempts >= FETCH_ATTEMPTS_MAX:
            fail(needed)
            return
        self._producer_ids.fetch(lambda error: again() if error is None else fail(error))

    def _write(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinatorShard], CoordinatorResult[R]],
        respond: Callable[[R], None],
        fail: Callable[[Exception], None],
        attempts: int = 0,
    ) -> None:
        if not self._partition_count:
            fail(CoordinatorNotAvailable())
            return

        def failed(error: Exception) -> None:
            if isinstance(error, NeedsProducerId):
                self._fetch_ids(error, lambda: self._write(transactional_id, operation, respond, fail, attempts + 1), fail, attempts)
            else:
                fail(error)

        timeout_ms = self._config.request_timeout_ms
        self._runtime.write(self.partition_for(transactional_id), operation, respond, failed, timeout_ms=timeout_ms)

    def _read(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinatorShard], R],
        respond: Callable[[R], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._write(transactional_id, lambda shard: CoordinatorResult(response=operation(shard)), respond, fail)


# From these versions on a client handles PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH.
_INIT_KNOWS_FENCED: Final = 4
_ADD_PARTITIONS_KNOWS_FENCED: Final = 2
_ADD_OFFSETS_KNOWS_FENCED: Final = 2
_END_KNOWS_FENCED: Final = 2

# From these versions on a request is sent by a client with transaction.version 2.
_ADD_PARTITIONS_OF_BROKERS: Final = 4
_END_WITH_BUMP: Final = 5


def _client_version(version: int, since: int) -> int:
    return EPOCH_BUMP_VERSION if version >= since else 0


def _for_version(code: int, version: int, knows_fenced: int) -> int:
    if code == ErrorCode.PRODUCER_FENCED and version < knows_fenced:
        return int(ErrorCode.INVALID_PRODUCER_EPOCH)
    return code


def _describe(shard: TransactionCoordinatorShard, transactional_id: str) -> DescribedTransaction:
    transaction = shard.visible(transactional_id)
    if transaction is None or transaction.state is TransactionState.DEAD:
        raise TransactionRefused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    missing = shard.markers.missing(transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions if missing is None else missing):
        topics.setdefault(topic, []).append(partition)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_timestamp,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in topics.items()],
    )


# In instructions. The expression of ListTransactions is matched with every transactional id in one go.
_ID_PROGRAM_SIZE_MAX: Final = 200


def _id_filter(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    compiled = compile_expression(pattern, _ID_PROGRAM_SIZE_MAX)
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


def _nothing(_: object) -> None:
    """For operations of a shard itself: no client waits, and the shard handles their failures."""
