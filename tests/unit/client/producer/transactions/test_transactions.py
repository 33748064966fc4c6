"""Transactions over sockets: which requests go out, in which order and version, and what goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import IllegalArgument, IllegalState, NetworkError, ProducerFenced, Timeout, TransactionAbortable
from barnabas.client.producer import AsyncProducer, Producer
from barnabas.errors import InvalidRecord, KafkaError
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.topic_partition import TopicPartition
from tests.unit.client.producer.scripted_broker import DROP, HANG_UP, ScriptedCluster

WAIT_S = 60
QUICK: dict[str, Any] = {
    "linger_ms": 0,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 10,
    "transactional_id": "x",
}


def producer(cluster: ScriptedCluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap}, **{**QUICK, **settings})


def test_version_2_needs_few_requests() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        with sending.transaction():
            sending.send("t", b"v")
        assert cluster.kinds() == ["FindCoordinator", "InitProducerId", "Produce", "EndTxn"]
        (version, request) = cluster.of_kind("Produce")[0]
        assert (version, request.transactional_id, request.acks) == (13, "x", -1)
        assert cluster.of_kind("EndTxn")[0][0] == 5


def test_version_1_adds_partitions_first() -> None:
    with ScriptedCluster(transaction_version=1) as cluster, producer(cluster) as sending:
        sending.init_transactions()
        for _ in range(2):
            with sending.transaction():
                sending.send("t", b"v")
        assert cluster.kinds() == ["FindCoordinator", "InitProducerId", *["AddPartitionsToTxn", "Produce", "EndTxn"] * 2]
        assert {version for version, _ in cluster.of_kind("Produce")} == {11}
        assert {version for version, _ in cluster.of_kind("EndTxn")} == {4}
        assert {version for version, _ in cluster.of_kind("AddPartitionsToTxn")} == {3}


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        (1, ["AddOffsetsToTxn", "FindCoordinator", "TxnOffsetCommit", "EndTxn"]),
        (2, ["FindCoordinator", "TxnOffsetCommit", "EndTxn"]),
    ],
)
def test_offsets_are_committed_with_the_group_of_the_consumer(version: int, kinds: list[str]) -> None:
    group = ConsumerGroupMetadata("g", 3, "member", "instance")
    with ScriptedCluster(transaction_version=version) as cluster, producer(cluster) as sending:
        sending.init_transactions()
        with sending.transaction():
            sending.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(5, "note", 2)}, group)
        assert cluster.kinds()[2:] == kinds
        (_, request) = cluster.of_kind("TxnOffsetCommit")[0]
        row = request.topics[0].partitions[0]
        assert (request.group_id, request.generation_id, request.member_id, request.group_instance_id) == ("g", 3, "member", "instance")
        assert (row.committed_offset, row.committed_metadata, row.committed_leader_epoch) == (5, "note", 2)


def test_no_offsets_are_no_request() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        with sending.transaction():
            sending.send_offsets_to_transaction({}, ConsumerGroupMetadata("g"))
        assert cluster.kinds() == ["FindCoordinator", "InitProducerId"]


def test_group_metadata_of_no_member_is_refused() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        with pytest.raises(IllegalArgument, match=r"has a generation_id but no member_id"):
            sending.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(5)}, ConsumerGroupMetadata("g", 1))


def test_an_abort_fails_what_has_not_been_sent() -> None:
    with ScriptedCluster() as cluster, producer(cluster, linger_ms=60000, delivery_timeout_ms=120000) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        delivery = sending.send("t", b"v")
        sending.abort_transaction()
        assert "transaction was aborted" in str(delivery.exception(WAIT_S))
        (_, request) = cluster.of_kind("EndTxn")[0]
        assert not request.committed
        assert cluster.written() == []


def test_a_block_that_raises_aborts() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        with pytest.raises(ZeroDivisionError), sending.transaction():
            sending.send("t", b"v").result(WAIT_S)
            raise ZeroDivisionError
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [False]
        with sending.transaction():
            sending.send("t", b"w")
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [False, True]


def test_a_record_that_fails_keeps_the_transaction_from_being_committed() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        cluster.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
        with pytest.raises(KafkaError, match="error state") as caught, sending.transaction():
            sending.send("t", b"v").exception(WAIT_S)
        assert isinstance(caught.value.__cause__, InvalidRecord)
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [False]
        cluster.on_produce = lambda partition, batch, number: None
        with sending.transaction():
            assert sending.send("t", b"w").result(WAIT_S).offset == 0


def test_a_commit_that_finds_a_failed_record_raises() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        cluster.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
        sending.begin_transaction()
        sending.send("t", b"v")
        with pytest.raises(KafkaError):
            sending.commit_transaction()
        sending.abort_transaction()
        sending.begin_transaction()


def test_a_record_that_fails_while_others_are_under_way_ends_the_commit() -> None:
    with ScriptedCluster(partitions=2) as cluster, producer(cluster, request_timeout_ms=1500, delivery_timeout_ms=1500) as sending:
        sending.init_transactions()
        cluster.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD if number == 1 else DROP
        sending.begin_transaction()
        failed = sending.send("t", b"v", partition=0)
        assert isinstance(failed.exception(WAIT_S), InvalidRecord)
        with pytest.raises(KafkaError):
            sending.send("t", b"w", partition=1)
        sending.abort_transaction()
        sending.begin_transaction()
        slow = sending.send("t", b"x", partition=1)
        sending.send("t", b"large", partition=0)
        with pytest.raises(KafkaError):
            sending.commit_transaction()
        assert isinstance(slow.exception(WAIT_S), Timeout | NetworkError)


def test_commit_sends_what_lingers() -> None:
    with ScriptedCluster() as cluster, producer(cluster, linger_ms=60000, delivery_timeout_ms=120000) as sending:
        sending.init_transactions()
        with sending.transaction():
            sending.send("t", b"v")
        assert cluster.written() == [b"v"]


def test_a_fenced_producer_can_only_be_closed() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        sending.send("t", b"v").result(WAIT_S)
        cluster.answers[api_keys.END_TXN] = [EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)]
        with pytest.raises(ProducerFenced):
            sending.commit_transaction()
        with pytest.raises(ProducerFenced):
            sending.begin_transaction()
        assert isinstance(sending.send("t", b"w").exception(WAIT_S), ProducerFenced)


def test_a_producer_fenced_while_it_writes_aborts_and_learns_it_then() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        cluster.on_produce = lambda partition, batch, number: ErrorCode.INVALID_PRODUCER_EPOCH
        assert sending.send("t", b"v").exception(WAIT_S) is not None
        cluster.answers[api_keys.END_TXN] = [EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)]
        with pytest.raises(ProducerFenced):
            sending.abort_transaction()


def test_the_coordinator_is_looked_for_until_it_is_there() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        missing = FindCoordinatorResponse(coordinators=[Coordinator("x", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)])
        cluster.answers[api_keys.FIND_COORDINATOR] = [missing, missing]
        cluster.answers[api_keys.INIT_PRODUCER_ID] = [
            InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            InitProducerIdResponse(error_code=ErrorCode.NOT_COORDINATOR),
            HANG_UP,
        ]
        sending.init_transactions()
        assert cluster.kinds().count("InitProducerId") == 4


def test_init_that_times_out_can_be_called_again() -> None:
    with ScriptedCluster() as cluster, producer(cluster, max_block_ms=600, request_timeout_ms=800) as sending:
        cluster.answers[api_keys.INIT_PRODUCER_ID] = [DROP]
        with pytest.raises(Timeout, match="Timeout expired after 600ms while awaiting init_transactions"):
            sending.init_transactions()
        with pytest.raises(IllegalState, match="previous call to `init_transactions` timed out and must be retried"):
            sending.begin_transaction()
        sending.init_transactions()
        sending.begin_transaction()


def test_after_a_lost_connection_a_commit_is_asked_for_again() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        cluster.answers[api_keys.END_TXN] = [HANG_UP]
        with sending.transaction():
            sending.send("t", b"v")
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [True, True]


def test_an_abortable_end_can_be_aborted() -> None:
    with ScriptedCluster() as cluster, producer(cluster) as sending:
        sending.init_transactions()
        cluster.answers[api_keys.END_TXN] = [EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE)]
        with pytest.raises(TransactionAbortable), sending.transaction():
            sending.send("t", b"v")
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [True, False]
        with sending.transaction():
            sending.send("t", b"w")


def test_closing_aborts_an_open_transaction() -> None:
    with ScriptedCluster() as cluster:
        with producer(cluster) as sending:
            sending.init_transactions()
            sending.begin_transaction()
            sending.send("t", b"v")
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [False]


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    with ScriptedCluster() as cluster, producer(cluster, transactional_id=None) as sending, pytest.raises(IllegalState):
        sending.init_transactions()


def test_without_idempotence_neither() -> None:
    words = r"by setting the transactional\.id configuration property"
    with (
        ScriptedCluster() as cluster,
        producer(cluster, transactional_id=None, enable_idempotence=False) as sending,
        pytest.raises(IllegalState, match=words),
    ):
        sending.begin_transaction()


def test_two_phase_commit_is_refused_where_brokers_do_not_have_it() -> None:
    with (
        ScriptedCluster() as cluster,
        producer(cluster, transaction_two_phase_commit_enable=True) as sending,
        pytest.raises(UnsupportedVersion, match="enable2Pc"),
    ):
        sending.init_transactions()


def test_the_asynchronous_producer_has_the_same_transactions() -> None:
    async def run(bootstrap: str) -> None:
        async with AsyncProducer({"bootstrap.servers": bootstrap}, **QUICK) as sending:
            await sending.init_transactions()
            async with sending.transaction():
                await sending.send("t", b"v")
                await sending.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(5)}, ConsumerGroupMetadata("g"))
            with pytest.raises(ZeroDivisionError):
                async with sending.transaction():
                    await sending.send("t", b"w")
                    raise ZeroDivisionError

    with ScriptedCluster() as cluster:
        asyncio.run(run(cluster.bootstrap))
        assert [request.committed for _, request in cluster.of_kind("EndTxn")] == [True, False]
        assert cluster.written()[0] == b"v"
