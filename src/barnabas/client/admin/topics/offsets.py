"""Offsets of partitions: the first, the last, those of a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from barnabas.client.admin.call import Answer, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import leaders
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.topic_partition import TopicPartition

_CONSUMER: Final = -1
_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}  # the version of ListOffsets that each came with


class IsolationLevel(IntEnum):
    """Whether the records of open and aborted transactions count, with Kafka's numbers."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """Which offset: one of the constants' methods, or `for_timestamp`."""

    timestamp: int

    LATEST: ClassVar[int] = -1
    EARLIEST: ClassVar[int] = -2
    MAX_TIMESTAMP: ClassVar[int] = -3
    EARLIEST_LOCAL: ClassVar[int] = -4
    LATEST_TIERED: ClassVar[int] = -5
    EARLIEST_PENDING_UPLOAD: ClassVar[int] = -6

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset that the next record will get; with READ_COMMITTED the end of what is decided."""
        return cls(cls.LATEST)

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The first offset that can be read."""
        return cls(cls.EARLIEST)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first record whose time is not before this one (in ms)."""
        return cls(timestamp)

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The record with the latest time, wherever it is."""
        return cls(cls.MAX_TIMESTAMP)

    @classmethod
    def earliest_local(cls) -> OffsetSpec:
        """The first offset that is on the leader's own disk."""
        return cls(cls.EARLIEST_LOCAL)

    @classmethod
    def latest_tiered(cls) -> OffsetSpec:
        """The last offset that is in remote storage."""
        return cls(cls.LATEST_TIERED)

    @classmethod
    def earliest_pending_upload(cls) -> OffsetSpec:
        """The first offset that is still to be copied to remote storage."""
        return cls(cls.EARLIEST_PENDING_UPLOAD)


@dataclass(frozen=True, slots=True)
class ListOffsetsResultInfo:
    """`offset` is -1 where there is no such record; `leader_epoch` is None where the broker does not know it."""

    offset: int
    timestamp: int
    leader_epoch: int | None


class OffsetCalls:
    """Looks up offsets at the partitions' leaders."""

    _calls: Calls

    async def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: int | None = None,
    ) -> Outcomes[TopicPartition, ListOffsetsResultInfo]:
        """The offset that each partition's OffsetSpec asks for, with the time of its record. A topic that is not there fails at once."""
        call = self._calls.begin("list_offsets", timeout_ms)
        total_ms = call.remaining_ms()
        specs = dict(topic_partition_offsets)

        async def ask(call: Call, node_id: int, partitions: Sequence[TopicPartition]) -> Answer[TopicPartition, ListOffsetsResultInfo]:
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for partition in partitions:
                asked = ListOffsetsPartition(partition.partition, timestamp=specs[partition].timestamp)
                topics.setdefault(partition.topic, []).append(asked)
            listed = [ListOffsetsTopic(name, held) for name, held in topics.items()]
            request = ListOffsetsRequest(_CONSUMER, isolation_level, listed, total_ms)
            since = max(_SINCE.get(specs[partition].timestamp, 0) for partition in partitions)
            try:
                response: ListOffsetsResponse = await self._calls.send(call, node_id, request, at_least=since)
            except UnsupportedVersion as error:
                # Only those are lost that need more than this broker can; the others are asked for again, without them.
                special = [partition for partition in partitions if specs[partition].timestamp in _SINCE]
                return Answer(failed=failed(special or partitions, error))
            return _read(response, node_id, partitions)

        return await self._calls.ask_each(call, specs, leaders(self._calls, tolerate_unknown_topics=False), ask)


def _read(
    response: ListOffsetsResponse, node_id: int, partitions: Sequence[TopicPartition]
) -> Answer[TopicPartition, ListOffsetsResultInfo]:
    answer: Answer[TopicPartition, ListOffsetsResultInfo] = Answer()
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            if not result.error_code:
                epoch = None if result.leader_epoch < 0 else result.leader_epoch
                answer.done[partition] = ListOffsetsResultInfo(result.offset, result.timestamp, epoch)
            elif result.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE):
                answer.moved.add(partition)
            elif not (error := error_for(result.error_code)).retriable:
                answer.failed[partition] = error
    return answer
