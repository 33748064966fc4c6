"""Kafka's errors as exceptions.

Each is raised where the fault is detected, and the handler of the request turns it into its code. Names and codes are Kafka's. Errors that
the broker never sends to a client derive from `StorageFault` instead.
"""

from __future__ import annotations

from collections.abc import Sequence


class KafkaError(Exception):
    """An error that has a code on the wire."""

    code: int = -1
    retriable: bool = False


class IllegalArgument(KafkaError, ValueError):
    """An argument that is never valid."""


class OffsetOutOfRange(KafkaError):
    """OFFSET_OUT_OF_RANGE: the offset is below the log start offset or above the end of the log."""

    code = 1


class CorruptRecord(KafkaError):
    """CORRUPT_MESSAGE: a checksum, a length or a structure inside a batch is wrong."""

    code = 2
    retriable = True


class DecompressedTooLarge(CorruptRecord):
    """The data decompresses into more bytes than the reader allows."""


class UnknownTopicOrPartition(KafkaError):
    """UNKNOWN_TOPIC_OR_PARTITION: the broker does not have the topic or the partition; it may be new."""

    code = 3
    retriable = True


class NotLeaderOrFollower(KafkaError):
    """The client refreshes its metadata to find the leader."""

    code = 6
    retriable = True


class RequestTimedOut(KafkaError):
    """REQUEST_TIMED_OUT: the broker did not finish the request within the timeout that it names."""

    code = 7
    retriable = True


class RecordTooLarge(KafkaError):
    """MESSAGE_TOO_LARGE: a record or batch is larger than `max.message.bytes` of the topic, or `max.request.size` of the producer."""

    code = 10


class InvalidTopic(KafkaError):
    """INVALID_TOPIC_EXCEPTION: the name is no topic name, or this topic may not be used so."""

    code = 17


class RecordBatchTooLarge(KafkaError):
    """RECORD_LIST_TOO_LARGE: a batch is larger than a segment."""

    code = 18


class NotEnoughReplicas(KafkaError):
    """NOT_ENOUGH_REPLICAS: the ISR is smaller than `min.insync.replicas`; nothing was written."""

    code = 19
    retriable = True


class RejectedRecords(KafkaError):
    """A batch that was rejected because of some records; `record_errors` has their indexes in the batch, and the reasons."""

    def __init__(self, message: str = "", record_errors: Sequence[tuple[int, str]] = (), without_key: int = 0) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)
        self.without_key = without_key  # how many of these records have no key, although their topic is compacted


class InvalidTimestamp(RejectedRecords):
    """INVALID_TIMESTAMP: a timestamp is further from the broker's clock than the topic allows."""

    code = 32


class TopicExists(KafkaError):
    """TOPIC_ALREADY_EXISTS: a topic of this name exists."""

    code = 36


class InvalidPartitions(KafkaError):
    """INVALID_PARTITIONS: the number of partitions is below 1, or not above the present one."""

    code = 37


class InvalidReplicationFactor(KafkaError):
    """INVALID_REPLICATION_FACTOR: it is below 1 or above the number of brokers."""

    code = 38


class InvalidReplicaAssignment(KafkaError):
    """INVALID_REPLICA_ASSIGNMENT: the assignment names brokers that do not exist, or some of them twice."""

    code = 39


class NoReassignmentInProgress(KafkaError):
    """NO_REASSIGNMENT_IN_PROGRESS: the partition is not being reassigned, so there is nothing to cancel."""

    code = 85


class NotController(KafkaError):
    """NOT_CONTROLLER: the broker is not the controller; the client looks for it again."""

    code = 41
    retriable = True


class InvalidRequest(KafkaError):
    """INVALID_REQUEST: the request contradicts itself or the protocol."""

    code = 42


class UnsupportedForMessageFormat(KafkaError):
    """UNSUPPORTED_FOR_MESSAGE_FORMAT: the record format of the topic does not support the request."""

    code = 43


class PolicyViolation(KafkaError):
    """POLICY_VIOLATION: a policy of the broker rejects the request; the message says why."""

    code = 44


class OutOfOrderSequence(KafkaError):
    """OUT_OF_ORDER_SEQUENCE_NUMBER: the broker misses records that the producer sent before these."""

    code = 45


