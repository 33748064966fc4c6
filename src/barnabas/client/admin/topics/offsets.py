"""Offsets of partitions: the earliest, the latest, or by timestamp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import leaders
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.topic_partition import TopicPartition

_CONSUMER: Final = -1
_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}  # the version of ListOffsets that introduced each special timestamp


class IsolationLevel(IntEnum):
    """Whether the records of open and aborted transactions count, with Kafka's numbers."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """Selects an offset: by one of the class methods for special offsets, or by `for_timestamp`."""

    timestamp: int

    LATEST: ClassVar[int] = -1
    EARLIEST: ClassVar[int] = -2
    MAX_TIMESTAMP: ClassVar[int] = -3
    EARLIEST_LOCAL: ClassVar[int] = -4
    LATEST_TIERED: ClassVar[int] = -5
    EARLIEST_PENDING_UPLOAD: ClassVar[int] = -6

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset of the next record; with READ_COMMITTED the last stable offset."""
        return cls(cls.LATEST)

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The first offset that can be read."""
        return cls(cls.EARLIEST)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first record whose timestamp (in ms) is at or after this one."""
        return cls(timestamp)

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The record with the highest timestamp."""
        return cls(cls.MAX_TIMESTAMP)

    @classmethod
    def earliest_local(cls) -> OffsetSpec:
        """The first offset on the leader's own disk."""
        return cls(cls.EARLIEST_LOCAL)

    @classmethod
    def latest_tiered(cls) -> OffsetSpec:
        """The last offset in remote storage."""
        return cls(cls.LATEST_TIERED)

    @classmethod
    def earliest_pending_upload(cls) -> OffsetSpec:
        """The first offset that is not yet copied to remote storage."""
        return cls(cls.EARLIEST_PENDING_UPLOAD)


@dataclass(frozen=True, slots=True)
class ListOffsetsResultInfo:
    """`offset` is -1 if there is no such record; `leader_epoch` is None if the broker does not return it."""

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
        """The offset of each partition's OffsetSpec, with the timestamp of its record. An unknown topic fails at once."""
        call = self._calls.begin("list_offsets", timeout_ms)
        total_ms = call.remaining_ms()
        specs = dict(topic_partition_offsets)

        async def request_from_node(
            call: Call, node_id: int, partitions: Sequence[TopicPartition]
        ) -> ApiResult[TopicPartition, ListOffsetsResultInfo]:
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for partition in partitions:
                listed_partition = ListOffsetsPartition(partition.partition, timestamp=specs[partition].timestamp)
                topics.setdefault(partition.topic, []).append(listed_partition)
            listed = [ListOffsetsTopic(name, rows) for name, rows in topics.items()]
            request = ListOffsetsRequest(_CONSUMER, isolation_level, listed, total_ms)
            since = max(_SINCE.get(specs[partition].timestamp, 0) for partition in partitions)
            try:
                response: ListOffsetsResponse = await self._calls.send(call, node_id, request, at_least=since)
            except UnsupportedVersion as error:
                # Only partitions with a special timestamp fail: this broker does not support it. The other partitions are requested again.
                special = [partition for partition in partitions if specs[partition].timestamp in _SINCE]
                return ApiResult(failed=failed(special or partitions, error))
            return _read(response, node_id, partitions)

        return await self._calls.request_by_node(call, specs, leaders(self._calls, tolerate_unknown_topics=False), request_from_node)


def _read(
    response: ListOffsetsResponse, node_id: int, partitions: Sequence[TopicPartition]
) -> ApiResult[TopicPartition, ListOffsetsResultInfo]:
    answer: ApiResult[TopicPartition, ListOffsetsResultInfo] = ApiResult()
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
