from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.replication.log_dir_mover import PREFERRED_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import TP, Replicas

STEPS_MAX = 1000


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """A partition with records in the first of two directories."""
    replicas = Replicas(tmp_path, dirs=2)
    replicas.lead()
    replicas.append(10)
    yield replicas
    replicas.close()


def alter(replicas: Replicas, path: str, partition: TopicPartition = TP) -> int:
    return replicas.manager.alter_replica_log_dirs({partition: path})[partition]


def other_dir(replicas: Replicas) -> str:
    return next(path for path in replicas.paths if path != replicas.log().log_dir)


def finish(replicas: Replicas) -> None:
    """As the broker's housekeeping would: slices, and the flushes they ask for."""
    for _ in range(STEPS_MAX):
        if not replicas.manager.mover.moving:
            return
        replicas.manager.advance_moves(replicas.clock.wall_ms)
        replicas.log_manager.flushes.run_all(replicas.clock.wall_ms)
    raise AssertionError("the move does not come to an end")


def contents(log: Log) -> bytes:
    records = log.read(log.log_start_offset, 1 << 30, FetchIsolation.LOG_END, True).records
    return b"" if records is None else records.read()


def test_a_replica_moves_with_all_it_has(replicas: Replicas) -> None:
    before, path = contents(replicas.log()), other_dir(replicas)
    assert alter(replicas, path) == ErrorCode.NONE
    finish(replicas)
    log = replicas.log()
    assert (log.log_dir, log.is_future) == (path, False)
    assert contents(log) == before
    assert (log.log_end_offset, log.high_watermark, log.topic_id) == (10, 10, replicas.partition().topic_id)
    assert replicas.log_manager.get(TP, is_future=True) is None


def test_produce_and_fetch_go_on_during_and_after_the_move(replicas: Replicas) -> None:
    alter(replicas, other_dir(replicas))
    replicas.manager.advance_moves(replicas.clock.wall_ms)
    assert replicas.append(5).result.base_offset == 10
    finish(replicas)
    assert replicas.append(1).result.base_offset == 15
    assert replicas.partition().log is replicas.log()
    assert replicas.fetch(15).result.size > 0


def test_idempotent_producers_are_known_after_the_move(replicas: Replicas) -> None:
    idempotent: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    first = replicas.append(2, **idempotent).result.base_offset
    alter(replicas, other_dir(replicas))
    finish(replicas)
    assert replicas.append(2, **idempotent).result.base_offset == first


def test_an_epoch_without_records_moves_too(replicas: Replicas) -> None:
    replicas.lead(epoch=5)
    alter(replicas, other_dir(replicas))
    finish(replicas)
    assert replicas.log().latest_epoch == 5


@pytest.mark.parametrize("start", [7, 10])
def test_records_that_were_deleted_stay_deleted(replicas: Replicas, start: int) -> None:
    replicas.log().roll(replicas.clock.wall_ms)
    replicas.append(3)
    replicas.manager.delete_records(0, {TP: start}, lambda results: None)
    replicas.log().delete_old_segments(replicas.clock.wall_ms)
    alter(replicas, other_dir(replicas))
    finish(replicas)
    assert (replicas.log().log_start_offset, replicas.log().log_end_offset) == (start, 13)


def test_records_deleted_during_the_move_are_deleted_after_it(replicas: Replicas) -> None:
    alter(replicas, other_dir(replicas))
    replicas.manager.advance_moves(replicas.clock.wall_ms)
    replicas.manager.delete_records(0, {TP: 7}, lambda results: None)
    finish(replicas)
    assert replicas.log().log_start_offset == 7


def test_the_copy_is_as_durable_as_the_original_before_that_goes(replicas: Replicas) -> None:
    replicas.log().flush(replicas.clock.wall_ms)
    alter(replicas, other_dir(replicas))
    while replicas.manager.advance_moves(replicas.clock.wall_ms):
        pass
    assert replicas.manager.mover.moving == [TP]
    replicas.log_manager.flushes.run_all(replicas.clock.wall_ms)
    finish(replicas)
    assert replicas.log().recovery_point >= 10


def test_a_move_begun_before_a_restart_goes_on(tmp_path: Path) -> None:
    before = Replicas(tmp_path, dirs=2)
    before.lead()
    before.append(10)
    path = other_dir(before)
    alter(before, path)
    before.manager.advance_moves(before.clock.wall_ms)
    before.close()
    replicas = Replicas(tmp_path, dirs=2)
    replicas.lead(epoch=1, is_new=False)
    finish(replicas)
    assert (replicas.log().log_dir, replicas.log().log_end_offset) == (path, 10)
    replicas.close()


def test_a_new_destination_replaces_the_old_one(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, dirs=3)
    replicas.lead()
    replicas.append(10)
    first, second = [path for path in replicas.paths if path != replicas.log().log_dir]
    alter(replicas, first)
    replicas.manager.advance_moves(replicas.clock.wall_ms)
    alter(replicas, second)
    finish(replicas)
    assert replicas.log().log_dir == second
    replicas.close()


def test_back_to_where_it_is_gives_the_move_up(replicas: Replicas) -> None:
    home = replicas.log().log_dir
    alter(replicas, other_dir(replicas))
    assert alter(replicas, home) == ErrorCode.NONE
    assert replicas.manager.mover.moving == []
    assert replicas.log_manager.get(TP, is_future=True) is None


def test_a_deleted_partition_takes_its_copy_along(replicas: Replicas) -> None:
    alter(replicas, other_dir(replicas))
    assert replicas.stop() == ErrorCode.NONE
    assert replicas.log_manager.get(TP, is_future=True) is None
    assert not replicas.manager.advance_moves(replicas.clock.wall_ms)


