"""The admin client: topics, settings, groups, partitions, security and the cluster itself, over Kafka's protocol.

A name is loaded when it is first used: who asks for offsets need not wait for what manages users.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_PLACES = {
    "AbortTransactionSpec": "barnabas.client.admin.transactions",
    "AccessControlEntry": "barnabas.client.admin.acl_values",
    "AccessControlEntryFilter": "barnabas.client.admin.acl_values",
    "AclBinding": "barnabas.client.admin.acl_values",
    "AclBindingFilter": "barnabas.client.admin.acl_values",
    "AclOperation": "barnabas.client.admin.operations",
    "AclPermissionType": "barnabas.client.admin.acl_values",
    "Admin": "barnabas.client.admin.admin",
    "AlterConfigOp": "barnabas.client.admin.configs",
    "ApiVersionRange": "barnabas.client.admin.cluster",
    "AsyncAdmin": "barnabas.client.admin.async_admin",
    "ClassicGroupDescription": "barnabas.client.admin.group_descriptions",
    "ClientMetricsResourceListing": "barnabas.client.admin.client_metrics",
    "ClientQuotaAlteration": "barnabas.client.admin.quotas",
    "ClientQuotaEntity": "barnabas.client.admin.quotas",
    "ClientQuotaFilter": "barnabas.client.admin.quotas",
    "ClientQuotaFilterComponent": "barnabas.client.admin.quotas",
    "ClusterDescription": "barnabas.client.admin.cluster",
    "Config": "barnabas.client.admin.config_entries",
    "ConfigEntry": "barnabas.client.admin.config_entries",
    "ConfigResource": "barnabas.client.admin.config_entries",
    "ConfigResourceType": "barnabas.client.admin.config_entries",
    "ConfigSource": "barnabas.client.admin.config_entries",
    "ConfigSynonym": "barnabas.client.admin.config_entries",
    "ConfigType": "barnabas.client.admin.config_entries",
    "ConsumerGroupDescription": "barnabas.client.admin.group_descriptions",
    "DelegationToken": "barnabas.client.admin.tokens",
    "DeletedRecords": "barnabas.client.admin.records",
    "ElectionType": "barnabas.client.admin.elections",
    "FeatureMetadata": "barnabas.client.admin.features",
    "FeatureUpdate": "barnabas.client.admin.features",
    "FilterResult": "barnabas.client.admin.acls",
    "FinalizedVersionRange": "barnabas.client.admin.features",
    "GroupListing": "barnabas.client.admin.group_descriptions",
    "GroupState": "barnabas.client.admin.group_descriptions",
    "GroupType": "barnabas.client.admin.group_descriptions",
    "IsolationLevel": "barnabas.client.admin.offsets",
    "KafkaPrincipal": "barnabas.client.admin.tokens",
    "ListConsumerGroupOffsetsSpec": "barnabas.client.admin.group_offsets",
    "ListOffsetsResultInfo": "barnabas.client.admin.offsets",
    "ListShareGroupOffsetsSpec": "barnabas.client.admin.share_groups",
    "Listing": "barnabas.client.admin.group_descriptions",
    "LogDirDescription": "barnabas.client.admin.log_dirs",
    "MemberAssignment": "barnabas.client.admin.group_descriptions",
    "MemberDescription": "barnabas.client.admin.group_descriptions",
    "MemberToRemove": "barnabas.client.admin.groups",
    "NewPartitionReassignment": "barnabas.client.admin.reassignments",
    "NewPartitions": "barnabas.client.admin.topics",
    "NewTopic": "barnabas.client.admin.topics",
    "NodeApiVersions": "barnabas.client.admin.cluster",
    "OffsetAndMetadata": "barnabas.client.consumer.offset_and_metadata",
    "OffsetSpec": "barnabas.client.admin.offsets",
    "OpType": "barnabas.client.admin.configs",
    "Outcomes": "barnabas.client.admin.outcomes",
    "PartitionReassignment": "barnabas.client.admin.reassignments",
    "PatternType": "barnabas.client.admin.acl_values",
    "ProducerIdAndEpoch": "barnabas.client.admin.transactions",
    "ProducerState": "barnabas.client.admin.producers",
    "QuorumInfo": "barnabas.client.admin.quorum",
    "RaftVoterEndpoint": "barnabas.client.admin.quorum",
    "RecordsToDelete": "barnabas.client.admin.records",
    "ReplicaInfo": "barnabas.client.admin.log_dirs",
    "ReplicaLogDirInfo": "barnabas.client.admin.log_dirs",
    "ReplicaState": "barnabas.client.admin.quorum",
    "ResourcePattern": "barnabas.client.admin.acl_values",
    "ResourcePatternFilter": "barnabas.client.admin.acl_values",
    "ResourceType": "barnabas.client.admin.acl_values",
    "ScramCredentialInfo": "barnabas.client.admin.scram",
    "ScramMechanism": "barnabas.client.admin.scram",
    "ShareGroupDescription": "barnabas.client.admin.share_groups",
    "ShareMemberDescription": "barnabas.client.admin.share_groups",
    "SharePartitionOffsetInfo": "barnabas.client.admin.share_groups",
    "StreamsGroupDescription": "barnabas.client.admin.streams_groups",
    "StreamsGroupMemberAssignment": "barnabas.client.admin.streams_groups",
    "StreamsGroupMemberDescription": "barnabas.client.admin.streams_groups",
    "StreamsGroupSubtopologyDescription": "barnabas.client.admin.streams_groups",
    "StreamsTopicInfo": "barnabas.client.admin.streams_groups",
    "SupportedVersionRange": "barnabas.client.admin.features",
    "TaskIds": "barnabas.client.admin.streams_groups",
    "TaskOffset": "barnabas.client.admin.streams_groups",
    "TokenInformation": "barnabas.client.admin.tokens",
    "TopicDescription": "barnabas.client.admin.topic_descriptions",
    "TopicListing": "barnabas.client.admin.topics",
    "TopicMetadataAndConfig": "barnabas.client.admin.topics",
    "TopicPartitionInfo": "barnabas.client.admin.topic_descriptions",
    "TopicPartitionReplica": "barnabas.client.admin.log_dirs",
    "TransactionDescription": "barnabas.client.admin.transactions",
    "TransactionListing": "barnabas.client.admin.transactions",
    "TransactionState": "barnabas.client.admin.transactions",
    "UpgradeType": "barnabas.client.admin.features",
    "UserScramCredentialDeletion": "barnabas.client.admin.scram",
    "UserScramCredentialUpsertion": "barnabas.client.admin.scram",
    "UserScramCredentialsDescription": "barnabas.client.admin.scram",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
