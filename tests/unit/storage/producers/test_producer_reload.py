"""The producer state across restarts: snapshots, truncation, replay."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.validation.validator import REPLICATION
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.state import ProducerStateManager
from tests.unit.storage.producing import DAY_MS, NOW, append, end_txn, entry_of, new_state, snapshots_in


@pytest.fixture
def state(tmp_path: Path) -> ProducerStateManager:
    return new_state(tmp_path)


def test_a_snapshot_is_taken_once_per_offset(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, 0, 0)
    assert state.take_snapshot() == f"{tmp_path}/00000000000000000001.snapshot"
    assert state.take_snapshot() is None
    assert snapshots_in(tmp_path) == [1]


def test_snapshots_taken_without_a_sync_are_handed_out_once(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, 0, 0)
    state.take_snapshot(sync=False)
    append(state, 1, 1)
    state.take_snapshot(sync=True)
    assert state.take_unsynced_snapshots() == [f"{tmp_path}/00000000000000000001.snapshot"]
    assert state.take_unsynced_snapshots() == []


def test_a_removed_snapshot_needs_no_sync(state: ProducerStateManager) -> None:
    for n in range(3):
        append(state, n, n)
        state.take_snapshot(sync=False)
    state.delete_snapshots_before(2)
    state.mark_snapshot_for_deletion(2)
    assert [Path(p).stem.lstrip("0") for p in state.take_unsynced_snapshots()] == ["3"]


def test_a_reload_goes_on_from_the_last_batch(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    append(state, 0, 0, transactional=True)
    append(state, 1, 1, transactional=True)
    state.take_snapshot(sync=False)
    reloaded = new_state(tmp_path)
    reloaded.truncate_and_reload(0, 3, NOW)
    entry = entry_of(reloaded)
    assert (entry.first_sequence, entry.last_sequence, entry.first_data_offset, entry.current_txn_first_offset) == (1, 1, 1, 0)
    assert reloaded.map_end_offset == 2
    assert reloaded.first_unstable_offset == LogOffset(0)
    append(reloaded, 2, 2, transactional=True)


def test_a_reload_leaves_expired_producers_behind(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    append(state, 0, 0)
    append(state, 1, 0, producer_id=2, timestamp=NOW + 1)
    state.take_snapshot(sync=False)
    reloaded = new_state(tmp_path)
    reloaded.truncate_and_reload(0, 2, NOW + DAY_MS)
    assert list(reloaded.active_producers) == [2]


def test_a_corrupt_snapshot_is_dropped_for_an_older_one(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    append(state, 0, 0)
    state.take_snapshot(sync=False)
    append(state, 1, 1)
    latest = state.take_snapshot(sync=False)
    assert latest is not None
    Path(latest).write_bytes(Path(latest).read_bytes()[:-1])
    reloaded = new_state(tmp_path)
    reloaded.truncate_and_reload(0, 2, NOW)
    assert (reloaded.map_end_offset, entry_of(reloaded).last_sequence) == (1, 0)
    assert snapshots_in(tmp_path) == [1]


def test_without_a_usable_snapshot_the_state_begins_at_the_log_start(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000020.snapshot").touch()
    state = new_state(tmp_path)
    state.truncate_and_reload(5, 30, NOW)
    assert (state.map_end_offset, state.is_empty, snapshots_in(tmp_path)) == (5, True, [])


def test_truncation_removes_snapshots_outside_the_log(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    for n in range(6):
        append(state, n, n)
        state.take_snapshot(sync=False)
    state.truncate_and_reload(2, 5, NOW)
    assert snapshots_in(tmp_path) == [3, 4, 5]
    assert (state.map_end_offset, entry_of(state).last_sequence) == (5, 4)


def test_truncating_to_where_the_state_is_keeps_it(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    for n in range(3):
        append(state, n, n)
    state.truncate_and_reload(2, 3, NOW)
    assert len(entry_of(state).batches) == 3


def test_truncating_fully_starts_anew(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, 0, 0)
    append(state, 1, 1)
    state.take_snapshot(sync=False)
    state.truncate_fully_and_start_at(0)
    assert (state.is_empty, state.map_end_offset, snapshots_in(tmp_path)) == (True, 0, [])
    append(state, 0, 0)
    state.take_snapshot(sync=False)
    assert snapshots_in(tmp_path) == [1]


def test_truncating_into_a_transaction_opens_it_again(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    append(state, 99, 0, transactional=True)
    state.take_snapshot(sync=False)
    end_txn(state, 105)
    state.on_high_watermark_updated(106)
    state.take_snapshot(sync=False)
    append(state, 106, 1)
    state.truncate_and_reload(0, 106, NOW)
    assert state.first_unstable_offset is None
    state.truncate_and_reload(0, 100, NOW)
    assert state.first_unstable_offset == LogOffset(99)


def test_snapshots_before_an_offset_are_deleted(state: ProducerStateManager, tmp_path: Path) -> None:
    for n in range(3):
        append(state, n, n)
        state.take_snapshot(sync=False)
    state.delete_snapshots_before(3)
    assert snapshots_in(tmp_path) == [3]
    assert (state.oldest_snapshot_offset, state.latest_snapshot_offset) == (3, 3)


def test_raising_the_log_start_beyond_the_state_takes_the_state_along(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, 0, 0)
    state.on_log_start_offset_incremented(50)
    assert state.map_end_offset == 50
    assert state.take_snapshot() is None


def test_too_many_producers_for_a_snapshot_are_no_error(state: ProducerStateManager, tmp_path: Path) -> None:
    append(state, 0, 0)
    state.snapshots.size_max = 10
    assert state.take_snapshot() is None
    assert snapshots_in(tmp_path) == []


def test_snapshots_follow_the_renamed_directory(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    state = new_state(tmp_path / "orders-0")
    append(state, 0, 0)
    state.take_snapshot(sync=False)
    (tmp_path / "orders-0").rename(tmp_path / "orders-0.abc-delete")
    state.moved_to(str(tmp_path / "orders-0.abc-delete"))
    assert state.take_unsynced_snapshots() == [f"{tmp_path}/orders-0.abc-delete/00000000000000000001.snapshot"]
    state.delete_snapshots_before(2)
    assert snapshots_in(tmp_path / "orders-0.abc-delete") == []


# -- any history

ops = st.lists(
    st.tuples(
        st.sampled_from(["data", "txn data", "commit", "abort", "high watermark"]),
        st.integers(1, 4),  # producer
        st.integers(0, 1),  # by how much the epoch grows
        st.integers(1, 5),  # records
    ),
    max_size=30,
)
Step = Callable[[ProducerStateManager], object]
DIRECTORY = Path("/logs/test-0")


def simulated() -> SimulatedFiles:
    files = SimulatedFiles()
    files.make_dirs(str(DIRECTORY))
    files.sync_dir("/")
    files.sync_dir("/logs")
    return files


def script(operations: list[tuple[str, int, int, int]]) -> list[Step]:
    """A legal history: what a leader would have accepted, as steps on a state."""
    steps: list[Step] = []
    epochs, sequences, open_txns = dict.fromkeys(range(5), 0), dict.fromkeys(range(5), 0), set[int]()
    offset = 0
    for what, pid, bump, count in operations:
        if what == "high watermark":
            steps.append(partial(ProducerStateManager.on_high_watermark_updated, high_watermark=offset))
        elif what in ("commit", "abort"):
            epochs[pid], sequences[pid] = epochs[pid] + bump, 0 if bump else sequences[pid]
            open_txns.discard(pid)
            marker = partial(end_txn, offset=offset, producer_id=pid, epoch=epochs[pid], timestamp=NOW + offset)
            steps.append(partial(marker, committed=what == "commit", origin=REPLICATION))
            offset += 1
        else:
            transactional = what == "txn data" or pid in open_txns
            open_txns |= {pid} if transactional else set()
            data = partial(append, offset=offset, sequence=sequences[pid], producer_id=pid, epoch=epochs[pid], count=count)
            steps.append(partial(data, timestamp=NOW + offset, transactional=transactional, origin=REPLICATION))
            sequences[pid] += count
            offset += count
    return steps


def lasting(state: ProducerStateManager) -> object:
    """What a snapshot keeps: of the batches only the last, and nothing that waits for the high watermark."""
    producers = {
        entry.producer_id: (
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.current_txn_first_offset,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
        )
        for entry in state.active_producers.values()
    }
    return producers, state.first_undecided_offset, state.map_end_offset


@settings(max_examples=60)
@given(ops, st.data())
def test_replaying_from_any_snapshot_gives_the_state_of_replaying_it_all(
    operations: list[tuple[str, int, int, int]], data: st.DataObject
) -> None:
    steps = script(operations)
    at = data.draw(st.integers(0, len(steps)))
    files = simulated()
    state = new_state(DIRECTORY, files=files)
    for step in steps[:at]:
        step(state)
    state.take_snapshot()
    reloaded = new_state(DIRECTORY, files=files)
    reloaded.truncate_and_reload(0, state.map_end_offset, NOW)
    for step in steps[at:]:
        step(state)
        step(reloaded)
    assert lasting(reloaded) == lasting(state)


@settings(max_examples=60)
@given(ops, st.integers(0, 2**32))
def test_a_machine_crash_leaves_the_state_of_some_snapshot_or_of_none(operations: list[tuple[str, int, int, int]], seed: int) -> None:
    """Snapshots taken at a roll are not synced at once: they may be lost or torn, never wrong."""
    files = simulated()
    state = new_state(DIRECTORY, files=files)
    taken = {0: lasting(state)}
    for step in script(operations):
        step(state)
        if state.take_snapshot(sync=False):
            taken[state.map_end_offset] = lasting(state)
    after = new_state(DIRECTORY, files=files.crash(random.Random(seed)))
    after.truncate_and_reload(0, state.map_end_offset + 1, NOW)
    assert lasting(after) == taken[after.map_end_offset]


@given(ops)
def test_the_first_unstable_offset_is_the_lowest_of_all_undecided_and_unreplicated(operations: list[tuple[str, int, int, int]]) -> None:
    state = new_state(DIRECTORY, files=simulated())
    opened: dict[int, int] = {}  # producer -> first offset
    ended: list[tuple[int, int]] = []  # first offset, marker
    for (what, pid, _, _), step in zip(operations, script(operations), strict=True):
        before = state.map_end_offset
        step(state)
        entry = state.last_entry(pid)
        if what == "high watermark":
            ended = [(first, marker) for first, marker in ended if marker >= before]
        elif what in ("commit", "abort"):
            ended += [(opened.pop(pid), before)] if pid in opened else []
        elif entry is not None and entry.current_txn_first_offset >= 0:
            opened.setdefault(pid, before)
        unstable = [*opened.values(), *(first for first, _ in ended)]
        first = state.first_unstable_offset
        assert (first.offset if first else None) == min(unstable, default=None)
        assert state.first_undecided_offset == min(opened.values(), default=None)
