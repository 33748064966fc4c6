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
from barnabas.security.errors import (
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


class TopicAuthorization(AuthorizationError):
    """`unauthorized_topics` has the topics, if known."""

    code = 29

    def __init__(self, message: str = "", unauthorized_topics: Iterable[str] = ()) -> None:
        self.unauthorized_topics = frozenset(unauthorized_topics)
        super().__init__(message or f"Not authorized to access topics: {listed(self.unauthorized_topics)}")


class GroupAuthorization(AuthorizationError):
    """GROUP_AUTHORIZATION_FAILED: the principal may not use the group; `group_id` names it where it is known."""

    code = 30

    def __init__(self, message: str = "", group_id: str | None = None) -> None:
        self.group_id = group_id
        super().__init__(message or f"Not authorized to access group: {group_id}")


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
    """UNKNOWN_SERVER_ERROR: the broker failed unexpectedly; its log has the reason."""

    code = -1


class InvalidFetchSize(KafkaError):
    """INVALID_FETCH_SIZE: the fetch asks for a size that is not valid."""

    code = 4


class LeaderNotAvailable(KafkaError):
    """LEADER_NOT_AVAILABLE: the partition has no leader at present, as during an election."""

    code = 5
    retriable = True


class BrokerNotAvailable(KafkaError):
    """BROKER_NOT_AVAILABLE: the broker is not available."""

    code = 8


class ReplicaNotAvailable(KafkaError):
    """REPLICA_NOT_AVAILABLE: the broker has no replica of the partition that could serve the request."""

    code = 9
    retriable = True


class ControllerMoved(KafkaError):
    """STALE_CONTROLLER_EPOCH: another broker has become the controller."""

    code = 11


class NotEnoughReplicasAfterAppend(KafkaError):
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND: the records are in the leader's log, but the ISR became smaller than min.insync.replicas."""

    code = 20
    retriable = True


class InvalidRequiredAcks(KafkaError):
    """INVALID_REQUIRED_ACKS: `acks` is none of 0, 1 and all."""

    code = 21


class DuplicateSequence(KafkaError):
    """DUPLICATE_SEQUENCE_NUMBER: the broker has these records already; the producer treats them as written."""

    code = 46


class InvalidTxnTimeout(KafkaError):
    """INVALID_TRANSACTION_TIMEOUT: `transaction.timeout.ms` is larger than the broker's `transaction.max.timeout.ms`."""

    code = 50


class ConcurrentTransactions(KafkaError):
    """CONCURRENT_TRANSACTIONS: the coordinator is still ending the previous transaction of this transactional id."""

    code = 51
    retriable = True


class TransactionalIdAuthorization(AuthorizationError):
    """TRANSACTIONAL_ID_AUTHORIZATION_FAILED: the principal may not use the transactional id."""

    code = 53


class OperationNotAttempted(KafkaError):
    """OPERATION_NOT_ATTEMPTED: the broker did not try this part of the request, because another part failed."""

    code = 55


class UnknownProducerId(OutOfOrderSequence):
    """UNKNOWN_PRODUCER_ID: the broker has no state of this producer, for example because its last records were deleted."""

    code = 59


class FetchSessionIdNotFound(KafkaError):
    """FETCH_SESSION_ID_NOT_FOUND: the broker has dropped the fetch session; the client begins a new one."""

    code = 70
    retriable = True


class InvalidFetchSessionEpoch(KafkaError):
    """INVALID_FETCH_SESSION_EPOCH: client and broker disagree about the fetch session; the client begins a new one."""

    code = 71
    retriable = True


class ListenerNotFound(KafkaError):
    """LISTENER_NOT_FOUND: the leader has no listener with the name of the one that the client uses."""

    code = 72
    retriable = True


class StaleBrokerEpoch(KafkaError):
    """STALE_BROKER_EPOCH: the broker epoch in the request is old."""

    code = 77


class ProducerFenced(KafkaError):
    """PRODUCER_FENCED: a newer producer with the same transactional id is in use. Close this one."""

    code = 90


class InconsistentVoterSet(KafkaError):
    """INCONSISTENT_VOTER_SET: the voters in the request are not those of the quorum."""

    code = 94


class InvalidUpdateVersion(KafkaError):
    """INVALID_UPDATE_VERSION: the version in an update is not valid."""

    code = 95


class FeatureUpdateFailed(KafkaError):
    """FEATURE_UPDATE_FAILED: the finalized features could not be updated."""

    code = 96


class PrincipalDeserialization(KafkaError):
    """PRINCIPAL_DESERIALIZATION_FAILURE: a forwarded request has a principal that cannot be read."""

    code = 97


class SnapshotNotFound(KafkaError):
    """SNAPSHOT_NOT_FOUND: the snapshot of the metadata log does not exist."""

    code = 98


class PositionOutOfRange(KafkaError):
    """POSITION_OUT_OF_RANGE: the position is outside of the snapshot."""

    code = 99


class BrokerIdNotRegistered(KafkaError):
    """BROKER_ID_NOT_REGISTERED: no broker is registered with this id."""

    code = 102


class InconsistentClusterId(KafkaError):
    """INCONSISTENT_CLUSTER_ID: the cluster id in the request is another cluster's."""

    code = 104


class TransactionalIdNotFound(KafkaError):
    """TRANSACTIONAL_ID_NOT_FOUND: the coordinator does not know the transactional id."""

    code = 105


class FetchSessionTopicId(KafkaError):
    """FETCH_SESSION_TOPIC_ID_ERROR: the fetch session mixes topic names and topic ids."""

    code = 106
    retriable = True


class IneligibleReplica(KafkaError):
    """INELIGIBLE_REPLICA: the replica may not be in the ISR, for example because its broker is shutting down."""

    code = 107


class NewLeaderElected(KafkaError):
    """NEW_LEADER_ELECTED: the change of the partition led to another leader."""

    code = 108


class OffsetMovedToTieredStorage(KafkaError):
    """OFFSET_MOVED_TO_TIERED_STORAGE: the offset is no longer on the broker's own disks."""

    code = 109


class MismatchedEndpointType(KafkaError):
    """MISMATCHED_ENDPOINT_TYPE: the request reached a broker instead of a controller, or the other way round."""

    code = 114


class UnsupportedEndpointType(KafkaError):
    """UNSUPPORTED_ENDPOINT_TYPE: the broker does not know this kind of endpoint."""

    code = 115


class UnknownControllerId(KafkaError):
    """UNKNOWN_CONTROLLER_ID: no controller has this id."""

    code = 116


class UnknownSubscriptionId(KafkaError):
    """UNKNOWN_SUBSCRIPTION_ID: the telemetry subscription is old; the client asks for the current one."""

    code = 117


class TelemetryTooLarge(KafkaError):
    """TELEMETRY_TOO_LARGE: the pushed metrics are larger than the broker accepts."""

    code = 118


class InvalidRegistration(KafkaError):
    """INVALID_REGISTRATION: the controller rejected the registration of a broker."""

    code = 119


class TransactionAbortable(KafkaError):
    """TRANSACTION_ABORTABLE: the transaction cannot be committed. Abort it; the producer stays usable."""

    code = 120


class InvalidRecordState(KafkaError):
    """INVALID_RECORD_STATE: the acknowledged record of a share group is not in a state that allows it."""

    code = 121


class ShareSessionNotFound(KafkaError):
    """SHARE_SESSION_NOT_FOUND: the broker has dropped the share session."""

    code = 122
    retriable = True


class InvalidShareSessionEpoch(KafkaError):
    """INVALID_SHARE_SESSION_EPOCH: client and broker disagree about the share session."""

    code = 123
    retriable = True


class FencedStateEpoch(KafkaError):
    """FENCED_STATE_EPOCH: a newer owner of the share group's state exists."""

    code = 124


class InvalidVoterKey(KafkaError):
    """INVALID_VOTER_KEY: the voter key is not that of the replica."""

    code = 125


class DuplicateVoter(KafkaError):
    """DUPLICATE_VOTER: the voter is in the quorum already."""

    code = 126


class VoterNotFound(KafkaError):
    """VOTER_NOT_FOUND: the voter is not in the quorum."""

    code = 127


class RebootstrapRequired(KafkaError):
    """REBOOTSTRAP_REQUIRED: the client begins again with the addresses of bootstrap.servers."""

    code = 129


class StreamsInvalidTopology(KafkaError):
    """STREAMS_INVALID_TOPOLOGY: the topology of the streams group is not valid."""

    code = 130


class StreamsInvalidTopologyEpoch(KafkaError):
    """STREAMS_INVALID_TOPOLOGY_EPOCH: the topology epoch is not valid."""

    code = 131


class StreamsTopologyFenced(KafkaError):
    """STREAMS_TOPOLOGY_FENCED: the streams group has a newer topology."""

    code = 132


class ShareSessionLimitReached(KafkaError):
    """SHARE_SESSION_LIMIT_REACHED: the broker keeps as many share sessions as it may."""

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
        shared.ThrottlingQuotaExceeded,
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
