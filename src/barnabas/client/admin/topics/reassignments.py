"""Reassignments of partitions to other replicas: start, cancel and list them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls, check_controller
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.errors import InvalidTopic, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from barnabas.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class NewPartitionReassignment:
    """The replicas that a partition will have, the preferred leader first."""

    target_replicas: Sequence[int]

    def __post_init__(self) -> None:
        if not self.target_replicas:
            raise IllegalArgument("Cannot create a new partition reassignment without any replicas")


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A reassignment in progress: all replicas, the replicas being added and the replicas being removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReassignmentCalls:
    """Starts, cancels and lists reassignments."""

    _calls: Calls

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, NewPartitionReassignment | Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> Outcomes[TopicPartition, None]:
        """Starts to move partitions to other replicas; None instead of replicas cancels a reassignment in progress."""
        targets = {partition: _target(target) for partition, target in reassignments.items()}

        def build(timeout: int, partitions: Sequence[TopicPartition]) -> Message:
            topics: dict[str, list[ReassignablePartition]] = {}
            for partition in sorted(partitions):
                topics.setdefault(partition.topic, []).append(ReassignablePartition(partition.partition, targets[partition]))
            return AlterPartitionReassignmentsRequest(
                timeout, allow_replication_factor_change, [ReassignableTopic(name, rows) for name, rows in topics.items()]
            )

        def read(response: AlterPartitionReassignmentsResponse) -> ApiResult[TopicPartition, None]:
            check_controller(response.error_code, response.error_message)
            if response.error_code:
                return ApiResult(failed=failed(targets, error_for(response.error_code, response.error_message)))
            answer: ApiResult[TopicPartition, None] = ApiResult()
            for topic in response.responses:
                for result in topic.partitions:
                    partition = TopicPartition(topic.name, result.partition_index)
                    if result.error_code:
                        answer.failed[partition] = error_for(result.error_code, result.error_message)
                    else:
                        answer.done[partition] = None
            return answer

        call = self._calls.begin("alter_partition_reassignments", timeout_ms)
        return await self._calls.request_keys(call, targets, self._calls.controller, build, read, _refused(targets))

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The reassignments in progress, of the given partitions or of all partitions."""
        partition_list = None if partitions is None else list(partitions)
        for error in _refused(partition_list or ()).values():
            raise error
        topics: list[ListPartitionReassignmentsTopics] | None = None
        if partition_list is not None:
            by_topic: dict[str, list[int]] = {}
            for partition in partition_list:
                by_topic.setdefault(partition.topic, []).append(partition.partition)
            topics = [ListPartitionReassignmentsTopics(name, numbers) for name, numbers in by_topic.items()]

        def read(response: ListPartitionReassignmentsResponse) -> dict[TopicPartition, PartitionReassignment]:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, row.partition_index): PartitionReassignment(
                    tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
                )
                for topic in response.topics
                for row in topic.partitions
            }

        call = self._calls.begin("list_partition_reassignments", timeout_ms)
        return await self._calls.request_from_node(
            call, self._calls.controller, lambda timeout: ListPartitionReassignmentsRequest(timeout, topics), read
        )


def _target(target: NewPartitionReassignment | Sequence[int] | None) -> list[int] | None:
    if target is None:
        return None
    new = target if isinstance(target, NewPartitionReassignment) else NewPartitionReassignment(target)
    return list(new.target_replicas)


def _refused(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    refused: dict[TopicPartition, KafkaError] = {}
    for partition in partitions:
        if not partition.topic:
            refused[partition] = InvalidTopic(f"The given topic name '{partition.topic}' cannot be represented in a request.")
        elif partition.partition < 0:
            refused[partition] = InvalidTopic(f"The given partition index {partition.partition} is not valid.")
    return refused
