"""The offset map behaves as a dictionary that cannot grow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.compaction.offset_map import BYTES_PER_ENTRY, NOT_FOUND, SkimpyOffsetMap

KEYS = st.binary(max_size=3)


def test_a_key_that_was_put_is_found_with_its_offset() -> None:
    offsets = SkimpyOffsetMap(10)
    offsets.put(b"a", 5)
    assert offsets.get(b"a") == 5


def test_a_key_that_was_not_put_is_not_found() -> None:
    offsets = SkimpyOffsetMap(10)
    offsets.put(b"a", 5)
    assert offsets.get(b"b") == NOT_FOUND


def test_the_last_offset_of_a_key_counts_and_takes_no_second_slot() -> None:
    offsets = SkimpyOffsetMap(10)
    offsets.put(b"a", 5)
    offsets.put(b"a", 7)
    assert (offsets.get(b"a"), offsets.size) == (7, 1)


def test_offset_zero_is_an_offset() -> None:
    offsets = SkimpyOffsetMap(10)
    offsets.put(b"", 0)
    assert offsets.get(b"") == 0


def test_the_largest_offset_is_kept() -> None:
    offsets = SkimpyOffsetMap(1)
    offsets.put(b"a", 2**63 - 2)
    assert offsets.get(b"a") == 2**63 - 2


def test_the_latest_offset_is_that_of_the_last_put() -> None:
    offsets = SkimpyOffsetMap(10)
    assert offsets.latest_offset == -1
    offsets.put(b"a", 5)
    offsets.put(b"b", 6)
    assert offsets.latest_offset == 6


def test_a_full_map_takes_no_more_keys() -> None:
    offsets = SkimpyOffsetMap(2)
    offsets.put(b"a", 0)
    offsets.put(b"b", 1)
    with pytest.raises(ValueError, match="Attempted to add a new entry to a full offset map, entries: 2, slots: 2"):
        offsets.put(b"c", 2)


def test_a_full_map_can_be_asked_for_any_key() -> None:
    offsets = SkimpyOffsetMap(300)
    for number in range(300):
        offsets.put(b"%d" % number, number)
    assert [offsets.get(b"%d" % number) for number in range(300)] == list(range(300))
    assert offsets.get(b"missing") == NOT_FOUND
    assert offsets.utilization == 1.0


def test_a_cleared_map_is_empty() -> None:
    offsets = SkimpyOffsetMap(10)
    offsets.put(b"a", 5)
    offsets.clear()
    assert (offsets.get(b"a"), offsets.size, offsets.latest_offset, offsets.utilization) == (NOT_FOUND, 0, -1, 0.0)


def test_a_map_without_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        SkimpyOffsetMap(0)


def test_the_default_buffer_takes_in_five_million_keys() -> None:
    assert BYTES_PER_ENTRY == 24
    assert CleanerConfig().keys_max == 5_033_164


def test_a_buffer_too_small_for_a_single_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"increase log\.cleaner\.dedupe\.buffer\.size or decrease log\.cleaner\.threads"):
        CleanerConfig(dedupe_buffer_size=47, threads=2)


def test_a_short_log_gets_a_small_map_that_takes_in_all_of_it() -> None:
    config = CleanerConfig()
    assert config.slots_for(9) * 0.9 >= 9
    assert config.slots_for(9) < 20
    assert config.slots_for(10**12) == config.slots


@settings(max_examples=200)
@given(st.lists(st.tuples(KEYS, st.integers(0, 2**62)), max_size=60), st.lists(KEYS, max_size=10), st.integers(0, 20))
def test_a_map_equals_a_dictionary(puts: list[tuple[bytes, int]], others: list[bytes], spare_slots: int) -> None:
    expected: dict[bytes, int] = {}
    offsets = SkimpyOffsetMap(len({key for key, _ in puts}) + 1 + spare_slots)
    for key, offset in puts:
        offsets.put(key, offset)
        expected[key] = offset
    assert offsets.size == len(expected)
    assert all(offsets.get(key) == expected.get(key, NOT_FOUND) for key in [*expected, *others])
