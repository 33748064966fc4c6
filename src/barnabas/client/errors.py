"""The exceptions of the clients: one class for each of Kafka's error codes, and exceptions of the client alone.

The names are Java's without "Exception". Where the broker has a class for a code, it is the same class, so that errors of `records` or
`protocol` need no conversion. `error_for` returns the exception of a code in a response; `.retriable` says whether a retry may succeed, and
`refreshes_metadata` whether the metadata must be refreshed first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.client.wire_errors import (
    CLASSES,
    INVALID_METADATA,
    BrokerIdNotRegistered,
    BrokerNotAvailable,
    ConcurrentTransactions,
    ControllerMoved,
    DuplicateSequence,
    DuplicateVoter,
    FeatureUpdateFailed,
    FencedStateEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicId,
    GroupAuthorization,
    InconsistentClusterId,
    InconsistentVoterSet,
    IneligibleReplica,
    InvalidFetchSessionEpoch,
    InvalidFetchSize,
    InvalidOffset,
    InvalidRecordState,
    InvalidRegistration,
    InvalidRequiredAcks,
    InvalidShareSessionEpoch,
    InvalidTxnTimeout,
    InvalidUpdateVersion,
    InvalidVoterKey,
    LeaderNotAvailable,
    ListenerNotFound,
    MismatchedEndpointType,
    NetworkError,
    NewLeaderElected,
    NotEnoughReplicasAfterAppend,
    OffsetMovedToTieredStorage,
    OffsetOutOfRange,
    OperationNotAttempted,
    PositionOutOfRange,
    PrincipalDeserialization,
    ProducerFenced,
    RebootstrapRequired,
    ReplicaNotAvailable,
    ShareSessionLimitReached,
    ShareSessionNotFound,
    SnapshotNotFound,
    StaleBrokerEpoch,
    StreamsInvalidTopology,
    StreamsInvalidTopologyEpoch,
    StreamsTopologyFenced,
    TelemetryTooLarge,
    Timeout,
    TopicAuthorization,
    TransactionAbortable,
    TransactionalIdAuthorization,
    TransactionalIdNotFound,
    UnknownControllerId,
    UnknownProducerId,
    UnknownServerError,
    UnknownSubscriptionId,
    UnsupportedEndpointType,
    VoterNotFound,
    listed,
)
from barnabas.config_def import InvalidConfig
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptRecord,
    DuplicateBrokerRegistration,
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    FencedInstanceId,
    FencedLeaderEpoch,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    GroupSubscribedToTopic,
    IllegalArgument,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InconsistentTopicId,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    InvalidPartitions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRecord,
    InvalidRegularExpression,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidSessionTimeout,
    InvalidTimestamp,
    InvalidTopic,
    InvalidTxnState,
    KafkaError,
    KafkaStorageError,
    LogDirNotFound,
    MemberIdRequired,
    NonEmptyGroup,
    NoReassignmentInProgress,
    NotController,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetMetadataTooLarge,
    OffsetNotAvailable,
    OutOfOrderSequence,
    PolicyViolation,
    PreferredLeaderNotAvailable,
    ReassignmentInProgress,
    RebalanceInProgress,
    RecordBatchTooLarge,
    RecordTooLarge,
    StaleMemberEpoch,
    ThrottlingQuotaExceeded,
    TopicDeletionDisabled,
    TopicExists,
    TransactionCoordinatorFenced,
    UnknownLeaderEpoch,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnreleasedInstanceId,
    UnstableOffsetCommit,
    UnsupportedAssignor,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.security.errors import (
    AuthenticationError,
    AuthorizationError,
    ClusterAuthorization,
    DelegationTokenAuthorization,
    DelegationTokenDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DuplicateResource,
    IllegalSaslState,
    InvalidPrincipalType,
    ResourceNotFound,
    SaslAuthentication,
    SecurityDisabled,
    UnacceptableCredential,
    UnsupportedByAuthentication,
    UnsupportedSaslMechanism,
)
from barnabas.topic_partition import TopicPartition

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BrokerIdNotRegistered",
    "BrokerNotAvailable",
    "BufferExhausted",
    "ClusterAuthorization",
    "CommitFailed",
    "ConcurrentModification",
    "ConcurrentTransactions",
    "ConfigException",
    "ControllerMoved",
    "CoordinatorLoadInProgress",
    "CoordinatorNotAvailable",
    "CorruptRecord",
    "DelegationTokenAuthorization",
    "DelegationTokenDisabled",
    "DelegationTokenExpired",
    "DelegationTokenNotFound",
    "DelegationTokenOwnerMismatch",
    "Disconnected",
    "DuplicateBrokerRegistration",
    "DuplicateResource",
    "DuplicateSequence",
    "DuplicateVoter",
    "ElectionNotNeeded",
    "EligibleLeadersNotAvailable",
    "FeatureUpdateFailed",
    "FencedInstanceId",
    "FencedLeaderEpoch",
    "FencedMemberEpoch",
    "FencedStateEpoch",
    "FetchSessionIdNotFound",
    "FetchSessionTopicId",
    "GroupAuthorization",
    "GroupIdNotFound",
    "GroupMaxSizeReached",
    "GroupNotEmpty",
    "GroupSubscribedToTopic",
    "IllegalArgument",
    "IllegalGeneration",
    "IllegalSaslState",
    "IllegalState",
    "InconsistentClusterId",
    "InconsistentGroupProtocol",
    "InconsistentTopicId",
    "InconsistentVoterSet",
    "IneligibleReplica",
    "Interrupted",
    "InvalidCommitOffsetSize",
    "InvalidConfig",
    "InvalidFetchSessionEpoch",
    "InvalidFetchSize",
    "InvalidGroupId",
    "InvalidOffset",
    "InvalidPartitions",
    "InvalidPidMapping",
    "InvalidPrincipalType",
    "InvalidProducerEpoch",
    "InvalidProducerIdMapping",
    "InvalidRecord",
    "InvalidRecordState",
    "InvalidRegistration",
    "InvalidRegularExpression",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "InvalidRequest",
    "InvalidRequiredAcks",
    "InvalidSessionTimeout",
    "InvalidShareSessionEpoch",
    "InvalidTimestamp",
    "InvalidTopic",
    "InvalidTxnState",
    "InvalidTxnTimeout",
    "InvalidUpdateVersion",
    "InvalidVoterKey",
    "KafkaError",
    "KafkaStorageError",
    "LeaderNotAvailable",
    "ListenerNotFound",
    "LogDirNotFound",
    "LogTruncation",
    "MemberIdRequired",
    "MismatchedEndpointType",
    "NetworkError",
    "NewLeaderElected",
    "NoOffsetForPartition",
    "NoReassignmentInProgress",
    "NonEmptyGroup",
    "NotController",
    "NotCoordinator",
    "NotEnoughReplicas",
    "NotEnoughReplicasAfterAppend",
    "NotLeaderOrFollower",
    "OffsetMetadataTooLarge",
    "OffsetMovedToTieredStorage",
    "OffsetNotAvailable",
    "OffsetOutOfRange",
    "OperationNotAttempted",
    "OutOfOrderSequence",
    "PolicyViolation",
    "PositionOutOfRange",
    "PreferredLeaderNotAvailable",
    "PrincipalDeserialization",
    "ProducerFenced",
    "ReassignmentInProgress",
    "RebalanceInProgress",
    "RebootstrapRequired",
    "RecordBatchTooLarge",
    "RecordDeserializationError",
    "RecordTooLarge",
    "ReplicaNotAvailable",
    "RequestTimedOut",
    "ResourceNotFound",
    "RetriableCommitFailed",
    "SaslAuthentication",
    "SecurityDisabled",
    "SendFailed",
    "SerializationError",
    "ShareSessionLimitReached",
    "ShareSessionNotFound",
    "SnapshotNotFound",
    "SslAuthentication",
    "StaleBrokerEpoch",
    "StaleMemberEpoch",
    "StreamsInvalidTopology",
    "StreamsInvalidTopologyEpoch",
    "StreamsTopologyFenced",
    "TelemetryTooLarge",
    "ThrottlingQuotaExceeded",
    "Timeout",
    "TopicAuthorization",
    "TopicDeletionDisabled",
    "TopicExists",
    "TransactionAbortable",
    "TransactionAborted",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorization",
    "TransactionalIdNotFound",
    "UnacceptableCredential",
    "UnknownControllerId",
    "UnknownLeaderEpoch",
    "UnknownMemberId",
    "UnknownProducerId",
    "UnknownServerError",
    "UnknownSubscriptionId",
    "UnknownTopicId",
    "UnknownTopicOrPartition",
    "UnreleasedInstanceId",
    "UnstableOffsetCommit",
    "UnsupportedAssignor",
    "UnsupportedByAuthentication",
    "UnsupportedCompressionType",
    "UnsupportedEndpointType",
    "UnsupportedForMessageFormat",
    "UnsupportedSaslMechanism",
    "UnsupportedVersion",
    "VoterNotFound",
    "Wakeup",
    "error_for",
    "refreshes_metadata",
]


def error_for(code: int, message: str | None = None) -> KafkaError:
    """The exception of a code in a response, with the broker's text or else Kafka's own text for that code.

    Codes newer than this client become UnknownServerError, as in Java. Code 0 is not an error and has no exception.
    """
    assert code != 0, "NONE is not an error"
    kind = CLASSES.get(code)
    if kind is None:
        return UnknownServerError(message or f"Unexpected error code: {code}.")
    return kind(message or _TEXTS[code])


def refreshes_metadata(error: KafkaError) -> bool:
    """Whether the error means that the client's metadata is stale: Java's InvalidMetadataException."""
    return error.code in INVALID_METADATA


class SslAuthentication(AuthenticationError):
    """The TLS handshake failed: a certificate was not trusted, belongs to another host, or was required and not presented."""


class Disconnected(NetworkError):
    """The connection was lost or never established. It is unknown whether a request in flight took effect."""


class BufferExhausted(Timeout):
    """buffer.memory was full for max.block.ms."""


class FailedSends:
    """The number of records of one partition that failed with one kind of error; `error` is the first of them."""

    def __init__(self, topic_partition: TopicPartition, error: KafkaError, count: int) -> None:
        self.topic_partition = topic_partition
        self.error = error
        self.count = count

    def __str__(self) -> str:
        topic, partition = self.topic_partition
        # A record that failed before its partition was chosen has partition -1.
        place = topic if partition < 0 else str(self.topic_partition)
        return f"{self.count} for {place} ({type(self.error).__name__}: {self.error})"


class SendFailed(KafkaError):
    """Records were not delivered, and the application has not read the results of their sends: flush() and close() raise it.

    `count` is the number of records. `failures` groups them by partition and kind of error, in the order of their first errors. The first
    error is also the cause.
    """

    def __init__(self, failures: Sequence[FailedSends], ungrouped: int = 0) -> None:
        """`ungrouped` counts records that are not in `failures`."""
        self.failures = tuple(failures)
        self.count = sum(failed.count for failed in failures) + ungrouped
        named = self.failures[:_FAILURES_NAMED_MAX]
        rest = self.count - sum(failed.count for failed in named)
        records = "1 record was" if self.count == 1 else f"{self.count} records were"
        super().__init__(
            f"{records} not delivered, and the result of send() was not read: {'; '.join(map(str, named))}"
            f"{f'; {rest} more' if rest else ''}. To handle such errors call delivery.result() or give send() a callback."
        )
        if named:
            self.__cause__ = named[0].error


class TransactionAborted(KafkaError):
    """A record was not sent because its transaction had been aborted."""


class IllegalState(KafkaError, RuntimeError):
    """A call that is not possible in the current state, such as a call to a closed client."""


class ConcurrentModification(IllegalState):
    """A second thread called a consumer, which is not thread-safe. Only wakeup() may be called from any thread."""


class Interrupted(KafkaError):
    """The thread was interrupted while it waited."""


class Wakeup(KafkaError):
    """wakeup() was called: the poll or wait ends without a result."""


class SerializationError(KafkaError):
    """A serializer or deserializer failed."""


class RecordDeserializationError(SerializationError):
    """A record cannot be deserialized: `topic_partition` and `offset` identify it, so that a seek can skip it."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        message: str,
        *,
        origin: str = "VALUE",
        timestamp: int = -1,
        timestamp_type: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        super().__init__(message)
        self.topic_partition = topic_partition
        self.offset = offset
        self.origin = origin
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers


