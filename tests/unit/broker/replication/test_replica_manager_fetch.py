from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.fetch_params import FetchParams, PartitionFetch, TopicIdPartition, fetch_isolation
from barnabas.protocol.errors import ErrorCode
from barnabas.records.reader import records_of
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.replicas import TOPIC_ID, TP, Fetched, Replicas

OTHER = TopicPartition("other", 0)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield replicas
    replicas.close()


def test_records_come_with_the_offsets_of_the_partition(replicas: Replicas) -> None:
    replicas.append(3)
    result = replicas.fetch().result
    assert result.records is not None
    assert len(result.records.read()) == replicas.log().size
    assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (3, 3, 0)


def test_a_consumer_at_the_end_gets_nothing_and_no_error(replicas: Replicas) -> None:
    replicas.append(3)
    result = replicas.fetch(3).result
    assert (result.error, result.size) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_the_log_does_not_have_is_out_of_range(replicas: Replicas, offset: int) -> None:
    replicas.append(3)
    result = replicas.fetch(offset).result
    assert (result.error, result.high_watermark, result.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)


def test_an_older_leader_epoch_is_fenced_and_a_newer_one_unknown(replicas: Replicas) -> None:
    replicas.lead(epoch=5)
    assert replicas.fetch(wanted={"current_leader_epoch": 4}).result.error == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.fetch(wanted={"current_leader_epoch": 6}).result.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert replicas.fetch(wanted={"current_leader_epoch": 5}).result.error == ErrorCode.NONE


def test_a_partition_that_is_not_here_is_an_error_of_its_own(replicas: Replicas) -> None:
    assert replicas.fetch(partition=OTHER).result.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas.tell(OTHER, leader=2, replicas=(2,))
    assert replicas.fetch(partition=OTHER).result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_topic_id_than_that_of_the_log_is_inconsistent(replicas: Replicas) -> None:
    assert replicas.fetch(topic_id=TOPIC_ID).result.error == ErrorCode.NONE
    assert replicas.fetch(topic_id=Uuid(b"x" * 16)).result.error == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_consumer_reads_from_the_leader_only_unless_it_may_be_sent_elsewhere(replicas: Replicas) -> None:
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    assert replicas.fetch().result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replicas.fetch(client_metadata=("rack", "client", "127.0.0.1", "PLAINTEXT")).result.error == ErrorCode.NONE


def test_the_first_batch_may_be_larger_than_every_limit(replicas: Replicas) -> None:
    replicas.append(1, size=500)
    assert replicas.fetch(wanted={"max_bytes": 10}, max_bytes=10).result.size == replicas.log().size


def test_a_hard_limit_cuts_the_batch(replicas: Replicas) -> None:
    replicas.append(1, size=500)
    assert replicas.fetch(wanted={"max_bytes": 100}, hard_max_bytes=True).result.size == 100


def test_what_one_partition_takes_is_not_left_for_the_next(replicas: Replicas) -> None:
    replicas.lead(OTHER)
    for partition in (TP, OTHER):
        replicas.append(1, partition=partition)
        replicas.append(1, partition=partition)
    size = replicas.log().size
    assert sizes(replicas, max_bytes=size + size // 2) == [size, size // 2]
    assert sizes(replicas, max_bytes=size + 1) == [size, 0]


def test_a_batch_that_does_not_fit_into_the_rest_is_left_out(replicas: Replicas) -> None:
    replicas.lead(OTHER)
    replicas.append(1)
    replicas.append(1, partition=OTHER)
    assert sizes(replicas, max_bytes=replicas.log().size + 20) == [replicas.log().size, 0]


def sizes(replicas: Replicas, **how: Any) -> list[int]:
    fetched = Fetched()
    wanted = [(TopicIdPartition(Uuid.ZERO, partition), PartitionFetch(0, 100_000)) for partition in (TP, OTHER)]
    replicas.manager.fetch_messages(FetchParams(**how), wanted, fetched)
    assert fetched.results is not None
    return [result.size for _, result in fetched.results]


def test_a_follower_sees_what_a_consumer_does_not(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.append(1, acks=1)
    assert replicas.fetch().result.size == 0
    assert replicas.follow(2, 0).result.size > 0


def test_a_broker_that_is_no_replica_may_not_follow(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    assert replicas.follow(3, 0).result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replicas.follow(3, 0, current_leader_epoch=1).result.error == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_fetcher_with_another_history_is_told_where_it_parts(replicas: Replicas) -> None:
    replicas.append(2)  # in epoch 0
    replicas.lead(epoch=3)
    replicas.append(2)  # in epoch 3
    result = replicas.fetch(3, wanted={"last_fetched_epoch": 1}).result
    assert (result.error, result.diverging_epoch, result.size) == (ErrorCode.NONE, (0, 2), 0)
    assert replicas.fetch(3, wanted={"last_fetched_epoch": 3}).result.diverging_epoch is None


def test_an_epoch_the_log_knows_nothing_of_is_out_of_range(replicas: Replicas) -> None:
    assert replicas.fetch(0, wanted={"last_fetched_epoch": 9}).result.error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_fetch_from_the_purgatory_does_not_move_its_follower(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.append(2, acks=1)
    params = FetchParams(replica_id=2, isolation=FetchIsolation.LOG_END)
    wanted = [(TopicIdPartition(Uuid.ZERO, TP), PartitionFetch(2, 1000))]
    replicas.manager.read_after_waiting(params, wanted, lambda fetched: None)
    assert replicas.partition().remote_replicas[2].log_end_offset == -1
    replicas.manager.read_from_log(params, wanted)
    assert replicas.partition().remote_replicas[2].log_end_offset == 2


def test_a_follower_is_answered_once_for_all_that_is_appended_in_a_turn(tmp_path: Path) -> None:
    later: list[Callable[[], None]] = []
    replicas = Replicas(tmp_path, later=later.append)
    replicas.lead(epoch=1, replicas=(1, 2))
    waiting = replicas.fetch(0, replica_id=2, isolation=FetchIsolation.LOG_END, min_bytes=1, max_wait_ms=500)
    replicas.append(2, acks=1)
    replicas.append(3, acks=1)
    assert not waiting.is_done
    (tell,) = later
    tell()
    records = waiting.result.records
    assert records is not None
    assert [record.offset for record in records_of(records.read())] == [0, 1, 2, 3, 4]
    replicas.close()


@pytest.mark.parametrize(
    ("replica_id", "level", "isolation"),
    [
        (-1, 0, FetchIsolation.HIGH_WATERMARK),
        (-1, 1, FetchIsolation.TXN_COMMITTED),
        (-2, 0, FetchIsolation.HIGH_WATERMARK),
        (-3, 0, FetchIsolation.LOG_END),
        (0, 1, FetchIsolation.LOG_END),
    ],
)
def test_how_far_a_fetch_sees_depends_on_who_fetches(replica_id: int, level: int, isolation: FetchIsolation) -> None:
    assert fetch_isolation(replica_id, level) is isolation
