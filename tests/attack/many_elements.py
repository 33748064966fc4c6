"""Requests with as many elements as the broker takes, for each API: what is cheap for one partition is not for a hundred thousand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from barnabas.protocol.message import Message
from barnabas.protocol.messages import add_partitions_to_txn_request as add_partitions
from barnabas.protocol.messages import alter_configs_request as alter_configs
from barnabas.protocol.messages import alter_partition_reassignments_request as reassignments
from barnabas.protocol.messages import alter_replica_log_dirs_request as log_dirs
from barnabas.protocol.messages import consumer_group_describe_request as consumer_groups
from barnabas.protocol.messages import create_partitions_request as create_partitions
from barnabas.protocol.messages import create_topics_request as create_topics
from barnabas.protocol.messages import delete_groups_request as delete_groups
from barnabas.protocol.messages import delete_records_request as delete_records
from barnabas.protocol.messages import delete_topics_request as delete_topics
from barnabas.protocol.messages import describe_configs_request as describe_configs
from barnabas.protocol.messages import describe_groups_request as describe_groups
from barnabas.protocol.messages import describe_log_dirs_request as describe_log_dirs
from barnabas.protocol.messages import describe_producers_request as describe_producers
from barnabas.protocol.messages import describe_topic_partitions_request as describe_topic_partitions
from barnabas.protocol.messages import describe_transactions_request as describe_transactions
from barnabas.protocol.messages import elect_leaders_request as elect_leaders
from barnabas.protocol.messages import fetch_request as fetch
from barnabas.protocol.messages import find_coordinator_request as find_coordinator
from barnabas.protocol.messages import incremental_alter_configs_request as incremental_alter_configs
from barnabas.protocol.messages import leave_group_request as leave_group
from barnabas.protocol.messages import list_groups_request as list_groups
from barnabas.protocol.messages import list_offsets_request as list_offsets
from barnabas.protocol.messages import list_partition_reassignments_request as list_reassignments
from barnabas.protocol.messages import list_transactions_request as list_transactions
from barnabas.protocol.messages import metadata_request as metadata
from barnabas.protocol.messages import offset_commit_request as offset_commit
from barnabas.protocol.messages import offset_delete_request as offset_delete
from barnabas.protocol.messages import offset_fetch_request as offset_fetch
from barnabas.protocol.messages import offset_for_leader_epoch_request as leader_epochs
from barnabas.protocol.messages import produce_request as produce
from barnabas.protocol.messages import sync_group_request as sync_group
from barnabas.protocol.messages import txn_offset_commit_request as txn_offset_commit
from barnabas.protocol.messages import write_txn_markers_request as write_txn_markers
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from benchmarks.wire import Client
from tests.attack.wire import address, create_topic, frame, send

TOPIC = "many"
PARTITIONS = 50  # that exist; the others of a request do not
TIMES = 3
GROUP = "many"

Make = Callable[[int], Message]


def _produce(count: int) -> Message:
    records = Records(build([(1, b"k", b"v", ())]))
    data = [produce.PartitionProduceData(index, records) for index in range(count)]
    return produce.ProduceRequest(None, -1, 1000, [produce.TopicProduceData(TOPIC, partition_data=data)])


def _produce_one_partition(count: int) -> Message:
    """All to partitions that exist: each is appended to again and again."""
    now_ms = 1_700_000_000_000
    records = Records(build([(now_ms, b"k", b"v", ())]))
    data = [produce.PartitionProduceData(index % PARTITIONS, records) for index in range(count)]
    return produce.ProduceRequest(None, -1, 1000, [produce.TopicProduceData(TOPIC, partition_data=data)])


def _fetch(count: int) -> Message:
    partitions = [fetch.FetchPartition(index, partition_max_bytes=1) for index in range(count)]
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[fetch.FetchTopic(TOPIC, partitions=partitions)])


def _fetch_existing(count: int) -> Message:
    """Partitions that exist, over and over, by a client that waits."""
    partitions = [fetch.FetchPartition(index % PARTITIONS, fetch_offset=0, partition_max_bytes=1) for index in range(count)]
    return fetch.FetchRequest(
        max_wait_ms=500, min_bytes=1 << 20, max_bytes=1 << 20, topics=[fetch.FetchTopic(TOPIC, partitions=partitions)]
    )


def _list_offsets(count: int) -> Message:
    partitions = [list_offsets.ListOffsetsPartition(index, timestamp=-1) for index in range(count)]
    return list_offsets.ListOffsetsRequest(-1, 0, [list_offsets.ListOffsetsTopic(TOPIC, partitions)])


def _metadata(count: int) -> Message:
    return metadata.MetadataRequest([metadata.MetadataRequestTopic(name=f"many-{index}") for index in range(count)], False)


def _offset_commit(count: int) -> Message:
    partitions = [offset_commit.OffsetCommitRequestPartition(index % PARTITIONS, index) for index in range(count)]
    return offset_commit.OffsetCommitRequest(GROUP, topics=[offset_commit.OffsetCommitRequestTopic(TOPIC, partitions=partitions)])


def _offset_fetch(count: int) -> Message:
    topic = offset_fetch.OffsetFetchRequestTopics(TOPIC, partition_indexes=list(range(count)))
    return offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(GROUP, topics=[topic])])


def _offset_fetch_groups(count: int) -> Message:
    groups = [offset_fetch.OffsetFetchRequestGroup(f"many-{index}", topics=None) for index in range(count)]
    return offset_fetch.OffsetFetchRequest(groups=groups)


def _find_coordinator(count: int) -> Message:
    return find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[f"many-{index}" for index in range(count)])


def _leave_group(count: int) -> Message:
    return leave_group.LeaveGroupRequest(GROUP, members=[leave_group.MemberIdentity(f"many-{index}") for index in range(count)])


def _sync_group(count: int) -> Message:
    assignments = [sync_group.SyncGroupRequestAssignment(f"many-{index}", b"") for index in range(count)]
    return sync_group.SyncGroupRequest(GROUP, 1, "many", None, "consumer", "range", assignments)


def _describe_groups(count: int) -> Message:
    return describe_groups.DescribeGroupsRequest([f"many-{index}" for index in range(count)])


def _consumer_group_describe(count: int) -> Message:
    return consumer_groups.ConsumerGroupDescribeRequest([f"many-{index}" for index in range(count)])


def _list_groups(count: int) -> Message:
    return list_groups.ListGroupsRequest([f"many-{index}" for index in range(count)])


def _list_transactions(count: int) -> Message:
    return list_transactions.ListTransactionsRequest([f"many-{index}" for index in range(count)])


def _delete_groups(count: int) -> Message:
    return delete_groups.DeleteGroupsRequest([f"many-{index}" for index in range(count)])


def _create_topics(count: int) -> Message:
    """Refused each for itself: their names are not allowed."""
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic(f"not/{index}", 1, 1) for index in range(count)], 1000)


def _create_topics_valid(count: int) -> Message:
    """Only validated, and so not made."""
    topics = [create_topics.CreatableTopic(f"many-{index}", 1, 1) for index in range(count)]
    return create_topics.CreateTopicsRequest(topics, 1000, True)


def _create_topics_partitions(count: int) -> Message:
    """One topic with more partitions than any broker has."""
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic("huge", count * 20, 1)], 1000, True)


def _create_topics_assignments(count: int) -> Message:
    assignments = [create_topics.CreatableReplicaAssignment(index, [0]) for index in range(count)]
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic("assigned", -1, -1, assignments)], 1000, True)


def _create_topics_real(count: int) -> Message:
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic(f"real-{index}", 1, 1) for index in range(count)], 60_000)


def _delete_topics(count: int) -> Message:
    return delete_topics.DeleteTopicsRequest(topic_names=[f"many-{index}" for index in range(count)], timeout_ms=1000)


def _delete_records(count: int) -> Message:
    partitions = [delete_records.DeleteRecordsPartition(index % PARTITIONS, 0) for index in range(count)]
    topics = [delete_records.DeleteRecordsTopic(TOPIC, partitions), delete_records.DeleteRecordsTopic("none", partitions[: count // 10])]
    return delete_records.DeleteRecordsRequest(topics, 1000)


def _delete_records_unknown(count: int) -> Message:
    partitions = [delete_records.DeleteRecordsPartition(index, 0) for index in range(count)]
    return delete_records.DeleteRecordsRequest([delete_records.DeleteRecordsTopic(TOPIC, partitions)], 1000)


def _leader_epochs(count: int) -> Message:
    partitions = [leader_epochs.OffsetForLeaderPartition(index, -1, 0) for index in range(count)]
    return leader_epochs.OffsetForLeaderEpochRequest(-1, [leader_epochs.OffsetForLeaderTopic(TOPIC, partitions)])


def _add_partitions_to_txn(count: int) -> Message:
    topic = add_partitions.AddPartitionsToTxnTopic(TOPIC, [index % PARTITIONS for index in range(count)])
    return add_partitions.AddPartitionsToTxnRequest([], "many", 1, 0, [topic])


def _add_partitions_transactions(count: int) -> Message:
    topic = add_partitions.AddPartitionsToTxnTopic(TOPIC, [0])
    transactions = [add_partitions.AddPartitionsToTxnTransaction(f"many-{index}", 1, 0, False, [topic]) for index in range(count // 3)]
    return add_partitions.AddPartitionsToTxnRequest(transactions)


def _txn_offset_commit(count: int) -> Message:
    partitions = [txn_offset_commit.TxnOffsetCommitRequestPartition(index % PARTITIONS, index) for index in range(count)]
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(TOPIC, partitions)
    return txn_offset_commit.TxnOffsetCommitRequest("many", GROUP, 1, 0, topics=[topic])


def _write_txn_markers(count: int) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(TOPIC, [index % PARTITIONS for index in range(count)])
    return write_txn_markers.WriteTxnMarkersRequest([write_txn_markers.WritableTxnMarker(1, 0, False, [topic], 0)])


def _write_txn_markers_producers(count: int) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(TOPIC, [0])
    return write_txn_markers.WriteTxnMarkersRequest(
        [write_txn_markers.WritableTxnMarker(index, 0, False, [topic], 0) for index in range(count // 3)]
    )


def _describe_configs(count: int) -> Message:
    return describe_configs.DescribeConfigsRequest(
        [describe_configs.DescribeConfigsResource(2, f"many-{index}", None) for index in range(count)]
    )


def _describe_configs_broker(count: int) -> Message:
    keys = [[f"key-{index}"] for index in range(count // 2)]
    return describe_configs.DescribeConfigsRequest([describe_configs.DescribeConfigsResource(4, "0", key) for key in keys])


def _alter_configs(count: int) -> Message:
    config = [alter_configs.AlterableConfig("retention.ms", "1")]
    return alter_configs.AlterConfigsRequest(
        [alter_configs.AlterConfigsResource(2, f"many-{index}", config) for index in range(count // 2)]
    )


def _incremental_alter_configs(count: int) -> Message:
    config = [incremental_alter_configs.AlterableConfig("retention.ms", 0, "1")]
    resources = [incremental_alter_configs.AlterConfigsResource(2, f"many-{index}", config) for index in range(count // 2)]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources)


def _incremental_alter_config_values(count: int) -> Message:
    configs = [incremental_alter_configs.AlterableConfig(f"name-{index}", 0, "1") for index in range(count)]
    return incremental_alter_configs.IncrementalAlterConfigsRequest([incremental_alter_configs.AlterConfigsResource(2, TOPIC, configs)])


def _alter_replica_log_dirs(count: int) -> Message:
    topic = log_dirs.AlterReplicaLogDirTopic(TOPIC, list(range(count)))
    return log_dirs.AlterReplicaLogDirsRequest([log_dirs.AlterReplicaLogDir("/nowhere", [topic])])


def _describe_log_dirs(count: int) -> Message:
    return describe_log_dirs.DescribeLogDirsRequest([describe_log_dirs.DescribableLogDirTopic(TOPIC, list(range(count)))])


def _create_partitions(count: int) -> Message:
    topics = [create_partitions.CreatePartitionsTopic(f"many-{index}", 2, None) for index in range(count)]
    return create_partitions.CreatePartitionsRequest(topics, 1000, True)


def _create_partitions_huge(count: int) -> Message:
    return create_partitions.CreatePartitionsRequest([create_partitions.CreatePartitionsTopic(TOPIC, count * 20, None)], 1000, True)


def _elect_leaders(count: int) -> Message:
    return elect_leaders.ElectLeadersRequest(0, [elect_leaders.TopicPartitions(TOPIC, list(range(count)))], 1000)


def _reassignments(count: int) -> Message:
    partitions = [reassignments.ReassignablePartition(index, [0]) for index in range(count // 2)]
    return reassignments.AlterPartitionReassignmentsRequest(1000, True, [reassignments.ReassignableTopic(TOPIC, partitions)])


def _list_reassignments(count: int) -> Message:
    topic = list_reassignments.ListPartitionReassignmentsTopics(TOPIC, list(range(count)))
    return list_reassignments.ListPartitionReassignmentsRequest(1000, [topic])


def _offset_delete(count: int) -> Message:
    partitions = [offset_delete.OffsetDeleteRequestPartition(index) for index in range(count)]
    return offset_delete.OffsetDeleteRequest(GROUP, [offset_delete.OffsetDeleteRequestTopic(TOPIC, partitions)])


def _describe_producers(count: int) -> Message:
    return describe_producers.DescribeProducersRequest(
        [describe_producers.TopicRequest(TOPIC, [index % PARTITIONS for index in range(count)])]
    )


def _describe_transactions(count: int) -> Message:
    return describe_transactions.DescribeTransactionsRequest([f"many-{index}" for index in range(count)])


def _describe_topic_partitions(count: int) -> Message:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        [describe_topic_partitions.TopicRequest(f"many-{index}") for index in range(count)]
    )


# What is sent: the request, its version, and how many elements.
REQUESTS: dict[str, tuple[Make, int, int]] = {
    "produce-unknown": (_produce, 9, 39_000),
    "produce-100000": (_produce, 9, 100_000),
    "produce-existing": (_produce_one_partition, 9, 20_000),
    "fetch-unknown": (_fetch, 12, 29_000),
    "fetch-100000": (_fetch, 12, 100_000),
    "fetch-existing": (_fetch_existing, 12, 29_000),
    "list-offsets": (_list_offsets, 6, 49_000),
    "metadata": (_metadata, 12, 49_000),
    "offset-commit": (_offset_commit, 8, 49_000),
    "offset-fetch": (_offset_fetch, 8, 49_000),
    "offset-fetch-groups": (_offset_fetch_groups, 8, 19_000),
    "find-coordinator": (_find_coordinator, 4, 19_000),
    "leave-group": (_leave_group, 4, 19_000),
    "sync-group": (_sync_group, 5, 19_000),
    "describe-groups": (_describe_groups, 5, 19_000),
    "consumer-group-describe": (_consumer_group_describe, 0, 19_000),
    "list-groups": (_list_groups, 4, 990),
    "list-transactions": (_list_transactions, 0, 19_000),
    "delete-groups": (_delete_groups, 2, 19_000),
    "create-topics-invalid": (_create_topics, 7, 9_900),
    "create-topics-validated": (_create_topics_valid, 7, 9_900),
    "create-topics": (_create_topics_real, 7, 1_000),
    "create-topics-partitions": (_create_topics_partitions, 7, 50_000),
    "create-topics-assignments": (_create_topics_assignments, 7, 9_900),
    "delete-topics": (_delete_topics, 5, 19_000),
    "delete-records": (_delete_records, 2, 19_000),
    "delete-records-unknown": (_delete_records_unknown, 2, 19_000),
    "offset-for-leader-epoch": (_leader_epochs, 4, 19_000),
    "add-partitions-to-txn": (_add_partitions_to_txn, 3, 9_900),
    "add-partitions-transactions": (_add_partitions_transactions, 4, 9_900),
    "txn-offset-commit": (_txn_offset_commit, 3, 49_000),
    "write-txn-markers": (_write_txn_markers, 1, 19_000),
    "write-txn-markers-producers": (_write_txn_markers_producers, 1, 19_000),
    "describe-configs": (_describe_configs, 4, 19_000),
    "describe-configs-broker": (_describe_configs_broker, 4, 2_000),
    "alter-configs": (_alter_configs, 2, 9_900),
    "incremental-alter-configs": (_incremental_alter_configs, 1, 120_000),
    "incremental-alter-configs-fewer": (_incremental_alter_configs, 1, 9_900),
    "incremental-alter-config-values": (_incremental_alter_config_values, 1, 9_900),
    "alter-replica-log-dirs": (_alter_replica_log_dirs, 2, 190_000),
    "alter-replica-log-dirs-fewer": (_alter_replica_log_dirs, 2, 29_000),
    "describe-log-dirs": (_describe_log_dirs, 4, 29_000),
    "create-partitions": (_create_partitions, 3, 9_900),
    "create-partitions-huge": (_create_partitions_huge, 3, 50_000),
    "elect-leaders": (_elect_leaders, 2, 29_000),
    "alter-partition-reassignments": (_reassignments, 1, 49_000),
    "list-partition-reassignments": (_list_reassignments, 0, 29_000),
    "offset-delete": (_offset_delete, 0, 19_000),
    "describe-producers": (_describe_producers, 0, 19_000),
    "describe-transactions": (_describe_transactions, 0, 19_000),
    "describe-topic-partitions": (_describe_topic_partitions, 0, 19_000),
}


def _await_coordinators(bootstrap: str) -> None:
    """Without them, what is asked of groups and transactions would be refused at once."""
    with Client(*address(bootstrap)) as client:
        for key_type in (0, 1):
            question = find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[GROUP])
            while client.ask(question, 4).coordinators[0].error_code:
                pass


def attack_with(name: str, connections: int = 1) -> Callable[[str], AsyncGenerator[None, None]]:
    """The attack by one of these requests, sent a few times by each of the connections."""
    make, version, count = REQUESTS[name]

    async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
        create_topic(bootstrap, TOPIC, PARTITIONS)
        _await_coordinators(bootstrap)
        request = frame(make(count), version)
        yield
        await send(bootstrap, [request] * TIMES * connections, connections=connections)

    return attack