class InvalidProducerEpoch(KafkaError):
    """INVALID_PRODUCER_EPOCH: the producer epoch is old."""

    code = 47


class InvalidTxnState(KafkaError):
    """INVALID_TXN_STATE: the transaction is in a state that does not allow this."""

    code = 48


class InvalidProducerIdMapping(KafkaError):
    """INVALID_PRODUCER_ID_MAPPING: the transactional id has another producer id, or has expired."""

    code = 49


class TransactionCoordinatorFenced(KafkaError):
    """TRANSACTION_COORDINATOR_FENCED: a newer coordinator wrote the marker of this producer."""

    code = 52


class KafkaStorageError(KafkaError):
    """The disk has failed: the log directory goes offline, and the client uses another replica."""

    code = 56
    retriable = True


class OutOfDescriptors(KafkaStorageError):
    """The process or the machine had no descriptor left (EMFILE, ENFILE). The disk is fine and nothing has changed: the client retries."""


class LogDirNotFound(KafkaError):
    """LOG_DIR_NOT_FOUND: the broker has no such log directory."""

    code = 57


class ReassignmentInProgress(KafkaError):
    """REASSIGNMENT_IN_PROGRESS: the partition is being reassigned."""

    code = 60


class TopicDeletionDisabled(KafkaError):
    """TOPIC_DELETION_DISABLED: the broker has `delete.topic.enable=false`."""

    code = 73


class FencedLeaderEpoch(KafkaError):
    """The leader epoch of the client is older than that of this broker."""

    code = 74
    retriable = True


class UnknownLeaderEpoch(KafkaError):
    """The leader epoch of the client is newer than that of this broker."""

    code = 75
    retriable = True


class OffsetNotAvailable(KafkaError):
    """A new leader does not know yet how far its records are replicated."""

    code = 78
    retriable = True


class UnsupportedCompressionType(KafkaError):
    """UNSUPPORTED_COMPRESSION_TYPE: the client or the broker cannot use this codec."""

    code = 76


class InvalidRecord(RejectedRecords):
    """INVALID_RECORD: the batch is intact but breaks a rule of the topic or of the protocol."""

    code = 87


class InvalidOffsetOrSequence(InvalidRecord):
    """The offsets of a batch do not fit its number of records, or its sequence number is negative."""


class InvalidMagic(InvalidRecord):
    """A record in a batch has another format than the batch."""


class TakesTurns(Exception):
    """The validation of records would hold the event loop too long: `LongValidation` does it in slices."""


class TooManyHeaders(InvalidRecord):
    """A record has more headers than a producer may send: a consumer could not hold them in memory."""


class UnknownTopicId(KafkaError):
    """UNKNOWN_TOPIC_ID: no topic has this id."""

    code = 100
    retriable = True


class DuplicateBrokerRegistration(KafkaError):
    """Another broker of the cluster is registered with the same id."""

    code = 101


class InconsistentTopicId(KafkaError):
    """The partition on disk belongs to another topic of the same name."""

    code = 103
    retriable = True


class OffsetMetadataTooLarge(KafkaError):
    """OFFSET_METADATA_TOO_LARGE: the text of a committed offset is longer than `offset.metadata.max.bytes`."""

    code = 12


class CoordinatorLoadInProgress(KafkaError):
    """The coordinator is still loading the partition of the group."""

    code = 14
    retriable = True


class CoordinatorNotAvailable(KafkaError):
    """COORDINATOR_NOT_AVAILABLE: there is no coordinator yet, or it cannot take the request at present."""

    code = 15
    retriable = True


class NotCoordinator(KafkaError):
    """The client searches the coordinator again."""

    code = 16
    retriable = True


class IllegalGeneration(KafkaError):
    """ILLEGAL_GENERATION: the generation in the request is not that of the group."""

    code = 22


class InconsistentGroupProtocol(KafkaError):
    """INCONSISTENT_GROUP_PROTOCOL: the member has no assignor in common with the others of the group."""

    code = 23


class InvalidGroupId(KafkaError):
    """INVALID_GROUP_ID: the group id is empty or not valid."""

    code = 24


class UnknownMemberId(KafkaError):
    """UNKNOWN_MEMBER_ID: the coordinator does not know the member, for example after its session timed out."""

    code = 25


