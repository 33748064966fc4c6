"""Frames and headers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import CLIENT_ELEMENTS_MAX, frame_size, parse_request, parse_response_header, request_frame, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState, TopicData
from barnabas.protocol.messages.alter_partition_request import PartitionData as PartitionInSync
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.protocol.registry import APIS, BY_NAME
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid
from tests.unit.frames import joined

HEARTBEAT = APIS[api_keys.HEARTBEAT]


@pytest.mark.parametrize("version", range(5))
def test_a_request_goes_through_a_frame(version: int) -> None:
    sent = HeartbeatRequest("group", 3, "member")
    frame = b"".join(request_frame(sent, HEARTBEAT, version, 42, "client"))
    assert frame_size(frame, 0) == len(frame) - 4
    request = parse_request(frame[4:])
    assert (request.api, request.version, request.correlation_id, request.client_id) == (HEARTBEAT, version, 42, "client")
    assert request.message() == sent


def test_a_header_has_kafka_s_bytes() -> None:
    body = b"\x00\x01g\x00\x00\x00\x03\x00\x01m"
    assert request_frame(HeartbeatRequest("g", 3, "m"), HEARTBEAT, 0, 42, "c") == [
        b"\x00\x00\x00\x15" + b"\x00\x0c\x00\x00\x00\x00\x00\x2a\x00\x01c" + body
    ]
    flexible = b"".join(request_frame(HeartbeatRequest("g", 3, "m"), HEARTBEAT, 4, 42, None))
    assert flexible[4:15] == b"\x00\x0c\x00\x04\x00\x00\x00\x2a\xff\xff\x00"


def test_a_client_without_an_id_has_an_empty_one() -> None:
    assert parse_request(b"".join(request_frame(HeartbeatRequest(), HEARTBEAT, 4, 1, None))[4:]).client_id == ""


def test_the_first_controlled_shutdown_has_no_client_id() -> None:
    api = APIS[api_keys.CONTROLLED_SHUTDOWN]
    frame = b"".join(request_frame(ControlledShutdownRequest(broker_id=7), api, 0, 9, ""))
    assert frame == b"\x00\x00\x00\x0c" + b"\x00\x07\x00\x00\x00\x00\x00\x09" + b"\x00\x00\x00\x07"
    assert parse_request(frame[4:]).message() == ControlledShutdownRequest(broker_id=7)


def test_bytes_behind_a_request_are_ignored_as_kafka_ignores_them() -> None:
    frame = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")  # librdkafka 2.16: Metadata for all topics
    assert parse_request(frame).message() == MetadataRequest(topics=None, allow_auto_topic_creation=False)


def test_a_response_goes_through_a_frame() -> None:
    for version, header_version in ((3, 0), (4, 1)):
        frame = joined(response_frame(HeartbeatResponse(0, 27), 42, version, header_version))
        assert frame_size(frame, 0) == len(frame) - 4
        correlation_id, reader = parse_response_header(frame[4:], header_version)
        assert correlation_id == 42
        assert HeartbeatResponse.read(reader, version) == HeartbeatResponse(0, 27)
        reader.finish()


def test_the_size_of_a_frame_counts_records_that_were_not_copied() -> None:
    records = b"r" * 100_000
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, records=Records(records))])])
    buffers = response_frame(response, 1, 11, 0)
    assert any(buffer is records for buffer in buffers)
    whole = joined(buffers)
    assert frame_size(whole, 0) == len(whole) - 4


def test_api_versions_always_answers_with_the_oldest_header() -> None:
    api = APIS[api_keys.API_VERSIONS]
    assert [api.response_header_version(version) for version in range(api.highest_version + 1)] == [0, 0, 0, 0, 0]
    assert [api.request_header_version(version) for version in range(api.highest_version + 1)] == [1, 1, 1, 2, 2]
    assert response_frame(ApiVersionsResponse(), 5, 0, 0) == [b"\x00\x00\x00\x0a" + b"\x00\x00\x00\x05" + b"\x00\x00" + b"\x00\x00\x00\x00"]


def test_api_versions_of_a_newer_client_is_recognised_without_being_parsed() -> None:
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x01\x00\x01c\x00" + b"what a newer version may hold"
    request = parse_request(frame)
    assert request.is_unsupported_api_versions
    assert (request.correlation_id, request.client_id) == (1, "c")
    known = parse_request(b"".join(request_frame(ApiVersionsRequest("x", "1"), APIS[18], 4, 1, "c"))[4:])
    assert not known.is_unsupported_api_versions


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"\x00\x0c\x00\x04\x00\x00\x00", "too short for a header"),
        (b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff", "Unknown API key 999"),
        (b"\x00\x0c\x00\x05\x00\x00\x00\x01\xff\xff", r"key 12 \(Heartbeat\) and unsupported version 5"),
        (b"\x00\x0c\xff\xff\x00\x00\x00\x01\xff\xff", "unsupported version -1"),
        (b"\x00\x12\xff\xff\x00\x00\x00\x01\xff\xff", "unsupported version -1"),
    ],
)
def test_what_no_client_may_send_is_refused(frame: bytes, text: str) -> None:
    with pytest.raises(MalformedMessage, match=text):
        parse_request(frame)


def test_a_size_that_is_negative_or_beyond_the_limit_is_refused() -> None:
    assert frame_size(b"\x06\x40\x00\x00", 0) == 104857600
    with pytest.raises(MalformedMessage, match=r"size = 104857601 larger than 104857600.*socket\.request\.max\.bytes"):
        frame_size(b"\x06\x40\x00\x01", 0)
    with pytest.raises(MalformedMessage, match=r"Invalid receive \(size = -1\)"):
        frame_size(memoryview(b"x\xff\xff\xff\xff"), 1)


def test_bytes_left_over_after_a_request_are_let_be_as_kafka_does() -> None:
    frame = b"".join(request_frame(MetadataRequest(topics=[]), BY_NAME["Metadata"], 12, 1, "client"))
    assert parse_request(frame[4:] + b"\0\0\0").message() == MetadataRequest(topics=[])


def test_a_client_may_not_send_more_elements_than_any_client_has_a_use_for() -> None:
    groups = [""] * (CLIENT_ELEMENTS_MAX + 1)
    frame = b"".join(request_frame(DescribeGroupsRequest(groups), BY_NAME["DescribeGroups"], 5, 1, "client"))
    with pytest.raises(MalformedMessage, match="elements"):
        parse_request(frame[4:]).message()


def fetch(partitions: int) -> Message:
    return FetchRequest(topics=[FetchTopic(topic_id=Uuid(b"t" * 16), partitions=[FetchPartition(index) for index in range(partitions)])])


def offset_for_leader_epoch(partitions: int) -> Message:
    return OffsetForLeaderEpochRequest(
        2, [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(index, 1, 1) for index in range(partitions)])]
    )


def write_txn_markers(partitions: int) -> Message:
    topics = [WritableTxnMarkerTopic("t", list(range(100)))]
    return WriteTxnMarkersRequest([WritableTxnMarker(producer_id, 0, True, topics) for producer_id in range(partitions // 100)])


def alter_partition(partitions: int) -> Message:
    isr = [BrokerState(broker_id) for broker_id in range(3)]
    return AlterPartitionRequest(1, 1, [TopicData(partitions=[PartitionInSync(index, 0, [], isr) for index in range(partitions)])])


@pytest.mark.parametrize(
    ("request_about", "version", "partitions"),
    [(fetch, 17, 50_000), (offset_for_leader_epoch, 4, 50_000), (write_txn_markers, 2, 50_000), (alter_partition, 3, 10_000)],
)
def test_brokers_may_speak_of_very_many_partitions(request_about: Callable[[int], Message], version: int, partitions: int) -> None:
    message = request_about(partitions)
    api = BY_NAME[type(message).__name__.removesuffix("Request")]
    frame = b"".join(request_frame(message, api, version, 1, "broker"))
    assert parse_request(frame[4:]).message() == message


def test_a_version_that_kafka_may_still_change_is_not_to_be_asked_for() -> None:
    frame = b"".join(request_frame(InitProducerIdRequest(), APIS[api_keys.INIT_PRODUCER_ID], 6, 1, "client"))[4:]
    with pytest.raises(MalformedMessage, match=r"\(InitProducerId\) and unsupported version 6"):
        parse_request(frame)
