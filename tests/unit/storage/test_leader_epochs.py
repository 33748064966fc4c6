from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptCheckpoint
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.leader_epochs import EpochEntry, LeaderEpochCache
from tests.golden import LOGS

END = 1000  # of the log; all epochs have records


@pytest.fixture
def cache(tmp_path: Path) -> LeaderEpochCache:
    return new_cache(tmp_path)


def new_cache(directory: Path) -> LeaderEpochCache:
    return LeaderEpochCache(Files(), str(directory / "leader-epoch-checkpoint"))


def on_disk(cache: LeaderEpochCache) -> list[EpochEntry]:
    return LeaderEpochCache(Files(), cache.path).entries


def with_entries(cache: LeaderEpochCache, *entries: tuple[int, int]) -> LeaderEpochCache:
    """A cache that knows these epochs, and has them on disk."""
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    cache.flush(END)
    return cache


# -- assigning


def test_a_new_cache_knows_no_epoch(cache: LeaderEpochCache) -> None:
    assert (cache.latest_epoch, cache.latest_entry, cache.earliest_entry, cache.entries) == (-1, None, None, [])


def test_an_assigned_epoch_is_the_latest(cache: LeaderEpochCache) -> None:
    assert cache.assign(2, 6)
    assert cache.latest_epoch == 2
    assert cache.latest_entry == EpochEntry(2, 6)


def test_an_assigned_epoch_reaches_the_disk_when_its_records_are_flushed(cache: LeaderEpochCache) -> None:
    cache.assign(2, 6)
    cache.flush(6)
    assert not Path(cache.path).exists()
    cache.flush(7)
    assert on_disk(cache) == [EpochEntry(2, 6)]


def test_a_write_that_is_older_than_what_is_on_disk_is_left_out(cache: LeaderEpochCache) -> None:
    cache.assign(2, 6)
    late = cache.take_write()
    cache.clear_and_flush()
    late.run()
    assert on_disk(cache) == []


def test_a_write_that_failed_is_made_again_by_the_next_flush(cache: LeaderEpochCache) -> None:
    cache.assign(2, 6)
    with pytest.raises(FileNotFoundError):
        cache.take_write()._replace(path="/nowhere/leader-epoch-checkpoint").run()
    assert cache.is_dirty(END)
    cache.flush(END)
    assert on_disk(cache) == [EpochEntry(2, 6)]


def test_the_file_has_kafkas_text(cache: LeaderEpochCache) -> None:
    with_entries(cache, (0, 0), (2, 16))
    assert Path(cache.path).read_bytes() == (LOGS / "kafka-4.2.0/second/g-none-0/leader-epoch-checkpoint").read_bytes()


def test_the_first_start_offset_of_an_epoch_stands(cache: LeaderEpochCache) -> None:
    cache.assign(2, 6)
    assert not cache.assign(2, 7)
    assert cache.entries == [EpochEntry(2, 6)]


def test_a_lower_start_offset_of_the_latest_epoch_corrects_it(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (2, 5))
    assert cache.entries == [EpochEntry(2, 5)]


def test_an_epoch_at_the_offset_of_an_unwritten_one_replaces_it(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 6))
    assert cache.entries == [EpochEntry(3, 6)]


def test_an_older_epoch_drops_the_newer_ones_it_contradicts(cache: LeaderEpochCache) -> None:
    with_entries(cache, (1, 5), (2, 6), (3, 7), (2, 8))
    assert cache.entries == [EpochEntry(1, 5), EpochEntry(2, 8)]
    assert cache.latest_epoch == 2


def test_a_lower_offset_drops_the_entries_above_it(cache: LeaderEpochCache) -> None:
    with_entries(cache, (1, 5), (2, 6), (3, 7), (4, 6))
    assert cache.entries == [EpochEntry(1, 5), EpochEntry(4, 6)]


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_negative_epochs_and_offsets_are_refused(cache: LeaderEpochCache, epoch: int, start_offset: int) -> None:
    with pytest.raises(ValueError, match="invalid partition leader epoch entry"):
        cache.assign(epoch, start_offset)