class InvalidSessionTimeout(KafkaError):
    """INVALID_SESSION_TIMEOUT: `session.timeout.ms` is outside of what the broker allows."""

    code = 26


class RebalanceInProgress(KafkaError):
    """REBALANCE_IN_PROGRESS: the group is being rebalanced; the member joins again."""

    code = 27


class InvalidCommitOffsetSize(KafkaError):
    """INVALID_COMMIT_OFFSET_SIZE: the committed offsets do not fit into a batch."""

    code = 28


class NonEmptyGroup(KafkaError):
    """NON_EMPTY_GROUP: the group has members, so it cannot be deleted or changed."""

    code = 68


class GroupIdNotFound(KafkaError):
    """GROUP_ID_NOT_FOUND: the group does not exist."""

    code = 69


class MemberIdRequired(KafkaError):
    """MEMBER_ID_REQUIRED: the coordinator has given the member an id, with which it joins again."""

    code = 79


class PreferredLeaderNotAvailable(KafkaError):
    """The first of the assigned replicas is not alive, or not in sync."""

    code = 80
    retriable = True


class GroupMaxSizeReached(KafkaError):
    """GROUP_MAX_SIZE_REACHED: the group has as many members, or bytes of members, as it may."""

    code = 81


class FencedInstanceId(KafkaError):
    """FENCED_INSTANCE_ID: another member with the same `group.instance.id` has joined."""

    code = 82


class EligibleLeadersNotAvailable(KafkaError):
    """No assigned replica is alive."""

    code = 83
    retriable = True


class ElectionNotNeeded(KafkaError):
    """ELECTION_NOT_NEEDED: the partition already has the leader that the election would choose."""

    code = 84
    retriable = True


class GroupSubscribedToTopic(KafkaError):
    """GROUP_SUBSCRIBED_TO_TOPIC: the group reads the topic, so its offsets cannot be deleted."""

    code = 86


class UnstableOffsetCommit(KafkaError):
    """UNSTABLE_OFFSET_COMMIT: offsets are part of a transaction that is still open."""

    code = 88
    retriable = True


class ThrottlingQuotaExceeded(KafkaError):
    """THROTTLING_QUOTA_EXCEEDED: the quota of this kind of change is used up; try again later."""

    code = 89
    retriable = True


class FencedMemberEpoch(KafkaError):
    """FENCED_MEMBER_EPOCH: the coordinator has put the member out of its epoch; it joins again."""

    code = 110


class UnreleasedInstanceId(KafkaError):
    """UNRELEASED_INSTANCE_ID: another member still holds the `group.instance.id`."""

    code = 111


class UnsupportedAssignor(KafkaError):
    """UNSUPPORTED_ASSIGNOR: the broker has no assignor of this name."""

    code = 112


class StaleMemberEpoch(KafkaError):
    """STALE_MEMBER_EPOCH: the member has sent an old epoch; it tries again with its new one."""

    code = 113


class InvalidRegularExpression(KafkaError):
    """INVALID_REGULAR_EXPRESSION: the pattern of a subscription is no expression in RE2's syntax."""

    code = 128


class StorageFault(Exception):
    """A fault of the files of a log that recovery handles; never sent to a client."""


class CorruptIndex(StorageFault):
    pass


class CorruptSnapshot(StorageFault):
    pass


class CorruptCheckpoint(StorageFault):
    pass


class InvalidMetaProperties(StorageFault):
    """meta.properties of a log directory is missing a field, is malformed, or names another node or cluster."""


class IndexEntryOutOfOrder(StorageFault):
    """An index entry whose offset is not larger than that of the last entry."""


class IndexOffsetOverflow(StorageFault):
    """An offset that is too far from the base offset of its segment for a 32-bit relative offset."""


class SegmentOffsetOverflow(StorageFault):
    """A segment with an offset that its index cannot express; the loader splits it."""

    def __init__(self, message: str, base_offset: int) -> None:
        super().__init__(message)
        self.base_offset = base_offset


class OffsetsOutOfOrder(StorageFault):
    """A follower has fetched batches whose offsets do not grow."""


class UnexpectedAppendOffset(StorageFault):
    """A follower has fetched a batch that starts below its log end offset."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset
