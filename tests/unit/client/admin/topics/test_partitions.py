"""What concerns single partitions: offsets, records, replicas, leaders, producers."""

from __future__ import annotations

import pytest

from barnabas.client.admin import (
    ElectionType,
    IsolationLevel,
    ListOffsetsResultInfo,
    NewPartitionReassignment,
    OffsetSpec,
    PartitionReassignment,
    ProducerState,
    RecordsToDelete,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from barnabas.client.errors import ClusterAuthorization, ElectionNotNeeded, IllegalArgument, OffsetOutOfRange, Timeout
from barnabas.errors import InvalidTopic, KafkaStorageError, NotLeaderOrFollower
from barnabas.protocol import api_keys
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages import alter_partition_reassignments_response as reassigned
from barnabas.protocol.messages import delete_records_response as deleted
from barnabas.protocol.messages import describe_log_dirs_response as dirs
from barnabas.protocol.messages import describe_producers_response as producers
from barnabas.protocol.messages import elect_leaders_response as elected
from barnabas.protocol.messages import list_partition_reassignments_response as moving
from barnabas.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from barnabas.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from barnabas.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.protocol.messages.delete_records_request import DeleteRecordsRequest
from barnabas.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest
from barnabas.protocol.messages.list_offsets_request import ListOffsetsRequest
from barnabas.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from barnabas.topic_partition import TopicPartition
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def led(leader_of_a: int = 1, leader_of_b: int = 2) -> FakeCluster:
    cluster = FakeCluster()
    cluster.leader_of = {("t", 0): leader_of_a, ("t", 1): leader_of_b}
    return cluster


def offsets(node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [ListOffsetsPartitionResponse(row.partition_index, 0, [], row.timestamp, node_id, -1) for row in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def told(code: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [ListOffsetsPartitionResponse(0, code)])])


def test_offsets_are_asked_of_the_leaders() -> None:
    cluster = led()
    cluster.on(ListOffsetsRequest, offsets)
    specs = {A: OffsetSpec.latest(), B: OffsetSpec.for_timestamp(5)}
    result = run(ScriptedAdmin(cluster).list_offsets(specs, isolation_level=IsolationLevel.READ_COMMITTED))
    assert result.all() == {A: ListOffsetsResultInfo(1, -1, None), B: ListOffsetsResultInfo(2, 5, None)}
    assert {request.isolation_level for request in cluster.requests(ListOffsetsRequest)} == {1}


@pytest.mark.parametrize("code", [6, 5])
def test_a_leader_that_has_gone_is_looked_up_again(code: int) -> None:
    cluster = led()
    cluster.on(ListOffsetsRequest, told(code), offsets)
    run(ScriptedAdmin(cluster).list_offsets({A: OffsetSpec.latest()})).all()
    assert len(cluster.requests(MetadataRequest)) == 2


def test_an_error_that_may_pass_is_asked_for_again_at_the_same_leader() -> None:
    cluster = led()
    cluster.on(ListOffsetsRequest, told(78), offsets)
    run(ScriptedAdmin(cluster).list_offsets({A: OffsetSpec.latest()})).all()
    assert len(cluster.requests(MetadataRequest)) == 1


def test_a_topic_that_is_not_there_is_waited_for_to_the_end() -> None:
    cluster = FakeCluster()
    cluster.on(MetadataRequest, MetadataResponse(topics=[MetadataResponseTopic(3, "t")]))
    admin = ScriptedAdmin(cluster)
    error = run(admin.delete_records({A: RecordsToDelete(1)}, timeout_ms=500)).errors[A]
    assert isinstance(error, Timeout) and str(error).startswith("Call(callName=delete_records(api=METADATA), deadlineMs=")


def test_but_not_for_its_offsets() -> None:
    cluster = FakeCluster()
    cluster.on(MetadataRequest, MetadataResponse(topics=[MetadataResponseTopic(3, "t")]))
    error = run(ScriptedAdmin(cluster).list_offsets({A: OffsetSpec.latest()})).errors[A]
    assert str(error) == "Failed to fetch metadata for partition t-0 because metadata for topic `t` could not be found"


def test_a_topic_with_an_impossible_name_is_not() -> None:
    cluster = FakeCluster()
    cluster.on(MetadataRequest, MetadataResponse(topics=[MetadataResponseTopic(17, "t")]))
    error = run(ScriptedAdmin(cluster).list_offsets({A: OffsetSpec.latest()})).errors[A]
    assert isinstance(error, InvalidTopic)
    assert str(error) == "Failed to fetch metadata for partition t-0 due to invalid topic `t`"


def test_a_leader_that_is_too_old_for_one_question_still_answers_the_others() -> None:
    cluster = led(1, 1)
    cluster.limits[api_keys.LIST_OFFSETS] = 6
    cluster.on(ListOffsetsRequest, offsets)
    result = run(ScriptedAdmin(cluster).list_offsets({A: OffsetSpec.max_timestamp(), B: OffsetSpec.latest()}))
    assert isinstance(result.errors[A], UnsupportedVersion)
    assert result[B].offset == 1


def removed(code: int, low_watermark: int = 0) -> deleted.DeleteRecordsResponse:
    rows = [deleted.DeleteRecordsPartitionResult(0, low_watermark, code)]
    return deleted.DeleteRecordsResponse(topics=[deleted.DeleteRecordsTopicResult("t", rows)])


def test_records_are_deleted_by_the_leader() -> None:
    cluster = led()
    cluster.on(DeleteRecordsRequest, removed(6), removed(0, 7))
    assert run(ScriptedAdmin(cluster).delete_records({A: RecordsToDelete.before_offset(7)}))[A].low_watermark == 7


def test_records_beyond_the_end_cannot_be_deleted() -> None:
    cluster = led()
    cluster.on(DeleteRecordsRequest, removed(1))
    assert isinstance(run(ScriptedAdmin(cluster).delete_records({A: RecordsToDelete(9)})).errors[A], OffsetOutOfRange)


def test_partitions_are_given_new_replicas_or_left_as_they_are() -> None:
    cluster = FakeCluster()
    rows = [reassigned.ReassignablePartitionResponse(0), reassigned.ReassignablePartitionResponse(1, 85, "none")]
    answer = reassigned.AlterPartitionReassignmentsResponse(responses=[reassigned.ReassignableTopicResponse("t", rows)])
    cluster.on(AlterPartitionReassignmentsRequest, answer)
    outcomes = run(ScriptedAdmin(cluster).alter_partition_reassignments({A: NewPartitionReassignment([1, 2]), B: None}))
    assert outcomes[A] is None and outcomes.errors[B].code == 85
    (topic,) = cluster.requests(AlterPartitionReassignmentsRequest)[0].topics
    assert [row.replicas for row in topic.partitions] == [[1, 2], None]


def test_an_error_of_the_whole_is_that_of_each() -> None:
    cluster = FakeCluster()
    cluster.on(AlterPartitionReassignmentsRequest, reassigned.AlterPartitionReassignmentsResponse(error_code=31))
    outcomes = run(ScriptedAdmin(cluster).alter_partition_reassignments({A: [1], TopicPartition("", 0): [1], TopicPartition("t", -1): [1]}))
    assert isinstance(outcomes.errors[A], ClusterAuthorization)
    assert str(outcomes.errors[TopicPartition("t", -1)]) == "The given partition index -1 is not valid."


def test_a_partition_cannot_be_without_replicas() -> None:
    with pytest.raises(IllegalArgument):
        NewPartitionReassignment([])


def test_what_moves_is_listed() -> None:
    cluster = FakeCluster()
    row = moving.OngoingPartitionReassignment(0, [1, 2, 3], [3], [1])
    cluster.on(
        ListPartitionReassignmentsRequest,
        moving.ListPartitionReassignmentsResponse(topics=[moving.OngoingTopicReassignment("t", [row])]),
    )
    assert run(ScriptedAdmin(cluster).list_partition_reassignments()) == {A: PartitionReassignment((1, 2, 3), (3,), (1,))}
    assert cluster.requests(ListPartitionReassignmentsRequest)[0].topics is None


def test_elections_that_are_not_needed_are_errors_of_their_partitions() -> None:
    cluster = FakeCluster()
    rows = [elected.PartitionResult(0, 0, None), elected.PartitionResult(1, 84, "not needed")]
    cluster.on(ElectLeadersRequest, elected.ElectLeadersResponse(replica_election_results=[elected.ReplicaElectionResult("t", rows)]))
    outcomes = run(ScriptedAdmin(cluster).elect_leaders(ElectionType.PREFERRED, [A, B]))
    assert outcomes[A] is None and isinstance(outcomes.errors[B], ElectionNotNeeded)


def test_an_election_that_is_not_allowed_is_raised() -> None:
    cluster = FakeCluster()
    cluster.on(ElectLeadersRequest, elected.ElectLeadersResponse(error_code=31))
    with pytest.raises(ClusterAuthorization):
        run(ScriptedAdmin(cluster).elect_leaders(ElectionType.UNCLEAN))


def log_dir(path: str, code: int = 0, *rows: dirs.DescribeLogDirsPartition) -> dirs.DescribeLogDirsResult:
    return dirs.DescribeLogDirsResult(code, path, [dirs.DescribeLogDirsTopic("t", list(rows))], 100, 50)


def test_directories_are_described_by_their_brokers() -> None:
    cluster = FakeCluster()
    results = [log_dir("/a", 0, dirs.DescribeLogDirsPartition(0, 10, 2)), log_dir("/b", 56)]
    cluster.on(DescribeLogDirsRequest, dirs.DescribeLogDirsResponse(results=results))
    log_dirs = run(ScriptedAdmin(cluster).describe_log_dirs([1, 2]))
    assert sorted(cluster.nodes_asked(DescribeLogDirsRequest)) == [1, 2]
    assert (log_dirs[1]["/a"].replica_infos[A].size, log_dirs[1]["/a"].total_bytes, log_dirs[1]["/a"].usable_bytes) == (10, 100, 50)
    assert isinstance(log_dirs[2]["/b"].error, KafkaStorageError)


def test_no_directories_at_all_mean_that_they_may_not_be_seen() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeLogDirsRequest, dirs.DescribeLogDirsResponse())
    assert isinstance(run(ScriptedAdmin(cluster).describe_log_dirs([1])).errors[1], ClusterAuthorization)