# -- where an epoch ends


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (-1, (-1, -1)),  # a follower that does not know its epoch
        (7, (7, 100)),  # the latest goes on to the log end
        (8, (-1, -1)),  # newer than all
        (2, (2, 11)),
        (3, (2, 11)),  # between two: the one before, up to the next
        (1, (1, 5)),  # older than all: as asked, up to the first
        (5, (5, 20)),
    ],
)
def test_the_end_of_an_epoch(cache: LeaderEpochCache, requested: int, expected: tuple[int, int]) -> None:
    with_entries(cache, (2, 5), (5, 11), (7, 20))
    assert cache.end_offset_for(requested, 100) == expected


def test_an_empty_cache_can_say_nothing_about_an_epoch(cache: LeaderEpochCache) -> None:
    assert cache.end_offset_for(0, 100) == (-1, -1)
    assert cache.end_offset_for(-1, 100) == (-1, -1)


def test_a_leader_change_that_loses_nothing_cuts_nothing(tmp_path: Path) -> None:
    """The first scenario of KIP-101: the answer is the follower's own log end."""
    leader = with_entries(new_cache(tmp_path), (0, 0))
    assert leader.end_offset_for(0, 2) == (0, 2)


def test_a_diverged_follower_is_cut_where_the_next_epoch_began(tmp_path: Path) -> None:
    leader = with_entries(new_cache(tmp_path), (0, 0), (1, 1))
    assert leader.end_offset_for(0, 2) == (0, 1)


# -- lookups


def test_entries_are_found_by_epoch(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 5), (5, 11))
    assert cache.epoch_entry(5) == EpochEntry(5, 11)
    assert cache.epoch_entry(3) is None


def test_the_epoch_before_another(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 5), (5, 11))
    assert [cache.previous_epoch(epoch) for epoch in (2, 3, 5, 9)] == [-1, 2, 2, 5]


def test_the_epoch_that_wrote_an_offset(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 5), (5, 11))
    assert [cache.epoch_for_offset(offset) for offset in (4, 5, 10, 11, 99)] == [-1, 2, 2, 5, 5]


# -- truncating


def test_truncating_the_end_keeps_what_began_before(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8), (4, 11)).truncate_from_end(8)
    assert cache.entries == [EpochEntry(2, 6)]
    assert cache.latest_epoch == 2


def test_truncating_beyond_the_end_keeps_all(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8)).truncate_from_end(9)
    assert len(cache.entries) == 2
    assert not cache.is_dirty(END)


def test_truncating_the_end_at_an_undefined_offset_keeps_all(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6)).truncate_from_end(-1)
    assert cache.entries == [EpochEntry(2, 6)]


def test_truncating_the_whole_log_forgets_every_epoch(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8)).truncate_from_end(0)
    assert (cache.entries, cache.latest_epoch) == ([], -1)


def test_truncating_the_start_moves_the_first_kept_entry(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8), (4, 11)).truncate_from_start(9)
    assert cache.entries == [EpochEntry(3, 9), EpochEntry(4, 11)]


def test_truncating_the_start_keeps_an_entry_that_begins_there(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8), (4, 11)).truncate_from_start(8)
    assert cache.entries == [EpochEntry(3, 8), EpochEntry(4, 11)]


def test_truncating_past_the_last_entry_keeps_its_epoch(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8)).truncate_from_start(15)
    assert cache.entries == [EpochEntry(3, 15)]


def test_truncating_before_the_first_entry_changes_nothing(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6)).truncate_from_start(3)
    assert cache.entries == [EpochEntry(2, 6)]


def test_truncation_reaches_the_disk_with_the_next_flush(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8)).truncate_from_start(7)
    assert on_disk(cache) == [EpochEntry(2, 6), EpochEntry(3, 8)]
    cache.flush(END)
    assert on_disk(cache) == [EpochEntry(2, 7), EpochEntry(3, 8)]


def test_truncation_reaches_the_disk_with_the_next_epoch(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6), (3, 8)).truncate_from_end(8)
    with_entries(cache, (4, 9))
    assert on_disk(cache) == [EpochEntry(2, 6), EpochEntry(4, 9)]
    assert not cache.is_dirty(END)


