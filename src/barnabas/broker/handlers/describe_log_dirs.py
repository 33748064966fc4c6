"""DescribeLogDirs: the log directories of this broker, their sizes, and the replicas in them.

Versions 0 to 4.
Behaviour
- null topics: all replicas. Partitions without a replica here are left out. A directory is listed even if it has none of the partitions.
- the lag of a replica is its distance to the high watermark, the lag of a copy that is being made its distance to the replica.
Authorization: DESCRIBE on the cluster.
Version notes
- 3: an error of the whole. 4: size and free space of the volume.
Errors, of the whole
- CLUSTER_AUTHORIZATION_FAILED: without a directory, which before version 3 is all that a client sees.
Errors, of a directory
- KAFKA_STORAGE_ERROR: its disk failed. While writes to the embedded metadata store fail, its file is listed as a directory with this error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replication.log_dirs import LogDirInfo
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest


def handle(broker: Broker, request: Request[DescribeLogDirsRequest]) -> Reply[DescribeLogDirsResponse]:
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE):
        return Reply.now(request, DescribeLogDirsResponse(0, int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    topics = request.message.topics
    partitions: set[TopicPartition] | None = None
    if topics is not None:
        partitions = {TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions}
    results = [_result(info) for info in broker.replica_manager.describe_log_dirs(partitions)]
    trouble = broker.tree.trouble
    if trouble is not None:
        results.append(DescribeLogDirsResult(int(ErrorCode.KAFKA_STORAGE_ERROR), trouble.path))
    return Reply.now(request, DescribeLogDirsResponse(results=results))


def _result(info: LogDirInfo) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for replica in info.replicas:
        name, partition = replica.partition
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = DescribeLogDirsTopic(name)
        topic.partitions.append(DescribeLogDirsPartition(partition, replica.size, replica.offset_lag, replica.is_future))
    return DescribeLogDirsResult(info.error, info.path, list(topics.values()), info.total_bytes, info.usable_bytes)
