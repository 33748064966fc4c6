"""Kafka's errors as exceptions.

Each is raised where the fault is found and turned into its code at the edge, by the handler that answers the client.
Names and codes are Kafka's. What the broker never sends to a client derives from `StorageFault` instead.
"""

from __future__ import annotations

from collections.abc import Sequence


class KafkaError(Exception):
    """An error that has a code on the wire."""

    code: int = -1
    retriable: bool = False


class OffsetOutOfRange(KafkaError):
    code = 1


class CorruptRecord(KafkaError):
    """CORRUPT_MESSAGE: a checksum, a length or a structure inside a batch is wrong."""

    code = 2
    retriable = True


class DecompressedTooLarge(CorruptRecord):
    """What is compressed unfolds into more bytes than its reader takes."""


class UnknownTopicOrPartition(KafkaError):
    code = 3
    retriable = True


class NotLeaderOrFollower(KafkaError):
    """The client looks for the leader anew."""

    code = 6
    retriable = True


class RequestTimedOut(KafkaError):
    code = 7
    retriable = True


class RecordTooLarge(KafkaError):
    code = 10


class InvalidTopic(KafkaError):
    code = 17


class RecordBatchTooLarge(KafkaError):
    code = 18


class NotEnoughReplicas(KafkaError):
    code = 19
    retriable = True


class RejectedRecords(KafkaError):
    """A batch refused for some of its records; `record_errors` says for which, by their index in the batch, and why."""

    def __init__(self, message: str = "", record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class InvalidTimestamp(RejectedRecords):
    code = 32


class TopicExists(KafkaError):
    code = 36


class InvalidPartitions(KafkaError):
    code = 37


class InvalidReplicationFactor(KafkaError):
    code = 38


class InvalidReplicaAssignment(KafkaError):
    code = 39


class NoReassignmentInProgress(KafkaError):
    code = 85


class NotController(KafkaError):
    code = 41
    retriable = True


class InvalidRequest(KafkaError):
    code = 42


class UnsupportedForMessageFormat(KafkaError):
    code = 43


class PolicyViolation(KafkaError):
    code = 44


class OutOfOrderSequence(KafkaError):
    code = 45


class InvalidProducerEpoch(KafkaError):
    code = 47


class InvalidTxnState(KafkaError):
    code = 48


class InvalidProducerIdMapping(KafkaError):
    code = 49


class TransactionCoordinatorFenced(KafkaError):
    code = 52


class KafkaStorageError(KafkaError):
    """The disk failed; the log directory is taken offline and the client finds another replica."""

    code = 56
    retriable = True


class OutOfDescriptors(KafkaStorageError):
    """The process or the machine had no descriptor left (EMFILE, ENFILE). The disk is fine and nothing has changed: to be tried again."""


class LogDirNotFound(KafkaError):
    code = 57


class ReassignmentInProgress(KafkaError):
    code = 60


class TopicDeletionDisabled(KafkaError):
    code = 73


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader than this one."""

    code = 74
    retriable = True


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader than this one does."""

    code = 75
    retriable = True


class OffsetNotAvailable(KafkaError):
    """A new leader does not know yet how far its records are replicated."""

    code = 78
    retriable = True


class UnsupportedCompressionType(KafkaError):
    code = 76


class InvalidRecord(RejectedRecords):
    """INVALID_RECORD: the batch is intact but breaks a rule of the topic or of the protocol."""

    code = 87


class TakesTurns(Exception):
    """Records that take longer to look at than one turn of the event loop: to be validated by `LongValidation`, in slices."""


class TooManyHeaders(InvalidRecord):
    """A record has more headers than a producer may send: nobody who reads it could hold them all."""


class UnknownTopicId(KafkaError):
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
    code = 12


class CoordinatorLoadInProgress(KafkaError):
    """The records of the group are still being read."""

    code = 14
    retriable = True


class CoordinatorNotAvailable(KafkaError):
    code = 15
    retriable = True


class NotCoordinator(KafkaError):
    """The client looks for the coordinator anew."""

    code = 16
    retriable = True


class IllegalGeneration(KafkaError):
    code = 22


class InconsistentGroupProtocol(KafkaError):
    code = 23


class InvalidGroupId(KafkaError):
    code = 24


class UnknownMemberId(KafkaError):
    code = 25


class InvalidSessionTimeout(KafkaError):
    code = 26


class RebalanceInProgress(KafkaError):
    code = 27


class InvalidCommitOffsetSize(KafkaError):
    code = 28


class NonEmptyGroup(KafkaError):
    code = 68


class GroupIdNotFound(KafkaError):
    code = 69


class MemberIdRequired(KafkaError):
    code = 79


class PreferredLeaderNotAvailable(KafkaError):
    """The first of the assigned replicas is not alive, or not in sync."""

    code = 80
    retriable = True


class GroupMaxSizeReached(KafkaError):
    code = 81


class FencedInstanceId(KafkaError):
    code = 82


class EligibleLeadersNotAvailable(KafkaError):
    """No assigned replica is alive."""

    code = 83
    retriable = True


class ElectionNotNeeded(KafkaError):
    code = 84
    retriable = True


class GroupSubscribedToTopic(KafkaError):
    code = 86


class UnstableOffsetCommit(KafkaError):
    code = 88
    retriable = True


class FencedMemberEpoch(KafkaError):
    code = 110


class UnreleasedInstanceId(KafkaError):
    code = 111


class UnsupportedAssignor(KafkaError):
    code = 112


class StaleMemberEpoch(KafkaError):
    code = 113


class InvalidRegularExpression(KafkaError):
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
    """A log directory does not say, or says wrongly, to which node of which cluster it belongs."""


class IndexEntryOutOfOrder(StorageFault):
    """An index entry or an appended offset that does not grow."""


class IndexOffsetOverflow(StorageFault):
    """An offset too far from its segment's base offset for a 32-bit relative offset."""


class SegmentOffsetOverflow(StorageFault):
    """A segment that holds an offset its index cannot express; loading splits it."""

    def __init__(self, message: str, base_offset: int) -> None:
        super().__init__(message)
        self.base_offset = base_offset


class OffsetsOutOfOrder(StorageFault):
    """A follower was given batches whose offsets do not grow."""


class UnexpectedAppendOffset(StorageFault):
    """A follower was given a batch that starts below its log end offset."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset
