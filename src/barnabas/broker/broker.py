"""The parts of a broker, each made once. Handlers get this object and use the parts they need.

It has no behaviour of its own. `server` builds it, starts its parts in order and stops them in reverse.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.broker.config import DynamicBrokerConfig
    from barnabas.broker.config.config_manager import ConfigManager
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.requests.fetch_session import FetchManager
    from barnabas.broker.scheduling.loop_lag import LoopLag
    from barnabas.broker.scheduling.turns import Turns
    from barnabas.broker.security.access import Access
    from barnabas.broker.security.credentials import Credentials
    from barnabas.broker.security.scram_users import ScramUsers
    from barnabas.broker.security.tokens.delegation_tokens import DelegationTokens
    from barnabas.broker.telemetry.client_metrics_manager import ClientMetricsManager
    from barnabas.broker.topics.admin_manager import AdminManager
    from barnabas.broker.topics.auto_topic_creation import AutoTopicCreation
    from barnabas.broker.topics.features import FeatureLevels
    from barnabas.broker.topics.metadata_cache import MetadataCache
    from barnabas.broker.transactions.producer_ids import ProducerIdManager
    from barnabas.broker.transactions.transaction_markers import MarkerAppender
    from barnabas.broker.transactions.transaction_verification import TransactionVerification
    from barnabas.controller.controller import Controller
    from barnabas.coordinator.group.coordinator import GroupCoordinator
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
    from barnabas.metadata.client import TreeClient


@dataclass
class Broker:
    cluster_id: str
    broker_id: int
    config: DynamicBrokerConfig
    clock: Clock
    random: Random
    tree: TreeClient
    disk_threads: Executor
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    controller: Controller
    configs: ConfigManager
    admin: AdminManager
    fetch_sessions: FetchManager
    producer_ids: ProducerIdManager
    topic_creation: AutoTopicCreation
    features: FeatureLevels
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerAppender
    verification: TransactionVerification
    turns: Turns
    loop_lag: LoopLag
    access: Access
    credentials: Credentials
    scram_users: ScramUsers
    tokens: DelegationTokens
    client_metrics: ClientMetricsManager
    quotas: ClientQuotas
    cluster: ClusterMember | None = None  # None for a single broker
