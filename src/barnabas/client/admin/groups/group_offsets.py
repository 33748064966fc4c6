"""Committed offsets of groups: list, alter and delete them at the group coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.groups.groups import per_key
from barnabas.client.admin.locators import coordinators, settle
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_delete_response import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.topic_partition import TopicPartition

GroupOffsets = dict[TopicPartition, OffsetAndMetadata | None]

_BY_NAME: Final = 9  # the last version of OffsetFetch and OffsetCommit with topic names; later versions have topic ids
_RETRIED: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class ListConsumerGroupOffsetsSpec:
    """The partitions to list; None for all partitions with a committed offset."""

    topic_partitions: Sequence[TopicPartition] | None = None


class GroupOffsetCalls:
    """Lists, alters and deletes the committed offsets of groups."""

    _calls: Calls

    async def list_consumer_group_offsets(
        self,
        group_specs: str | Mapping[str, ListConsumerGroupOffsetsSpec | Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, GroupOffsets]:
        """The offsets of groups, by group and partition. A requested partition without an offset maps to None; a partition whose offset
        could not be read is left out. `require_stable` waits for pending transactional offset commits."""
        specs: Mapping[str, ListConsumerGroupOffsetsSpec | Iterable[TopicPartition] | None]
        specs = {group_specs: None} if isinstance(group_specs, str) else group_specs
        partitions_by_group = {group: _partitions(spec) for group, spec in specs.items()}
        call = self._calls.begin("list_consumer_group_offsets", timeout_ms)

        async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, GroupOffsets]:
            request = OffsetFetchRequest(
                groups=[_group(group, partitions_by_group[group]) for group in groups], require_stable=require_stable
            )
            answer: ApiResult[str, GroupOffsets] = ApiResult()
            try:
                response: OffsetFetchResponse = await self._calls.send(call, node_id, request, at_most=_BY_NAME)
            except UnsupportedVersion:
                for group in groups:
                    single = OffsetFetchRequest(group, _old_topics(partitions_by_group[group]), require_stable=require_stable)
                    alone: OffsetFetchResponse = await self._calls.send(call, node_id, single, at_most=_BY_NAME)
                    _take(answer, group, alone.error_code, alone.topics)
                return answer
            for group_result in response.groups:
                _take(answer, group_result.group_id, group_result.error_code, group_result.topics)
            return answer

        return await self._calls.request_by_node(call, partitions_by_group, coordinators(self._calls), request_from_node)

    async def list_streams_group_offsets(
        self,
        group_specs: str | Mapping[str, ListConsumerGroupOffsetsSpec | Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, GroupOffsets]:
        """Like `list_consumer_group_offsets`, for streams groups."""
        return await self.list_consumer_group_offsets(group_specs, require_stable=require_stable, timeout_ms=timeout_ms)

    async def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Sets offsets of a group without members. If the group has members, only topics that no member subscribes to can be changed."""
        call = self._calls.begin("alter_consumer_group_offsets", timeout_ms)
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for partition, offset in offsets.items():
            epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
            row = OffsetCommitRequestPartition(partition.partition, offset.offset, epoch, committed_metadata=offset.metadata)
            topics.setdefault(partition.topic, []).append(row)
        request = OffsetCommitRequest(group_id, topics=[OffsetCommitRequestTopic(name, partitions=rows) for name, rows in topics.items()])

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[str, dict[TopicPartition, int]]:
            response: OffsetCommitResponse = await self._calls.send(call, node_id, request, at_most=_BY_NAME)
            codes = {
                TopicPartition(topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions
            }
            if any(code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR) for code in codes.values()):
                return ApiResult(moved={group_id})
            return ApiResult() if any(code in _RETRIED for code in codes.values()) else ApiResult({group_id: codes})

        return per_key(offsets, await self._calls.request_by_node(call, [group_id], coordinators(self._calls), request_from_node), group_id)

    async def alter_streams_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Like `alter_consumer_group_offsets`, for a streams group."""
        return await self.alter_consumer_group_offsets(group_id, offsets, timeout_ms=timeout_ms)

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Deletes offsets of a group, for topics that no member subscribes to."""
        call = self._calls.begin("delete_consumer_group_offsets", timeout_ms)
        distinct_partitions = list(dict.fromkeys(partitions))
        topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for partition in distinct_partitions:
            topics.setdefault(partition.topic, []).append(OffsetDeleteRequestPartition(partition.partition))
        request = OffsetDeleteRequest(group_id, [OffsetDeleteRequestTopic(name, rows) for name, rows in topics.items()])

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[str, dict[TopicPartition, int]]:
            response: OffsetDeleteResponse = await self._calls.send(call, node_id, request)
            answer: ApiResult[str, dict[TopicPartition, int]] = ApiResult()
            if response.error_code:
                settle(answer, group_id, response.error_code)
            else:
                answer.done[group_id] = {
                    TopicPartition(topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions
                }
            return answer

        return per_key(
            distinct_partitions, await self._calls.request_by_node(call, [group_id], coordinators(self._calls), request_from_node), group_id
        )

    async def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Like `delete_consumer_group_offsets`, for a streams group."""
        return await self.delete_consumer_group_offsets(group_id, partitions, timeout_ms=timeout_ms)


def _partitions(spec: ListConsumerGroupOffsetsSpec | Iterable[TopicPartition] | None) -> list[TopicPartition] | None:
    if isinstance(spec, ListConsumerGroupOffsetsSpec):
        spec = spec.topic_partitions
    return None if spec is None else list(spec)


def _by_topic(partitions: list[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _group(group_id: str, partitions: list[TopicPartition] | None) -> OffsetFetchRequestGroup:
    topics = None
    if partitions is not None:
        topics = [OffsetFetchRequestTopics(name, partition_indexes=numbers) for name, numbers in _by_topic(partitions).items()]
    return OffsetFetchRequestGroup(group_id, topics=topics)


def _old_topics(partitions: list[TopicPartition] | None) -> list[OffsetFetchRequestTopic] | None:
    return None if partitions is None else [OffsetFetchRequestTopic(name, numbers) for name, numbers in _by_topic(partitions).items()]


def _take(
    answer: ApiResult[str, GroupOffsets], group_id: str, code: int, topics: Sequence[OffsetFetchResponseTopic | OffsetFetchResponseTopics]
) -> None:
    rows = [(topic.name, row) for topic in topics for row in topic.partitions]
    if not code:
        # The oldest versions have no error field for the group: each partition carries the group's error.
        code = next((row.error_code for _, row in rows if row.error_code in _GROUP_ERRORS), 0)
    if code:
        settle(answer, group_id, code)
        return
    answer.done[group_id] = {
        TopicPartition(name, row.partition_index): None
        if row.committed_offset < 0
        else OffsetAndMetadata(
            row.committed_offset, row.metadata or "", None if row.committed_leader_epoch < 0 else row.committed_leader_epoch
        )
        for name, row in rows
        if not row.error_code
    }


_GROUP_ERRORS: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
