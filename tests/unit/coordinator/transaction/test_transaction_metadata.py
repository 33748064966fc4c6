"""The states and the value kept of a transactional id, and how it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.transaction_metadata import TransactionMetadata, tombstone
from barnabas.coordinator.transaction.transaction_state import TransactionState, state_of_id, state_of_title
from barnabas.protocol.coordinator_log import TRANSACTION_RECORDS
from barnabas.protocol.coordinator_records.transaction_log_value import TransactionLogValue
from barnabas.topic_partition import TopicPartition

S = TransactionState
PARTITIONS = st.frozensets(st.builds(TopicPartition, st.sampled_from(["a", "b", "__consumer_offsets"]), st.integers(0, 50)), max_size=8)


def partitions_of(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("tt", number) for number in numbers)


@st.composite
def metadata(draw: st.DrawFn) -> TransactionMetadata:
    state = draw(st.sampled_from(sorted(set(S) - {S.DEAD, S.PREPARE_EPOCH_FENCE}, key=lambda state: state.id)))
    return TransactionMetadata(
        draw(st.text(min_size=1, max_size=20)),
        draw(st.integers(0, 2**63 - 1)),
        draw(st.integers(0, 32_767)),
        draw(st.integers(-1, 32_767)),
        draw(st.integers(-1, 2**63 - 1)),
        draw(st.integers(-1, 2**63 - 1)),
        draw(st.integers(1, 2**31 - 1)),
        state,
        frozenset() if state is S.EMPTY else draw(PARTITIONS),
        draw(st.integers(-1, 2**63 - 1)),
        draw(st.integers(-1, 2**63 - 1)),
        draw(st.sampled_from([0, 2])),
    )


def read_back(transaction: TransactionMetadata, version: int) -> TransactionMetadata:
    record = transaction.to_record(version)
    record_type, key = TRANSACTION_RECORDS.read_key(record.key_bytes())
    data = record.value_bytes()
    assert data is not None
    value = TRANSACTION_RECORDS.read_value(record_type, data)
    assert isinstance(value, TransactionLogValue)
    return TransactionMetadata.of_record(key.transactional_id, value)  # type: ignore[attr-defined]


@given(metadata())
def test_all_but_the_last_epoch_comes_back_from_the_log(found: TransactionMetadata) -> None:
    assert read_back(found, 2) == found._replace(last_producer_epoch=-1)


@given(metadata())
def test_before_version_1_what_has_no_place_in_the_record_is_left_out(found: TransactionMetadata) -> None:
    plain = found._replace(last_producer_epoch=-1, previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0)
    assert read_back(found, 0) == plain


def test_the_record_of_version_0_is_kafkas_to_the_byte() -> None:
    transaction_metadata = TransactionMetadata(
        "tx", 7, 3, -1, -1, -1, 60_000, S.ONGOING, frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}), 5, 9
    )
    record = transaction_metadata.to_record(0)
    assert record.key_bytes() == bytes.fromhex("0000 0002 7478")
    value = "0000 0000000000000007 0003 0000ea60 01 00000001 0001 74 00000002 00000000 00000001 0000000000000009 0000000000000005"
    assert record.value_bytes() == bytes.fromhex(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "0001000000000000000e00020000ea600000000001a1e278bc9effffffffffffffff0102020002",
            TransactionMetadata("tx", 14, 2, -1, -1, -1, 60_000, S.EMPTY, frozenset(), -1, 1_794_800_925_854, 2),
        ),
        (
            "0001000000000000000f00080000c350010203747403000000000000000200000001a1e278bd86000001a1e278bd7b00",
            TransactionMetadata("tx", 15, 8, -1, -1, -1, 50_000, S.ONGOING, partitions_of(0, 2), 1_794_800_926_075, 1_794_800_926_086),
        ),
        (
            "0001000000000000001800030000c35002020374740400000000000000010000000200000001a1e278c742000001a1e278c73c0102020002",
            TransactionMetadata(
                "tx", 24, 3, -1, -1, -1, 50_000, S.PREPARE_COMMIT, partitions_of(0, 1, 2), 1_794_800_928_572, 1_794_800_928_578, 2
            ),
        ),
        (
            "0001000000000000000200020000ea600501000001a1e27891ec000001a1e27891dc0102020002",
            TransactionMetadata("tx", 2, 2, -1, -1, -1, 60_000, S.COMPLETE_ABORT, frozenset(), 1_794_800_914_908, 1_794_800_914_924, 2),
        ),
    ],
)
def test_what_kafka_4_2_has_written_is_read_and_written_back_to_the_byte(value: str, expected: TransactionMetadata) -> None:
    transaction = TRANSACTION_RECORDS.read_value(0, bytes.fromhex(value))
    assert isinstance(transaction, TransactionLogValue)
    assert TransactionMetadata.of_record("tx", transaction) == expected
    assert expected.to_record(2).value_bytes() == bytes.fromhex(value)


def test_an_empty_one_has_null_for_partitions_and_a_complete_one_has_none() -> None:
    empty = TransactionMetadata("tx", 7, 3, state=S.EMPTY).to_record(2)
    complete = TransactionMetadata("tx", 7, 3, state=S.COMPLETE_COMMIT).to_record(2)
    assert isinstance(empty.value, TransactionLogValue)
    assert isinstance(complete.value, TransactionLogValue)
    assert (empty.value.transaction_partitions, complete.value.transaction_partitions) == (None, [])


@pytest.mark.parametrize(("transaction_version", "record_version"), [(0, 0), (1, 1), (2, 1)])
def test_records_are_flexible_from_version_1_on(transaction_version: int, record_version: int) -> None:
    assert TransactionMetadata("tx", 7, 3).to_record(transaction_version).value_version == record_version


def test_a_tombstone_has_the_key_and_no_value() -> None:
    record = tombstone("tx")
    assert (record.key_bytes(), record.value_bytes()) == (bytes.fromhex("0000 0002 7478"), None)


# -- states


def test_the_states_have_kafkas_ids_and_names() -> None:
    names = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"]
    assert [state_of_id(number).title for number in range(8)] == names
    assert [state_of_title(name) for name in names] == [state_of_id(number) for number in range(8)]


def test_a_state_nobody_knows_is_an_error_in_the_log_and_nothing_in_a_filter() -> None:
    with pytest.raises(ValueError, match="Unknown transaction state id 8"):
        state_of_id(8)
    assert state_of_title("Nonsense") is None


SETTLED = {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}


@pytest.mark.parametrize(
    ("state", "previous"),
    [
        (S.EMPTY, SETTLED),
        (S.ONGOING, SETTLED | {S.ONGOING}),
        (S.PREPARE_COMMIT, {S.ONGOING}),
        (S.PREPARE_ABORT, SETTLED | {S.ONGOING, S.PREPARE_EPOCH_FENCE}),
        (S.COMPLETE_COMMIT, {S.PREPARE_COMMIT}),
        (S.COMPLETE_ABORT, {S.PREPARE_ABORT}),
        (S.DEAD, SETTLED),
        (S.PREPARE_EPOCH_FENCE, {S.ONGOING}),
    ],
)
def test_each_state_is_entered_from_where_kafka_enters_it(state: TransactionState, previous: set[TransactionState]) -> None:
    assert {other for other in S if state.may_follow(other)} == previous


def test_a_step_that_cannot_be_taken_is_a_fault() -> None:
    decided = TransactionMetadata("tx", 7, 3, state=S.PREPARE_COMMIT, start_timestamp=1)
    with pytest.raises(ValueError, match="cannot go from PrepareCommit to PrepareAbort"):
        decided.fenced(2, 5)
    with pytest.raises(ValueError, match="cannot go from PrepareCommit to Ongoing"):
        decided.with_partitions(frozenset({TopicPartition("t", 0)}), 2, 5)


# -- settings


def test_settings_have_kafkas_names_and_defaults() -> None:
    config = TransactionConfig.of({"transaction.max.timeout.ms": 5, "transactional.id.expiration.ms": 7, "request.timeout.ms": 9})
    assert (config.transaction_max_timeout_ms, config.transactional_id_expiration_ms, config.request_timeout_ms) == (5, 7, 9)
    assert config.transaction_abort_timed_out_transaction_cleanup_interval_ms == 10_000
