"""Log directories: their replicas, and moves of a replica to another directory of the same broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.client.admin.call import ApiResult, Call, LookupResult
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import ClusterAuthorization, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from barnabas.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from barnabas.topic_partition import TopicPartition

INVALID_OFFSET_LAG: Final = -1


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on a broker."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A replica in a directory. `is_future` marks the copy in the directory to which the replica is being moved."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A directory; `error` is set if it is offline. The sizes of its volume are None from brokers before Kafka 3.3."""

    error: KafkaError | None
    replica_infos: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None = None
    usable_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaLogDirInfo:
    """The current directory of a replica and the directory to which it is being moved; None where there is none."""

    current_replica_log_dir: str | None = None
    current_replica_offset_lag: int = INVALID_OFFSET_LAG
    future_replica_log_dir: str | None = None
    future_replica_offset_lag: int = INVALID_OFFSET_LAG


class LogDirCalls:
    """Describes log directories and moves replicas between them."""

    _calls: Calls

    async def describe_log_dirs(
        self, brokers: Iterable[int], *, timeout_ms: int | None = None
    ) -> Outcomes[int, dict[str, LogDirDescription]]:
        """The log directories of brokers, by path, with all replicas in them."""
        call = self._calls.begin("describe_log_dirs", timeout_ms)
        return await self._calls.request_by_node(call, brokers, self._calls.locate_brokers, self._describe_broker)

    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartitionReplica, ReplicaLogDirInfo]:
        """The directories of the given replicas."""
        call = self._calls.begin("describe_replica_log_dirs", timeout_ms)
        return await self._calls.request_by_node(call, replicas, self._locate_replicas, self._describe_replicas)

    async def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartitionReplica, None]:
        """Moves replicas to other directories of their brokers. A replica that does not exist yet will be created in that directory,
        although the broker returns REPLICA_NOT_AVAILABLE."""
        call = self._calls.begin("alter_replica_log_dirs", timeout_ms)

        async def request_from_node(
            call: Call, broker_id: int, replicas: Sequence[TopicPartitionReplica]
        ) -> ApiResult[TopicPartitionReplica, None]:
            request = _moves({replica: replica_assignment[replica] for replica in replicas})
            response: AlterReplicaLogDirsResponse = await self._calls.send(call, broker_id, request)
            answer: ApiResult[TopicPartitionReplica, None] = ApiResult()
            for topic in response.results:
                for result in topic.partitions:
                    replica = TopicPartitionReplica(topic.topic_name, result.partition_index, broker_id)
                    if result.error_code:
                        answer.failed[replica] = error_for(result.error_code)
                    else:
                        answer.done[replica] = None
            return answer

        return await self._calls.request_by_node(call, replica_assignment, self._locate_replicas, request_from_node)

    async def _describe_broker(self, call: Call, broker_id: int, _: object) -> ApiResult[int, dict[str, LogDirDescription]]:
        response: DescribeLogDirsResponse = await self._calls.send(call, broker_id, DescribeLogDirsRequest(None))
        if response.results:
            return ApiResult({broker_id: {result.log_dir: _description(result) for result in response.results}})
        # Older brokers return an empty result instead of an error to a caller without authorization.
        return ApiResult(failed={broker_id: error_for(response.error_code or ClusterAuthorization.code)})

    async def _describe_replicas(
        self, call: Call, broker_id: int, replicas: Sequence[TopicPartitionReplica]
    ) -> ApiResult[TopicPartitionReplica, ReplicaLogDirInfo]:
        topics: dict[str, list[int]] = {}
        for replica in replicas:
            topics.setdefault(replica.topic, []).append(replica.partition)
        request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, partitions) for topic, partitions in topics.items()])
        response: DescribeLogDirsResponse = await self._calls.send(call, broker_id, request)
        current: dict[TopicPartition, tuple[str, int]] = {}
        future: dict[TopicPartition, tuple[str, int]] = {}
        for result in response.results:
            for partition, info in _description(result).replica_infos.items():
                (future if info.is_future else current)[partition] = (result.log_dir, info.offset_lag)
        nowhere = (None, INVALID_OFFSET_LAG)
        return ApiResult(
            {
                replica: ReplicaLogDirInfo(
                    *current.get(TopicPartition(replica.topic, replica.partition), nowhere),
                    *future.get(TopicPartition(replica.topic, replica.partition), nowhere),
                )
                for replica in replicas
            }
        )

    async def _locate_replicas(self, call: Call, replicas: Sequence[TopicPartitionReplica]) -> LookupResult[TopicPartitionReplica]:
        located = await self._calls.locate_brokers(call, [replica.broker_id for replica in replicas])
        return LookupResult({replica: replica.broker_id for replica in replicas if replica.broker_id in located.mapped})


def _description(result: DescribeLogDirsResult) -> LogDirDescription:
    infos = {
        TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in result.topics
        for partition in topic.partitions
    }
    error = error_for(result.error_code) if result.error_code else None
    return LogDirDescription(error, infos, _size_or_none(result.total_bytes), _size_or_none(result.usable_bytes))


def _size_or_none(size: int) -> int | None:
    return None if size < 0 else size


def _moves(assignment: Mapping[TopicPartitionReplica, str]) -> AlterReplicaLogDirsRequest:
    dirs: dict[str, dict[str, list[int]]] = {}
    for replica, path in assignment.items():
        dirs.setdefault(path, {}).setdefault(replica.topic, []).append(replica.partition)
    return AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, partitions) for topic, partitions in topics.items()])
            for path, topics in dirs.items()
        ]
    )