def test_a_failed_destination_ends_the_move_and_nothing_else(replicas: Replicas) -> None:
    path = other_dir(replicas)
    alter(replicas, path)
    replicas.log_manager.disk_failed(path, "pulled out", OSError("pulled out"))
    assert replicas.manager.mover.moving == []
    assert replicas.append().error == ErrorCode.NONE


def test_a_truncated_original_truncates_its_copy(replicas: Replicas) -> None:
    alter(replicas, other_dir(replicas))
    replicas.append(5)
    replicas.manager.advance_moves(replicas.clock.wall_ms)
    replicas.log_manager.truncate_to(TP, 10, replicas.clock.wall_ms)
    finish(replicas)
    assert replicas.log().log_end_offset == 10


@pytest.mark.parametrize("path", ["/nowhere", ""])
def test_a_directory_that_is_none_of_ours_is_not_found(replicas: Replicas, path: str) -> None:
    assert alter(replicas, path) == ErrorCode.LOG_DIR_NOT_FOUND


def test_an_offline_directory_is_a_storage_error(replicas: Replicas) -> None:
    path = other_dir(replicas)
    replicas.log_manager.disk_failed(path, "pulled out", OSError("pulled out"))
    assert alter(replicas, path) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_to_come_is_made_where_it_is_wanted(replicas: Replicas) -> None:
    later = TopicPartition("later", 0)
    assert alter(replicas, replicas.paths[0], later) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas.tell(later, leader=2, replicas=(2,))
    assert alter(replicas, replicas.log().log_dir, later) == ErrorCode.REPLICA_NOT_AVAILABLE
    replicas.lead(later, epoch=1)
    assert replicas.log(later).log_dir == replicas.log().log_dir


def test_wishes_for_partitions_that_never_come_are_bounded(replicas: Replicas) -> None:
    mover = replicas.manager.mover
    for number in range(PREFERRED_MAX + 1):
        mover.prefer(TopicPartition("later", number), replicas.paths[0])
    assert mover.preferred_dir(TopicPartition("later", 0)) is None
    assert mover.preferred_dir(TopicPartition("later", PREFERRED_MAX)) == replicas.paths[0]


def test_a_topic_with_too_long_a_name_cannot_move(replicas: Replicas) -> None:
    assert alter(replicas, other_dir(replicas), TopicPartition("t" * 240, 0)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_directories_tell_of_the_copy_and_how_far_it_is_behind(replicas: Replicas) -> None:
    path = other_dir(replicas)
    alter(replicas, path)
    described = {info.path: info for info in replicas.manager.describe_log_dirs()}
    assert [(one.partition, one.offset_lag, one.is_future) for one in described[path].replicas] == [(TP, 10, True)]
    here = described[replicas.log().log_dir]
    assert [(one.size, one.offset_lag, one.is_future) for one in here.replicas] == [(replicas.log().size, 0, False)]
    assert here.total_bytes >= here.usable_bytes > 0


def test_a_failed_directory_is_described_with_its_error(replicas: Replicas) -> None:
    path = other_dir(replicas)
    replicas.log_manager.disk_failed(path, "pulled out", OSError("pulled out"))
    described = {info.path: info for info in replicas.manager.describe_log_dirs()}
    assert (described[path].error, described[path].replicas) == (ErrorCode.KAFKA_STORAGE_ERROR, [])


def test_only_the_partitions_asked_for_are_described(replicas: Replicas) -> None:
    assert all(info.replicas == [] for info in replicas.manager.describe_log_dirs({TopicPartition("other", 0)}))


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["append", "slice", "flush", "roll", "delete"]), max_size=30))
def test_a_move_loses_nothing_whatever_happens_meanwhile(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    config = LogConfig(segment_bytes=2000, file_delete_delay_ms=0)
    replicas = Replicas(tmp_path_factory.mktemp("move"), dirs=2, config=config)
    replicas.lead()
    replicas.append(10)
    alter(replicas, other_dir(replicas))
    for step in steps:
        if step == "append":
            replicas.append(3, size=100)
        elif step == "slice":
            replicas.manager.advance_moves(replicas.clock.wall_ms)
        elif step == "flush":
            replicas.log_manager.flushes.run_all(replicas.clock.wall_ms)
        elif step == "roll":
            replicas.log().roll(replicas.clock.wall_ms)
        else:
            replicas.manager.delete_records(0, {TP: replicas.log().log_end_offset // 2}, lambda results: None)
    end, start, high_watermark = replicas.log().log_end_offset, replicas.log().log_start_offset, replicas.log().high_watermark
    finish(replicas)
    log = replicas.log()
    assert (log.log_end_offset, log.log_start_offset, log.high_watermark) == (end, start, high_watermark)
    assert replicas.append(1).result.base_offset == end
    replicas.close()


def test_a_move_waits_while_its_throttle_is_exceeded(replicas: Replicas) -> None:
    quotas = replicas.manager.quotas
    quotas.rates_changed({"replica.alter.log.dirs.io.max.bytes.per.second": "10"}, {})
    quotas.alter_log_dirs.record(100, replicas.clock.monotonic_ms())
    alter(replicas, other_dir(replicas))
    assert not replicas.manager.advance_moves(replicas.clock.wall_ms)
    future = replicas.log_manager.get(TP, is_future=True)
    assert future is not None
    assert future.log_end_offset == 0
    replicas.pass_time(10_000)
    assert replicas.manager.advance_moves(replicas.clock.wall_ms)
    assert quotas.alter_log_dirs.byte_rate(replicas.clock.monotonic_ms()) > 10  # the slice counts
    replicas.pass_time(60_000)
    finish(replicas)
    assert replicas.log().log_end_offset == 10
