"""Log directories: what is in them, and moving a replica from one to another of the same broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.client.admin.call import Answer, Call, Located
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
    """`is_future` is the copy that grows in the directory to which the replica is moved."""

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
    """Where a replica is, and where it is moved to; None for no such directory."""

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
        """The log directories of brokers, by their paths, with all replicas in them."""
        call = self._calls.begin("describe_log_dirs", timeout_ms)
        return await self._calls.ask_each(call, brokers, self._calls.each_at_itself, self._describe_broker)

    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartitionReplica, ReplicaLogDirInfo]:
        """In which directory each of these replicas is."""
        call = self._calls.begin("describe_replica_log_dirs", timeout_ms)
        return await self._calls.ask_each(call, replicas, self._at_their_brokers, self._describe_replicas)

    async def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartitionReplica, None]:
        """Moves replicas to other directories of their brokers. A replica that is not there yet will be made in that directory, though
        the answer is REPLICA_NOT_AVAILABLE."""
        call = self._calls.begin("alter_replica_log_dirs", timeout_ms)

        async def ask(call: Call, broker_id: int, replicas: Sequence[TopicPartitionReplica]) -> Answer[TopicPartitionReplica, None]:
            request = _moves({replica: replica_assignment[replica] for replica in replicas})
            response: AlterReplicaLogDirsResponse = await self._calls.send(call, broker_id, request)
            answer: Answer[TopicPartitionReplica, None] = Answer()
            for topic in response.results:
                for result in topic.partitions:
                    replica = TopicPartitionReplica(topic.topic_name, result.partition_index, broker_id)
                    if result.error_code:
                        answer.failed[replica] = error_for(result.error_code)
                    else:
                        answer.done[replica] = None
            return answer

        return await self._calls.ask_each(call, replica_assignment, self._at_their_brokers, ask)

    async def _describe_broker(self, call: Call, broker_id: int, _: object) -> Answer[int, dict[str, LogDirDescription]]:
        response: DescribeLogDirsResponse = await self._calls.send(call, broker_id, DescribeLogDirsRequest(None))
        if response.results:
            return Answer({broker_id: {result.log_dir: _description(result) for result in response.results}})
        # Brokers that cannot say so any better answer with nothing to those who may not see it.
        return Answer(failed={broker_id: error_for(response.error_code or ClusterAuthorization.code)})

    async def _describe_replicas(
        self, call: Call, broker_id: int, replicas: Sequence[TopicPartitionReplica]
    ) -> Answer[TopicPartitionReplica, ReplicaLogDirInfo]:
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
        return Answer(
            {
                replica: ReplicaLogDirInfo(
                    *current.get(TopicPartition(replica.topic, replica.partition), nowhere),
                    *future.get(TopicPartition(replica.topic, replica.partition), nowhere),
                )
                for replica in replicas
            }
        )

    async def _at_their_brokers(self, call: Call, replicas: Sequence[TopicPartitionReplica]) -> Located[TopicPartitionReplica]:
        located = await self._calls.each_at_itself(call, [replica.broker_id for replica in replicas])
        return Located({replica: replica.broker_id for replica in replicas if replica.broker_id in located.found})


def _description(result: DescribeLogDirsResult) -> LogDirDescription:
    infos = {
        TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in result.topics
        for partition in topic.partitions
    }
    error = error_for(result.error_code) if result.error_code else None
    return LogDirDescription(error, infos, _known(result.total_bytes), _known(result.usable_bytes))


def _known(size: int) -> int | None:
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
