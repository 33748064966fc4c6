"""The names of Kafka's loggers, and which of them each part of the source logs to.

Modules log under their Python name, as libraries do. Operators know Kafka's names: the broker prints them, and BROKER_LOGGER lists and
changes them. `MODULES` is the table between the two; the longest prefix of a module's name counts. Four loggers have Kafka's name in the
source, too, because no module alone writes them: state changes, requests and the decisions of the authorizer, and root.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any, Final

TRACE: Final = 5  # Python has no level below DEBUG

AUTHORIZER: Final = "kafka.authorizer.logger"
CLEANER: Final = "kafka.log.LogCleaner"
CONTROLLER: Final = "kafka.controller"
REQUEST: Final = "kafka.request.logger"
STATE_CHANGE: Final = "state.change.logger"

NO_CORRELATION_ID: Final = -1  # in lines about a request of the controller in this process, which has none

MODULES: Final = {
    "barnabas": "kafka",
    "barnabas.broker": "kafka.server.KafkaServer",
    "barnabas.broker.cluster": "kafka.server.KafkaServer",
    "barnabas.broker.cluster.local_channel": "kafka.controller.RequestSendThread",
    "barnabas.broker.cluster.remote_channel": "kafka.controller.RequestSendThread",
    "barnabas.broker.config": "kafka.server.DynamicBrokerConfig",
    "barnabas.broker.config.alterations.config_alterations": "kafka.server.ConfigAdminManager",
    "barnabas.broker.config.config_manager": "kafka.server.ConfigAdminManager",
    "barnabas.broker.config.log_levels": "kafka.utils.Log4jController",
    "barnabas.broker.coordinators": "kafka.coordinator.group.GroupMetadataManager",
    "barnabas.broker.dispatcher": "kafka.server.KafkaApis",
    "barnabas.broker.groups": "kafka.coordinator.group.GroupCoordinator",
    "barnabas.broker.handlers": "kafka.server.KafkaApis",
    "barnabas.broker.links": "kafka.server.NodeToControllerRequestThread",
    "barnabas.broker.partitions": "kafka.cluster.Partition",
    "barnabas.broker.quotas": "kafka.server.ClientQuotaManager",
    "barnabas.broker.replication": "kafka.server.ReplicaManager",
    "barnabas.broker.replication.follower_fetch": "kafka.server.ReplicaFetcherThread",
    "barnabas.broker.replication.follower_session": "kafka.server.ReplicaFetcherThread",
    "barnabas.broker.replication.log_dir_mover": "kafka.server.ReplicaAlterLogDirsThread",
    "barnabas.broker.replication.replica_fetchers": "kafka.server.ReplicaFetcherManager",
    "barnabas.broker.requests": "kafka.server.KafkaApis",
    "barnabas.broker.requests.fetch_session": "kafka.server.FetchManager",
    "barnabas.broker.security": "org.apache.kafka.common.security",
    "barnabas.broker.security.authorizer": "kafka.security.authorizer.AclAuthorizer",
    "barnabas.broker.security.tokens": "kafka.server.DelegationTokenManager",
    "barnabas.broker.server": "kafka.server.KafkaServer",
    "barnabas.broker.telemetry": "org.apache.kafka.server.ClientMetricsManager",
    "barnabas.broker.topics": "kafka.server.ZkAdminManager",
    "barnabas.broker.topics.auto_topic_creation": "kafka.server.DefaultAutoTopicCreationManager",
    "barnabas.broker.topics.metadata_cache": "kafka.server.metadata.ZkMetadataCache",
    "barnabas.broker.transactions": "kafka.coordinator.transaction.TransactionCoordinator",
    "barnabas.broker.transactions.producer_ids": "kafka.coordinator.transaction.ZkProducerIdManager",
    "barnabas.broker.transactions.transaction_markers": "kafka.coordinator.transaction.TransactionMarkerChannelManager",
    "barnabas.broker.waiting": "kafka.server.DelayedOperationPurgatory",
    "barnabas.client": "org.apache.kafka.clients",
    "barnabas.controller": "kafka.controller.KafkaController",
    "barnabas.controller.states.partition_states": "kafka.controller.ZkPartitionStateMachine",
    "barnabas.controller.states.replica_states": "kafka.controller.ZkReplicaStateMachine",
    "barnabas.controller.states.request_batch": "kafka.controller.ControllerBrokerRequestBatch",
    "barnabas.controller.states.topic_deletion": "kafka.controller.TopicDeletionManager",
    "barnabas.coordinator": "kafka.coordinator.group.GroupMetadataManager",
    "barnabas.coordinator.group": "kafka.coordinator.group.GroupCoordinator",
    "barnabas.coordinator.group.shard": "kafka.coordinator.group.GroupMetadataManager",
    "barnabas.coordinator.transaction": "kafka.coordinator.transaction.TransactionCoordinator",
    "barnabas.coordinator.transaction.markers": "kafka.coordinator.transaction.TransactionMarkerChannelManager",
    "barnabas.metadata": "kafka.zookeeper.ZooKeeperClient",
    "barnabas.network": "kafka.network.SocketServer",
    "barnabas.network.connection": "kafka.network.Processor",
    "barnabas.network.listener": "kafka.network.Acceptor",
    "barnabas.storage": "kafka.log.LogManager",
    "barnabas.storage.compaction": CLEANER,
    "barnabas.storage.leader_epochs": "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache",
    "barnabas.storage.log": "kafka.log.UnifiedLog",
    "barnabas.storage.log.loader": "kafka.log.LogLoader",
    "barnabas.storage.producers": "org.apache.kafka.storage.internals.log.ProducerStateManager",
    "barnabas.storage.segments": "org.apache.kafka.storage.internals.log.LogSegment",
    "barnabas.tools": "kafka.Kafka",
}

logging.addLevelName(TRACE, "TRACE")


class Prefixed(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines begin with a prefix, as those of many classes of Kafka do. The prefix must not contain `%`."""

    def __init__(self, logger: logging.Logger, prefix: str) -> None:
        super().__init__(logger, {})
        self._prefix = prefix

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[str, MutableMapping[str, Any]]:
        return f"{self._prefix}{msg}", kwargs


def with_parents(name: str) -> list[str]:
    """A logger's name, then those of its parents, nearest first: `a.b.c`, `a.b`, `a`."""
    names = [name]
    while "." in name:
        name = name.rpartition(".")[0]
        names.append(name)
    return names


def _known() -> frozenset[str]:
    named = {AUTHORIZER, CONTROLLER, REQUEST, STATE_CHANGE, *MODULES.values()}
    parents = {parent for name in named for parent in with_parents(name)}
    return frozenset(named | {name for name in parents if name.startswith(("kafka", "org.apache.kafka"))})


KNOWN: Final = _known()  # Kafka's names: those of the table and their parents

_kafka_names: dict[str, str] = {}  # one entry a logger of this process


def kafka_name(logger: str) -> str:
    """Kafka's name of a Python logger. Loggers of other projects keep theirs."""
    name = _kafka_names.get(logger)
    if name is None:
        name = _kafka_names[logger] = next((MODULES[prefix] for prefix in with_parents(logger) if prefix in MODULES), logger)
    return name


def is_below(name: str, parent: str) -> bool:
    """Whether a logger is this one or a child of it."""
    return name == parent or name.startswith(f"{parent}.")
