"""Every message, in every version, is read back as it was written."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import MalformedMessage, UnsupportedVersion, UnwritableMessage
from barnabas.protocol.generator.emit import default, is_left_out
from barnabas.protocol.generator.schema import MessageSchema
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.incremental_alter_configs_request import AlterableConfig
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.reader import Reader
from barnabas.protocol.slices import Records
from barnabas.protocol.writer import Writer
from barnabas.uuid import Uuid
from tests.unit.frames import joined
from tests.unit.protocol.instances import ALL, class_of, random_message


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=8, deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_a_message_is_read_back_as_it_was_written_in_every_version(name: str, seed: int) -> None:
    message = ALL[name]
    for version in message.versions:
        written = random_message(name, version, Random(seed))
        assert parse(class_of(message), serialize(written, version), version) == written


@pytest.mark.parametrize("name", ALL)
def test_a_message_of_defaults_is_read_back_in_every_version_that_allows_it(name: str) -> None:
    kind = class_of(ALL[name])
    for version in ALL[name].versions:
        written = kind()
        try:
            raw = serialize(written, version)
        except UnsupportedVersion as refused:
            assert "null" in str(refused)  # a default that only newer versions can say
            continue
        assert serialize(parse(kind, raw, version), version) == raw


@pytest.mark.parametrize("name", ALL)
def test_a_version_the_message_does_not_have_is_refused_both_ways(name: str) -> None:
    message = ALL[name]
    kind = class_of(message)
    for version in (message.versions.lowest - 1, message.versions.highest + 1):
        with pytest.raises(UnsupportedVersion):
            serialize(kind(), version)
        with pytest.raises(UnsupportedVersion):
            parse(kind, bytes(64), version)


@pytest.mark.parametrize("name", ALL)
def test_a_field_that_a_version_has_no_room_for_is_refused_unless_it_may_be_ignored(name: str) -> None:
    message = ALL[name]
    for one in message.root.fields:
        for version in message.versions:
            if version in one.versions or one.is_struct or one.type == "records":
                continue
            written = random_message(name, version, Random(version))
            setattr(written, one.attribute, other_than_default(message, one.attribute))
            if one.ignorable:
                serialize(written, version)
            else:
                with pytest.raises(UnsupportedVersion, match=f"non-default {one.kafka_name} at version {version}"):
                    serialize(written, version)


def other_than_default(message: MessageSchema, attribute: str) -> Any:
    one = next(one for one in message.root.fields if one.attribute == attribute)
    assert not is_left_out(one)
    if one.is_array:
        return {"string": ["x"], "uuid": [Uuid.METADATA_TOPIC_ID]}.get(one.type, [1])
    plain = {"string": "x", "bytes": b"x", "uuid": Uuid.METADATA_TOPIC_ID, "bool": default(one) != "True", "float64": 7.5}
    return plain.get(one.type, 7)


def test_produced_records_are_a_slice_of_the_frame_and_not_a_copy() -> None:
    batch = b"r" * 5000
    raw = serialize(
        ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, Records(batch))])]), 9
    )
    records = parse(ProduceRequest, raw, 9).topic_data[0].partition_data[0].records
    assert records is not None
    assert records.data is raw
    assert (records.size, records.to_bytes()) == (5000, batch)


def test_large_fetched_records_leave_as_the_buffers_they_came_in() -> None:
    whole, part, small = b"w" * 4000, b"0123" + b"p" * 4000 + b"4567", b"s"
    partitions = [
        PartitionData(0, records=Records(whole)),
        PartitionData(1, records=Records(part, 4, 4004)),
        PartitionData(2, records=Records(small)),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])
    writer = Writer()
    response.write(writer, 11)
    buffers = writer.buffers()
    assert buffers[1] is whole
    assert isinstance(buffers[3], memoryview)
    assert buffers[3].obj is part
    assert writer.size == len(joined(buffers))
    assert parse(FetchResponse, joined(buffers), 11) == response


def test_a_null_array_and_an_empty_one_are_not_the_same() -> None:
    assert parse(MetadataRequest, serialize(MetadataRequest(topics=None), 12), 12).topics is None
    assert parse(MetadataRequest, serialize(MetadataRequest(topics=[]), 12), 12).topics == []


def test_null_is_refused_by_a_version_in_which_the_field_may_not_be_null() -> None:
    with pytest.raises(UnsupportedVersion, match="null topics at version 0"):
        serialize(MetadataRequest(topics=None), 0)
    with pytest.raises(MalformedMessage, match="may not be null"):
        parse(MetadataRequest, b"\xff\xff\xff\xff", 0)


def test_lists_that_were_left_out_are_not_shared() -> None:
    first, second = ProduceRequest(), ProduceRequest()
    first.topic_data.append(TopicProduceData("t"))
    assert second.topic_data == []
    assert ProduceRequest().topic_data == []


def test_a_tagged_structure_of_defaults_is_not_sent() -> None:
    def response(leader: LeaderIdAndEpoch | None) -> bytes:
        return serialize(
            ProduceResponse([TopicProduceResponse("t", partition_responses=[PartitionProduceResponse(0, current_leader=leader)])]), 10
        )

    assert response(LeaderIdAndEpoch()) == response(None)
    assert response(LeaderIdAndEpoch(1, 2)) != response(None)


def test_a_tag_that_is_not_known_is_skipped() -> None:
    raw = serialize(MetadataRequest(topics=None), 12)
    assert raw[-1:] == b"\x00"
    assert parse(MetadataRequest, raw[:-1] + b"\x02" + b"\x09\x03abc" + b"\x0a\x00", 12) == MetadataRequest(topics=None)


def test_a_known_tag_whose_size_is_wrong_is_refused() -> None:
    raw = serialize(ProduceResponse(), 10)
    with pytest.raises(MalformedMessage, match="A tagged field was to end at byte"):
        parse(ProduceResponse, raw[:-1] + b"\x01\x00\x02\x01\x00", 10)


def test_a_string_that_is_no_utf_8_is_read_as_java_reads_it() -> None:
    assert Reader(b"\x00\x03a\xffb").string(False) == "a\N{REPLACEMENT CHARACTER}b"


def test_a_compact_string_longer_than_any_may_be_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="has invalid length 32768"):
        Reader(b"\x81\x80\x02" + b"x" * 32768).string(True)


@pytest.mark.parametrize(("field", "value"), [("acks", 32768), ("timeout_ms", 2**31), ("transactional_id", "x" * 32768)])
def test_a_value_that_its_type_cannot_hold_is_refused(field: str, value: Any) -> None:
    request = ProduceRequest()
    with pytest.raises((ValueError, OverflowError, UnwritableMessage)):
        setattr(request, field, value)
        serialize(request, 9)


@pytest.mark.parametrize(
    "message",
    [
        SaslAuthenticateRequest(b"\0alice\0opensesame"),
        ScramCredentialUpsertion("alice", 1, 4096, b"opensesame", b"opensesame"),
        RenewDelegationTokenRequest(b"opensesame"),
        AlterableConfig("ssl.keystore.password", 0, "opensesame"),
    ],
)
def test_a_message_shows_no_secret(message: Message) -> None:
    assert "opensesame" not in repr(message)
    assert "[hidden]" in repr(message)


def test_a_message_shows_its_fields() -> None:
    assert repr(PartitionProduceData(3, Records(b"abc"))) == "PartitionProduceData(index=3, records=Records(3 bytes))"
    assert PartitionProduceData(3) != PartitionProduceData(4)
    assert PartitionProduceData(3) != TopicProduceData()
