# Compiled by mypyc: src/compiled.toml lists this module.
"""TxnOffsetCommit: commits offsets of a group as a part of a producer's transaction. They count when the transaction is committed.

Versions 0 to 5.
Behaviour
- partitions that do not exist are refused here; the group coordinator handles the others.
- the transaction coordinator verifies that the partition of `__consumer_offsets` belongs to the transaction. Then the group coordinator
  appends the offsets as records of the transaction. Until its end OffsetFetch with require_stable gets UNSTABLE_OFFSET_COMMIT.
Authorization
- WRITE on the transactional id and READ on the group, else every partition has the error TRANSACTIONAL_ID_AUTHORIZATION_FAILED or
  GROUP_AUTHORIZATION_FAILED.
- READ on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Version notes
- 2: leader epochs; before it COORDINATOR_LOAD_IN_PROGRESS becomes COORDINATOR_NOT_AVAILABLE. 3: the member that commits, which is checked.
- 4: TRANSACTION_ABORTABLE; before it INVALID_TXN_STATE. 5: transaction version 2, the verification adds the partition to the transaction.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, and for all of them: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
  FENCED_INSTANCE_ID, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_PRODUCER_ID_MAPPING,
  INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, TRANSACTION_ABORTABLE, INVALID_COMMIT_OFFSET_SIZE (the offsets do
  not fit into one batch of __consumer_offsets), TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED; and
  TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.broker.transactions.transaction_verification import Errors, Guards, of_offset_commit
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from barnabas.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.records.batch import NO_SEQUENCE
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_name import CONSUMER_OFFSETS
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache
    from barnabas.coordinator.group.coordinator import Verified

_LOADING_VERSION: Final = 2

_UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_TOPIC_AUTHORIZATION_FAILED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_COORDINATOR_LOAD_IN_PROGRESS: Final = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_COORDINATOR_NOT_AVAILABLE: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[TxnOffsetCommitRequest]) -> Reply[TxnOffsetCommitResponse]:
    message, version = request.message, request.version
    refused: dict[str, TxnOffsetCommitResponseTopic] = {}
    if not broker.access.is_open:
        denial = _denial(broker, request)
        if denial is not None:
            _refuse(message.topics, int(denial), refused)
            return Reply.now(request, TxnOffsetCommitResponse(topics=list(refused.values())))
        names = [topic.name for topic in message.topics]
        allowed = broker.access.allowed(request, AclOperation.READ, ResourceType.TOPIC, names)
        _refuse([topic for topic in message.topics if topic.name not in allowed], _TOPIC_AUTHORIZATION_FAILED, refused)
        message.topics = [topic for topic in message.topics if topic.name in allowed]
    message.topics = _existing(message.topics, broker.metadata_cache, refused)
    if not message.topics:
        return Reply.now(request, TxnOffsetCommitResponse(topics=list(refused.values())))
    reply: Reply[TxnOffsetCommitResponse] = Reply(request)

    def verify(partition: int, verified: Verified) -> None:
        offsets = TopicPartition(CONSUMER_OFFSETS, partition)

        def done(errors: Errors, guards: Guards) -> None:
            verified(errors.get(offsets, 0), guards.get(offsets))

        broker.verification.verify(
            of_offset_commit(version),
            message.transactional_id,
            message.producer_id,
            message.producer_epoch,
            {offsets: NO_SEQUENCE},
            done,
        )

    def done(response: TxnOffsetCommitResponse) -> None:
        if version < _LOADING_VERSION:
            _replace_loading_error(response)
        reply.complete(_merged(refused, response))

    broker.groups.commit_transactional_offsets(version, message, done, verify)
    return reply


def _denial(broker: Broker, request: Request[TxnOffsetCommitRequest]) -> ErrorCode | None:
    access, message = broker.access, request.message
    if not access.allows(request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not access.allows(request, AclOperation.READ, ResourceType.GROUP, message.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _refuse(topics: list[TxnOffsetCommitRequestTopic], code: int, refused: dict[str, TxnOffsetCommitResponseTopic]) -> None:
    """Adds the topics to `refused`, with the same error for all partitions."""
    for topic in topics:
        codes = [TxnOffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions]
        refused.setdefault(topic.name, TxnOffsetCommitResponseTopic(topic.name)).partitions.extend(codes)


def _existing(
    topics: list[TxnOffsetCommitRequestTopic], cache: MetadataCache, refused: dict[str, TxnOffsetCommitResponseTopic]
) -> list[TxnOffsetCommitRequestTopic]:
    """The topics with their existing partitions. The results of the other partitions go into `refused`."""
    existing = []
    for topic in topics:
        missing = [partition for partition in topic.partitions if not cache.contains(topic.name, partition.partition_index)]
        if missing:
            codes = [TxnOffsetCommitResponsePartition(partition.partition_index, _UNKNOWN_TOPIC_OR_PARTITION) for partition in missing]
            refused.setdefault(topic.name, TxnOffsetCommitResponseTopic(topic.name)).partitions.extend(codes)
            topic.partitions = [partition for partition in topic.partitions if cache.contains(topic.name, partition.partition_index)]
        if topic.partitions:
            existing.append(topic)
    return existing


def _replace_loading_error(response: TxnOffsetCommitResponse) -> None:
    """Old producers fail with COORDINATOR_LOAD_IN_PROGRESS, and retry after COORDINATOR_NOT_AVAILABLE."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == _COORDINATOR_LOAD_IN_PROGRESS:
                partition.error_code = _COORDINATOR_NOT_AVAILABLE


def _merged(refused: dict[str, TxnOffsetCommitResponseTopic], response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    """Each topic once, topics with refused partitions first."""
    if not refused:
        return response
    for topic in response.topics:
        refused.setdefault(topic.name, TxnOffsetCommitResponseTopic(topic.name)).partitions.extend(topic.partitions)
    return TxnOffsetCommitResponse(topics=list(refused.values()))
