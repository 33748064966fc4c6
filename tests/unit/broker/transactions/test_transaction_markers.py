from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.transactions.transaction_markers import PARTITIONS_PER_TURN
from barnabas.coordinator.partition_log import NO_TRANSACTION, TransactionProducer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.records.batch import read_batches
from barnabas.records.control import EndTxnMarker, parse_end_txn_marker
from barnabas.records.reader import read_records
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.marking import GONE, OFFSETS, OTHER, Marking, marker
from tests.unit.broker.replicas import BROKER, NOW, TP
from tests.unit.coordinator.coordinator_host import Answers, Host, MemoryLog


def last_marker(log: Log) -> EndTxnMarker:
    fetched = log.read(0, 1 << 20, FetchIsolation.LOG_END)
    assert fetched.records is not None
    data = fetched.records.read()
    batch = read_batches(data)[-1]
    assert batch.is_control
    (record,) = read_records(data, batch)
    assert record.timestamp == NOW
    return parse_end_txn_marker(record)


@pytest.fixture
def marking(tmp_path: Path) -> Iterator[Marking]:
    marking = Marking(tmp_path)
    yield marking
    marking.replicas.close()


# -- into the logs


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_the_transaction_in_each_of_its_partitions(marking: Marking, committed: bool) -> None:
    for partition in (TP, OTHER):
        marking.verifying.append(marking.verifying.verify(partitions=(partition,)), partition=partition)
    assert marking.append(TP, OTHER, committed=committed, coordinator_epoch=3) == {TP: 0, OTHER: 0}
    for partition in (TP, OTHER):
        log = marking.replicas.log(partition)
        assert last_marker(log) == EndTxnMarker(committed, 3)
        assert log.last_stable_offset == 2


def test_a_producer_nobody_knows_gets_its_marker_too_and_is_fenced_by_it(marking: Marking) -> None:
    assert marking.append(TP, epoch=4) == {TP: 0}
    assert marking.append(TP, epoch=3) == {TP: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_a_partition_that_is_not_here_is_unknown_and_no_matter_to_the_others(marking: Marking) -> None:
    assert marking.append(GONE, TP) == {GONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TP: 0}


def test_a_partition_that_others_lead_now_is_told_so(marking: Marking) -> None:
    marking.replicas.lead(leader=2, epoch=1, replicas=(BROKER, 2))
    assert marking.append(TP) == {TP: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_coordinator_that_was_deposed_is_fenced(marking: Marking) -> None:
    marking.append(TP, coordinator_epoch=5)
    assert marking.append(TP, coordinator_epoch=4) == {TP: ErrorCode.TRANSACTION_COORDINATOR_FENCED}


def test_in_transaction_version_2_a_marker_of_the_epoch_of_the_records_is_late(marking: Marking) -> None:
    marking.verifying.append(marking.verifying.verify())
    assert marking.append(TP, version=2) == {TP: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert marking.append(TP, epoch=1, version=2) == {TP: 0}
    assert marking.append(TP, epoch=1, version=2) == {TP: 0}, "a retry of a marker is no harm"


@pytest.mark.parametrize("impossible", [{"producer": -1}, {"epoch": -1}, {"version": -1}])
def test_a_marker_that_cannot_be_is_nobodys(marking: Marking, impossible: dict[str, int]) -> None:
    assert marking.append(TP, OFFSETS, **impossible) == {TP: ErrorCode.UNKNOWN_SERVER_ERROR, OFFSETS: ErrorCode.UNKNOWN_SERVER_ERROR}
    assert marking.replicas.log().log_end_offset == 0


def test_a_marker_without_partitions_is_done_at_once(marking: Marking) -> None:
    assert marking.append() == {}


def test_a_partition_named_twice_gets_one_marker(marking: Marking) -> None:
    assert marking.append(TP, TP) == {TP: 0}
    assert marking.replicas.log().log_end_offset == 1


def test_a_marker_counts_when_the_replicas_have_it(tmp_path: Path) -> None:
    marking = Marking(tmp_path, replicas=(BROKER, 2))
    answers = Answers()
    marking.appender.append(marker(TP, GONE), answers.append)
    assert answers == []
    marking.replicas.follow(2, 1)
    assert answers.one == {GONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TP: 0}
    marking.replicas.close()


def test_a_marker_that_is_not_replicated_in_time_is_told_so(tmp_path: Path) -> None:
    marking = Marking(tmp_path, replicas=(BROKER, 2))
    answers = Answers()
    marking.appender.append(marker(TP), answers.append)
    marking.replicas.pass_time(30_000)
    assert answers.one == {TP: ErrorCode.REQUEST_TIMED_OUT}
    marking.replicas.close()


# -- offsets of groups


@pytest.mark.parametrize(("committed", "offset"), [(True, 7), (False, -1)])
def test_a_marker_settles_the_offsets_of_its_transaction(marking: Marking, committed: bool, offset: int) -> None:
    assert marking.commit_offset(7) == 0
    assert marking.committed() == -1
    assert marking.append(OFFSETS, TP, committed=committed) == {OFFSETS: 0, TP: 0}
    assert marking.committed() == offset


def test_offsets_of_a_transaction_that_nobody_was_asked_about_are_refused(marking: Marking) -> None:
    answers = Answers()
    topics = [TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, 7)])]
    marking.groups.coordinator.commit_transactional_offsets(5, TxnOffsetCommitRequest("t", "g", 9, 0, topics=topics), answers.append)
    assert answers.one.topics[0].partitions[0].error_code == ErrorCode.INVALID_TXN_STATE


