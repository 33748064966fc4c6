"""The exceptions of Kafka's error codes that `barnabas.errors` does not have, or to which clients add fields.

Import `errors`: it has these, the broker's, and the exceptions of the client alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas import errors as shared
from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError, OutOfOrderSequence
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.topic_partition import TopicPartition


class AuthorizationError(KafkaError):
    """The principal is not authorized; a retry does not help until an administrator grants access."""


class AuthenticationError(KafkaError):
    """The credentials were rejected. Never retried automatically."""


class TopicAuthorization(AuthorizationError):
    """`unauthorized_topics` has the topics, if known."""

    code = 29

    def __init__(self, message: str = "", unauthorized_topics: Iterable[str] = ()) -> None:
        self.unauthorized_topics = frozenset(unauthorized_topics)
        super().__init__(message or f"Not authorized to access topics: {listed(self.unauthorized_topics)}")


class GroupAuthorization(AuthorizationError):
    code = 30

    def __init__(self, message: str = "", group_id: str | None = None) -> None:
        self.group_id = group_id
        super().__init__(message or f"Not authorized to access group: {group_id}")


class SaslAuthentication(AuthenticationError):
    code = 58


class NetworkError(KafkaError):
    """NETWORK_EXCEPTION: the connection to the broker failed."""

    code = 13
    retriable = True


class Timeout(shared.RequestTimedOut, TimeoutError):
    """Kafka's TimeoutException, from a broker (REQUEST_TIMED_OUT) or from the client itself; also Python's TimeoutError."""


class InvalidOffset(KafkaError):
    """Positions that cannot be read from, by partition."""

    def __init__(self, message: str = "", partitions: Iterable[TopicPartition] = ()) -> None:
        super().__init__(message)
        self.partitions = frozenset(partitions)


class OffsetOutOfRange(InvalidOffset, shared.OffsetOutOfRange):
    """Positions outside the log with auto.offset.reset `none`: `offset_out_of_range_partitions` has the offset of each partition."""

    code = 1

    def __init__(self, message: str = "", offset_out_of_range_partitions: Mapping[TopicPartition, int] | None = None) -> None:
        self.offset_out_of_range_partitions = dict(offset_out_of_range_partitions or {})
        super().__init__(
            message or f"Offsets out of range with no configured reset policy for partitions: {self.offset_out_of_range_partitions}",
            self.offset_out_of_range_partitions,
        )


class UnknownServerError(KafkaError):
    code = -1


class InvalidFetchSize(KafkaError):
    code = 4


class LeaderNotAvailable(KafkaError):
    code = 5
    retriable = True


class BrokerNotAvailable(KafkaError):
    code = 8


class ReplicaNotAvailable(KafkaError):
    code = 9
    retriable = True


class ControllerMoved(KafkaError):
    code = 11


class NotEnoughReplicasAfterAppend(KafkaError):
    code = 20
    retriable = True


class InvalidRequiredAcks(KafkaError):
    code = 21


class ClusterAuthorization(AuthorizationError):
    code = 31


class UnsupportedSaslMechanism(AuthenticationError):
    code = 33


class IllegalSaslState(AuthenticationError):
    code = 34


class DuplicateSequence(KafkaError):
    code = 46


class InvalidTxnTimeout(KafkaError):
    code = 50


class ConcurrentTransactions(KafkaError):
    code = 51
    retriable = True


class TransactionalIdAuthorization(AuthorizationError):
    code = 53


class SecurityDisabled(KafkaError):
    code = 54


class OperationNotAttempted(KafkaError):
    code = 55


class UnknownProducerId(OutOfOrderSequence):
    code = 59


class DelegationTokenDisabled(KafkaError):
    code = 61


class DelegationTokenNotFound(KafkaError):
    code = 62


class DelegationTokenOwnerMismatch(KafkaError):
    code = 63


class UnsupportedByAuthentication(KafkaError):
    code = 64


class DelegationTokenAuthorization(AuthorizationError):
    code = 65


class DelegationTokenExpired(KafkaError):
    code = 66


class InvalidPrincipalType(KafkaError):
    code = 67


class FetchSessionIdNotFound(KafkaError):
    code = 70
    retriable = True


class InvalidFetchSessionEpoch(KafkaError):
    code = 71
    retriable = True


class ListenerNotFound(KafkaError):
    code = 72
    retriable = True


class StaleBrokerEpoch(KafkaError):
    code = 77


class ThrottlingQuotaExceeded(KafkaError):
    code = 89
    retriable = True


class ProducerFenced(KafkaError):
    code = 90


class ResourceNotFound(KafkaError):
    code = 91


class DuplicateResource(KafkaError):
    code = 92


class UnacceptableCredential(KafkaError):
    code = 93


class InconsistentVoterSet(KafkaError):
    code = 94


class InvalidUpdateVersion(KafkaError):
    code = 95


class FeatureUpdateFailed(KafkaError):
    code = 96


class PrincipalDeserialization(KafkaError):
    code = 97


class SnapshotNotFound(KafkaError):
    code = 98


class PositionOutOfRange(KafkaError):
    code = 99


class BrokerIdNotRegistered(KafkaError):
    code = 102


class InconsistentClusterId(KafkaError):
    code = 104


class TransactionalIdNotFound(KafkaError):
    code = 105


class FetchSessionTopicId(KafkaError):
    code = 106
    retriable = True


class IneligibleReplica(KafkaError):
    code = 107


class NewLeaderElected(KafkaError):
    code = 108


class OffsetMovedToTieredStorage(KafkaError):
    code = 109


class MismatchedEndpointType(KafkaError):
    code = 114


class UnsupportedEndpointType(KafkaError):
    code = 115


class UnknownControllerId(KafkaError):
    code = 116


class UnknownSubscriptionId(KafkaError):
    code = 117


class TelemetryTooLarge(KafkaError):
    code = 118


class InvalidRegistration(KafkaError):
    code = 119


class TransactionAbortable(KafkaError):
    code = 120


class InvalidRecordState(KafkaError):
    code = 121


class ShareSessionNotFound(KafkaError):
    code = 122
    retriable = True


class InvalidShareSessionEpoch(KafkaError):
    code = 123
    retriable = True


class FencedStateEpoch(KafkaError):
    code = 124


class InvalidVoterKey(KafkaError):
    code = 125


class DuplicateVoter(KafkaError):
    code = 126


class VoterNotFound(KafkaError):
    code = 127


class RebootstrapRequired(KafkaError):
    code = 129


class StreamsInvalidTopology(KafkaError):
    code = 130


class StreamsInvalidTopologyEpoch(KafkaError):
    code = 131


class StreamsTopologyFenced(KafkaError):
    code = 132


class ShareSessionLimitReached(KafkaError):
    code = 133
    retriable = True


def listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


CLASSES: Final[dict[int, type[KafkaError]]] = {
    kind.code: kind
    for kind in (
        UnknownServerError,
        OffsetOutOfRange,
        shared.CorruptRecord,
        shared.UnknownTopicOrPartition,
        InvalidFetchSize,
        LeaderNotAvailable,
        shared.NotLeaderOrFollower,
        Timeout,
        BrokerNotAvailable,
        ReplicaNotAvailable,
        shared.RecordTooLarge,
        ControllerMoved,
        shared.OffsetMetadataTooLarge,
        NetworkError,
        shared.CoordinatorLoadInProgress,
        shared.CoordinatorNotAvailable,
        shared.NotCoordinator,
        shared.InvalidTopic,
        shared.RecordBatchTooLarge,
        shared.NotEnoughReplicas,
        NotEnoughReplicasAfterAppend,
        InvalidRequiredAcks,
        shared.IllegalGeneration,
        shared.InconsistentGroupProtocol,
        shared.InvalidGroupId,
        shared.UnknownMemberId,
        shared.InvalidSessionTimeout,
        shared.RebalanceInProgress,
        shared.InvalidCommitOffsetSize,
        TopicAuthorization,
        GroupAuthorization,
        ClusterAuthorization,
        shared.InvalidTimestamp,
        UnsupportedSaslMechanism,
        IllegalSaslState,
        UnsupportedVersion,
        shared.TopicExists,
        shared.InvalidPartitions,
        shared.InvalidReplicationFactor,
        shared.InvalidReplicaAssignment,
        InvalidConfig,
        shared.NotController,
        shared.InvalidRequest,
        shared.UnsupportedForMessageFormat,
        shared.PolicyViolation,
        OutOfOrderSequence,
        DuplicateSequence,
        shared.InvalidProducerEpoch,
        shared.InvalidTxnState,
        shared.InvalidProducerIdMapping,
        InvalidTxnTimeout,
        ConcurrentTransactions,
        shared.TransactionCoordinatorFenced,
        TransactionalIdAuthorization,
        SecurityDisabled,
        OperationNotAttempted,
        shared.KafkaStorageError,
        shared.LogDirNotFound,
        SaslAuthentication,
        UnknownProducerId,
        shared.ReassignmentInProgress,
        DelegationTokenDisabled,
        DelegationTokenNotFound,
        DelegationTokenOwnerMismatch,
        UnsupportedByAuthentication,
        DelegationTokenAuthorization,
        DelegationTokenExpired,
        InvalidPrincipalType,
        shared.NonEmptyGroup,
        shared.GroupIdNotFound,
        FetchSessionIdNotFound,
        InvalidFetchSessionEpoch,
        ListenerNotFound,
        shared.TopicDeletionDisabled,
        shared.FencedLeaderEpoch,
        shared.UnknownLeaderEpoch,
        shared.UnsupportedCompressionType,
        StaleBrokerEpoch,
        shared.OffsetNotAvailable,
        shared.MemberIdRequired,
        shared.PreferredLeaderNotAvailable,
        shared.GroupMaxSizeReached,
        shared.FencedInstanceId,
        shared.EligibleLeadersNotAvailable,
        shared.ElectionNotNeeded,
        shared.NoReassignmentInProgress,
        shared.GroupSubscribedToTopic,
        shared.InvalidRecord,
        shared.UnstableOffsetCommit,
        ThrottlingQuotaExceeded,
        ProducerFenced,
        ResourceNotFound,
        DuplicateResource,
        UnacceptableCredential,
        InconsistentVoterSet,
        InvalidUpdateVersion,
        FeatureUpdateFailed,
        PrincipalDeserialization,
        SnapshotNotFound,
        PositionOutOfRange,
        shared.UnknownTopicId,
        shared.DuplicateBrokerRegistration,
        BrokerIdNotRegistered,
        shared.InconsistentTopicId,
        InconsistentClusterId,
        TransactionalIdNotFound,
        FetchSessionTopicId,
        IneligibleReplica,
        NewLeaderElected,
        OffsetMovedToTieredStorage,
        shared.FencedMemberEpoch,
        shared.UnreleasedInstanceId,
        shared.UnsupportedAssignor,
        shared.StaleMemberEpoch,
        MismatchedEndpointType,
        UnsupportedEndpointType,
        UnknownControllerId,
        UnknownSubscriptionId,
        TelemetryTooLarge,
        InvalidRegistration,
        TransactionAbortable,
        InvalidRecordState,
        ShareSessionNotFound,
        InvalidShareSessionEpoch,
        FencedStateEpoch,
        InvalidVoterKey,
        DuplicateVoter,
        VoterNotFound,
        shared.InvalidRegularExpression,
        RebootstrapRequired,
        StreamsInvalidTopology,
        StreamsInvalidTopologyEpoch,
        StreamsTopologyFenced,
        ShareSessionLimitReached,
    )
}
# Java's InvalidMetadataException: the client's metadata is stale.
INVALID_METADATA: Final = frozenset({3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103})
