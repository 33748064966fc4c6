"""The admin client: topics, settings, groups, partitions, security and the cluster itself, over Kafka's protocol."""

from __future__ import annotations

from barnabas.client.admin.acl_values import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from barnabas.client.admin.acls import FilterResult
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.client_metrics import ClientMetricsResourceListing
from barnabas.client.admin.cluster import ApiVersionRange, ClusterDescription, NodeApiVersions
from barnabas.client.admin.config_entries import (
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from barnabas.client.admin.configs import AlterConfigOp, OpType
from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.features import FeatureMetadata, FeatureUpdate, FinalizedVersionRange, SupportedVersionRange, UpgradeType
from barnabas.client.admin.group_descriptions import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    Listing,
    MemberAssignment,
    MemberDescription,
)
from barnabas.client.admin.group_offsets import ListConsumerGroupOffsetsSpec
from barnabas.client.admin.groups import MemberToRemove
from barnabas.client.admin.log_dirs import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
from barnabas.client.admin.offsets import IsolationLevel, ListOffsetsResultInfo, OffsetSpec
from barnabas.client.admin.operations import AclOperation
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.quorum import QuorumInfo, RaftVoterEndpoint, ReplicaState
from barnabas.client.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter, ClientQuotaFilterComponent
from barnabas.client.admin.reassignments import NewPartitionReassignment, PartitionReassignment
from barnabas.client.admin.records import DeletedRecords, RecordsToDelete
from barnabas.client.admin.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from barnabas.client.admin.share_groups import (
    ListShareGroupOffsetsSpec,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
)
from barnabas.client.admin.streams_groups import (
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    StreamsTopicInfo,
    TaskIds,
    TaskOffset,
)
from barnabas.client.admin.tokens import DelegationToken, KafkaPrincipal, TokenInformation
from barnabas.client.admin.topic_descriptions import TopicDescription, TopicPartitionInfo
from barnabas.client.admin.topics import NewPartitions, NewTopic, TopicListing, TopicMetadataAndConfig
from barnabas.client.admin.transactions import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from barnabas.client.consumer.offset_and_metadata import OffsetAndMetadata

__all__ = [
    "AbortTransactionSpec",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AlterConfigOp",
    "ApiVersionRange",
    "AsyncAdmin",
    "ClassicGroupDescription",
    "ClientMetricsResourceListing",
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClusterDescription",
    "Config",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConsumerGroupDescription",
    "DelegationToken",
    "DeletedRecords",
    "ElectionType",
    "FeatureMetadata",
    "FeatureUpdate",
    "FilterResult",
    "FinalizedVersionRange",
    "GroupListing",
    "GroupState",
    "GroupType",
    "IsolationLevel",
    "KafkaPrincipal",
    "ListConsumerGroupOffsetsSpec",
    "ListOffsetsResultInfo",
    "ListShareGroupOffsetsSpec",
    "Listing",
    "LogDirDescription",
    "MemberAssignment",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitionReassignment",
    "NewPartitions",
    "NewTopic",
    "NodeApiVersions",
    "OffsetAndMetadata",
    "OffsetSpec",
    "OpType",
    "Outcomes",
    "PartitionReassignment",
    "PatternType",
    "ProducerIdAndEpoch",
    "ProducerState",
    "QuorumInfo",
    "RaftVoterEndpoint",
    "RecordsToDelete",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "ReplicaState",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
    "StreamsGroupDescription",
    "StreamsGroupMemberAssignment",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "StreamsTopicInfo",
    "SupportedVersionRange",
    "TaskIds",
    "TaskOffset",
    "TokenInformation",
    "TopicDescription",
    "TopicListing",
    "TopicMetadataAndConfig",
    "TopicPartitionInfo",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentialsDescription",
]