def test_a_replica_that_moves_is_in_two_directories() -> None:
    cluster = FakeCluster()
    results = [log_dir("/a", 0, dirs.DescribeLogDirsPartition(0, 10, 0)), log_dir("/b", 0, dirs.DescribeLogDirsPartition(0, 5, 3, True))]
    cluster.on(DescribeLogDirsRequest, dirs.DescribeLogDirsResponse(results=results))
    replica, other = TopicPartitionReplica("t", 0, 1), TopicPartitionReplica("t", 1, 1)
    replica_log_dirs = run(ScriptedAdmin(cluster).describe_replica_log_dirs([replica, other]))
    assert replica_log_dirs.all() == {replica: ReplicaLogDirInfo("/a", 0, "/b", 3), other: ReplicaLogDirInfo()}


def test_replicas_are_moved_by_their_brokers() -> None:
    cluster = FakeCluster()
    rows = AlterReplicaLogDirTopicResult("t", [AlterReplicaLogDirPartitionResult(0), AlterReplicaLogDirPartitionResult(1, 57)])
    cluster.on(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse(results=[rows]))
    directories = {TopicPartitionReplica("t", 0, 2): "/a", TopicPartitionReplica("t", 1, 2): "/nowhere"}
    outcomes = run(ScriptedAdmin(cluster).alter_replica_log_dirs(directories))
    assert [error.code for error in outcomes.errors.values()] == [57]
    assert [entry.path for entry in cluster.requests(AlterReplicaLogDirsRequest)[0].dirs] == ["/a", "/nowhere"]


