"""The admin client: topics, settings, groups, partitions, security and the cluster, over Kafka's protocol.

A name is loaded at its first use, so that a program that lists offsets does not load the modules that manage users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.lazy_names import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client.admin.access.acls import FilterResult
    from barnabas.client.admin.access.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter, ClientQuotaFilterComponent
    from barnabas.client.admin.access.scram import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialsDescription,
        UserScramCredentialUpsertion,
    )
    from barnabas.client.admin.access.tokens import DelegationToken, TokenInformation
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.async_admin import AsyncAdmin
    from barnabas.client.admin.cluster.client_metrics import ClientMetricsResourceListing
    from barnabas.client.admin.cluster.cluster import ApiVersionRange, ClusterDescription, NodeApiVersions
    from barnabas.client.admin.cluster.config_entries import (
        Config,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
    )
    from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType
    from barnabas.client.admin.cluster.features import (
        FeatureMetadata,
        FeatureUpdate,
        FinalizedVersionRange,
        SupportedVersionRange,
        UpgradeType,
    )
    from barnabas.client.admin.cluster.log_dirs import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
    from barnabas.client.admin.cluster.quorum import QuorumInfo, RaftVoterEndpoint, ReplicaState
    from barnabas.client.admin.groups.group_descriptions import (
        ClassicGroupDescription,
        ConsumerGroupDescription,
        GroupListing,
        GroupState,
        GroupType,
        Listing,
        MemberAssignment,
        MemberDescription,
    )
    from barnabas.client.admin.groups.group_offsets import ListConsumerGroupOffsetsSpec
    from barnabas.client.admin.groups.groups import MemberToRemove
    from barnabas.client.admin.groups.share_groups import (
        ListShareGroupOffsetsSpec,
        ShareGroupDescription,
        ShareMemberDescription,
        SharePartitionOffsetInfo,
    )
    from barnabas.client.admin.groups.streams_groups import (
        StreamsGroupDescription,
        StreamsGroupMemberAssignment,
        StreamsGroupMemberDescription,
        StreamsGroupSubtopologyDescription,
        StreamsTopicInfo,
        TaskIds,
        TaskOffset,
    )
    from barnabas.client.admin.outcomes import Outcomes
    from barnabas.client.admin.topics.elections import ElectionType
    from barnabas.client.admin.topics.offsets import IsolationLevel, ListOffsetsResultInfo, OffsetSpec
    from barnabas.client.admin.topics.producers import ProducerState
    from barnabas.client.admin.topics.reassignments import NewPartitionReassignment, PartitionReassignment
    from barnabas.client.admin.topics.records import DeletedRecords, RecordsToDelete
    from barnabas.client.admin.topics.topic_descriptions import TopicDescription, TopicPartitionInfo
    from barnabas.client.admin.topics.topics import NewPartitions, NewTopic, TopicListing, TopicMetadataAndConfig
    from barnabas.client.admin.topics.transactions import (
        AbortTransactionSpec,
        ProducerIdAndEpoch,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
    from barnabas.security.acl import (
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
    from barnabas.security.operations import AclOperation
    from barnabas.security.principal import KafkaPrincipal

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

_PLACES = {
    "AbortTransactionSpec": "barnabas.client.admin.topics.transactions",
    "AccessControlEntry": "barnabas.security.acl",
    "AccessControlEntryFilter": "barnabas.security.acl",
    "AclBinding": "barnabas.security.acl",
    "AclBindingFilter": "barnabas.security.acl",
    "AclOperation": "barnabas.security.operations",
    "AclPermissionType": "barnabas.security.acl",
    "Admin": "barnabas.client.admin.admin",
    "AlterConfigOp": "barnabas.client.admin.cluster.configs",
    "ApiVersionRange": "barnabas.client.admin.cluster.cluster",
    "AsyncAdmin": "barnabas.client.admin.async_admin",
    "ClassicGroupDescription": "barnabas.client.admin.groups.group_descriptions",
    "ClientMetricsResourceListing": "barnabas.client.admin.cluster.client_metrics",
    "ClientQuotaAlteration": "barnabas.client.admin.access.quotas",
    "ClientQuotaEntity": "barnabas.client.admin.access.quotas",
    "ClientQuotaFilter": "barnabas.client.admin.access.quotas",
    "ClientQuotaFilterComponent": "barnabas.client.admin.access.quotas",
    "ClusterDescription": "barnabas.client.admin.cluster.cluster",
    "Config": "barnabas.client.admin.cluster.config_entries",
    "ConfigEntry": "barnabas.client.admin.cluster.config_entries",
    "ConfigResource": "barnabas.client.admin.cluster.config_entries",
    "ConfigResourceType": "barnabas.client.admin.cluster.config_entries",
    "ConfigSource": "barnabas.client.admin.cluster.config_entries",
    "ConfigSynonym": "barnabas.client.admin.cluster.config_entries",
    "ConfigType": "barnabas.client.admin.cluster.config_entries",
    "ConsumerGroupDescription": "barnabas.client.admin.groups.group_descriptions",
    "DelegationToken": "barnabas.client.admin.access.tokens",
    "DeletedRecords": "barnabas.client.admin.topics.records",
    "ElectionType": "barnabas.client.admin.topics.elections",
    "FeatureMetadata": "barnabas.client.admin.cluster.features",
    "FeatureUpdate": "barnabas.client.admin.cluster.features",
    "FilterResult": "barnabas.client.admin.access.acls",
    "FinalizedVersionRange": "barnabas.client.admin.cluster.features",
    "GroupListing": "barnabas.client.admin.groups.group_descriptions",
    "GroupState": "barnabas.client.admin.groups.group_descriptions",
    "GroupType": "barnabas.client.admin.groups.group_descriptions",
    "IsolationLevel": "barnabas.client.admin.topics.offsets",
    "KafkaPrincipal": "barnabas.security.principal",
    "ListConsumerGroupOffsetsSpec": "barnabas.client.admin.groups.group_offsets",
    "ListOffsetsResultInfo": "barnabas.client.admin.topics.offsets",
    "ListShareGroupOffsetsSpec": "barnabas.client.admin.groups.share_groups",
    "Listing": "barnabas.client.admin.groups.group_descriptions",
    "LogDirDescription": "barnabas.client.admin.cluster.log_dirs",
    "MemberAssignment": "barnabas.client.admin.groups.group_descriptions",
    "MemberDescription": "barnabas.client.admin.groups.group_descriptions",
    "MemberToRemove": "barnabas.client.admin.groups.groups",
    "NewPartitionReassignment": "barnabas.client.admin.topics.reassignments",
    "NewPartitions": "barnabas.client.admin.topics.topics",
    "NewTopic": "barnabas.client.admin.topics.topics",
    "NodeApiVersions": "barnabas.client.admin.cluster.cluster",
    "OffsetAndMetadata": "barnabas.client.consumer.offsets.offset_and_metadata",
    "OffsetSpec": "barnabas.client.admin.topics.offsets",
    "OpType": "barnabas.client.admin.cluster.configs",
    "Outcomes": "barnabas.client.admin.outcomes",
    "PartitionReassignment": "barnabas.client.admin.topics.reassignments",
    "PatternType": "barnabas.security.acl",
    "ProducerIdAndEpoch": "barnabas.client.admin.topics.transactions",
    "ProducerState": "barnabas.client.admin.topics.producers",
    "QuorumInfo": "barnabas.client.admin.cluster.quorum",
    "RaftVoterEndpoint": "barnabas.client.admin.cluster.quorum",
    "RecordsToDelete": "barnabas.client.admin.topics.records",
    "ReplicaInfo": "barnabas.client.admin.cluster.log_dirs",
    "ReplicaLogDirInfo": "barnabas.client.admin.cluster.log_dirs",
    "ReplicaState": "barnabas.client.admin.cluster.quorum",
    "ResourcePattern": "barnabas.security.acl",
    "ResourcePatternFilter": "barnabas.security.acl",
    "ResourceType": "barnabas.security.acl",
    "ScramCredentialInfo": "barnabas.client.admin.access.scram",
    "ScramMechanism": "barnabas.client.admin.access.scram",
    "ShareGroupDescription": "barnabas.client.admin.groups.share_groups",
    "ShareMemberDescription": "barnabas.client.admin.groups.share_groups",
    "SharePartitionOffsetInfo": "barnabas.client.admin.groups.share_groups",
    "StreamsGroupDescription": "barnabas.client.admin.groups.streams_groups",
    "StreamsGroupMemberAssignment": "barnabas.client.admin.groups.streams_groups",
    "StreamsGroupMemberDescription": "barnabas.client.admin.groups.streams_groups",
    "StreamsGroupSubtopologyDescription": "barnabas.client.admin.groups.streams_groups",
    "StreamsTopicInfo": "barnabas.client.admin.groups.streams_groups",
    "SupportedVersionRange": "barnabas.client.admin.cluster.features",
    "TaskIds": "barnabas.client.admin.groups.streams_groups",
    "TaskOffset": "barnabas.client.admin.groups.streams_groups",
    "TokenInformation": "barnabas.client.admin.access.tokens",
    "TopicDescription": "barnabas.client.admin.topics.topic_descriptions",
    "TopicListing": "barnabas.client.admin.topics.topics",
    "TopicMetadataAndConfig": "barnabas.client.admin.topics.topics",
    "TopicPartitionInfo": "barnabas.client.admin.topics.topic_descriptions",
    "TopicPartitionReplica": "barnabas.client.admin.cluster.log_dirs",
    "TransactionDescription": "barnabas.client.admin.topics.transactions",
    "TransactionListing": "barnabas.client.admin.topics.transactions",
    "TransactionState": "barnabas.client.admin.topics.transactions",
    "UpgradeType": "barnabas.client.admin.cluster.features",
    "UserScramCredentialDeletion": "barnabas.client.admin.access.scram",
    "UserScramCredentialUpsertion": "barnabas.client.admin.access.scram",
    "UserScramCredentialsDescription": "barnabas.client.admin.access.scram",
}


__getattr__ = lazy_getattr(__name__, _PLACES)