def test_a_late_marker_settles_no_offsets(marking: Marking) -> None:
    marking.commit_offset(7)
    assert marking.append(OFFSETS, version=2) == {OFFSETS: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert marking.committed() == -1
    assert marking.append(OFFSETS, epoch=1, version=2) == {OFFSETS: 0}
    assert marking.committed() == 7


def test_a_group_coordinator_that_is_not_there_is_asked_again_as_a_partition_that_is_elsewhere(marking: Marking) -> None:
    marking.groups.coordinator.on_resignation(0, None)
    assert marking.append(OFFSETS) == {OFFSETS: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    marking.groups.coordinator.shutdown()
    assert marking.append(OFFSETS) == {OFFSETS: ErrorCode.NOT_LEADER_OR_FOLLOWER}


# -- to the leaders


def test_a_partition_exists_as_long_as_the_cluster_has_it(marking: Marking) -> None:
    assert marking.markers.exists(TP)
    assert not marking.markers.exists(GONE)
    assert not marking.markers.exists(TopicPartition("orders", 2))


def test_markers_go_to_the_partitions_led_here_and_the_others_are_to_be_sent_again(marking: Marking) -> None:
    marking.replicas.tell(OTHER, leader=2, epoch=1, replicas=(BROKER, 2))
    assert marking.send(TP, OTHER) == [{OTHER: ErrorCode.NOT_LEADER_OR_FOLLOWER}, {TP: 0}]


def test_a_partition_without_a_leader_is_to_be_sent_again(marking: Marking) -> None:
    marking.replicas.tell(TP, leader=-1, epoch=1)
    assert marking.send(TP) == [{TP: ErrorCode.NOT_LEADER_OR_FOLLOWER}]


def test_a_transaction_over_very_many_partitions_lets_others_have_their_turn(marking: Marking) -> None:
    many = [TopicPartition("many", index) for index in range(PARTITIONS_PER_TURN + 1)]
    for partition in many:
        marking.replicas.lead(partition)
    answers = Answers()
    marking.markers.send(marker(*many), answers.append)
    assert [list(codes) for codes in answers] == [many[:-1]]
    marking.verifying.time.advance(0)
    assert [list(codes) for codes in answers] == [many[:-1], many[-1:]]


def test_the_producer_of_offsets_has_the_version_of_its_marker() -> None:
    """What a log in memory is given with a marker: the real log decides by it."""
    seen: list[TransactionProducer] = []

    class Seeing(MemoryLog):
        def append(self, partition: int, batch: bytes, producer: TransactionProducer = NO_TRANSACTION) -> int:
            seen.append(producer)
            return super().append(partition, batch, producer)

    host = Host(Seeing())
    host.coordinator.complete_transaction(
        0, TransactionProducer(1, 2, transaction_version=2), 0, committed=True, on_done=lambda error: None, timeout_ms=1000
    )
    assert [producer.transaction_version for producer in seen] == [2]
