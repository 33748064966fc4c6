from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.fetch_params import FetchParams, PartitionFetch, TopicIdPartition
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.slices import Records
from barnabas.records.validation.validation import COORDINATOR
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.replicas import NOW, TP, Appended, Replicas, records

ELSEWHERE = TopicPartition("elsewhere", 0)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield replicas
    replicas.close()


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_leader_that_is_alone_answers_at_once(replicas: Replicas, acks: int) -> None:
    appended = replicas.append(3, acks=acks)
    assert appended.error == ErrorCode.NONE
    assert (appended.result.base_offset, appended.result.last_offset, appended.result.log_start_offset) == (0, 2, 0)


def test_the_high_watermark_of_a_leader_that_is_alone_follows_each_append(replicas: Replicas) -> None:
    replicas.append(3)
    replicas.append(2)
    assert replicas.log().high_watermark == 5


def test_an_append_does_not_wait_in_the_purgatory_when_it_need_not(replicas: Replicas) -> None:
    replicas.append(3)
    assert replicas.manager.produce_purgatory.watched == 0


@pytest.mark.parametrize("acks", [-2, 2, 7])
def test_acks_that_do_not_exist_are_refused(replicas: Replicas, acks: int) -> None:
    assert replicas.append(acks=acks).error == ErrorCode.INVALID_REQUIRED_ACKS
    assert replicas.log().log_end_offset == 0


def test_a_partition_of_no_topic_is_unknown(replicas: Replicas) -> None:
    assert replicas.append(partition=ELSEWHERE).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_other_brokers_have_makes_the_client_look_again(replicas: Replicas) -> None:
    replicas.tell(ELSEWHERE, leader=2, replicas=(2, 3))
    assert replicas.append(partition=ELSEWHERE).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_takes_no_records(replicas: Replicas) -> None:
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    assert replicas.append(acks=1).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_internal_topic_is_only_for_those_who_may(replicas: Replicas) -> None:
    internal = TopicPartition("__consumer_offsets", 0)
    replicas.lead(internal)
    assert replicas.append(partition=internal).error == ErrorCode.INVALID_TOPIC_EXCEPTION
    appended = Appended()
    replicas.manager.append_records(
        AppendCall([(internal, records())], appended, timeout_ms=0, required_acks=-1, internal_topics_allowed=True, origin=COORDINATOR)
    )
    assert appended.error == ErrorCode.NONE


def test_a_coordinator_appends_at_once_and_hears_that_its_partition_has_changed(replicas: Replicas) -> None:
    internal = TopicPartition("__consumer_offsets", 0)
    replicas.lead(internal)
    heard: list[TopicPartition] = []
    replicas.manager.on_change_of[internal.topic] = heard.append
    assert [replicas.manager.append_as_coordinator(internal, records(2).data) for _ in range(2)] == [0, 2]
    assert heard == [internal, internal]


def test_a_coordinator_is_told_why_it_cannot_append(replicas: Replicas) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        replicas.manager.append_as_coordinator(ELSEWHERE, records().data)
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    with pytest.raises(NotLeaderOrFollower):
        replicas.manager.append_as_coordinator(TP, records().data)


def test_one_bad_partition_does_not_harm_the_others(replicas: Replicas) -> None:
    appended = Appended()
    replicas.manager.append_records(AppendCall([(ELSEWHERE, records()), (TP, records(2))], appended, timeout_ms=0, required_acks=-1))
    assert appended.results is not None
    assert [(result.error, result.base_offset) for result in appended.results] == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1), (0, 0)]


def test_a_corrupt_batch_is_refused_with_nothing_but_the_code(replicas: Replicas) -> None:
    appended = Appended()
    data = bytearray(records().data)
    data[-1] ^= 1
    replicas.manager.append_records(AppendCall([(TP, Records(bytes(data)))], appended, timeout_ms=0, required_acks=1))
    assert (appended.error, appended.result.log_start_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
    assert appended.result.error_message is None


def test_a_batch_above_max_message_bytes_is_too_large(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"max.message.bytes": "100"}))
    assert replicas.append(size=200).error == ErrorCode.MESSAGE_TOO_LARGE


