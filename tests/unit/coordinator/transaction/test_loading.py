"""A coordinator that takes over goes on where the last one stopped, at whatever point that was."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.records.builder import BatchBuilder
from tests.unit.coordinator.coordinator_host import MemoryLog
from tests.unit.coordinator.transaction.transaction_host import OFFSETS_7, T0, T1, TransactionHost

COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def test_an_open_transaction_goes_on() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host = host.again()
    assert host.add(producer, T1) == 0
    host.commit(producer)
    assert host.partitions.ends_of(T0) == host.partitions.ends_of(T1) == [True]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_a_decided_one_gets_its_markers(version: int, committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, OFFSETS_7)
    host.partitions.held = True
    host.end(producer, committed=committed, version=version)
    host.partitions.held = False
    host = host.again(epoch=9)
    host.time.advance(1)
    assert host.partitions.ends_of(T0) == host.partitions.ends_of(OFFSETS_7) == [committed]
    assert host.state().state is COMPLETE[committed]
    assert [marker.coordinator_epoch for marker in host.partitions.sent] == [5, 9]


def test_partitions_that_a_new_coordinator_does_not_know_yet_are_waited_for() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.held = True
    host.end(producer, committed=True)
    host.partitions.held = False
    host.partitions.gone |= {T0, T1}
    host = host.again()
    host.time.advance(500)
    assert host.state().state is TransactionState.PREPARE_COMMIT
    host.partitions.gone.clear()
    host.time.advance(1_000)
    assert host.partitions.ends_of(T0) == host.partitions.ends_of(T1) == [True]


def test_but_not_for_ever() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.held = True
    host.end(producer, committed=True)
    host.partitions.held = False
    host.partitions.gone.add(T1)
    host = host.again()
    host.time.advance(10_000)
    assert host.partitions.ends_of(T0) == [True]
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_no_marker_is_written_before_what_was_loaded_is_committed() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.hold()
    host.asked_end(producer, committed=True)
    host = host.again()
    host.time.advance(60_000)
    assert not host.partitions.sent
    assert host.add((producer[0], producer[1] + 1)) == ErrorCode.CONCURRENT_TRANSACTIONS
    host.commit_log()
    host.time.advance(2_000)
    assert host.partitions.ends_of(T0) == [True]


def test_a_complete_one_is_left_alone() -> None:
    host = TransactionHost()
    producer = host.commit(host.ongoing())
    sent = len(host.partitions.sent)
    host = host.again()
    host.time.advance(60_000)
    assert len(host.partitions.sent) == sent
    assert host.add(producer) == 0


def test_who_waits_for_a_coordinator_that_leaves_is_told() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.hold()
    answers = [host.asked_init("y"), host.asked_add(producer)]
    host.coordinator.on_resignation(0, 9)
    assert answers[0].one.error_code == ErrorCode.NOT_COORDINATOR
    assert answers[1].one == ErrorCode.NOT_COORDINATOR


def test_a_decision_that_was_lost_with_its_coordinator_never_gets_markers() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    kept = len(host.log.batches[0])
    host.hold()
    answers = host.asked_end(producer, committed=True)
    host.coordinator.on_resignation(0, 6)
    assert answers.one.error_code == ErrorCode.NOT_COORDINATOR
    del host.log.batches[0][kept:]  # the new leader did not have it
    host.log.held_at = None
    host = host.again()
    host.time.advance(120_000)
    assert host.partitions.ends_of(T0) == [False]


def test_a_resignation_of_long_ago_is_ignored() -> None:
    host = TransactionHost(epoch=5)
    host.coordinator.on_resignation(0, 5)
    assert host.init().error_code == 0


def test_a_topic_that_was_deleted_and_made_again_begins_with_its_own_epochs() -> None:
    host = TransactionHost(epoch=5)
    host.coordinator.on_resignation(0, None)
    host.log.batches.clear()
    host.load(0)
    host.commit(host.ongoing(T0))
    assert host.partitions.sent[0].coordinator_epoch == 0


def test_a_record_of_a_newer_kafka_is_passed_over() -> None:
    log = MemoryLog()
    TransactionHost(log).producer()
    builder = BatchBuilder()
    builder.append(0, b"\x00\x07" + b"whatever", b"\x00\x00")
    builder.append(0, b"\x00\x00\x00\x01y", b"\x00\x63" + b"whatever")
    log.append(0, builder.build())
    assert list(TransactionHost(log).shard.transactions) == ["x"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_every_version_of_the_protocol_wrote_is_understood(version: int) -> None:
    host = TransactionHost(version=version)
    producer = host.ongoing(T0, T1)
    expected = host.state()._replace(last_producer_epoch=-1)
    host = host.again(version=2)
    assert host.state() == expected
    host.commit(producer)
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_a_record_that_cannot_be_read_is_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    builder = BatchBuilder()
    builder.append(0, b"garbage", b"garbage")
    builder.append(0, b"", None)
    builder.append(0, b"\x00\x00\x00\x01x", b"\x00\x00" + b"\x63" * 24)  # of the transaction that is open, in a state there is none of
    builder.append(0, b"\x00\x00\x00\x01x", b"\x00\x01")
    host.log.append(0, builder.build())
    host = host.again()
    assert host.coordinator.skipped_records == 4
    assert "Skipped a record of __transaction_state-0" in caplog.text
    host.commit(producer)
    assert host.partitions.ends_of(T0) == [True]
