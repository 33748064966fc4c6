"""The offset index: Kafka's entries and limits, lookups that equal a linear scan, and files that are found in any state."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptIndex, IndexEntryOutOfOrder, IndexOffsetOverflow
from barnabas.simulation.disk import DiskEvent, SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.indexes.index import PENDING_BYTES_MAX, TAIL_BYTES_MAX, floor_slot
from barnabas.storage.indexes.offset_index import OffsetIndex, OffsetPosition
from barnabas.storage.indexes.pages import IndexPages

BASE = 45
PATH = "/00000000000000000045.index"
# Around the warm section (1,024 entries), the entries kept in memory (2,048) and the pages of 1,024 entries.
COUNTS = [0, 1, 2, 3, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 2200, 4097]


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def index(disk: SimulatedFiles) -> OffsetIndex:
    return OffsetIndex(disk, PATH, BASE, 30 * 8)


def entry_bytes(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", relative, position) for relative, position in entries)


def on_disk(disk: SimulatedFiles, content: bytes) -> OffsetIndex:
    disk.write_atomically(PATH, content)
    return OffsetIndex(disk, PATH, BASE)


def rising(count: int, rng: random.Random) -> list[OffsetPosition]:
    entries, offset, position = [], BASE, 0
    for _ in range(count):
        offset += rng.randint(1, 5)
        position += rng.randint(1, 9)
        entries.append(OffsetPosition(offset, position))
    return entries


def filled(disk: SimulatedFiles, entries: list[OffsetPosition]) -> OffsetIndex:
    index = OffsetIndex(disk, PATH, BASE)
    for entry in entries:
        index.append(entry.offset, entry.position)
    return index


# -- entries


def test_the_file_holds_relative_offsets_and_positions_of_four_bytes_each(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(BASE + 1, 10)
    index.append(BASE + 2**31 - 1, 2**31 - 1)
    index.flush()
    assert disk.read_bytes(PATH) == bytes.fromhex("00000001 0000000a 7fffffff 7fffffff")


def test_entries_are_numbered_in_the_order_of_their_appends(index: OffsetIndex) -> None:
    for n in range(30):
        index.append(BASE + n, n)
    assert [index.entry(n) for n in range(30)] == [OffsetPosition(BASE + n, n) for n in range(30)]
    assert (index.entries, index.size_in_bytes, index.last_offset) == (30, 240, BASE + 29)


@pytest.mark.parametrize("n", [-1, 0, 3])
def test_an_entry_that_is_not_there_is_refused(index: OffsetIndex, n: int) -> None:
    with pytest.raises(ValueError, match=f"Attempt to fetch the {n}th entry from index {PATH}, which has size 0"):
        index.entry(n)


def test_an_offset_must_be_larger_than_the_last(index: OffsetIndex) -> None:
    index.append(51, 0)
    for offset in (50, 51):
        with pytest.raises(IndexEntryOutOfOrder) as failure:
            index.append(offset, 1)
        assert str(failure.value) == (
            f"Attempt to append an offset {offset} to position 1 no larger than the last offset appended (51) to {PATH}"
        )


def test_the_first_entry_may_have_the_base_offset(index: OffsetIndex) -> None:
    index.append(BASE, 0)
    index.sanity_check()
    assert index.entries == 1


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31])
def test_an_offset_out_of_reach_of_the_base_offset_overflows(index: OffsetIndex, offset: int) -> None:
    assert not index.can_append_offset(offset)
    with pytest.raises(IndexOffsetOverflow, match=f"Integer overflow for offset: {offset}"):
        index.append(offset, 1)
    assert index.entries == 0


def test_a_position_that_does_not_fit_is_refused(index: OffsetIndex) -> None:
    for position in (-1, 2**31):
        with pytest.raises(ValueError, match="Attempt to append position"):
            index.append(BASE + 1, position)
    assert index.entries == 0


@pytest.mark.parametrize(("max_size", "max_entries"), [(67, 8), (1234567, 1234560 // 8), (8, 1), (10485760, 1310720)])
def test_the_largest_size_is_rounded_down_to_whole_entries(disk: SimulatedFiles, max_size: int, max_entries: int) -> None:
    assert OffsetIndex(disk, PATH, BASE, max_size).max_entries == max_entries


def test_a_largest_size_below_one_entry_is_refused(disk: SimulatedFiles) -> None:
    with pytest.raises(ValueError, match="Invalid max index size: 7"):
        OffsetIndex(disk, PATH, BASE, 7)


def test_a_full_index_refuses_more(disk: SimulatedFiles) -> None:
    index = OffsetIndex(disk, PATH, BASE, 67)
    for n in range(8):
        assert not index.is_full
        index.append(BASE + n, n)
    assert index.is_full
    with pytest.raises(ValueError, match=r"Attempt to append to a full index \(size = 8\)\."):
        index.append(BASE + 8, 8)
    index.resize(72)
    index.append(BASE + 8, 8)


# -- lookups


def test_a_lookup_in_an_empty_index_gives_the_start_of_the_segment(index: OffsetIndex) -> None:
    assert index.lookup(92) == OffsetPosition(BASE, 0)
    assert index.lookup_ceiling(92) is None
    assert index.last_offset == BASE


def test_a_lookup_gives_the_floor(disk: SimulatedFiles) -> None:
    index = OffsetIndex(disk, PATH, 0)
    for offset, position in ((6, 0), (14, 459), (22, 656), (26, 838)):
        index.append(offset, position)
    assert index.lookup(23) == OffsetPosition(22, 656)
    assert index.lookup(22) == OffsetPosition(22, 656)
    assert index.lookup(5) == OffsetPosition(0, 0)
    assert index.lookup_ceiling(23) == OffsetPosition(26, 838)
    assert index.lookup_ceiling(27) is None


def test_the_upper_bound_of_a_fetch_lies_outside_of_it(index: OffsetIndex) -> None:
    first, second, third, fourth = (OffsetPosition(BASE + n, position) for n, position in enumerate((0, 10, 23, 37)))
    assert index.fetch_upper_bound(first, 5) is None
    for entry in (first, second, third, fourth):
        index.append(entry.offset, entry.position)
    assert index.fetch_upper_bound(first, 5) == second
    assert index.fetch_upper_bound(first, 10) == second
    assert index.fetch_upper_bound(first, 22) == third
    assert index.fetch_upper_bound(first, 23) == third
    assert index.fetch_upper_bound(second, 24) == fourth
    assert index.fetch_upper_bound(fourth, 1) is None
    assert index.fetch_upper_bound(first, 200) is None


@settings(max_examples=25)
@given(count=st.sampled_from(COUNTS), rng=st.randoms(use_true_random=False), rolled=st.booleans(), reopened=st.booleans(), data=st.data())
def test_lookups_equal_a_linear_scan(count: int, rng: random.Random, rolled: bool, reopened: bool, data: st.DataObject) -> None:
    disk = SimulatedFiles()
    entries = rising(count, rng)
    index = filled(disk, entries)
    if rolled:
        index.trim_to_valid_size()
    if reopened:
        index.close()
        index = OffsetIndex(disk, PATH, BASE, pages=IndexPages(max_pages=2))
    last = entries[-1] if entries else OffsetPosition(BASE, 0)
    near = [entry.offset + step for entry in (entries[:1] + entries[-1025:-1022] + entries[-1:]) for step in (-1, 0, 1)]
    for target in near + data.draw(st.lists(st.integers(BASE - 2, last.offset + 2), min_size=20, max_size=20)):
        assert index.lookup(target) == max((e for e in entries if e.offset <= target), default=OffsetPosition(BASE, 0))
        assert index.lookup_ceiling(target) == min((e for e in entries if e.offset >= target), default=None)
    for end in data.draw(st.lists(st.integers(0, last.position + 2), max_size=10)):
        assert index.fetch_upper_bound(OffsetPosition(BASE, 0), end) == min((e for e in entries if e.position >= end), default=None)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(st.sampled_from(["append", "truncate_to", "trim", "flush", "reopen", "look"]), min_size=5, max_size=25),
)
def test_an_index_equals_a_list_through_appends_truncations_and_reopening(seed: int, steps: list[str]) -> None:
    rng = random.Random(seed)
    disk = SimulatedFiles()
    pages = IndexPages(max_pages=3)
    index = OffsetIndex(disk, PATH, BASE, pages=pages)
    model: list[OffsetPosition] = []
    for step in steps:
        if step == "append":
            offset, position = model[-1] if model else (BASE, 0)
            for _ in range(rng.choice([1, 3, 127, 128, 129, 1500])):
                offset, position = offset + rng.randint(1, 3), position + rng.randint(1, 3)
                index.append(offset, position)
                model.append(OffsetPosition(offset, position))
        elif step == "truncate_to":
            target = rng.randint(BASE, model[-1].offset + 2 if model else BASE)
            index.truncate_to(target)
            model = [entry for entry in model if entry.offset < target]
        elif step == "trim":
            index.trim_to_valid_size()
        elif step == "flush":
            index.flush()
        elif step == "reopen":
            index.close()
            index = OffsetIndex(disk, PATH, BASE, pages=pages)
        else:
            for target in [rng.randint(BASE, model[-1].offset + 2) for _ in range(20)] if model else [BASE]:
                assert index.lookup(target) == max((e for e in model if e.offset <= target), default=OffsetPosition(BASE, 0))
    assert (index.entries, index.last_offset) == (len(model), model[-1].offset if model else BASE)
    assert [index.entry(n) for n in range(len(model))] == model
    index.close()
    assert disk.read_bytes(PATH) == entry_bytes(*((e.offset - BASE, e.position) for e in model))


# -- the warm section

PER_PAGE = 4096 // 8


def touched(entries: int, warm_entries: int, target: int) -> list[int]:
    """The entries that a lookup reads, where entry n has offset n."""
    probes: list[int] = []

    def entry_at(n: int) -> tuple[int, int]:
        probes.append(n)
        return n, 0

    assert floor_slot(entry_at, entries, warm_entries, 0, target) == min(target, entries - 1)
    return probes


def pages_touched(entries: int, warm_entries: int) -> set[int]:
    return {n // PER_PAGE for n in touched(entries, warm_entries, entries - 1)}


def test_without_a_warm_section_a_new_page_changes_which_old_pages_a_lookup_touches() -> None:
    assert pages_touched(13 * PER_PAGE, warm_entries=13 * PER_PAGE) == {0, 6, 9, 11, 12}
    assert pages_touched(14 * PER_PAGE, warm_entries=14 * PER_PAGE) == {0, 7, 10, 12, 13}


@pytest.mark.parametrize("entries", [13 * PER_PAGE, 13 * PER_PAGE + 1, 14 * PER_PAGE, 100 * PER_PAGE + 77])
def test_a_lookup_near_the_end_touches_only_the_last_three_pages(entries: int) -> None:
    last = (entries - 1) // PER_PAGE
    assert pages_touched(entries, warm_entries=1024) <= {last - 2, last - 1, last}


def test_the_boundary_of_the_warm_section_is_read_before_the_first_entry() -> None:
    assert touched(5000, 1024, 4500)[0] == 5000 - 1 - 1024
    assert 0 not in touched(5000, 1024, 4500)
    assert touched(5000, 1024, 3000)[:2] == [3975, 0]


def test_a_target_at_the_boundary_is_found_below_it() -> None:
    assert max(touched(5000, 1024, 3975)) == 3975


def test_a_target_below_the_first_entry_costs_two_reads() -> None:
    probes: list[int] = []

    def entry_at(n: int) -> tuple[int, int]:
        probes.append(n)
        return n + 10, 0

    assert floor_slot(entry_at, 5000, 1024, 0, 9) == -1
    assert probes == [3975, 0]


def test_lookups_that_keep_up_with_the_log_read_no_file(disk: SimulatedFiles) -> None:
    entries = rising(6000, random.Random(1))
    index = filled(disk, entries)
    before = disk.events
    for entry in entries[-1000:]:
        assert index.lookup(entry.offset) == entry
    assert disk.events == before


# -- memory and descriptors


def test_nothing_is_opened_or_read_before_the_first_use(tmp_path: Path) -> None:
    files = Files()
    indexes = [OffsetIndex(files, str(tmp_path / f"{n}.index"), n) for n in range(1000)]
    assert (files.pool.open_count, files.list_dir(str(tmp_path))) == (0, [])
    assert indexes[0].entries == 0
    assert files.exists(indexes[0].path)


def test_unused_indexes_are_renamed_synced_flushed_and_closed_without_being_loaded(disk: SimulatedFiles) -> None:
    index = OffsetIndex(disk, PATH, BASE)
    index.renamed(PATH + ".deleted")
    index.flush()
    index.sync()
    index.close()
    assert (disk.events, index.file) == (0, None)


def test_entries_reach_the_file_in_chunks(disk: SimulatedFiles) -> None:
    index = OffsetIndex(disk, PATH, BASE)
    writes: list[int] = []

    def watch(event: DiskEvent) -> bool:
        if event.kind == "write":
            writes.append(event.size)
        return False

    disk.fail_when(watch)
    for n in range(1, 1000):
        index.append(BASE + n, n)
    assert writes == [PENDING_BYTES_MAX] * (999 * 8 // PENDING_BYTES_MAX)
    index.flush()
    assert disk.size(PATH) == 999 * 8


def test_an_index_keeps_little_more_than_its_warm_section_in_memory(disk: SimulatedFiles) -> None:
    index = filled(disk, rising(20_000, random.Random(2)))
    assert len(index._tail) <= TAIL_BYTES_MAX + PENDING_BYTES_MAX
    index.trim_to_valid_size()
    assert len(index._tail) == 0


def test_all_indexes_share_a_bounded_number_of_pages(disk: SimulatedFiles) -> None:
    pages = IndexPages(max_pages=3)
    entries = rising(10_000, random.Random(3))
    filled(disk, entries).close()
    for _ in range(3):
        index = OffsetIndex(disk, PATH, BASE, writable=False, pages=pages)
        assert [index.entry(n) for n in range(0, 10_000, 500)] == entries[::500]
    assert len(pages) == 3


# -- files as they are found


def test_a_reopened_index_goes_on_where_it_was(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 0)
    index.append(52, 1)
    index.close()
    again = OffsetIndex(disk, PATH, BASE, 30 * 8)
    assert (again.entries, again.last_offset, again.lookup(51)) == (2, 52, OffsetPosition(51, 0))
    again.append(53, 2)
    assert again.lookup(60) == OffsetPosition(53, 2)


def test_a_read_only_index_refuses_appends_and_is_not_created(disk: SimulatedFiles) -> None:
    with pytest.raises(FileNotFoundError):
        OffsetIndex(disk, PATH, BASE, writable=False).lookup(1)
    assert not disk.exists(PATH)
    on_disk(disk, entry_bytes((1, 1)))
    index = OffsetIndex(disk, PATH, BASE, writable=False)
    with pytest.raises(ValueError, match="full index"):
        index.append(60, 2)


@pytest.mark.parametrize("entries", [0, 1, 2, 511, 3000])
def test_the_zeros_at_the_end_of_an_active_index_of_kafka_are_trimmed(disk: SimulatedFiles, entries: int) -> None:
    content = entry_bytes(*((n, n * 4096) for n in range(1, entries + 1)))
    index = on_disk(disk, content + bytes(10 * 1024 * 1024 - len(content)))
    assert index.entries == entries
    index.sanity_check()
    assert disk.size(PATH) == len(content)
    index.append(BASE + 5000, 7)
    assert index.entry(entries) == OffsetPosition(BASE + 5000, 7)


def test_a_read_only_look_at_an_active_index_of_kafka_leaves_its_zeros_alone(disk: SimulatedFiles) -> None:
    disk.write_atomically(PATH, entry_bytes((3, 30), (4, 40)) + bytes(8000))
    index = OffsetIndex(disk, PATH, BASE, writable=False)
    assert (index.entries, index.last_offset, disk.size(PATH)) == (2, BASE + 4, 8016)


def test_entries_written_over_trimmed_zeros_are_read_back(disk: SimulatedFiles) -> None:
    index = on_disk(disk, entry_bytes((1, 1)) + bytes(8184))
    for n in range(2, 3000):
        index.append(BASE + n, n)
    assert [index.entry(n).position for n in range(2999)] == list(range(1, 3000))


def test_an_index_whose_last_offset_is_below_the_base_offset_is_corrupt(disk: SimulatedFiles) -> None:
    with pytest.raises(CorruptIndex) as failure:
        on_disk(disk, entry_bytes((5, 1), (-3, 2))).sanity_check()
    assert str(failure.value) == (
        f"Corrupt index found, index file {PATH} has non-zero size but the last offset is 42 which is less than the base offset 45"
    )


def test_an_index_of_a_broken_length_is_corrupt(disk: SimulatedFiles) -> None:
    with pytest.raises(CorruptIndex) as failure:
        on_disk(disk, entry_bytes((5, 1)) + b"abc").sanity_check()
    assert str(failure.value) == f"Index file {PATH} is corrupt, found 11 bytes which is neither positive nor a multiple of 8"


@pytest.mark.parametrize("last", [(4, 9), (5, 9), (5, 1)])
def test_an_index_whose_last_entry_is_not_above_the_one_before_is_corrupt(disk: SimulatedFiles, last: tuple[int, int]) -> None:
    with pytest.raises(CorruptIndex, match="is not above the one before"):
        on_disk(disk, entry_bytes((5, 1), last)).sanity_check()


def test_a_corrupt_index_is_sane_again_after_a_reset(disk: SimulatedFiles) -> None:
    index = on_disk(disk, entry_bytes((5, 1), (-3, 2)) + b"abc")
    with pytest.raises(CorruptIndex):
        index.sanity_check()
    index.reset()
    index.sanity_check()
    assert (index.entries, disk.size(PATH)) == (0, 0)


def test_an_index_of_an_impossible_size_is_refused_without_reading_it_and_can_be_reset(tmp_path: Path) -> None:
    path = str(tmp_path / "0.index")
    with open(path, "wb") as sparse:
        sparse.truncate(2**40)
    index = OffsetIndex(Files(), path, 0)
    with pytest.raises(CorruptIndex, match="found 1099511627776 bytes"):
        index.lookup(1)
    index.reset()
    assert (index.entries, Files().size(path)) == (0, 0)


@given(content=st.binary(max_size=200))
def test_no_garbage_makes_an_index_hang_or_fail_otherwise_than_as_corrupt(content: bytes) -> None:
    index = on_disk(SimulatedFiles(), content)
    try:
        index.sanity_check()
    except CorruptIndex:
        index.reset()
        index.sanity_check()
    assert index.entries * 8 <= len(content)
    index.lookup(BASE + 7)
    index.lookup_ceiling(BASE + 7)
    index.truncate_to(BASE + 3)


# -- truncation, renames, faults


def test_truncation_to_an_offset_removes_it_and_all_above(disk: SimulatedFiles) -> None:
    index = OffsetIndex(disk, PATH, 0, 10 * 8)
    for n in range(1, 10):
        index.append(n, n)
    index.truncate_to(12)
    assert (index.lookup(10), index.last_offset) == (OffsetPosition(9, 9), 9)
    index.append(10, 10)
    index.truncate_to(10)
    assert (index.lookup(10), index.last_offset) == (OffsetPosition(9, 9), 9)
    index.truncate_to(5)
    assert (index.lookup(10), index.last_offset) == (OffsetPosition(4, 4), 4)
    index.append(5, 5)
    index.truncate()
    assert (index.entries, index.last_offset, index.lookup(10)) == (0, 0, OffsetPosition(0, 0))


def test_truncated_entries_are_gone_from_the_file_at_once(disk: SimulatedFiles) -> None:
    index = filled(disk, rising(3000, random.Random(4)))
    index.truncate_to(index.entry(7).offset)
    assert disk.size(PATH) == 7 * 8


def test_entries_appended_after_a_truncation_are_not_hidden_by_pages_read_before(disk: SimulatedFiles) -> None:
    index = filled(disk, rising(5000, random.Random(5)))
    assert index.entry(10).offset < index.entry(2000).offset
    index.truncate_to(index.entry(10).offset)
    for n in range(4000):
        index.append(10_000_000 + n, n)
    assert [index.entry(n).offset for n in range(10, 4010)] == [10_000_000 + n for n in range(4000)]


def test_a_renamed_index_goes_on_under_its_new_name(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 1)
    disk.rename(PATH, PATH + ".deleted")
    index.renamed(PATH + ".deleted")
    index.append(52, 2)
    index.close()
    assert disk.size(PATH + ".deleted") == 16


def test_a_deleted_index_leaves_no_file_and_refuses_use(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 1)
    assert index.delete_if_exists()
    assert not index.delete_if_exists()
    with pytest.raises(ValueError, match="is closed"):
        index.lookup(51)
    assert not disk.exists(PATH)


def test_a_discarded_index_writes_nothing(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 1)
    disk.fail_when(lambda event: event.kind in ("write", "truncate", "sync"))
    index.close(discard=True)


@pytest.mark.parametrize("work", [lambda index: index.lookup(50), lambda index: index.entries])
def test_an_index_that_could_not_be_read_is_loaded_by_the_next_use(disk: SimulatedFiles, work: Callable[[OffsetIndex], object]) -> None:
    index = on_disk(disk, entry_bytes((1, 1), (2, 2)))
    disk.fail_next("read")
    with pytest.raises(OSError):
        work(index)
    assert (index.entries, index.last_offset) == (2, BASE + 2)


def test_entries_that_could_not_be_written_are_written_by_the_next_flush(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 1)
    disk.fail_next("write")
    with pytest.raises(OSError):
        index.flush()
    index.append(52, 2)
    index.flush()
    assert disk.read_bytes(PATH) == entry_bytes((6, 1), (7, 2))


def test_flushed_and_synced_entries_survive_a_crash_of_the_machine(disk: SimulatedFiles, index: OffsetIndex) -> None:
    index.append(51, 1)
    index.flush()
    index.sync()
    disk.sync_dir("/")
    index.append(52, 2)
    index.flush()
    for seed in range(50):
        assert disk.crash(random.Random(seed)).read_bytes(PATH)[:8] == entry_bytes((6, 1))
