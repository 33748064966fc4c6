"""What of Kafka's MBeans our brokers do not show, or count differently, with the reasons: docs/differences.md has them in prose."""

from __future__ import annotations

import re
from typing import Final

# MBeans without a metric of ours, by patterns of `domain:type=…,name=…`.
ABSENT: Final = {
    r".*,name=[\w-]+-(rate|avg|max|ratio|p\d+)": "rates and averages are for Prometheus to compute",
    r"kafka\.server:type=[\w-]*(channel-metrics|fetcher-metrics|alter-partition-metrics|heartbeat-metrics|directory-assignments-metrics"
    r"|registration-metrics|broker-transaction-marker[\w-]*|forwarding-metrics|telemetry-metrics),.*": "connections of Kafka's Java client",
    r"kafka\.server:type=(raft-.*|broker-metadata-metrics|node-metrics|BrokerMetadataListener|MetadataLoader|SnapshotEmitter"
    r"|AssignmentsManager|ForwardingManager|ControllerServer|group-config-manager),.*": "KRaft",
    r"kafka\.controller:type=(ControllerEventManager,name=(AvgIdleRatio|EventQueueProcessingTimeMs)"
    r"|ControllerStats,name=(ElectionFromEligible.*|UpdateFeaturesRateAndTimeMs)|KafkaController,name=(BrokerRegistrationState"
    r"|ControlledShutdownBrokerCount|EventQueueOperations.*|FencedBrokerCount|IgnoredStaticVoters|Last.*|MetadataErrorCount"
    r"|NewActiveControllersCount|TimeSinceLastHeartbeatReceivedMs|TimedOutBrokerHeartbeatCount|ZkMigrationState))": "KRaft",
    r".*(?i:share|streams).*": "share groups and streams groups",
    r"kafka\.server:type=group-coordinator-metrics,name=(event-queue-size|classic.*)": "there is no queue of the coordinator's events",
    r"kafka\.server:type=(app-info|kafka-metrics-count|client-metrics),.*|.*,name=yammer-metrics-count": "facts about Java's registry",
    r"kafka\.server:type=(Produce|Fetch|Request|ControllerMutation),name=queue-size": "throttled channels are in no queue",
    r"kafka\.server:type=KafkaRequestHandlerPool,name=(Broker|Controller)RequestHandlerAvgIdlePercent": "there is one pool",
    r"kafka\.network:type=SocketServer,name=ControlPlane.*": "the control plane has no thread of its own",
    r"kafka\.network:type=RequestMetrics,name=DeprecatedRequestsPerSec": "clients choose its labels",
    r"kafka\.server:type=socket-server-metrics,name=(connections|connection-accept-throttle-time|ip-connection-accept-throttle-time"
    r"|MemoryPool.*|select-total|io-time-ns-total|io-wait-time-ns-total|iotime-total|io-waittime-total|network-io-total"
    r"|successful-authentication-no-reauth-total)": "parts of a selector, or labels that clients choose",
    r"kafka\.server:type=SessionExpireListener,name=ZooKeeperReadOnlyConnectsPerSec": "a broker does not connect to read only",
    r"kafka\.coordinator\.transaction:type=TransactionMarkerChannelManager,name=LogAppendRetryQueueSize": "an append is not retried later",
    r"kafka\.server:type=DelayedRemote.*|kafka\.log\.remote:.*": "tiered storage",
}
# Metrics of ours that no MBean was recorded for: Kafka makes them with their first event, or they are not Kafka's.
OURS: Final = {
    "kafka.network:type=RequestMetrics,name=ResponseBytes",
    "kafka.network:type=RequestChannel,name=ControlPlaneRequestQueueSize",
    "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
    "kafka.server:type=AlterLogDirsReplication,name=byte-rate",
    "kafka.server:type=FollowerReplication,name=byte-rate",
    "kafka.server:type=LeaderReplication,name=byte-rate",
    "kafka.server:type=Produce,name=byte-rate",
    "kafka.server:type=Produce,name=throttle-time",
    "kafka.server:type=Fetch,name=byte-rate",
    "kafka.server:type=Fetch,name=throttle-time",
    "kafka.server:type=Request,name=request-time",
    "kafka.server:type=Request,name=throttle-time",
    "kafka.server:type=ControllerMutation,name=throttle-time",
    "kafka.server:type=ControllerMutation,name=tokens",
}
# Gauges of ours that are meters in Kafka: dashboards read their mean rate, a share.
SHARES: Final = {
    "kafka.network:type=Acceptor,name=AcceptorBlockedPercent",
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
}
# Requests that a workload sends until something is done, or that brokers send by themselves.
_REPEATED: Final = (
    "AddPartitionsToTxn|AddPartitionsToTxnVerification|AllocateProducerIds|AlterPartition|ApiVersions|ControlledShutdown|CreateTopics|DeleteTopics|Fetch"
    "|FetchFollower|FindCoordinator|InitProducerId|LeaderAndIsr|ListPartitionReassignments|Metadata|OffsetCommit|OffsetForLeaderEpoch"
    "|StopReplica|UpdateMetadata|WriteTxnMarkers"
)
# Series whose values depend on time or on how often brokers ask each other, by patterns of the series.
NOT_EQUAL: Final = {
    rf"kafka\.network:type=RequestMetrics,.*request=({_REPEATED})[,}}].*": "asked until done, or sent by brokers",
    r"kafka\.network:type=RequestMetrics,name=ErrorsPerSec\{.*request=OffsetFetch.*": "asked until done",
    r"kafka\.network:type=(SocketServer|Processor|Acceptor|RequestChannel),.*": "limits and shares of time",
    r"kafka\.server:type=(socket-server-metrics|KafkaRequestHandlerPool|KafkaServer,name=linux.*|LeaderReplication|Request|Replica.*"
    r",name=(MinFetchRate|MaxLag)|FetcherStats|FetcherLagMetrics|FetchSessionCache|DelayedFetchMetrics|DelayedOperationPurgatory)"
    r"[,{].*|kafka\.server:type=(KafkaServer,name=linux-disk|Replica\w+Manager,name=(MinFetchRate|MaxLag)).*": "time and polling",
    r"kafka\.server:type=BrokerTopicMetrics,name=TotalFetchRequestsPerSec.*": "followers fetch all the time",
    r"kafka\.server:type=(ZooKeeperClientMetrics|SessionExpireListener|AddPartitionsToTxnManager),.*": "another protocol within the broker",
    r".*,name=partition-load-time-(avg|max).*": "time; NaN in Kafka before the first load",
    r"kafka\.log:type=(LogCleaner|LogCleanerManager|LogFlushStats)[,{].*|kafka\.utils:.*": "when cleanings and flushes begin",
    r"kafka\.controller:type=(ControllerEventManager|ControllerChannelManager),.*": "how events are batched",
    r"kafka\.controller:type=ControllerStats,name=(IsrChange|ListPartitionReassignment|LeaderAndIsrResponseReceived|TopicDeletion"
    r"|TopicChange|LeaderElection)RateAndTimeMs": "how notifications and responses are batched",
    r"kafka\.controller:type=ControllerStats,name=ManualLeaderBalanceRateAndTimeMs": "Kafka processes one more at each failover",
    r"kafka\.controller:type=KafkaController,name=ControllerState": "time",
}
# What Kafka 3.9.1 counts differently from 4.2, and ours as 4.2.
OLD: Final = {
    r".*(__consumer_offsets|__transaction_state).*": "records of the coordinators in the formats of 4.2",
    r"kafka\.server:type=group-coordinator-metrics,name=offset-commit-count": "a request with several offsets counts once in 3.9",
    r".*type=BrokerTopicMetrics,name=(BytesIn|BytesOut|MessagesIn|ReplicationBytes(In|Out)|TotalProduceRequests)PerSec": (
        "sums with the records of the coordinators"
    ),
    r".*name=BytesOutPerSec\{topic=old\}": "after the conversion; here before it",
}
# What 4.2 counts differently: its controller is in KRaft, and group counts are refreshed once a minute.
NEW: Final = {
    r"kafka\.coordinator\.group:type=GroupMetadataManager,name=NumGroups\w*|.*,name=group-count(\{.*)?": "refreshed once a minute in 4.2",
    r"kafka\.controller:.*": "KRaft",
    r".*__cluster_metadata.*|.*request=(BrokerHeartbeat|BrokerRegistration|ControllerRegistration|Envelope)[,}].*": "KRaft",
}


def reason_for(text: str, *tables: dict[str, str]) -> str | None:
    return next((reason for table in tables for pattern, reason in table.items() if re.fullmatch(pattern, text)), None)
