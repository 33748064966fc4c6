"""The index of aborted transactions: which a fetch must know, and that a torn file is never taken for a whole one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptIndex
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.indexes.txn_index import AbortedTxn, TransactionIndex

PATH = "/00000000000000000000.txnindex"
TXNS = [AbortedTxn(0, 0, 10, 11), AbortedTxn(1, 5, 15, 13), AbortedTxn(2, 18, 35, 25), AbortedTxn(3, 32, 50, 40)]


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def index(disk: SimulatedFiles) -> TransactionIndex:
    return TransactionIndex(disk, PATH, 0)


@pytest.fixture
def filled(index: TransactionIndex) -> TransactionIndex:
    for txn in TXNS:
        index.append(txn)
    return index


def test_an_entry_is_34_bytes_with_its_version_first(disk: SimulatedFiles, index: TransactionIndex) -> None:
    index.append(AbortedTxn(983493, 137, 299, 200))
    assert disk.read_bytes(PATH) == bytes.fromhex("0000 00000000000f01c5 0000000000000089 000000000000012b 00000000000000c8")


def test_a_transaction_prints_as_in_kafka() -> None:
    assert str(AbortedTxn(1, 2, 3, 4)) == "AbortedTxn(version=0, producerId=1, firstOffset=2, lastOffset=3, lastStableOffset=4)"


def test_the_file_is_created_by_the_first_entry_and_not_before(tmp_path: Path) -> None:
    files = Files()
    path = str(tmp_path / "0.txnindex")
    index = TransactionIndex(files, path, 0)
    assert index.all() == []
    assert index.collect_aborted(0, 100) == ([], False)
    index.truncate_to(5)
    index.reset()
    index.sanity_check()
    index.flush()
    index.sync()
    assert index.size_in_bytes == 0
    assert not files.exists(path)
    index.append(TXNS[0])
    assert files.size(path) == index.size_in_bytes == 34


def test_an_index_that_is_only_closed_or_renamed_touches_nothing(disk: SimulatedFiles, index: TransactionIndex) -> None:
    index.renamed(PATH + ".deleted")
    index.close()
    assert disk.events == 0


def test_a_reopened_index_goes_on_at_its_end(disk: SimulatedFiles, filled: TransactionIndex) -> None:
    filled.close()
    again = TransactionIndex(disk, PATH, 0)
    another = AbortedTxn(3, 50, 60, 55)
    again.append(another)
    assert again.all() == [*TXNS, another]


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("last_offset", [50, 49])
def test_the_last_offset_must_grow(disk: SimulatedFiles, filled: TransactionIndex, last_offset: int, reopen: bool) -> None:
    index = TransactionIndex(disk, PATH, 0) if reopen else filled
    with pytest.raises(ValueError) as failure:
        index.append(AbortedTxn(0, 0, last_offset, 11))
    assert str(failure.value) == (
        f"The last offset of appended transactions must increase sequentially, but {last_offset} is not greater than"
        f" current last offset 50 of index {PATH}"
    )
    assert index.all() == TXNS


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "expected", "is_complete"),
    [
        (0, 100, TXNS, False),
        (0, 32, TXNS[:3], True),
        (0, 35, TXNS, True),
        (10, 35, TXNS, True),
        (11, 35, TXNS[1:], True),
        (20, 41, TXNS[2:], False),
    ],
)
def test_a_fetch_collects_the_transactions_that_overlap_with_it(
    filled: TransactionIndex, fetch_offset: int, upper_bound: int, expected: list[AbortedTxn], is_complete: bool
) -> None:
    assert filled.collect_aborted(fetch_offset, upper_bound) == (expected, is_complete)


@settings(max_examples=40)
@given(rng=st.randoms(use_true_random=False), count=st.sampled_from([0, 1, 5, 239, 240, 241, 500]), cut=st.integers(0, 2000))
def test_truncation_keeps_what_ended_before(rng: random.Random, count: int, cut: int) -> None:
    index = TransactionIndex(SimulatedFiles(), PATH, 0)
    txns, last = [], 0
    for n in range(count):
        last += rng.randint(1, 6)
        txns.append(AbortedTxn(n, max(0, last - rng.randint(1, 10)), last, last))
        index.append(txns[-1])
    index.truncate_to(cut)
    kept = [txn for txn in txns if txn.last_offset < cut]
    assert index.all() == kept
    following = AbortedTxn(9, 0, kept[-1].last_offset + 1 if kept else 0, 0)
    index.append(following)
    assert index.all() == [*kept, following]


def test_a_reset_empties_the_file_and_any_offset_may_follow(disk: SimulatedFiles, filled: TransactionIndex) -> None:
    filled.reset()
    assert (filled.all(), disk.size(PATH)) == ([], 0)
    filled.append(TXNS[0])
    assert filled.all() == TXNS[:1]


def test_a_transaction_that_ends_below_the_segment_is_corrupt(disk: SimulatedFiles, filled: TransactionIndex) -> None:
    with pytest.raises(CorruptIndex) as failure:
        TransactionIndex(disk, PATH, 100).sanity_check()
    assert str(failure.value) == f"Last offset of aborted transaction {TXNS[0]} in index {PATH} is less than start offset 100"


def test_an_unknown_version_is_corrupt(disk: SimulatedFiles) -> None:
    disk.write_atomically(PATH, b"\0\1" + TXNS[0].encode()[2:])
    with pytest.raises(CorruptIndex) as failure:
        TransactionIndex(disk, PATH, 0).all()
    assert str(failure.value) == f"Unexpected aborted transaction version 1 in transaction index {PATH}, current version is 0"


@pytest.mark.parametrize("work", ["sanity_check", "all", "append"])
def test_a_torn_last_entry_is_corrupt_until_the_index_is_reset(disk: SimulatedFiles, filled: TransactionIndex, work: str) -> None:
    disk.write_atomically(PATH, disk.read_bytes(PATH)[:-5])
    index = TransactionIndex(disk, PATH, 0)
    with pytest.raises(CorruptIndex, match="found 131 bytes which is not a multiple of 34"):
        index.append(AbortedTxn(9, 60, 70, 70)) if work == "append" else getattr(index, work)()
    index.reset()
    index.append(TXNS[0])
    assert index.all() == TXNS[:1]


def test_a_failed_append_leaves_whole_entries_and_may_be_tried_again(disk: SimulatedFiles, filled: TransactionIndex) -> None:
    another = AbortedTxn(3, 50, 60, 55)
    disk.fail_next("write")
    with pytest.raises(OSError):
        filled.append(another)
    assert filled.all() == TXNS
    filled.append(another)
    assert filled.all() == [*TXNS, another]


def test_a_renamed_index_goes_on_under_its_new_name(disk: SimulatedFiles, index: TransactionIndex) -> None:
    index.append(TXNS[0])
    disk.rename(PATH, PATH + ".deleted")
    index.renamed(PATH + ".deleted")
    index.append(TXNS[1])
    assert index.all() == TXNS[:2]


def test_a_deleted_index_leaves_no_file_and_refuses_use(disk: SimulatedFiles, filled: TransactionIndex) -> None:
    assert filled.delete_if_exists()
    assert not disk.exists(PATH)
    assert not filled.delete_if_exists()
    with pytest.raises(ValueError, match="is closed"):
        filled.all()