class CommitFailed(KafkaError):
    """The group has rebalanced without this member: it no longer owns the partitions that it commits."""


class RetriableCommitFailed(KafkaError):
    """An asynchronous commit failed temporarily; it was not retried, because a newer commit may be in flight."""

    retriable = True


class NoOffsetForPartition(InvalidOffset):
    """There is no committed offset, and auto.offset.reset is `none`."""

    def __init__(self, partitions: Iterable[TopicPartition], message: str = "") -> None:
        partitions = frozenset(partitions)
        names = listed(str(partition) for partition in partitions)
        super().__init__(message or f"Undefined offset with no reset policy for partitions: {names}", partitions)


class LogTruncation(OffsetOutOfRange):
    """The log was truncated below the position: `divergent_offsets` has for each partition the last offset that both logs share, with its
    epoch, or None if it is unknown."""

    def __init__(
        self,
        message: str,
        fetch_offsets: Mapping[TopicPartition, int],
        divergent_offsets: Mapping[TopicPartition, tuple[int, int] | None],
    ) -> None:
        super().__init__(message, fetch_offsets)
        self.divergent_offsets = dict(divergent_offsets)


GroupNotEmpty = NonEmptyGroup
InvalidPidMapping = InvalidProducerIdMapping
ConfigException = InvalidConfig
RequestTimedOut = Timeout  # one class in Java, too

_FAILURES_NAMED_MAX: Final = 5
_TEXTS: Final = {int(code): code.message for code in ErrorCode}