def active(code: int = 0) -> producers.DescribeProducersResponse:
    states = [producers.ProducerState(7, 1, 2, 3, -1, -1), producers.ProducerState(8, 1, 2, 3, 4, 5)]
    rows = [producers.PartitionResponse(0, code, None, [] if code else states)]
    return producers.DescribeProducersResponse(topics=[producers.TopicResponse("t", rows)])


def test_producers_are_described_by_the_leader_or_by_the_broker_that_is_named() -> None:
    cluster = led()
    cluster.on(DescribeProducersRequest, active())
    admin = ScriptedAdmin(cluster)
    assert run(admin.describe_producers([A]))[A] == [ProducerState(7, 1, 2, 3, None, None), ProducerState(8, 1, 2, 3, 4, 5)]
    run(admin.describe_producers([A], broker_id=3)).all()
    assert cluster.nodes_asked(DescribeProducersRequest) == [1, 3]


def test_a_broker_that_was_named_and_does_not_lead_is_an_error() -> None:
    cluster = led()
    cluster.on(DescribeProducersRequest, active(6))
    error = run(ScriptedAdmin(cluster).describe_producers([A], broker_id=3)).errors[A]
    assert isinstance(error, NotLeaderOrFollower)
    assert str(error) == "Failed to describe active producers for partition t-0 on brokerId 3"
