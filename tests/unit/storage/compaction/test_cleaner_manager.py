"""Which log is cleaned next, how far each has been, and who may keep the cleaner away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.simulation.disk import DiskEvent, SimulatedFiles
from barnabas.storage.compaction.cleaner import Cleaning
from barnabas.storage.compaction.manager import CleanerConfig, CleanerManager
from barnabas.storage.compaction.states import VALID_PREVIOUS_STATES, CleaningState, CleaningStates
from barnabas.storage.compaction.throttler import Throttler
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.cleaning import Writer, cleaned_files, compact_config, keyed, keyed_batch, put, roll
from tests.unit.storage.logs import DAY, NOW, RecordingHost, append, flip, write_file

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)
DIR, OTHER_DIR = "/data", "/other"


class Broker:
    """Logs in two log directories, and the cleaner over them."""

    def __init__(self, config: CleanerConfig | None = None, files: SimulatedFiles | None = None) -> None:
        self.files = files or SimulatedFiles(lambda: NOW)
        self.host = RecordingHost()
        self.dirs = {path: LogDir(self.files, path) for path in (DIR, OTHER_DIR)}
        self.logs: dict[TopicPartition, Log] = {}
        self.cleaner = CleanerManager(config or CleanerConfig(), self.dirs, self.logs)

    def log(self, partition: TopicPartition = A, *, log_dir: str = DIR, **settings: Any) -> Log:
        config = compact_config(**settings)
        producers = ProducerStateConfig(transaction_verification_enabled=False)
        request = LoadRequest(self.files, f"{log_dir}/{partition}", partition, config, self.host, NOW, producer_config=producers)
        self.logs[partition] = log = load_log(request)
        return log

    def dirty_log(self, partition: TopicPartition = A, **settings: Any) -> Log:
        """Two values of one key, to be cleaned."""
        log = self.log(partition, **settings)
        put(log, k="1")
        put(log, k="2")
        roll(log)
        return log

    def start(self) -> Cleaning:
        cleaning = self.cleaner.clean_next(NOW, 0)
        assert cleaning is not None
        return cleaning

    def checkpoint(self, log_dir: str = DIR) -> dict[TopicPartition, int]:
        return self.dirs[log_dir].cleaner_offsets.read()


@pytest.fixture
def broker() -> Broker:
    return Broker()


# -- choosing


def test_a_dirty_log_is_cleaned_and_its_checkpoint_written(broker: Broker) -> None:
    log = broker.dirty_log()
    assert broker.cleaner.run_once(NOW)
    assert keyed(log) == [(1, b"k", b"2")]
    assert broker.checkpoint() == {A: 2}
    assert broker.cleaner.checkpoint_of(A) == 2


def test_a_clean_log_is_not_cleaned_again(broker: Broker) -> None:
    broker.dirty_log()
    broker.cleaner.run_once(NOW)
    assert not broker.cleaner.run_once(NOW)


def test_the_log_with_the_greatest_share_of_dirty_bytes_comes_first(broker: Broker) -> None:
    clean = broker.dirty_log(A, min_cleanable_dirty_ratio=0.0)
    broker.cleaner.run_once(NOW)
    put(clean, k="3")
    roll(clean)
    broker.dirty_log(B)
    assert broker.start().log.partition == B
    assert broker.cleaner.max_dirty_ratio == 1.0


def test_a_log_exactly_as_dirty_as_allowed_can_wait(broker: Broker) -> None:
    log = broker.dirty_log(min_cleanable_dirty_ratio=0.5)
    broker.cleaner.run_once(NOW)
    put(log, k="3")
    roll(log)
    assert log.segments.first.size == log.segments.active.size + log.size // 2
    assert not broker.cleaner.run_once(NOW)
    assert broker.cleaner.max_dirty_ratio == 0.5


def test_a_log_that_is_not_compacted_is_left_alone(broker: Broker) -> None:
    broker.dirty_log(cleanup_policy=frozenset({"delete"}))
    assert not broker.cleaner.run_once(NOW)


def test_the_active_segment_is_never_cleaned(broker: Broker) -> None:
    log = broker.log()
    put(log, k="1")
    put(log, k="2")
    log.update_high_watermark(2)
    assert not broker.cleaner.run_once(NOW)


def test_what_is_not_replicated_yet_is_not_cleaned(broker: Broker) -> None:
    log = broker.log()
    for value in "1234":
        put(log, k=value)
        log.roll(NOW)
    log.update_high_watermark(2)
    cleaning = broker.start()
    assert (cleaning.first_dirty_offset, cleaning.first_uncleanable_offset) == (0, 2)


def test_what_belongs_to_an_open_transaction_is_not_cleaned(broker: Broker) -> None:
    log = broker.dirty_log()
    writer = Writer(log, 7)
    writer.put(k="3")
    roll(log)
    put(log, k="4")
    roll(log)
    assert broker.start().first_uncleanable_offset == 2


def test_a_segment_younger_than_the_min_compaction_lag_is_not_cleaned(broker: Broker) -> None:
    log = broker.log(min_compaction_lag_ms=1000)
    for age_ms in (1500, 1000, 999, 2000):
        append(log, keyed_batch({"k": "1"}, timestamp=NOW - age_ms))
        roll(log)
    assert broker.start().first_uncleanable_offset == 2


def test_a_log_with_something_older_than_the_max_compaction_lag_is_cleaned_however_little_it_is(broker: Broker) -> None:
    log = broker.dirty_log(max_compaction_lag_ms=1000)
    broker.cleaner.run_once(NOW)
    append(log, keyed_batch({"k": "3"}, timestamp=NOW))
    roll(log)
    log.update_config(compact_config(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0))
    assert not broker.cleaner.run_once(NOW + 1000)
    assert broker.cleaner.run_once(NOW + 1001)
    assert keyed(log) == [(2, b"k", b"3")]


def test_how_long_a_log_is_overdue_is_known(broker: Broker) -> None:
    broker.dirty_log(max_compaction_lag_ms=1000)
    broker.cleaner.run_once(NOW + 1250, 77)
    assert broker.cleaner.max_compaction_delay_ms == 250
    assert broker.cleaner.last_run_ms == 77


def test_an_empty_log_is_not_cleaned(broker: Broker) -> None:
    broker.log(min_cleanable_dirty_ratio=0.0)
    assert not broker.cleaner.run_once(NOW)


def test_a_cleaner_that_is_not_enabled_cleans_nothing() -> None:
    broker = Broker(CleanerConfig(enable=False))
    broker.dirty_log()
    assert broker.cleaner.clean_next(NOW, 0) is None


def test_as_many_logs_are_cleaned_at_once_as_there_are_threads() -> None:
    broker = Broker(CleanerConfig(threads=2))
    for partition in (A, B, C):
        broker.dirty_log(partition)
    assert {broker.start().log.partition, broker.start().log.partition} == {A, B}
    assert broker.cleaner.clean_next(NOW, 0) is None


def test_a_log_that_is_also_to_be_deleted_gets_its_retention_after_the_cleaning(broker: Broker) -> None:
    log = broker.log(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=DAY)
    append(log, keyed_batch({"old": "1"}, timestamp=NOW - 2 * DAY))
    roll(log)
    broker.cleaner.run_once(NOW)
    assert keyed(log) == []
    assert log.log_start_offset == 1


# -- checkpoints


def test_a_checkpoint_below_the_log_start_offset_is_reset(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    log = broker.dirty_log(min_cleanable_dirty_ratio=0.0)
    broker.dirs[DIR].cleaner_offsets.write({A: 0})
    log.increment_log_start_offset(1, "a test")
    assert broker.start().first_dirty_offset == 1
    assert broker.checkpoint() == {A: 1}
    assert "Resetting first dirty offset of a-0 to log start offset 1 since the checkpointed offset 0 is invalid." in caplog.text


def test_no_warning_is_given_where_retention_moves_the_log_start_offset(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    log = broker.dirty_log(cleanup_policy=frozenset({"compact", "delete"}), min_cleanable_dirty_ratio=0.0)
    broker.dirs[DIR].cleaner_offsets.write({A: 0})
    log.increment_log_start_offset(1, "a test")
    assert broker.start().first_dirty_offset == 1
    assert "Resetting" not in caplog.text


def test_a_checkpoint_beyond_the_log_end_offset_is_reset(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.dirty_log()
    broker.dirs[DIR].cleaner_offsets.write({A: 99})
    assert broker.start().first_dirty_offset == 0
    assert broker.checkpoint() == {A: 0}
    assert "The last checkpoint dirty offset for partition a-0 is 99, which is larger than the log end offset 2." in caplog.text


def test_a_checkpoint_that_cannot_be_read_costs_a_cleaning_from_the_start(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.dirty_log()
    write_file(broker.files, f"{DIR}/cleaner-offset-checkpoint", b"7\ngarbage\n")
    assert broker.cleaner.run_once(NOW)
    assert broker.checkpoint() == {A: 2}
    assert "Compacted logs will be cleaned from their start." in caplog.text


def test_the_next_cleaner_goes_on_where_the_last_one_was(broker: Broker) -> None:
    log = broker.dirty_log(min_cleanable_dirty_ratio=0.0)
    broker.cleaner.run_once(NOW)
    put(log, k="3")
    roll(log)
    cleaning = CleanerManager(CleanerConfig(), broker.dirs, broker.logs).clean_next(NOW, 0)
    assert cleaning is not None
    assert (cleaning.first_dirty_offset, cleaning.first_uncleanable_offset) == (2, 3)


def test_partitions_that_are_gone_are_dropped_from_the_checkpoint(broker: Broker) -> None:
    broker.dirty_log(A)
    broker.cleaner.run_once(NOW)
    broker.logs.pop(A)
    broker.cleaner.removed(A)
    broker.dirty_log(B)
    broker.cleaner.run_once(NOW)
    assert broker.checkpoint() == {B: 2}


def test_every_log_directory_has_its_own_checkpoint(broker: Broker) -> None:
    broker.dirty_log(A)
    broker.dirty_log(B, log_dir=OTHER_DIR)
    while broker.cleaner.run_once(NOW):
        pass
    assert (broker.checkpoint(DIR), broker.checkpoint(OTHER_DIR)) == ({A: 2}, {B: 2})


def test_the_checkpoint_of_a_partition_moves_with_it(broker: Broker) -> None:
    broker.dirty_log()
    broker.cleaner.run_once(NOW)
    broker.dirty_log(A, log_dir=OTHER_DIR)
    broker.cleaner.moved(A, DIR, OTHER_DIR)
    assert (broker.checkpoint(DIR), broker.checkpoint(OTHER_DIR)) == ({}, {A: 2})


@pytest.mark.parametrize(("offset", "expected"), [(1, 1), (2, 2), (5, 2)])
def test_a_truncation_lowers_the_checkpoint(broker: Broker, offset: int, expected: int) -> None:
    broker.dirty_log()
    broker.cleaner.run_once(NOW)
    broker.cleaner.truncated(A, offset)
    assert broker.checkpoint() == {A: expected}


def test_a_partition_without_a_log_has_no_checkpoint(broker: Broker) -> None:
    broker.cleaner.truncated(A, 0)
    assert broker.cleaner.checkpoint_of(A) is None


# -- trouble


def test_a_log_that_cannot_be_cleaned_is_set_aside_and_the_others_go_on(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.dirty_log(A)
    broker.dirty_log(B)
    flip(broker.files, f"{DIR}/a-0/00000000000000000000.log", 65)
    assert [broker.cleaner.run_once(NOW) for _ in range(3)] == [True, True, False]
    assert broker.cleaner.uncleanable_partitions(DIR) == {A}
    assert broker.checkpoint() == {B: 2}
    assert "Marking its partition (a-0) as uncleanable" in caplog.text
    assert cleaned_files(broker.logs[A]) == []


def test_an_uncleanable_partition_that_is_made_anew_is_cleaned(broker: Broker) -> None:
    broker.dirty_log(A)
    flip(broker.files, f"{DIR}/a-0/00000000000000000000.log", 65)
    broker.cleaner.run_once(NOW)
    broker.logs.pop(A)
    broker.cleaner.removed(A)
    broker.cleaner.run_once(NOW)
    broker.files.remove_tree(f"{DIR}/a-0")
    broker.dirty_log(A)
    assert broker.cleaner.run_once(NOW)
    assert broker.checkpoint() == {A: 2}


def test_an_uncleanable_partition_stays_so_when_it_moves(broker: Broker) -> None:
    broker.dirty_log(A)
    flip(broker.files, f"{DIR}/a-0/00000000000000000000.log", 65)
    broker.cleaner.run_once(NOW)
    broker.cleaner.moved(A, DIR, OTHER_DIR)
    assert broker.cleaner.uncleanable_partitions(DIR) == frozenset()
    assert broker.cleaner.uncleanable_partitions(OTHER_DIR) == {A}


@pytest.mark.parametrize("kind", ["write", "sync", "create", "rename"])
def test_a_disk_that_fails_is_reported_and_the_partition_is_not_to_blame(broker: Broker, kind: str) -> None:
    broker.dirty_log()
    broker.files.fail_when(lambda event: event.kind == kind and ".cleaned" in event.path)
    assert broker.cleaner.run_once(NOW)
    assert [directory for directory, _ in broker.host.failures] == [DIR]
    assert "Failed to clean up log for a-0 in dir /data" in broker.host.failures[0][1]
    assert broker.cleaner.uncleanable_partitions(DIR) == frozenset()
    assert broker.checkpoint() == {}


def test_a_checkpoint_that_cannot_be_written_is_reported(broker: Broker) -> None:
    broker.dirty_log()
    broker.files.fail_when(lambda event: "cleaner-offset-checkpoint" in event.path)
    broker.cleaner.run_once(NOW)
    assert "Failed to write the cleaner checkpoint in dir /data" in broker.host.failures[0][1]


def test_logs_that_are_compacted_no_longer_are_noted_with_one_write_for_each_directory(broker: Broker) -> None:
    logs = [broker.log(TopicPartition("t", number), log_dir=(DIR, OTHER_DIR)[number % 2]) for number in range(6)]
    renames: list[str] = []

    def note(event: DiskEvent) -> bool:
        if event.kind == "rename" and "cleaner-offset-checkpoint" in event.path:
            renames.append(event.path)
        return False

    broker.files.fail_when(note)
    broker.cleaner.retired(logs)
    assert len(renames) == 2
    for number, log_dir in enumerate((DIR, OTHER_DIR)):
        assert set(broker.checkpoint(log_dir)) == {log.partition for log in logs[number::2]}


# -- who keeps the cleaner away


def test_an_aborted_cleaning_leaves_nothing_behind_and_may_start_again(broker: Broker) -> None:
    log = broker.dirty_log()
    cleaning = broker.start()
    for _ in range(2):
        broker.cleaner.advance(cleaning, NOW, 0)
    broker.cleaner.abort(A)
    assert cleaned_files(log) == []
    assert broker.cleaner.advance(cleaning, NOW, 0) is None
    assert broker.cleaner.state(A) is CleaningState.NONE
    assert broker.checkpoint() == {}
    assert broker.cleaner.run_once(NOW)


def test_aborting_what_is_not_cleaned_does_nothing(broker: Broker) -> None:
    broker.dirty_log()
    broker.cleaner.abort(A)
    assert broker.cleaner.run_once(NOW)


def test_a_paused_partition_is_not_cleaned_until_it_is_resumed_as_often(broker: Broker) -> None:
    broker.dirty_log()
    assert broker.cleaner.pause(A)
    assert broker.cleaner.pause(A)
    assert not broker.cleaner.run_once(NOW)
    broker.cleaner.resume(A)
    assert not broker.cleaner.run_once(NOW)
    broker.cleaner.resume(A)
    assert broker.cleaner.run_once(NOW)


def test_a_partition_that_is_being_cleaned_is_not_paused(broker: Broker) -> None:
    broker.dirty_log()
    broker.start()
    assert not broker.cleaner.pause(A)
    assert broker.cleaner.state(A) is CleaningState.IN_PROGRESS


def test_abort_and_pause_stops_the_cleaning_for_good(broker: Broker) -> None:
    broker.dirty_log()
    broker.start()
    broker.cleaner.abort_and_pause(A)
    assert broker.cleaner.state(A) is CleaningState.PAUSED
    assert not broker.cleaner.run_once(NOW)
    broker.cleaner.resume(A)
    assert broker.cleaner.run_once(NOW)


def test_a_partition_that_is_not_paused_cannot_be_resumed(broker: Broker) -> None:
    broker.dirty_log()
    with pytest.raises(ValueError, match="cannot be resumed since it is in None state"):
        broker.cleaner.resume(A)


def test_a_partition_that_was_removed_while_paused_may_be_resumed(broker: Broker) -> None:
    broker.dirty_log()
    broker.cleaner.pause(A)
    broker.logs.pop(A)
    broker.cleaner.removed(A)
    broker.cleaner.resume(A)
    assert broker.cleaner.state(A) is CleaningState.NONE


def test_removing_a_partition_ends_its_cleaning(broker: Broker) -> None:
    log = broker.dirty_log()
    cleaning = broker.start()
    broker.cleaner.advance(cleaning, NOW, 0)
    broker.logs.pop(A)
    broker.cleaner.removed(A)
    assert broker.cleaner.advance(cleaning, NOW, 0) is None
    assert cleaned_files(log) == []


def test_shutdown_ends_every_cleaning_and_none_begins(broker: Broker) -> None:
    log = broker.dirty_log()
    cleaning = broker.start()
    for _ in range(2):
        broker.cleaner.advance(cleaning, NOW, 0)
    broker.cleaner.shutdown()
    assert cleaned_files(log) == []
    assert broker.cleaner.clean_next(NOW, 0) is None


# -- states

TRANSITIONS: dict[tuple[CleaningState, CleaningState], Callable[[CleaningStates], object]] = {
    (CleaningState.NONE, CleaningState.IN_PROGRESS): lambda states: states.begin(A),
    (CleaningState.NONE, CleaningState.PAUSED): lambda states: states.pause(A),
    (CleaningState.IN_PROGRESS, CleaningState.NONE): lambda states: states.end(A),
    (CleaningState.IN_PROGRESS, CleaningState.ABORTED): lambda states: states.abort(A),
    (CleaningState.ABORTED, CleaningState.PAUSED): lambda states: states.end(A),
    (CleaningState.PAUSED, CleaningState.PAUSED): lambda states: states.pause(A),
    (CleaningState.PAUSED, CleaningState.NONE): lambda states: states.resume(A),
}


def in_state(state: CleaningState) -> CleaningStates:
    states = CleaningStates()
    if state in (CleaningState.IN_PROGRESS, CleaningState.ABORTED):
        states.begin(A)
    if state is CleaningState.ABORTED:
        states.abort(A)
    if state is CleaningState.PAUSED:
        states.pause(A)
    return states


def test_the_table_of_states_holds_exactly_the_transitions_there_are() -> None:
    assert {(before, state) for state, previous in VALID_PREVIOUS_STATES.items() for before in previous} == set(TRANSITIONS)


@pytest.mark.parametrize(("before", "after"), TRANSITIONS)
def test_a_legal_transition_is_made(before: CleaningState, after: CleaningState) -> None:
    states = in_state(before)
    TRANSITIONS[before, after](states)
    assert states[A] is after


@pytest.mark.parametrize(
    ("before", "act"),
    [
        (CleaningState.IN_PROGRESS, "begin"),
        (CleaningState.ABORTED, "begin"),
        (CleaningState.PAUSED, "begin"),
        (CleaningState.NONE, "abort"),
        (CleaningState.ABORTED, "abort"),
        (CleaningState.PAUSED, "abort"),
        (CleaningState.IN_PROGRESS, "pause"),
        (CleaningState.NONE, "end"),
        (CleaningState.NONE, "resume"),
        (CleaningState.IN_PROGRESS, "resume"),
        (CleaningState.ABORTED, "resume"),
    ],
)
def test_an_illegal_transition_is_refused(before: CleaningState, act: str) -> None:
    states = in_state(before)
    with pytest.raises(ValueError, match="Compaction for partition a-0 cannot"):
        getattr(states, act)(A)
    assert states[A] is before


def test_pauses_are_counted() -> None:
    states = in_state(CleaningState.PAUSED)
    states.pause(A)
    assert states.pauses(A) == 2
    states.resume(A)
    assert (states[A], states.pauses(A)) == (CleaningState.PAUSED, 1)
    states.resume(A)
    assert (states[A], states.pauses(A)) == (CleaningState.NONE, 0)


# -- throttle and report


def test_a_cleaning_that_is_faster_than_allowed_is_told_to_wait() -> None:
    broker = Broker(CleanerConfig(io_max_bytes_per_second=10_000))
    log = broker.log()
    for number in range(20):
        put(log, **{f"key{number}": "x" * 5000})
    roll(log)
    cleaning = broker.start()
    now_ms = NOW
    while (step := broker.cleaner.advance(cleaning, NOW, now_ms)) is not None:
        now_ms += step.wait_ms + 100
        if step.blocking is not None:
            step.blocking.run()
    stats = cleaning.stats
    done = stats.map_bytes_read + stats.bytes_read + stats.bytes_written
    assert done > 300_000
    assert now_ms - NOW > 0.7 * done / 10, "but for what was done before the rate was looked at"


def test_a_throttler_waits_as_long_as_the_work_should_have_taken() -> None:
    throttler = Throttler(1000, monotonic_ms=0)
    assert throttler.observe(500, 300) == 0, "too early to tell"
    assert throttler.observe(500, 400) == 600
    assert throttler.observe(100, 1301) == 0, "slow enough since then"


def test_a_throttler_without_a_limit_never_waits() -> None:
    throttler = Throttler(float("inf"))
    assert throttler.observe(10**12, NOW) == 0


def test_a_cleaning_is_reported_when_it_is_done(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.dirty_log()
    with caplog.at_level(logging.INFO):
        broker.cleaner.run_once(NOW)
    assert "cleaned log a-0 (dirty section = [0, 2])" in caplog.text
    assert broker.cleaner.last_stats is not None
    assert broker.cleaner.last_stats.messages_written == 1


def test_new_settings_count_from_the_next_cleaning_on() -> None:
    cleaner = CleanerManager(CleanerConfig(threads=1), {}, {})
    cleaner.reconfigure(CleanerConfig(threads=2, backoff_ms=7))
    assert (cleaner.config.threads, cleaner.config.backoff_ms) == (2, 7)
