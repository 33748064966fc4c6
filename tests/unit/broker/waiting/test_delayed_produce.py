from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.protocol.errors import ErrorCode
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import AllLogDirsFailed
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import NOW, TP, Appended, Replicas, records


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """Broker 1 leads, broker 2 follows and is in sync."""
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=(1, 2))
    replicas.follow(2, 0)
    yield replicas
    replicas.close()


def test_acks_all_waits_for_the_other_replica(replicas: Replicas) -> None:
    appended = replicas.append(3)
    assert not appended.is_done
    replicas.follow(2, 3)
    assert (appended.error, appended.result.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_do_not_wait(replicas: Replicas, acks: int) -> None:
    assert replicas.append(acks=acks).is_done


def test_a_replica_that_has_only_a_part_is_waited_for(replicas: Replicas) -> None:
    replicas.append(3, acks=1)
    appended = replicas.append(3)
    replicas.follow(2, 3)
    assert not appended.is_done
    assert replicas.log().high_watermark == 3


def test_the_timeout_is_answered_with_the_offsets(replicas: Replicas) -> None:
    appended = replicas.append(3, timeout_ms=1000)
    replicas.pass_time(999)
    assert not appended.is_done
    replicas.pass_time(2)
    assert (appended.error, appended.result.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert replicas.manager.metrics.expired_produces == 1


def test_a_timeout_of_zero_does_not_wait_for_long(replicas: Replicas) -> None:
    appended = replicas.append(3, timeout_ms=0)
    replicas.pass_time(1)
    assert appended.error == ErrorCode.REQUEST_TIMED_OUT


def test_a_lost_lead_is_told_to_those_who_wait(replicas: Replicas) -> None:
    appended = replicas.append(3)
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    assert appended.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_deleted_partition_is_told_to_those_who_wait(replicas: Replicas) -> None:
    appended = replicas.append(3)
    replicas.stop()
    assert appended.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_failed_disk_is_told_to_those_who_wait(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, dirs=2)
    replicas.lead(replicas=(1, 2))
    appended = replicas.append(3)
    failed = replicas.log().log_dir
    replicas.log_manager.disk_failed(failed, "pulled out", OSError("pulled out"))
    assert appended.error == ErrorCode.KAFKA_STORAGE_ERROR
    replicas.close()


def test_a_set_that_shrank_below_the_minimum_meanwhile_is_told(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    appended = replicas.append(3)
    replicas.log().maybe_increment_high_watermark(replicas.log().end)
    replicas.partition().isr.commit([1])
    replicas.manager.wake(TP)
    assert appended.error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_what_is_refused_at_once_does_not_keep_the_rest_from_waiting(replicas: Replicas) -> None:
    appended = Appended()
    entries = [(TopicPartition("none", 0), records()), (TP, records(2))]
    replicas.manager.append_records(AppendCall(entries, appended, timeout_ms=1000, required_acks=-1))
    assert not appended.is_done
    replicas.follow(2, 2)
    assert appended.results is not None
    assert [result.error for result in appended.results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


def test_nothing_waits_if_all_is_refused(replicas: Replicas) -> None:
    assert replicas.append(partition=TopicPartition("none", 0)).is_done


def test_a_duplicate_waits_for_the_replication_of_the_original(replicas: Replicas) -> None:
    idempotent: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    replicas.append(3, acks=1, **idempotent)
    retry = replicas.append(3, **idempotent)
    assert not retry.is_done
    replicas.follow(2, 3)
    assert (retry.error, retry.result.base_offset) == (ErrorCode.NONE, 0)


# -- flush.messages


@pytest.fixture
def flushing() -> Replicas:
    replicas = Replicas(Path("/data"), files=SimulatedFiles(), config=LogConfig(flush_messages=2))
    replicas.lead()
    return replicas


@pytest.mark.parametrize("acks", [-1, 1])
def test_an_append_that_makes_a_flush_due_is_answered_when_it_has_run(flushing: Replicas, acks: int) -> None:
    assert flushing.append(acks=acks).is_done
    appended = flushing.append(acks=acks)
    assert not appended.is_done
    flushing.log_manager.flushes.run_all(NOW)
    assert appended.error == ErrorCode.NONE
    assert (appended.result.base_offset, flushing.log().recovery_point) == (1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_acknowledged_after_a_flush_survives_the_machine(flushing: Replicas, seed: int) -> None:
    appended = flushing.append(2, acks=1)
    flushing.log_manager.flushes.run_all(NOW)
    assert appended.error == ErrorCode.NONE
    files = flushing.log_manager.files
    assert isinstance(files, SimulatedFiles)
    survivor = Replicas(Path("/data"), files=files.crash(random.Random(seed)))
    assert survivor.log().log_end_offset == 2


def test_acks_0_waits_for_no_flush(flushing: Replicas) -> None:
    assert flushing.append(2, acks=0).is_done


def test_a_flush_that_fails_is_a_storage_error(flushing: Replicas) -> None:
    appended = flushing.append(2, acks=1)
    with pytest.raises(AllLogDirsFailed):
        flushing.log_manager.disk_failed("/data/disk0", "gone", OSError())
    assert appended.error == ErrorCode.KAFKA_STORAGE_ERROR


def test_the_retry_of_an_append_waits_for_the_same_flush(flushing: Replicas) -> None:
    first = flushing.append(2, acks=1, producer_id=7, producer_epoch=0, base_sequence=0)
    retry = flushing.append(2, acks=1, producer_id=7, producer_epoch=0, base_sequence=0)
    assert not retry.is_done
    flushing.log_manager.flushes.run_all(NOW)
    assert (first.error, retry.error) == (ErrorCode.NONE, ErrorCode.NONE)


def test_the_disk_may_take_longer_than_the_client_gives_the_replicas(flushing: Replicas) -> None:
    appended = flushing.append(2, acks=1, timeout_ms=0)
    flushing.pass_time(29_000)
    assert not appended.is_done
    flushing.pass_time(2_000)
    assert appended.error == ErrorCode.REQUEST_TIMED_OUT
