"""The states of a transactional producer, and what each answer of a coordinator makes of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import (
    ClusterAuthorization,
    CommitFailed,
    IllegalState,
    ProducerFenced,
    Timeout,
    TopicAuthorization,
    TransactionAbortable,
)
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.transactions.sequences import ProducerIdAndEpoch
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.client.producer.transactions.transaction_requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    CoordinatorType,
    EndTransaction,
    FindCoordinator,
    InitProducerId,
    TransactionRequest,
    TransactionResult,
)
from barnabas.client.producer.transactions.transaction_states import PREVIOUS, TransactionManagerState
from barnabas.errors import InvalidRecord, KafkaError, RecordTooLarge
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.topic_partition import TopicPartition
from tests.unit.client.producer.parts import TP

GROUP = ConsumerGroupMetadata("g")
OFFSETS = {TP: OffsetAndMetadata(5)}


def ready(version: int = 2, bumps_epoch: bool = True) -> TransactionManager:
    manager = TransactionManager("x")
    manager.coordinator_bumps_epoch = bumps_epoch
    manager.features_seen({"transaction.version": version}, 1)
    result = manager.initialize()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    result.wait(0)
    assert manager.state is TransactionManagerState.READY
    return manager


def in_transaction(version: int = 2, bumps_epoch: bool = True) -> TransactionManager:
    manager = ready(version, bumps_epoch)
    manager.begin()
    return manager


def next_request(manager: TransactionManager) -> TransactionRequest:
    request = manager.next_request(False, 0)
    assert request is not None
    return request


def answered(manager: TransactionManager, response: Any) -> TransactionRequest:
    request = next_request(manager)
    request.handle(response)
    return request


def sent_batch(manager: TransactionManager, count: int = 1) -> ProducerBatch:
    batch = ProducerBatch(TP, threading.RLock(), 0, None, 16384, 0, 0)
    for _ in range(count):
        batch.try_append(0, None, b"v", ())
    manager.identity.assign_sequence(batch)
    return batch


@pytest.mark.parametrize(("source", "target"), list(itertools.product(TransactionManagerState, TransactionManagerState)))
def test_every_transition_is_allowed_or_refused_as_the_table_says(source: TransactionManagerState, target: TransactionManagerState) -> None:
    manager = TransactionManager("x")
    manager.state = source
    if source in PREVIOUS[target]:
        manager._transition(target, KafkaError("why"))
        assert manager.state is target
    else:
        with pytest.raises(IllegalState, match=f"Invalid transition attempted from state {source.name} to state {target.name}"):
            manager._transition(target)
        assert manager.state is source


def test_an_invalid_transition_of_the_sender_is_fatal() -> None:
    manager = ready()
    with pytest.raises(IllegalState):
        manager.abortable_error(KafkaError("nothing to abort"))
    assert manager.has_fatal_error


@pytest.mark.parametrize(
    "call",
    [
        lambda manager: manager.initialize(),
        lambda manager: manager.begin(),
        lambda manager: manager.begin_commit(),
        lambda manager: manager.begin_abort(),
        lambda manager: manager.send_offsets(OFFSETS, GROUP),
    ],
)
def test_without_a_transactional_id_there_are_no_transactions(call: Any) -> None:
    with pytest.raises(IllegalState, match="Transactional method invoked on a non-transactional producer"):
        call(TransactionManager())


def test_begin_comes_after_initialize() -> None:
    with pytest.raises(IllegalState, match="from state UNINITIALIZED to state IN_TRANSACTION"):
        TransactionManager("x").begin()


def test_commit_comes_after_begin() -> None:
    with pytest.raises(IllegalState, match="from state READY to state COMMITTING_TRANSACTION"):
        ready().begin_commit()


def test_records_are_only_sent_in_a_transaction() -> None:
    with pytest.raises(IllegalState, match="before completing a call to init_transactions"):
        TransactionManager("x").check_send("t", 0)
    with pytest.raises(IllegalState, match="to transaction while in state READY: call begin_transaction first"):
        ready().check_send("t", 0)
    in_transaction().check_send("t", 0)


def test_offsets_are_only_sent_in_a_transaction() -> None:
    with pytest.raises(IllegalState, match="Cannot send offsets if a transaction is not in progress"):
        ready().send_offsets(OFFSETS, GROUP)


def test_under_version_1_partitions_are_added_first() -> None:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    assert not manager.is_send_to_partition_allowed(TP)
    request = next_request(manager)
    assert isinstance(request, AddPartitions)
    request.handle(partitions_added(ErrorCode.NONE))
    assert manager.is_send_to_partition_allowed(TP)


def test_under_version_2_brokers_add_them() -> None:
    manager = in_transaction(version=2)
    manager.maybe_add_partition(TP)
    assert manager.is_send_to_partition_allowed(TP)
    assert manager.next_request(False, 0) is None


def test_under_version_1_offsets_are_announced_and_then_committed() -> None:
    manager = in_transaction(version=1)
    result = manager.send_offsets(OFFSETS, GROUP)
    assert isinstance(answered(manager, AddOffsetsToTxnResponse()), AddOffsets)
    request = next_request(manager)
    assert isinstance(request, CommitOffsets)
    assert request.version_max == 4
    assert not result.completed
    request.handle(offsets_committed(ErrorCode.NONE))
    result.wait(0)


def test_under_version_2_they_are_committed_at_once() -> None:
    manager = in_transaction(version=2)
    result = manager.send_offsets(OFFSETS, GROUP)
    assert isinstance(answered(manager, offsets_committed(ErrorCode.NONE)), CommitOffsets)
    result.wait(0)


def test_the_end_of_a_transaction_waits_for_its_batches() -> None:
    manager = in_transaction()
    manager.maybe_add_partition(TP)
    manager.begin_commit()
    assert manager.next_request(True, 0) is None
    assert isinstance(manager.next_request(False, 0), EndTransaction)


def test_a_transaction_without_records_ends_without_a_request() -> None:
    manager = in_transaction()
    result = manager.begin_commit()
    assert manager.next_request(False, 0) is None
    result.wait(0)
    assert manager.state is TransactionManagerState.READY


def test_under_version_2_each_transaction_has_its_epoch() -> None:
    manager = in_transaction(version=2)
    manager.maybe_add_partition(TP)
    result = manager.begin_commit()
    answered(manager, EndTxnResponse(producer_id=7, producer_epoch=1))
    result.wait(0)
    assert (manager.state, manager.identity.producer) == (TransactionManagerState.READY, ProducerIdAndEpoch(7, 1))


def test_under_version_1_epoch_and_sequences_stay() -> None:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    answered(manager, partitions_added(ErrorCode.NONE))
    batch = sent_batch(manager, 3)
    manager.identity.batch_completed(batch, 0)
    result = manager.begin_commit()
    request = next_request(manager)
    assert request.version_max == 4
    request.handle(EndTxnResponse())
    result.wait(0)
    assert manager.identity.producer == ProducerIdAndEpoch(7, 0)
    manager.begin()
    assert sent_batch(manager).base_sequence == 3


def test_a_cluster_that_moves_to_version_2_gives_another_epoch_with_the_end_of_the_transaction() -> None:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    answered(manager, partitions_added(ErrorCode.NONE))
    manager.features_seen({"transaction.version": 2}, 2)
    result = manager.begin_commit()
    end = next_request(manager)
    assert isinstance(end, EndTransaction)
    assert end.version_max == 4  # it ends as it began
    end.handle(EndTxnResponse())
    bump = next_request(manager)
    assert isinstance(bump, InitProducerId)
    assert bump.current == ProducerIdAndEpoch(7, 0)
    bump.handle(InitProducerIdResponse(producer_id=7, producer_epoch=1))
    result.wait(0)
    assert (manager.state, manager.is_version_2, manager.identity.producer.epoch) == (TransactionManagerState.READY, True, 1)


def test_a_call_that_timed_out_can_be_made_again_and_only_it() -> None:
    manager = in_transaction()
    manager.maybe_add_partition(TP)
    result = manager.begin_commit()
    with pytest.raises(Timeout, match=r"Timeout expired after 1ms while awaiting commit_transaction"):
        result.wait(1)
    for name, call in (("abort_transaction", manager.begin_abort), ("begin_transaction", manager.begin)):
        with pytest.raises(IllegalState, match=f"`{name}` because the previous call to `commit_transaction` timed out and must be retried"):
            call()
    assert manager.begin_commit() is result
    answered(manager, EndTxnResponse(producer_id=7, producer_epoch=1))
    manager.begin_commit().wait(0)
    manager.begin()


def bumping(manager: TransactionManager) -> TransactionManager:
    manager.identity.epoch_bump_required = True
    return manager


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("init_transactions", lambda: TransactionManager("x").initialize()),
        ("send_offsets_to_transaction", lambda: in_transaction(version=1).send_offsets(OFFSETS, GROUP)),
        ("send_offsets_to_transaction", lambda: in_transaction(version=2).send_offsets(OFFSETS, GROUP)),
        ("commit_transaction", lambda: in_transaction().begin_commit()),
        ("commit_transaction", lambda: bumping(in_transaction()).begin_commit()),
        ("abort_transaction", lambda: in_transaction().begin_abort()),
        ("abort_transaction", lambda: bumping(in_transaction()).begin_abort()),
    ],
)
def test_a_call_that_times_out_is_named_as_the_application_made_it(method: str, call: Callable[[], TransactionResult]) -> None:
    with pytest.raises(Timeout, match=f"^Timeout expired after 1ms while awaiting {method}$"):
        call().wait(1)


def partitions_added(code: int) -> AddPartitionsToTxnResponse:
    rows = [AddPartitionsToTxnTopicResult("t", [AddPartitionsToTxnPartitionResult(0, code)])]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


def offsets_committed(code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("t", [TxnOffsetCommitResponsePartition(0, code)])])


def added_partition(code: int) -> tuple[TransactionManager, TransactionRequest]:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    return manager, answered(manager, partitions_added(code))


def ended(code: int) -> tuple[TransactionManager, TransactionRequest]:
    manager = in_transaction()
    manager.maybe_add_partition(TP)
    manager.begin_commit()
    return manager, answered(manager, EndTxnResponse(error_code=code))


def offsets_added(code: int) -> tuple[TransactionManager, TransactionRequest]:
    manager = in_transaction(version=1)
    manager.send_offsets(OFFSETS, GROUP)
    return manager, answered(manager, AddOffsetsToTxnResponse(error_code=code))


def committed_offsets(code: int) -> tuple[TransactionManager, TransactionRequest]:
    manager = in_transaction()
    manager.send_offsets(OFFSETS, GROUP)
    return manager, answered(manager, offsets_committed(code))


def initialized(code: int) -> tuple[TransactionManager, TransactionRequest]:
    manager = TransactionManager("x")
    manager.initialize()
    return manager, answered(manager, InitProducerIdResponse(error_code=code))


CALLS = {call.__name__: call for call in (added_partition, ended, offsets_added, committed_offsets, initialized)}
E = ErrorCode


@pytest.mark.parametrize("call", list(CALLS.values()), ids=list(CALLS))
@pytest.mark.parametrize(
    "code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR]
)
def test_what_may_pass_is_tried_again(call: Any, code: int) -> None:
    manager, request = call(code)
    assert not request.result.completed
    assert not manager.has_error
    moved = code in (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
    if moved:
        found = next_request(manager)
        assert isinstance(found, FindCoordinator)
        found.handle(FindCoordinatorResponse(coordinators=[Coordinator("x", 3, "h", 1)]))
        kind = request.coordinator_type
        assert kind is not None
        node = manager.coordinator(kind)
        assert node is not None
        assert node.id == 3
    assert manager.next_request(False, 0) is None, "it backs off"
    assert manager.next_request(False, 1000) is request


@pytest.mark.parametrize("call", list(CALLS.values()), ids=list(CALLS))
@pytest.mark.parametrize("code", [E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_at_its_end(call: Any, code: int) -> None:
    manager, request = call(code)
    assert manager.has_fatal_error
    with pytest.raises(ProducerFenced):
        request.result.wait(0)
    with pytest.raises(ProducerFenced, match=r"has been fenced by another producer with the same transactional\.id"):
        manager.begin()


@pytest.mark.parametrize("name", ["added_partition", "ended", "offsets_added"])
@pytest.mark.parametrize("code", [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING])
def test_what_ends_a_producer(name: str, code: int) -> None:
    manager, request = CALLS[name](code)
    assert manager.has_fatal_error
    with pytest.raises(KafkaError):
        request.result.wait(0)
    with pytest.raises(KafkaError, match="Cannot execute transactional method because we are in an error state"):
        manager.begin()


@pytest.mark.parametrize(
    ("name", "code", "kind"),
    [
        ("added_partition", E.TOPIC_AUTHORIZATION_FAILED, TopicAuthorization),
        ("added_partition", E.OPERATION_NOT_ATTEMPTED, KafkaError),
        ("added_partition", E.TRANSACTION_ABORTABLE, TransactionAbortable),
        ("added_partition", E.UNKNOWN_PRODUCER_ID, KafkaError),
        ("ended", E.TRANSACTION_ABORTABLE, TransactionAbortable),
        ("ended", E.UNKNOWN_PRODUCER_ID, KafkaError),
        ("offsets_added", E.GROUP_AUTHORIZATION_FAILED, KafkaError),
        ("committed_offsets", E.GROUP_AUTHORIZATION_FAILED, KafkaError),
        ("committed_offsets", E.UNKNOWN_MEMBER_ID, CommitFailed),
        ("committed_offsets", E.ILLEGAL_GENERATION, CommitFailed),
        ("committed_offsets", E.FENCED_INSTANCE_ID, KafkaError),
        ("initialized", E.CLUSTER_AUTHORIZATION_FAILED, ClusterAuthorization),
    ],
)
def test_what_ends_only_the_transaction(name: str, code: int, kind: type[KafkaError]) -> None:
    manager, request = CALLS[name](code)
    assert manager.has_abortable_error
    assert isinstance(request.result.error, kind)


def test_after_an_abortable_error_only_abort_goes_on() -> None:
    manager, _ = committed_offsets(E.ILLEGAL_GENERATION)
    with pytest.raises(KafkaError, match="error state"):
        manager.begin_commit()
    result = manager.begin_abort()
    end = next_request(manager)
    assert isinstance(end, EndTransaction)
    assert not end.committed
    end.handle(EndTxnResponse(producer_id=7, producer_epoch=1))
    result.wait(0)
    manager.begin()


def test_under_version_1_an_abort_after_an_error_asks_for_another_epoch() -> None:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    answered(manager, partitions_added(E.NONE))
    batch = sent_batch(manager)
    manager.batch_failed(batch, InvalidRecord("bad"), True)
    result = manager.begin_abort()
    answered(manager, EndTxnResponse())
    assert manager.state is TransactionManagerState.INITIALIZING
    bump = answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=1))
    assert isinstance(bump, InitProducerId)
    result.wait(0)
    manager.begin()
    assert sent_batch(manager).base_sequence == 0


def test_with_a_coordinator_that_cannot_bump_the_epoch_a_lost_producer_id_is_fatal() -> None:
    manager = in_transaction(version=1, bumps_epoch=False)
    manager.maybe_add_partition(TP)
    answered(manager, partitions_added(E.UNKNOWN_PRODUCER_ID))
    assert manager.has_fatal_error


def test_a_record_that_fails_makes_the_transaction_abortable() -> None:
    manager = in_transaction()
    manager.error_seen(RecordTooLarge("large"), poison=False)
    assert manager.has_abortable_error
    assert isinstance(manager.last_error, RecordTooLarge)


def test_a_record_whose_retries_are_used_up_does_too_in_words_of_its_own() -> None:
    manager = in_transaction()
    manager.error_seen(Timeout("expired"))
    assert isinstance(manager.last_error, TransactionAbortable)
    assert isinstance(manager.last_error.__cause__, Timeout)


def test_no_record_of_a_fenced_producer_is_sent() -> None:
    manager = in_transaction()
    manager.maybe_add_partition(TP)
    manager.error_seen(ProducerFenced("fenced"))
    assert not manager.is_send_to_partition_allowed(TP)


def test_requests_are_sent_in_the_order_of_what_depends_on_what() -> None:
    manager = in_transaction(version=1)
    manager.maybe_add_partition(TP)
    manager.send_offsets(OFFSETS, GROUP)
    manager.begin_commit()
    manager.look_up_coordinator(CoordinatorType.TRANSACTION, "x")
    kinds = []
    manager.transaction_started = True
    while (request := manager.next_request(False, 0)) is not None:
        kinds.append(type(request))
    assert kinds == [FindCoordinator, AddOffsets, AddPartitions, EndTransaction]


def test_the_first_partition_is_tried_again_soon_while_the_last_transaction_completes() -> None:
    _, request = added_partition(E.CONCURRENT_TRANSACTIONS)
    assert request.retry_backoff_ms == 20


def test_a_gap_closes_when_a_batch_of_a_transaction_is_refused_for_good() -> None:
    manager = in_transaction(version=1)
    first, second, third = (sent_batch(manager, 2) for _ in range(3))
    manager.identity.batch_completed(first, 0)
    manager.batch_failed(second, InvalidRecord("bad"), adjust_sequences=True)
    assert third.base_sequence == 2
    assert sent_batch(manager).base_sequence == 4


def test_an_idempotent_producer_asks_for_its_id_once() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    manager.ensure_producer_id()
    request = next_request(manager)
    assert isinstance(request, InitProducerId)
    assert request.coordinator_type is None
    assert manager.next_request(False, 0) is None


def test_an_idempotent_producer_takes_the_next_epoch_by_itself() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    batch = sent_batch(manager, 3)
    manager.identity.request_epoch_bump(TP)
    manager.ensure_producer_id()
    assert manager.identity.producer == ProducerIdAndEpoch(7, 1)
    assert (batch.producer_epoch, batch.base_sequence, batch.sequence_was_reset) == (1, 0, True)


def test_a_batch_that_was_overtaken_takes_another_epoch() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    first, second = sent_batch(manager), sent_batch(manager)
    manager.identity.batch_completed(second, 0)
    assert manager.identity.can_retry(first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert manager.identity.epoch_bump_required


def test_when_epochs_are_used_up_it_gets_another_id() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=32767))
    manager.identity.request_epoch_bump(TP)
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=8, producer_epoch=0))
    assert manager.identity.producer == ProducerIdAndEpoch(8, 0)


def test_an_expired_batch_is_resolved_by_later_ones_that_were_written() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    expired, later = sent_batch(manager), sent_batch(manager)
    manager.batch_failed(expired, Timeout("expired"), False)
    manager.identity.mark_unresolved(expired)
    assert manager.identity.has_unresolved_sequence(TP)
    manager.resolve_sequences()
    assert manager.identity.has_unresolved_sequence(TP), "one is still under way"
    manager.identity.batch_completed(later, 1)
    manager.resolve_sequences()
    assert not manager.identity.has_unresolved_sequence(TP)
    assert not manager.identity.epoch_bump_required


def test_an_expired_batch_that_nobody_knows_of_takes_another_epoch() -> None:
    manager = TransactionManager()
    manager.ensure_producer_id()
    answered(manager, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    expired = sent_batch(manager)
    manager.batch_failed(expired, Timeout("expired"), False)
    manager.identity.mark_unresolved(expired)
    manager.resolve_sequences()
    assert manager.identity.epoch_bump_required


def test_closing_fails_what_waits() -> None:
    manager = in_transaction()
    manager.maybe_add_partition(TP)
    result = manager.begin_commit()
    manager.close()
    with pytest.raises(KafkaError, match="The producer closed forcefully"):
        result.wait(0)


def test_other_partitions_are_not_known() -> None:
    assert not in_transaction().is_send_to_partition_allowed(TopicPartition("other", 0))
