from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.fetch_params import FetchParams, PartitionFetch, TopicIdPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.replicas import TP, Fetched, Replicas

OTHER = TopicPartition("other", 0)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield replicas
    replicas.close()


def test_a_fetch_at_the_end_waits_for_an_append(replicas: Replicas) -> None:
    replicas.append(3)
    fetched = replicas.fetch(3, max_wait_ms=500)
    assert not fetched.is_done
    replicas.append(1)
    assert fetched.result.size > 0
    assert fetched.result.high_watermark == 4


def test_a_fetch_waits_for_min_bytes(replicas: Replicas) -> None:
    replicas.append(1)
    fetched = replicas.fetch(0, max_wait_ms=500, min_bytes=2 * replicas.log().size + 1)
    replicas.append(1)
    assert not fetched.is_done
    replicas.append(1)
    assert fetched.result.size == replicas.log().size


def test_a_fetch_that_waited_long_enough_gets_what_there_is(replicas: Replicas) -> None:
    replicas.append(1)
    fetched = replicas.fetch(0, max_wait_ms=500, min_bytes=10_000)
    replicas.pass_time(501)
    assert fetched.result.size == replicas.log().size
    assert replicas.manager.metrics.expired_consumer_fetches == 1


def test_a_fetch_of_a_follower_that_waited_is_counted_apart(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.fetch(0, replica_id=2, max_wait_ms=500)
    replicas.pass_time(501)
    assert replicas.manager.metrics.expired_follower_fetches == 1


def test_no_time_to_wait_is_answered_at_once(replicas: Replicas) -> None:
    assert replicas.fetch(0, max_wait_ms=0).result.size == 0


def test_an_error_is_answered_at_once(replicas: Replicas) -> None:
    assert replicas.fetch(7, max_wait_ms=500).result.error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_wanted_is_answered_at_once(replicas: Replicas) -> None:
    fetched = Fetched()
    replicas.manager.fetch_messages(FetchParams(max_wait_ms=500), [], fetched)
    assert fetched.results == []


def test_data_in_one_of_many_partitions_is_enough(replicas: Replicas) -> None:
    replicas.lead(OTHER)
    fetched = Fetched()
    fetches = [(TopicIdPartition(Uuid.ZERO, partition), PartitionFetch(0, 1000)) for partition in (TP, OTHER)]
    replicas.manager.fetch_messages(FetchParams(max_wait_ms=500), fetches, fetched)
    replicas.append(1, partition=OTHER)
    assert fetched.results is not None
    assert [result.size > 0 for _, result in fetched.results] == [False, True]


def test_a_consumer_is_not_woken_by_what_it_may_not_see(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.follow(2, 0)
    fetched = replicas.fetch(0, max_wait_ms=500)
    replicas.append(1, acks=1)
    assert not fetched.is_done
    replicas.follow(2, 1)
    assert fetched.result.size > 0


def test_a_consumer_waits_for_a_leader_whose_high_watermark_is_behind_it(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.append(3)
    fetched = replicas.fetch(2, max_wait_ms=500)
    assert not fetched.is_done
    replicas.append(1)
    assert not fetched.is_done  # else it would be asked again and again until the followers have it


def test_a_follower_is_woken_by_what_is_not_replicated_yet(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    fetched = replicas.fetch(0, replica_id=2, max_wait_ms=500, isolation=FetchIsolation.LOG_END)
    replicas.append(1, acks=1)
    assert fetched.is_done


@pytest.mark.parametrize("event", ["lost lead", "new epoch", "deleted"])
def test_what_the_fetcher_must_hear_ends_the_wait(replicas: Replicas, event: str) -> None:
    fetched = replicas.fetch(0, max_wait_ms=500, wanted={"current_leader_epoch": 0})
    if event == "lost lead":
        replicas.lead(leader=2, epoch=1, replicas=(1, 2))
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif event == "new epoch":
        replicas.lead(epoch=1)
        replicas.manager.wake(TP)
        error = ErrorCode.FENCED_LEADER_EPOCH
    else:
        replicas.stop()
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched.result.error == error


def test_a_fetch_that_is_left_behind_by_a_roll_is_answered(replicas: Replicas) -> None:
    replicas.append(1)
    fetched = replicas.fetch(0, max_wait_ms=500, min_bytes=100_000)
    replicas.log().roll(replicas.clock.wall_ms)
    replicas.append(1)
    assert fetched.is_done


def test_a_fetch_at_the_end_is_not_answered_by_a_mere_roll(replicas: Replicas) -> None:
    replicas.append(1)
    fetched = replicas.fetch(1, max_wait_ms=500)
    replicas.log().roll(replicas.clock.wall_ms)
    replicas.manager.wake(TP)
    assert not fetched.is_done


def test_what_a_partition_gives_counts_no_further_than_its_limit(replicas: Replicas) -> None:
    replicas.append(1)
    size = replicas.log().size
    fetched = replicas.fetch(1, max_wait_ms=500, min_bytes=size + 1, wanted={"max_bytes": size})
    replicas.append(1)
    replicas.append(1)
    assert not fetched.is_done


def test_a_read_committed_fetch_waits_for_the_last_stable_offset(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, config=LogConfig())
    replicas.log_manager.config.producers.transaction_verification_enabled = False
    replicas.lead()
    fetched = replicas.fetch(0, max_wait_ms=500, isolation=FetchIsolation.TXN_COMMITTED)
    replicas.append(1, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert not fetched.is_done
    replicas.close()