def test_rejected_records_are_named(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"message.timestamp.before.max.ms": "1000"}))
    result = replicas.append(2, timestamp=NOW - 5000).result
    assert result.error == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in result.record_errors] == [0, 1]
    assert result.error_message is not None
    assert result.log_start_offset == 0


def test_a_batch_that_is_wrong_as_a_whole_has_no_message(replicas: Replicas) -> None:
    appended = Appended()
    replicas.manager.append_records(
        AppendCall([(TP, records(control=True, producer_id=1, producer_epoch=0))], appended, timeout_ms=0, required_acks=1)
    )
    assert appended.error == ErrorCode.INVALID_RECORD
    assert (appended.result.error_message, appended.result.record_errors) == (None, [])


def test_the_broker_stamps_its_time_where_the_topic_says_so(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"message.timestamp.type": "LogAppendTime"}))
    assert replicas.append().result.log_append_time == NOW


def test_a_retry_of_an_idempotent_producer_gets_the_offsets_of_the_first_time(replicas: Replicas) -> None:
    idempotent: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    first, retry = replicas.append(3, **idempotent), replicas.append(3, **idempotent)
    assert (retry.error, retry.result.base_offset, retry.result.last_offset) == (0, first.result.base_offset, first.result.last_offset)
    assert replicas.log().log_end_offset == 3


def test_a_gap_in_the_sequence_of_an_idempotent_producer_is_refused(replicas: Replicas) -> None:
    replicas.append(1, producer_id=9, producer_epoch=0, base_sequence=0)
    refused = replicas.append(1, producer_id=9, producer_epoch=0, base_sequence=5)
    assert refused.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused.result.log_start_offset == 0


def test_a_producer_with_an_older_epoch_is_fenced(replicas: Replicas) -> None:
    replicas.append(1, producer_id=9, producer_epoch=3, base_sequence=0)
    assert replicas.append(1, producer_id=9, producer_epoch=2, base_sequence=0).error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_records_of_a_transaction_nobody_vouches_for_are_refused(replicas: Replicas) -> None:
    transactional: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    assert replicas.append(1, **transactional).error == ErrorCode.INVALID_TXN_STATE


def test_an_append_with_too_few_replicas_in_sync_is_refused_before_it_is_written(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    replicas.lead(epoch=1, replicas=(1, 2), isr=(1,))
    assert replicas.append(acks=-1).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert replicas.log().log_end_offset == 0
    assert replicas.append(acks=1).error == ErrorCode.NONE


def test_more_replicas_than_there_are_cannot_be_asked_for(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    assert replicas.append(acks=-1).error == ErrorCode.NONE


def test_an_error_nobody_foresaw_is_the_partitions_own(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    appended = Appended()
    broken = Records(b"", 0, 100)  # a fault of ours: the protocol never gives a slice that is longer than its bytes
    replicas.manager.append_records(AppendCall([(TP, broken), (TP, records())], appended, timeout_ms=0, required_acks=1))
    assert appended.results is not None
    assert [result.error for result in appended.results] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]


def test_whoever_waits_for_data_is_woken_after_the_answer(replicas: Replicas) -> None:
    order: list[str] = []
    wanted = [(TopicIdPartition(Uuid.ZERO, TP), PartitionFetch(0, 1000))]
    replicas.manager.fetch_messages(FetchParams(max_wait_ms=500), wanted, lambda results: order.append("fetch"))
    replicas.manager.append_records(AppendCall([(TP, records())], lambda results: order.append("produce"), timeout_ms=0, required_acks=1))
    assert order == ["produce", "fetch"]


def test_whoever_waits_for_data_is_woken_even_if_the_answer_fails(replicas: Replicas) -> None:
    def fail(results: list[PartitionAppend]) -> None:
        raise RuntimeError("the connection is gone")

    fetched = replicas.fetch(max_wait_ms=500)
    with pytest.raises(RuntimeError):
        replicas.manager.append_records(AppendCall([(TP, records())], fail, timeout_ms=0, required_acks=1))
    assert fetched.is_done
