"""Loading, unloading, and answers that wait for the high watermark."""

from __future__ import annotations

import logging
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.faults import truncated
from barnabas.coordinator.group.classic.classic_groups import Caller
from barnabas.coordinator.group.config import GroupCoordinatorConfig, MigrationPolicy
from barnabas.coordinator.group.group import partition_for
from barnabas.coordinator.group.offsets import OFFSET_COMMIT
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult, TimerAction
from barnabas.coordinator.runtime import RECORDS_PER_SLICE, SKIPS_LOGGED_MAX
from barnabas.coordinator.shard_timer import ShardTimer
from barnabas.errors import CoordinatorNotAvailable, KafkaStorageError
from barnabas.java_hash import java_hash
from barnabas.protocol.coordinator_records.offset_commit_key import OffsetCommitKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from barnabas.protocol.writer import STRING_SIZE_MAX
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import GZIP
from tests.unit.coordinator.coordinator_host import Answers, Host, MemoryLog, Time, commit_error


def test_a_group_belongs_to_the_partition_that_java_says() -> None:
    assert partition_for("testgroup", 50) == 27
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0


@given(st.text(), st.integers(1, 1_000))
def test_every_group_has_a_partition(group_id: str, count: int) -> None:
    assert 0 <= partition_for(group_id, count) < count


def test_the_config_is_made_from_kafkas_names() -> None:
    config = GroupCoordinatorConfig.of({"group.max.size": 3, "group.consumer.migration.policy": "UPGRADE"})
    assert (config.group_max_size, config.group_consumer_migration_policy) == (3, MigrationPolicy.UPGRADE)


def test_a_partition_that_is_led_elsewhere_is_not_coordinated_here() -> None:
    host = Host()
    host.coordinator.on_resignation(0, 1)
    assert host.join().one.error_code == ErrorCode.NOT_COORDINATOR
    assert commit_error(host.commit(1)) == ErrorCode.NOT_COORDINATOR


def test_while_a_partition_loads_clients_are_told_to_wait_and_heartbeats_that_all_is_well() -> None:
    host = Host()
    host.coordinator.on_resignation(0, None)
    loading = host.coordinator.on_election(0, 2)
    assert commit_error(host.commit(1)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert host.join().one.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert host.leave("m").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert host.heartbeat("m", 1) == 0
    assert list(loading) == []
    assert commit_error(host.commit(1)) == 0


def test_while_a_partition_loads_a_member_that_syncs_is_sent_back_to_join() -> None:
    host = Host()
    host.coordinator.on_resignation(0, None)
    loading = host.coordinator.on_election(0, 2)
    assert host.sync("m", 1).one.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(loading) == []
    assert host.sync("m", 1).one.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_large_partition_is_loaded_in_slices_and_an_unload_stops_it() -> None:
    host = Host()
    for offset in range(3 * RECORDS_PER_SLICE):
        host.commit(offset, partition=offset)
    host.coordinator.on_resignation(0, None)
    loading = host.coordinator.on_election(0, 2)
    next(loading)
    host.coordinator.on_resignation(0, 3)
    assert list(loading) == []
    assert commit_error(host.commit(1)) == ErrorCode.NOT_COORDINATOR
    host.load(0, 4)
    assert host.fetch(partition=2_999) == (2_999, 0)


def test_between_the_slices_of_a_load_only_the_bytes_of_the_batches_are_held() -> None:
    host = Host(load_buffer_size=1 << 21)
    host.commit(7)
    commit = host.log.read(0, 0, 1 << 20)
    for _ in range(10 * RECORDS_PER_SLICE):
        host.log.append(0, commit)
    host.coordinator.on_resignation(0, None)
    size = len(host.log.read(0, 0, 1 << 21))
    loading = host.coordinator.on_election(0, 2)
    tracemalloc.start()
    try:
        next(loading)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1.2 * size
    for _ in loading:
        pass
    assert host.fetch() == (7, 0)


def test_an_answer_waits_until_the_high_watermark_has_passed() -> None:
    host = Host()
    host.log.held_at = 0
    committing = host.commit(7)
    assert committing == []
    host.coordinator.high_watermark_updated(0, 1)
    assert commit_error(committing) == 0


def test_a_batch_without_a_producer_begins_at_sequence_zero_as_kafkas_does() -> None:
    host = Host()
    host.commit(7)
    (batch,) = read_batches(host.log.read(0, 0, 1 << 20))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, 0)


