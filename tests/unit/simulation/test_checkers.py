"""The checkers say what is wrong, and nothing where all is well: on logs and notes made by hand."""

from __future__ import annotations

from barnabas.records.builder import build
from barnabas.records.control import end_txn_marker
from barnabas.simulation.applications import Ending, GroupNotes, values_of_transaction
from barnabas.simulation.checkers import all_promises_kept, committed_values, group_saw, transactions_are_whole
from barnabas.simulation.workload import Promises
from barnabas.topic_partition import TopicPartition

X0, X1 = TopicPartition("x", 0), TopicPartition("x", 1)
PRODUCER = 7


def written(offset: int, value: bytes) -> bytes:
    return at(offset, build([(0, None, value, ())], producer_id=PRODUCER, producer_epoch=0, base_sequence=offset, transactional=True))


def ended(offset: int, committed: bool) -> bytes:
    return at(offset, end_txn_marker(committed, PRODUCER, 0, 0, 0))


def at(offset: int, batch: bytes) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]


def logs(number: int, *committed: bool) -> list[bytes]:
    """One transaction in as many partitions, each with a marker of its own."""
    values = values_of_transaction(number, len(committed))
    return [written(0, value) + ended(1, is_committed) for value, is_committed in zip(values, committed, strict=True)]


def test_only_what_was_committed_is_seen() -> None:
    data = written(0, b"a") + ended(1, True) + written(2, b"b") + ended(3, False) + written(4, b"c")
    assert committed_values(data) == ([(0, b"a")], [PRODUCER])


def test_a_whole_transaction_is_fine() -> None:
    assert transactions_are_whole(logs(0, True, True), {0: Ending.COMMITTED}) == []
    assert transactions_are_whole(logs(0, False, False), {0: Ending.ABORTED}) == []


def test_what_nobody_knows_the_end_of_may_have_either() -> None:
    assert transactions_are_whole(logs(0, True, True), {0: Ending.UNKNOWN}) == []
    assert transactions_are_whole(logs(0, False, False), {0: Ending.UNKNOWN}) == []


def test_half_a_transaction_is_found() -> None:
    (wrong,) = transactions_are_whole(logs(0, True, False), {0: Ending.UNKNOWN})
    assert "in part" in wrong


def test_a_transaction_that_ended_otherwise_than_told_is_found() -> None:
    assert transactions_are_whole(logs(0, False, False), {0: Ending.COMMITTED}) == ["transaction 0 was committed and is not there"]
    assert transactions_are_whole(logs(0, True, True), {0: Ending.ABORTED}) == ["transaction 0 was aborted and is there"]


def test_an_open_transaction_is_found() -> None:
    assert transactions_are_whole([written(0, b"x0-0")], {}) == [f"partition 0 has an open transaction of producer {PRODUCER}"]


def test_a_group_that_has_seen_all_that_was_committed_is_fine() -> None:
    notes = GroupNotes()
    notes.note_read(X0, 0, b"a")
    assert group_saw(notes, {X0: written(0, b"a") + ended(1, True)}) == []


def test_a_group_that_has_missed_something_or_seen_too_much_is_found() -> None:
    notes = GroupNotes()
    notes.note_read(X1, 0, b"b")
    wrong = group_saw(notes, {X0: written(0, b"a") + ended(1, True), X1: written(0, b"b") + ended(1, False)})
    assert wrong == ["b'a' at 0 of x-0 was never read", "b'b' was read at 0 of x-1, and is not committed"]


def test_what_is_read_differently_a_second_time_is_found() -> None:
    notes = GroupNotes()
    notes.note_read(X0, 3, b"a")
    notes.note_read(X0, 3, b"a")
    assert notes.wrong == []
    notes.note_read(X0, 3, b"b")
    assert len(notes.wrong) == 1


def test_two_owners_in_one_generation_are_found() -> None:
    notes = GroupNotes()
    notes.note_owner("one", 1, [X0])
    notes.note_owner("one", 1, [X0])
    notes.note_owner("other", 2, [X0])
    assert notes.wrong == []
    notes.note_owner("other", 1, [X0])
    assert notes.wrong == ["x-0 belongs to one and to other in generation 1"]


def test_an_offset_that_goes_back_is_found() -> None:
    notes = GroupNotes()
    notes.note_committed(X0, 5, None)
    notes.note_committed(X0, 5, 5)
    assert notes.wrong == []
    notes.note_committed(X0, 4, 5)
    notes.note_committed(X0, None, 5)
    assert len(notes.wrong) == 2


def test_a_record_twice_elsewhere_or_nowhere_is_found() -> None:
    promises = Promises(acknowledged=[(b"a", 0), (b"b", 1)])
    assert all_promises_kept([(0, b"a"), (1, b"b")], promises) == []
    assert "is lost" in all_promises_kept([(0, b"a")], promises)[0]
    assert "2 times" in all_promises_kept([(0, b"a"), (1, b"b"), (2, b"b")], promises)[0]
    assert "is at 2" in all_promises_kept([(0, b"a"), (2, b"b")], promises)[0]