def test_flushing_into_a_directory_renamed_away_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    cache = with_entries(new_cache(tmp_path / "orders-0"), (2, 6))
    (tmp_path / "orders-0").rename(tmp_path / "orders-0.abc-delete")
    cache.truncate_from_end(0)
    cache.flush(END)


def test_a_cache_follows_its_renamed_directory(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    cache = with_entries(new_cache(tmp_path / "orders-0"), (2, 6))
    (tmp_path / "orders-0").rename(tmp_path / "orders-0.abc-delete")
    cache.moved_to(str(tmp_path / "orders-0.abc-delete"))
    with_entries(cache, (3, 9))
    assert on_disk(new_cache(tmp_path / "orders-0.abc-delete")) == [EpochEntry(2, 6), EpochEntry(3, 9)]


def test_clearing_leaves_the_file(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6)).clear()
    assert (cache.latest_epoch, cache.entries) == (-1, [])
    assert on_disk(cache) == [EpochEntry(2, 6)]


def test_clearing_and_flushing_empties_the_file(cache: LeaderEpochCache) -> None:
    with_entries(cache, (2, 6)).clear_and_flush()
    assert Path(cache.path).read_bytes() == b"0\n0\n"


# -- the file


def test_a_negative_entry_on_disk_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n1\n-1 0\n")
    with pytest.raises(CorruptCheckpoint, match="line 3"):
        new_cache(tmp_path)


def test_conflicting_entries_on_disk_are_sorted_out_as_if_assigned(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n3\n1 0\n3 10\n2 5\n")
    assert new_cache(tmp_path).entries == [EpochEntry(1, 0), EpochEntry(2, 5)]


@pytest.mark.parametrize("path", sorted(LOGS.glob("*/*/*/leader-epoch-checkpoint")), ids=lambda p: p.parent.name)
def test_kafkas_files_are_written_back_byte_for_byte(tmp_path: Path, path: Path) -> None:
    copy = tmp_path / "leader-epoch-checkpoint"
    copy.write_bytes(path.read_bytes())
    new_cache(tmp_path).take_write().run()
    assert copy.read_bytes() == path.read_bytes()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 8), st.integers(0, 30)),
        st.tuples(st.just("end"), st.integers(-1, 30), st.just(0)),
        st.tuples(st.just("start"), st.integers(0, 30), st.just(0)),
    ),
    max_size=12,
)


def run(cache: LeaderEpochCache, script: list[tuple[str, int, int]]) -> None:
    for what, a, b in script:
        if what == "assign":
            cache.assign(a, b)
        elif what == "end":
            cache.truncate_from_end(a)
        else:
            cache.truncate_from_start(a)


def simulated_cache() -> tuple[SimulatedFiles, LeaderEpochCache]:
    files = SimulatedFiles()
    files.make_dirs("/logs")
    files.sync_dir("/")
    return files, LeaderEpochCache(files, "/logs/leader-epoch-checkpoint")


@given(steps, st.integers(-1, 9))
def test_epochs_and_offsets_always_grow_and_answers_match_a_linear_search(script: list[tuple[str, int, int]], requested: int) -> None:
    _, cache = simulated_cache()
    run(cache, script)
    entries = cache.entries
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))
    assert cache.latest_epoch == (entries[-1].epoch if entries else -1)
    above = [e for e in entries if e.epoch > requested]
    below = [e for e in entries if e.epoch <= requested]
    if requested >= 0 and requested == cache.latest_epoch:
        expected = (requested, 1000)
    elif requested < 0 or not above:
        expected = (-1, -1)
    else:
        expected = (below[-1].epoch if below else requested, above[0].start_offset)
    assert cache.end_offset_for(requested, 1000) == expected


@given(steps, st.integers(0, 2**32))
def test_after_a_machine_crash_no_epoch_of_flushed_records_is_missing(script: list[tuple[str, int, int]], seed: int) -> None:
    files, cache = simulated_cache()
    run(cache, script)
    cache.flush(END)
    survivor = LeaderEpochCache(files.crash(random.Random(seed)), cache.path)
    assert {entry.epoch for entry in cache.entries} <= {entry.epoch for entry in survivor.entries}
