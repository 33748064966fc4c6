from __future__ import annotations

from barnabas.broker.metrics.response_errors import count_errors
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

NONE, UNKNOWN_TOPIC, NOT_COORDINATOR, UNKNOWN = (
    int(code) for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR)
)


def errors_of(response: Message, version: int) -> dict[int, int]:
    errors: dict[int, int] = {}
    count_errors(errors, response, version)
    return errors


def test_each_partition_of_a_produce_counts() -> None:
    parts = [PartitionProduceResponse(index, error, 0) for index, error in enumerate((NONE, UNKNOWN_TOPIC, NONE))]
    assert errors_of(ProduceResponse([TopicProduceResponse("t", partition_responses=parts)]), 9) == {NONE: 2, UNKNOWN_TOPIC: 1}


def test_a_fetch_has_an_error_of_the_whole_from_version_7_on() -> None:
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, UNKNOWN_TOPIC, -1)])])
    assert (errors_of(response, 6), errors_of(response, 12)) == ({UNKNOWN_TOPIC: 1}, {UNKNOWN_TOPIC: 1, NONE: 1})


def test_what_succeeded_is_added_to_earlier_responses() -> None:
    fetched = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, NONE, -1), PartitionData(1, NONE, -1)])])
    errors = {NONE: 5}
    count_errors(errors, fetched, 12)
    assert errors == {NONE: 8}
    refused = FetchResponse(error_code=UNKNOWN)
    assert (errors_of(refused, 12), errors_of(FetchResponse(), 12), errors_of(FetchResponse(), 6)) == ({UNKNOWN: 1}, {NONE: 1}, {})


def test_other_responses_count_all_fields_that_the_version_has() -> None:
    assert errors_of(HeartbeatResponse(error_code=NOT_COORDINATOR), 4) == {NOT_COORDINATOR: 1}
    commit = OffsetCommitResponse(topics=[OffsetCommitResponseTopic("t", partitions=[OffsetCommitResponsePartition(0, 0)] * 3)])
    assert errors_of(commit, 8) == {NONE: 3}
    topic = MetadataResponseTopic(NONE, "t", partitions=[MetadataResponsePartition(UNKNOWN_TOPIC, 0, 0)])
    assert errors_of(MetadataResponse(topics=[topic]), 9) == {NONE: 1, UNKNOWN_TOPIC: 1}
    one = FindCoordinatorResponse(error_code=NONE)
    many = FindCoordinatorResponse(coordinators=[Coordinator(error_code=NOT_COORDINATOR)] * 2)
    assert (errors_of(one, 3), errors_of(many, 4)) == ({NONE: 1}, {NOT_COORDINATOR: 2})


def test_a_code_that_kafka_does_not_have_makes_no_series() -> None:
    assert errors_of(HeartbeatResponse(error_code=9999), 4) == {UNKNOWN: 1}
