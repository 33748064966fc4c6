"""One call of append_records hands one LogAppend down for all its entries, one after the other."""

from __future__ import annotations

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.protocol.slices import Records
from barnabas.records.validation.validation import COORDINATOR
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_partition import TopicPartition

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("b", 1)


def a_call() -> AppendCall:
    entries = [(FIRST, Records(b"one")), (SECOND, Records(b"__two__", 2, 5))]
    return AppendCall(entries, lambda results: None, timeout_ms=1, required_acks=-1, origin=COORDINATOR, transaction_version=2)


def test_each_entry_is_appended_with_its_records_and_the_values_of_the_call() -> None:
    call = a_call()
    append = call.next_append(7, at_once=100)
    assert (append.data[append.start : append.end], append.now_ms, append.at_once) == (b"one", 7, 100)
    assert (append.origin, append.transaction_version) == (COORDINATOR, 2)
    call.results.append(PartitionAppend(FIRST))
    append = call.next_append(8)
    assert (append.data[append.start : append.end], append.now_ms, append.at_once) == (b"two", 8, -1)
    assert (append.origin, append.transaction_version) == (COORDINATOR, 2)


def test_the_guard_of_one_partition_is_not_used_for_the_next() -> None:
    call = a_call()
    guard = VerificationGuard()
    call.verification_guards = {FIRST: guard}
    assert call.next_append(7).verification_guard is guard
    call.results.append(PartitionAppend(FIRST))
    assert call.next_append(7).verification_guard is None


def test_a_call_is_done_when_every_entry_has_its_result() -> None:
    call = a_call()
    assert not call.is_done and call.next_entry[0] == FIRST
    call.results.append(PartitionAppend(FIRST))
    assert not call.is_done and call.next_entry[0] == SECOND
    call.results.append(PartitionAppend(SECOND))
    assert call.is_done
