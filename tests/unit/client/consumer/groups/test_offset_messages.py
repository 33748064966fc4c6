"""OffsetCommit and OffsetFetch in the versions of older brokers."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity, commit_request, committed_offsets, fetch_request
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponsePartition, OffsetFetchResponseTopic
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

P, Q = TopicPartition("t", 0), TopicPartition("u", 3)


@pytest.mark.parametrize("version", range(2, 10))
def test_a_commit_can_be_written_in_every_version(version: int) -> None:
    offsets = {P: OffsetAndMetadata(5, "x", 2), Q: OffsetAndMetadata(6)}
    writer = Writer()
    commit_request("g", Identity(1, "me", "instance"), offsets, version).write(writer, version)
    read = OffsetCommitRequest.read(Reader(writer.out.getvalue()), version)
    assert [(topic.name, row.partition_index, row.committed_offset) for topic in read.topics for row in topic.partitions] == [
        ("t", 0, 5),
        ("u", 3, 6),
    ]
    assert read.group_instance_id == ("instance" if version >= 7 else None)


def test_topics_have_ids_instead_of_names_from_version_10_on() -> None:
    ids = {"t": Uuid.random(Random(1)), "u": Uuid.random(Random(2))}
    offsets = {P: OffsetAndMetadata(5), Q: OffsetAndMetadata(6)}
    assert [topic.topic_id for topic in commit_request("g", NO_MEMBER, offsets, 10, ids).topics] == [ids["t"], ids["u"]]
    assert [topic.topic_id for topic in fetch_request("g", NO_MEMBER, [P, Q], 10, ids).groups[0].topics or ()] == [ids["t"], ids["u"]]
    assert [topic.name for topic in commit_request("g", NO_MEMBER, offsets, 9, ids).topics] == ["t", "u"]


@pytest.mark.parametrize("version", range(1, 10))
def test_a_fetch_can_be_written_in_every_version(version: int) -> None:
    writer = Writer()
    fetch_request("g", Identity(4, "me"), [P, Q], version).write(writer, version)
    read = OffsetFetchRequest.read(Reader(writer.out.getvalue()), version)
    topics = read.groups[0].topics if version >= 8 else read.topics
    assert [(topic.name, topic.partition_indexes) for topic in topics or ()] == [("t", [0]), ("u", [3])]
    assert read.require_stable == (version >= 7)


def test_a_member_tells_its_epoch_when_it_fetches() -> None:
    (group,) = fetch_request("g", Identity(4, "me"), [P], 9).groups
    assert (group.member_id, group.member_epoch) == ("me", 4)


def test_nobody_in_particular_tells_none() -> None:
    (group,) = fetch_request("g", NO_MEMBER, [P], 9).groups
    assert (group.member_id, group.member_epoch) == (None, -1)


def test_an_old_answer_is_read() -> None:
    row = OffsetFetchResponsePartition(0, 5, 2, None, 0)
    answer = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[row])])
    assert committed_offsets(answer, "g") == {P: OffsetAndMetadata(5, "", 2)}
