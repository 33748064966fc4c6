"""AlterReplicaLogDirs: moves replicas between the log directories of this broker.

Versions 0 to 2.
Behaviour
- the broker responds when the moves have begun. DescribeLogDirs shows the copies; a complete copy replaces the replica.
- for a partition that has no replica here yet, the directory is remembered and used when the replica is created.
- if a partition is named twice, the last directory counts.
Authorization: ALTER on the cluster.
Errors, of a partition
- CLUSTER_AUTHORIZATION_FAILED.
- LOG_DIR_NOT_FOUND: the directory is not in log.dirs. KAFKA_STORAGE_ERROR: its disk, or the disk of the replica, failed.
- INVALID_REPLICA_ASSIGNMENT: the directory is in cordoned.log.dirs.
- UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE: there is no replica here. INVALID_TOPIC_EXCEPTION: the name is too long for the
  directory of a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest

PARTS: Final = Parts(("dirs", "topics", "partitions"), ("results", "partitions"))


def handle(broker: Broker, request: Request[AlterReplicaLogDirsRequest]) -> Reply[AlterReplicaLogDirsResponse]:
    dirs = {
        TopicPartition(topic.name, partition): log_dir.path
        for log_dir in request.message.dirs
        for topic in log_dir.topics
        for partition in topic.partitions
    }
    if broker.access.allows_on_cluster(request, AclOperation.ALTER):
        errors = broker.replica_manager.alter_replica_log_dirs(dirs)
    else:
        errors = dict.fromkeys(dirs, int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, partition), error in errors.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = AlterReplicaLogDirTopicResult(name)
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition, error))
    return Reply.now(request, AlterReplicaLogDirsResponse(0, list(topics.values())))
