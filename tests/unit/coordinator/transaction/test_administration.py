"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from tests.unit.coordinator.transaction.transaction_host import T0, T1, U0, TransactionHost


def listed(host: TransactionHost, **filters: Any) -> ListTransactionsResponse:
    return host.coordinator.list_transactions(ListTransactionsRequest(**filters))


def names(host: TransactionHost, **filters: Any) -> list[str]:
    response = listed(host, **filters)
    assert response.error_code == 0
    return sorted(transaction_state.transactional_id for transaction_state in response.transaction_states)


@pytest.fixture
def host() -> TransactionHost:
    """a is empty, b is open for 5 s, c was committed, d is open for 1 s."""
    host = TransactionHost()
    host.producer("a")
    host.commit(host.ongoing(transactional_id="c"), "c")
    host.ongoing(transactional_id="b")
    host.time.advance(4_000)
    host.ongoing(transactional_id="d")
    host.time.advance(1_000)
    return host


def test_all_are_listed_with_their_state(host: TransactionHost) -> None:
    transactions = {state.transactional_id: (state.producer_id, state.transaction_state) for state in listed(host).transaction_states}
    assert transactions == {"a": (1000, "Empty"), "c": (1001, "CompleteCommit"), "b": (1002, "Ongoing"), "d": (1003, "Ongoing")}


def test_by_state(host: TransactionHost) -> None:
    assert names(host, state_filters=["Ongoing"]) == ["b", "d"]
    assert names(host, state_filters=["Empty", "CompleteCommit"]) == ["a", "c"]


def test_states_that_do_not_exist_are_named(host: TransactionHost) -> None:
    response = listed(host, state_filters=["Ongoing", "Nonsense", "ongoing"])
    assert response.unknown_state_filters == ["Nonsense", "ongoing"]
    assert len(response.transaction_states) == 2


def test_only_states_that_do_not_exist_list_nothing(host: TransactionHost) -> None:
    assert names(host, state_filters=["Nonsense"]) == []


def test_by_producer_id(host: TransactionHost) -> None:
    assert names(host, producer_id_filters=[1001, 1003, 4711]) == ["c", "d"]


def test_by_how_long_ago_they_began(host: TransactionHost) -> None:
    assert names(host, duration_filter=999, state_filters=["Ongoing"]) == ["b", "d"]
    assert names(host, duration_filter=1_000, state_filters=["Ongoing"]) == ["b"]
    assert names(host, duration_filter=5_000, state_filters=["Ongoing"]) == []


def test_an_id_that_never_began_anything_began_before_all_time(host: TransactionHost) -> None:
    assert "a" in names(host, duration_filter=100_000)


@pytest.mark.parametrize(("pattern", "expected"), [("a|b", "ab"), ("", "abcd"), (None, "abcd"), (".", "abcd"), ("x.*", ""), ("", "abcd")])
def test_by_a_pattern_of_the_whole_id(host: TransactionHost, pattern: str | None, expected: str) -> None:
    assert names(host, transactional_id_pattern=pattern) == list(expected)


def test_a_pattern_that_cannot_be_read_is_refused(host: TransactionHost) -> None:
    assert listed(host, transactional_id_pattern="(ab").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert listed(host, transactional_id_pattern="(a?){200}").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION  # too large


def test_a_prefix(host: TransactionHost) -> None:
    host.producer("prefix-1")
    host.producer("prefix-2")
    assert names(host, transactional_id_pattern="prefix-.*") == ["prefix-1", "prefix-2"]


def test_while_a_partition_is_loading_nothing_is_listed(host: TransactionHost) -> None:
    loading = host.coordinator.on_election(3, 1)
    assert listed(host).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for _ in loading:
        pass
    assert listed(host).error_code == 0


def test_after_the_end_there_is_no_coordinator(host: TransactionHost) -> None:
    host.coordinator.shutdown()
    assert listed(host).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.describe().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.describe("").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_what_is_not_committed_is_not_listed(host: TransactionHost) -> None:
    host.hold()
    host.asked_init("new")
    host.asked_end((1002, 0), committed=True, transactional_id="b")
    assert names(host, state_filters=["Ongoing"]) == ["b", "d"]
    assert "new" not in names(host)
    host.commit_log()
    assert names(host, state_filters=["Ongoing"]) == ["d"]
    assert "new" in names(host)


# -- describe


def test_an_open_transaction_is_described_with_its_partitions() -> None:
    host = TransactionHost()
    producer = host.ongoing(T1, U0, T0, timeout_ms=5_000)
    description = host.describe()
    assert (description.error_code, description.transactional_id, description.transaction_state) == (0, "x", "Ongoing")
    assert (description.producer_id, description.producer_epoch) == producer
    assert (description.transaction_timeout_ms, description.transaction_start_time_ms) == (5_000, host.time.now)
    assert [(topic.topic, topic.partitions) for topic in description.topics] == [("t", [0, 1]), ("u", [0])]


def test_an_empty_one_has_none_and_no_beginning() -> None:
    host = TransactionHost()
    host.producer()
    description = host.describe()
    assert (description.transaction_state, description.transaction_start_time_ms, description.topics) == ("Empty", -1, [])


def test_a_decided_one_is_described_with_what_it_waits_for() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.codes[T1] = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.commit(producer)
    description = host.describe()
    assert description.transaction_state == "PrepareCommit"
    assert [(topic.topic, topic.partitions) for topic in description.topics] == [("t", [1])]


def test_one_that_does_not_exist_is_not_found() -> None:
    host = TransactionHost()
    description = host.describe("nobody")
    assert (description.error_code, description.transactional_id) == (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "nobody")


def test_an_empty_id_is_refused() -> None:
    assert TransactionHost().describe("").error_code == ErrorCode.INVALID_REQUEST


def test_one_of_another_coordinator_is_elsewhere() -> None:
    host = TransactionHost()
    host.coordinator.on_resignation(0, None)
    assert host.describe().error_code == ErrorCode.NOT_COORDINATOR


def test_what_there_is_is_counted(host: TransactionHost) -> None:
    host.partitions.held = True
    host.commit((1002, 0), "b")
    assert host.coordinator.gauges() == {"Empty": 1, "CompleteCommit": 1, "PrepareCommit": 1, "Ongoing": 1, "PendingMarkers": 1}
