"""The transaction coordinator in its broker: its topic, start and shutdown, and a transaction from its begin to its markers."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.adoption.adoption import plan, write_store
from barnabas.broker.adoption.inventory import take_inventory
from barnabas.config_def import ConfigResourceType
from barnabas.metadata.embedded import STORE_NAME
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.delete_topics_response import DeleteTopicsResponse
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.topic_name import TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition
from tests import golden
from tests.unit.broker.transacting import ID, PARTITIONS, Transactions, with_transactions

OTHER_BROKER = 6


def test_the_topic_of_the_transactions_is_made_when_a_client_first_looks_for_its_coordinator(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        assert (await transactions.find()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await transactions.broker.topic_creation.settled()
        coordinator = await transactions.find()
        assert (coordinator.error_code, coordinator.node_id) == (0, 5)
        assert transactions.broker.metadata_cache.partition_count(TRANSACTION_STATE) == PARTITIONS
        assert transactions.broker.configs.topic_properties(TRANSACTION_STATE) == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }

    with_transactions(tmp_path, use)


def test_records_can_be_read_as_committed_once_their_transaction_is(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t")
        producer = await transactions.begin()
        assert await transactions.add(producer, ("t", 0)) == {("t", 0): 0}
        assert await transactions.produce(producer, "t") == 0
        assert transactions.offsets("t") == (0, 1)
        assert (await transactions.end(producer)).error_code == 0
        await transactions.until_state("CompleteCommit")
        assert transactions.offsets("t") == (2, 2)

    with_transactions(tmp_path, use)


def test_with_transaction_version_2_partitions_add_themselves_and_every_end_raises_the_epoch(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t")
        producer = await transactions.begin()
        for round_ in range(3):
            assert await transactions.produce(producer, "t", version=12) == 0
            assert [topic.topic for topic in (await transactions.describe()).topics] == ["t"]
            ended = await transactions.end(producer, committed=round_ != 1, version=5)
            assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (0, producer.producer_id, producer.producer_epoch + 1)
            producer = InitProducerIdResponse(producer_id=ended.producer_id, producer_epoch=ended.producer_epoch)
        await transactions.until_state("CompleteCommit")
        assert transactions.offsets("t") == (6, 6)

    with_transactions(tmp_path, use)


def test_a_transactional_id_is_there_again_after_a_restart_and_an_open_transaction_is_aborted_by_its_next_owner(tmp_path: Path) -> None:
    async def first(transactions: Transactions) -> InitProducerIdResponse:
        await transactions.create_topic("t")
        producer = await transactions.begin()
        await transactions.add(producer, ("t", 0))
        assert await transactions.produce(producer, "t") == 0
        return producer

    async def second(transactions: Transactions) -> None:
        await transactions.ready()
        assert (await transactions.describe()).transaction_state == "Ongoing"
        assert transactions.offsets("t") == (0, 1)
        next_one = await transactions.begin()
        assert next_one.producer_id == producer.producer_id
        assert next_one.producer_epoch > producer.producer_epoch
        assert transactions.offsets("t") == (2, 2)
        assert await transactions.produce(producer, "t", 1) == ErrorCode.INVALID_PRODUCER_EPOCH

    producer = with_transactions(tmp_path, first)
    with_transactions(tmp_path, second)


def test_a_transaction_that_takes_longer_than_its_timeout_is_aborted(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t")
        await transactions.ready()
        producer = await transactions.init(timeout_ms=1)
        await transactions.add(producer, ("t", 0))
        assert await transactions.produce(producer, "t") == 0
        await transactions.until_state("CompleteAbort")
        assert transactions.offsets("t") == (2, 2)
        assert (await transactions.end(producer)).error_code == ErrorCode.PRODUCER_FENCED

    with_transactions(tmp_path, use, transaction_abort_timed_out_transaction_cleanup_interval_ms="10")


def test_a_transactional_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.begin()

        async def is_forgotten() -> bool:
            return (await transactions.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

        await transactions.until(is_forgotten)

    settings = {"transactional_id_expiration_ms": "1", "transaction_remove_expired_transaction_cleanup_interval_ms": "10"}
    with_transactions(tmp_path, use, **settings)


def test_who_asks_hears_at_once_that_another_broker_leads_now_and_a_lead_that_comes_back_brings_everything_back(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t")
        producer = await transactions.begin()
        await transactions.add(producer, ("t", 0))
        lead(transactions, OTHER_BROKER)
        assert (await transactions.end(producer)).error_code == ErrorCode.NOT_COORDINATOR
        lead(transactions, transactions.broker.broker_id)
        assert (await transactions.end(producer)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await transactions.ready()
        assert (await transactions.end(producer)).error_code == 0

    with_transactions(tmp_path, use)


def test_without_its_topic_there_is_no_coordinator_and_a_new_one_begins_empty(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.begin()
        request = DeleteTopicsRequest(topic_names=[TRANSACTION_STATE], timeout_ms=10_000)
        deleted = await transactions.ask(request, DeleteTopicsResponse, 5)
        assert [topic.error_code for topic in deleted.responses] == [0]
        assert (await transactions.init()).error_code == ErrorCode.NOT_COORDINATOR
        await transactions.ready()
        assert (await transactions.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await transactions.begin()).producer_epoch == 0

    with_transactions(tmp_path, use)


def test_fewer_replicas_than_its_topic_wants_leave_the_coordinator_unavailable(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.begin()
        lead(transactions, OTHER_BROKER)
        lead(transactions, transactions.broker.broker_id)  # of two replicas, the other of which is not in sync
        await transactions.ready()
        assert (await transactions.init()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    with_transactions(tmp_path, use, transaction_state_log_min_isr="2")


def test_an_answer_waits_for_the_disk_where_the_settings_ask_for_it(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.begin()
        log = transactions.broker.replica_manager.log_manager.get(state_partition(transactions))
        assert log is not None
        assert log.recovery_point == log.log_end_offset > 0

    with_transactions(tmp_path, use, log_flush_interval_messages="1")


def test_records_that_no_coordinator_vouches_for_are_taken_where_nobody_is_to_be_asked(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t")
        producer = await transactions.begin()
        assert await transactions.produce(producer, "t") != 0
        await set_for_all_brokers(transactions, "transaction.partition.verification.enable", "false")
        assert await transactions.produce(producer, "t") == 0

    with_transactions(tmp_path, use)


def test_new_clusters_run_on_transaction_version_2(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        assert transactions.broker.features.finalized["transaction.version"] == 2

    with_transactions(tmp_path, use)


def test_what_goes_on_is_told_under_kafka_s_names(tmp_path: Path) -> None:
    async def use(transactions: Transactions) -> None:
        await transactions.create_topic("t", 2)
        producer = await transactions.begin()
        assert await transactions.produce(producer, "t", version=12) == 0
        metrics = transactions.server.transactions.metrics()
        assert metrics["kafka.server:type=ReplicaManager,name=ProducerIdCount"] == 1
        assert metrics["kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount"] == 0
        assert metrics["kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate"] == 0
        assert metrics["kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=UnknownDestinationQueueSize"] == 0
        assert metrics["kafka.server:type=transaction-coordinator-metrics,name=partition-load-time-max"] < 10_000
        log = transactions.broker.replica_manager.log_manager.get(TopicPartition("t", 0))
        assert log is not None
        log.producers.config.max_transaction_timeout_ms = -(10**9)  # as if it had been open for days
        assert await transactions.produce(producer, "t", version=12, partition=1, id="another's") != 0
        metrics = transactions.server.transactions.metrics()
        assert metrics["kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount"] == 1
        assert metrics["kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate"] == 1

    with_transactions(tmp_path, use)


@pytest.mark.parametrize("is_there", [True, False])
def test_who_had_a_transactional_id_with_kafka_goes_on_with_it_here(tmp_path: Path, is_there: bool) -> None:
    """The directory is one that Apache Kafka 4.2 wrote; its producer ids go up to 5."""
    data = tmp_path / "data"
    shutil.copytree(golden.LOGS / "kafka-4.2.0" / "first", data)
    adopt(data)

    async def use(transactions: Transactions) -> InitProducerIdResponse:
        return await transactions.begin("tx-4" if is_there else "new")

    got = with_transactions(data, use, broker_id="1")
    assert (got.producer_id, got.producer_epoch) == ((5, 13) if is_there else (1000, 0))


def adopt(data: Path) -> None:
    log_dir = LogDir(Files(), str(data))
    try:
        adoption = plan(take_inventory(Files(), [log_dir], str(data)), Random(1))
        asyncio.run(write_store(adoption, str(data / STORE_NAME), lambda: 0))
    finally:
        log_dir.release()


def state_partition(transactions: Transactions) -> TopicPartition:
    return TopicPartition(TRANSACTION_STATE, transactions.broker.transactions.partition_for(ID))


def lead(transactions: Transactions, leader: int) -> None:
    """The controller's order that gives the partition of the id to a broker."""
    replicas = transactions.broker.replica_manager
    partition = state_partition(transactions)
    hosted = replicas.partition(partition)
    assert hosted is not None and hosted.topic_id is not None
    epoch, brokers = hosted.leader_epoch + 1, [transactions.broker.broker_id, OTHER_BROKER]
    state = LeaderAndIsrPartitionState(
        partition.topic, partition.partition, replicas.controller_epoch, leader, epoch, [leader], hosted.partition_epoch + 1, brokers
    )
    topics = [LeaderAndIsrTopicState(partition.topic, hosted.topic_id, [state])]
    replicas.become_leader_or_follower(LeaderAndIsrRequest(0, False, replicas.controller_epoch, topic_states=topics))


async def set_for_all_brokers(transactions: Transactions, name: str, value: str) -> None:
    resource = AlterConfigsResource(ConfigResourceType.BROKER, "", [AlterableConfig(name, 0, value)])
    response = await transactions.ask(IncrementalAlterConfigsRequest([resource]), IncrementalAlterConfigsResponse, 1)
    assert [altered.error_code for altered in response.responses] == [0]