def test_what_is_not_replicated_is_not_read() -> None:
    host = Host()
    host.log.held_at = 0
    host.commit(7)
    answers = Answers()
    host.coordinator.fetch_offsets(OffsetFetchRequestGroup("g", topics=None), False, answers.append)
    assert answers == []
    host.coordinator.high_watermark_updated(0, 1)
    assert answers.one.topics[0].partitions[0].committed_offset == 7


def test_a_write_that_is_not_replicated_in_time_is_answered_so() -> None:
    host = Host()
    host.log.held_at = 0
    committing = host.commit(7)
    host.time.advance(5_000)
    assert commit_error(committing) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_who_waits_hears_of_the_unload() -> None:
    host = Host()
    _, joining = host.member()
    host.log.held_at = 0
    committing = host.commit(7, group="other")
    host.coordinator.on_resignation(0, None)
    assert joining.one.error_code == commit_error(committing) == ErrorCode.NOT_COORDINATOR
    host.time.advance(1_000_000)


def test_an_unload_logs_how_much_was_removed(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    host.commit(1)
    host.commit(1, group="other")
    with caplog.at_level(logging.INFO):
        host.coordinator.on_resignation(0, None)
    assert "Finished unloading: removed 2 cached offsets and 2 cached groups." in caplog.text


def test_an_older_epoch_does_not_unload() -> None:
    host = Host()
    host.load(0, 5)
    host.coordinator.on_resignation(0, 5)
    assert commit_error(host.commit(1)) == 0


def test_records_of_a_newer_kafka_are_skipped() -> None:
    log = MemoryLog()
    host = Host(log)
    host.commit(1)
    host.commit(2)
    base, end, data = log.batches[0][0]
    at = data.index(b"\x00\x01\x00\x01g")
    log.batches[0][0] = (base, end, data[:at] + b"\x7f\x00" + data[at + 2 :])
    assert Host(log).fetch() == (2, 0)


HEADER_SIZE = 61  # of a batch


def unreadable() -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values that a client has left in the log of a coordinator."""
    return [
        (b"garbage", b"garbage"),
        (b"", b""),
        (b"\x00", b"x"),
        (None, b"no key"),
        (b"\x00\x01\x7f\x01g", b"a group id longer than the key"),
        (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b""),
        (b"\x00\x02\x00\x01g", b"\x00\x03" + b"\xff" * 40),
        (b"\x00\x03\x00\x01g", b"\x00\x00\x00\x00\x00\x01"),  # of a consumer group, where g is a classic one
    ]


def append_unreadable(log: MemoryLog) -> None:
    for key, value in unreadable():
        builder = BatchBuilder()
        builder.append(0, key, value)
        log.append(0, builder.build())


def test_a_record_that_cannot_be_read_is_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    first = Host(log, group_initial_rebalance_delay_ms=0)
    (member,) = first.stable()
    first.commit(1, member_id=member, generation=1)
    append_unreadable(log)
    first.commit(2, member_id=member, generation=1)
    host = Host(log)
    assert host.fetch() == (2, 0)
    assert host.heartbeat(member, 1) == 0
    assert commit_error(host.commit(3, member_id=member, generation=1)) == 0
    assert host.coordinator.skipped_records == len(unreadable())
    assert "Skipped a record of __consumer_offsets-0 at offset 4 that cannot be read" in caplog.text


def test_a_batch_that_cannot_be_read_is_skipped() -> None:
    log = MemoryLog()
    Host(log).commit(1)
    builder = BatchBuilder(codec=GZIP)
    builder.append(0, b"key", b"value")
    data = builder.build()
    log.append(0, data[:HEADER_SIZE] + bytes(len(data) - HEADER_SIZE))
    Host(log).commit(2, partition=1)
    host = Host(log)
    assert (host.fetch(), host.fetch(partition=1)) == ((1, 0), (2, 0))
    assert host.coordinator.skipped_records == 1


class CutLog(MemoryLog):
    """Its first batch has lost its end, and with it is all that a read from there gives."""

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        return super().read(partition, offset, max_bytes)[:HEADER_SIZE] if offset == 0 else super().read(partition, offset, max_bytes)


def test_a_read_that_gives_no_whole_batch_does_not_hold_up_the_loading() -> None:
    log = CutLog()
    host = Host(log)
    host.commit(1)
    host.commit(2, partition=1)
    again = Host(log)
    assert again.fetch(partition=1) == (2, 0)
    assert again.coordinator.skipped_records == 1


def test_many_records_that_cannot_be_read_are_logged_in_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    for _ in range(200):
        append_unreadable(log)
    host = Host(log)
    assert host.coordinator.skipped_records > 1_000
    assert len([line for line in caplog.messages if line.startswith("Skipped")]) == SKIPS_LOGGED_MAX + 1
    assert f"Skipped {host.coordinator.skipped_records} records of __consumer_offsets-0" in caplog.text


@given(st.lists(st.tuples(st.integers(-1, 20), st.binary(max_size=60), st.integers(-1, 6), st.none() | st.binary(max_size=80))))
def test_whatever_is_written_into_the_log_the_groups_stay(written: list[tuple[int, bytes, int, bytes | None]]) -> None:
    log = MemoryLog()
    Host(log).commit(1, group="mine")
    builder = BatchBuilder()
    builder.append(0, b"\x7f\x7f", None)
    for kind, key, version, value in written:
        prefixed = None if value is None else version.to_bytes(2, "big", signed=True) + value
        builder.append(0, kind.to_bytes(2, "big", signed=True) + key, prefixed)
    log.append(0, builder.build())
    assert Host(log).fetch(group="mine") == (1, 0)


def test_after_a_shutdown_the_coordinator_is_not_available() -> None:
    host = Host()
    host.coordinator.shutdown()
    assert host.join().one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(CoordinatorNotAvailable):
        host.coordinator.partition_for("g")


def test_without_the_consumer_protocol_its_requests_are_not_supported() -> None:
    answers = Answers()
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    Host().coordinator.consumer_group_heartbeat(Caller("client", "/127.0.0.1", 1), request, answers.append)
    assert answers.one.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_error_that_quotes_an_enormous_group_id_is_cut_to_what_a_response_can_carry() -> None:
    assert len(truncated("ü" * 40_000).encode()) <= STRING_SIZE_MAX
    assert truncated("Group g not found.") == "Group g not found."


@pytest.mark.parametrize("replay", [True, False])
def test_a_timer_whose_records_cannot_be_written_runs_again_unless_its_code_handles_the_failure(replay: bool) -> None:
    timers: list[ShardTimer] = []
    host = Host(on_timer=timers.append)
    record = CoordinatorRecord(OFFSET_COMMIT, OffsetCommitKey("g", "t", 0))
    ran: list[int] = []

    def action() -> CoordinatorResult[None]:
        ran.append(host.time.now)
        return CoordinatorResult([record], replay=replay)

    began = host.time.now
    timers[0].schedule("session", 10, action)
    host.log.error = KafkaStorageError("too many open files")
    host.time.advance(600)
    host.log.error = None
    host.time.advance(10_000)
    assert ran == ([began + 10, began + 510, began + 1_010] if replay else [began + 10])
    assert not timers[0].is_scheduled("session")


def shard_timer() -> tuple[Time, ShardTimer]:
    time = Time()

    def run(key: str, action: TimerAction) -> None:
        assert action() is None

    return time, ShardTimer(time, run)


def test_a_timer_that_is_put_off_runs_once_when_it_is_due_by_the_last_word() -> None:
    time, timer = shard_timer()
    ran: list[tuple[str, int]] = []
    timer.schedule("session", 100, lambda: ran.append(("first", time.now)))
    time.advance(60)
    timer.schedule("session", 100, lambda: ran.append(("second", time.now)))
    time.advance(60)
    timer.schedule("session", 200, lambda: ran.append(("third", time.now)))
    began = time.now
    time.advance(1_000)
    assert ran == [("third", began + 200)]
    assert not timer.is_scheduled("session")


def test_a_timer_that_is_brought_forward_runs_at_the_earlier_time() -> None:
    time, timer = shard_timer()
    ran: list[int] = []
    timer.schedule("join", 1_000, lambda: ran.append(time.now))
    began = time.now
    timer.schedule("join", 10, lambda: ran.append(time.now))
    time.advance(2_000)
    assert ran == [began + 10]


def test_a_timer_that_was_put_off_and_then_cancelled_does_not_run() -> None:
    time, timer = shard_timer()
    ran: list[int] = []
    timer.schedule("session", 10, lambda: ran.append(time.now))
    timer.schedule("session", 100, lambda: ran.append(time.now))
    time.advance(20)
    timer.cancel("session")
    time.advance(200)
    assert ran == [] and len(timer) == 0


def test_a_load_that_needs_a_larger_buffer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    Host(log).commit(1, metadata="x" * 4_000)
    Host(log, load_buffer_size=1_000)
    (message,) = [record.getMessage() for record in caplog.records if "buffer larger" in record.getMessage()]
    assert message.startswith("Loaded offsets and group metadata from __consumer_offsets-0 with buffer larger (")
    assert message.endswith(" bytes) than configured offsets.load.buffer.size (1000 bytes)")


def test_a_load_without_a_log_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    log.is_leader = False
    Host(log)
    assert "Attempted to load offsets and group metadata from __consumer_offsets-0, but found no log" in caplog.text
