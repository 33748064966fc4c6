"""Cutting a run of batches, and walking a file of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import read_batches
from barnabas.records.codecs.compression import GZIP
from pyspark_barnabas.read import batch_cuts
from pyspark_barnabas.read.batch_cuts import Damage, chunks, last_offset_of, next_offset_and_cuts
from tests.unit.storage.logs import batch


class InMemory:
    name = "00000000000000000000.log"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read_at(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


def run(counts: list[int], **options: Any) -> bytes:
    data, offset = b"", 0
    for count in counts:
        data += batch(count, offset=offset, **options)
        offset += count
    return data


def test_a_short_run_is_one_piece() -> None:
    data = run([3, 4])
    assert next_offset_and_cuts(read_batches(data), 0, 100) == (7, [(0, len(data))])


def test_pieces_have_no_more_rows_than_an_arrow_batch_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_cuts, "ROWS_MAX", 10)
    data = run([4, 4, 4, 20, 1])
    batches = read_batches(data)
    next_offset, cuts = next_offset_and_cuts(batches, 0, 100)
    ends = [batch.at + batch.size for batch in batches]
    assert (next_offset, cuts) == (33, [(0, ends[1]), (ends[1], ends[2]), (ends[2], ends[3]), (ends[3], ends[4])])


def test_compressed_batches_count_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, packed = run([2, 2]), run([2, 2], codec=GZIP)
    monkeypatch.setattr(batch_cuts, "BYTES_MAX", 2 * max(len(plain), len(packed)))
    assert len(next_offset_and_cuts(read_batches(plain), 0, 100)[1]) == 1
    assert len(next_offset_and_cuts(read_batches(packed), 0, 100)[1]) == 2


def test_what_begins_behind_the_end_is_in_no_piece() -> None:
    data = run([3, 3, 3])
    batches = read_batches(data)
    assert next_offset_and_cuts(batches, 0, 5) == (5, [(0, batches[2].at)])
    assert next_offset_and_cuts(batches, 0, 3) == (3, [(0, batches[1].at)])


def test_a_gap_behind_the_wanted_offsets_ends_the_range() -> None:
    assert next_offset_and_cuts(read_batches(batch(1, offset=50)), 10, 20) == (20, [])


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=20), chunk_bytes=st.integers(80, 1000))
def test_a_file_is_walked_whole_whatever_the_size_of_its_chunks(sizes: list[int], chunk_bytes: int) -> None:
    data = b"".join(batch(1, offset=offset, size=size) for offset, size in enumerate(sizes))
    cut = [batch for chunk in chunks(InMemory(data), 0, len(data), chunk_bytes) for batch in chunk.batches]
    assert [each.base_offset for each in cut] == list(range(len(sizes)))


def test_a_file_cut_within_a_batch_is_torn_there() -> None:
    data = run([1, 1])
    with pytest.raises(Damage, match="cut short") as caught:
        list(chunks(InMemory(data[:-1]), 0, len(data) - 1))
    assert caught.value.is_torn


def test_a_length_that_makes_no_sense_is_damage_with_its_place() -> None:
    data = run([1]) + b"\x00" * 8 + b"\xff" * 50
    with pytest.raises(Damage, match=f"position {len(run([1]))}"):
        list(chunks(InMemory(data), 0, len(data)))


def test_a_length_larger_than_the_file_reads_no_more_than_the_file_has() -> None:
    data = b"\x00" * 8 + b"\x7f\xff\xff\xff" + b"\x00" * 4 + b"\x02" + b"\x00" * 100
    with pytest.raises(Damage) as caught:
        list(chunks(InMemory(data), 0, len(data)))
    assert caught.value.is_torn


def test_the_last_offset_is_that_of_the_last_whole_batch() -> None:
    data = run([3, 3])
    assert last_offset_of(InMemory(data)) == 5
    assert last_offset_of(InMemory(data[:-1])) == 2
    assert last_offset_of(InMemory(b"")) is None
