"""The handlers, one module per API. The tables map API keys to modules; ApiVersions advertises the APIs in them.

A module is imported with the first request of its API, so that a broker starts with the code it needs. Each module has
`handle(broker, request)`, which returns the `Reply` to the request.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from barnabas.protocol import api_keys

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.handlers.parts import Parts
    from barnabas.broker.requests.reply import Reply
    from barnabas.broker.requests.request import Request

    Handle = Callable[[Broker, Request[Any]], Reply[Any]]

HANDLERS: Final = {
    api_keys.PRODUCE: "produce",
    api_keys.FETCH: "fetch",
    api_keys.LIST_OFFSETS: "list_offsets",
    api_keys.METADATA: "metadata",
    api_keys.OFFSET_COMMIT: "offset_commit",
    api_keys.OFFSET_FETCH: "offset_fetch",
    api_keys.FIND_COORDINATOR: "find_coordinator",
    api_keys.JOIN_GROUP: "join_group",
    api_keys.HEARTBEAT: "heartbeat",
    api_keys.LEAVE_GROUP: "leave_group",
    api_keys.SYNC_GROUP: "sync_group",
    api_keys.DESCRIBE_GROUPS: "describe_groups",
    api_keys.LIST_GROUPS: "list_groups",
    api_keys.SASL_HANDSHAKE: "sasl_handshake",
    api_keys.API_VERSIONS: "api_versions",
    api_keys.CREATE_TOPICS: "create_topics",
    api_keys.DELETE_TOPICS: "delete_topics",
    api_keys.DELETE_RECORDS: "delete_records",
    api_keys.INIT_PRODUCER_ID: "init_producer_id",
    api_keys.OFFSET_FOR_LEADER_EPOCH: "offset_for_leader_epoch",
    api_keys.ADD_PARTITIONS_TO_TXN: "add_partitions_to_txn",
    api_keys.ADD_OFFSETS_TO_TXN: "add_offsets_to_txn",
    api_keys.END_TXN: "end_txn",
    api_keys.WRITE_TXN_MARKERS: "write_txn_markers",
    api_keys.TXN_OFFSET_COMMIT: "txn_offset_commit",
    api_keys.DESCRIBE_ACLS: "describe_acls",
    api_keys.CREATE_ACLS: "create_acls",
    api_keys.DELETE_ACLS: "delete_acls",
    api_keys.DESCRIBE_CONFIGS: "describe_configs",
    api_keys.ALTER_CONFIGS: "alter_configs",
    api_keys.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs",
    api_keys.DESCRIBE_LOG_DIRS: "describe_log_dirs",
    api_keys.SASL_AUTHENTICATE: "sasl_authenticate",
    api_keys.CREATE_PARTITIONS: "create_partitions",
    api_keys.CREATE_DELEGATION_TOKEN: "create_delegation_token",
    api_keys.RENEW_DELEGATION_TOKEN: "renew_delegation_token",
    api_keys.EXPIRE_DELEGATION_TOKEN: "expire_delegation_token",
    api_keys.DESCRIBE_DELEGATION_TOKEN: "describe_delegation_token",
    api_keys.DELETE_GROUPS: "delete_groups",
    api_keys.ELECT_LEADERS: "elect_leaders",
    api_keys.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    api_keys.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    api_keys.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    api_keys.OFFSET_DELETE: "offset_delete",
    api_keys.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas",
    api_keys.ALTER_CLIENT_QUOTAS: "alter_client_quotas",
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: "describe_user_scram_credentials",
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: "alter_user_scram_credentials",
    api_keys.UPDATE_FEATURES: "update_features",
    api_keys.DESCRIBE_CLUSTER: "describe_cluster",
    api_keys.UNREGISTER_BROKER: "unregister_broker",
    api_keys.DESCRIBE_PRODUCERS: "describe_producers",
    api_keys.DESCRIBE_TRANSACTIONS: "describe_transactions",
    api_keys.LIST_TRANSACTIONS: "list_transactions",
    api_keys.CONSUMER_GROUP_HEARTBEAT: "consumer_group_heartbeat",
    api_keys.CONSUMER_GROUP_DESCRIBE: "consumer_group_describe",
    api_keys.GET_TELEMETRY_SUBSCRIPTIONS: "get_telemetry_subscriptions",
    api_keys.PUSH_TELEMETRY: "push_telemetry",
    api_keys.LIST_CONFIG_RESOURCES: "list_config_resources",
    api_keys.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions",
}

# Requests between the brokers of a cluster, which a single broker does not serve. Accepted only on the inter-broker or control-plane
# listener.
CONTROL: Final = {
    api_keys.LEADER_AND_ISR: "leader_and_isr",
    api_keys.STOP_REPLICA: "stop_replica",
    api_keys.UPDATE_METADATA: "update_metadata",
    api_keys.CONTROLLED_SHUTDOWN: "controlled_shutdown",
    api_keys.ALTER_PARTITION: "alter_partition",
    api_keys.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids",
}

# Served before the first UpdateMetadata arrives. Other APIs wait, because the metadata cache is still empty. Producers and fetchers retry
# when this broker does not know their partition yet.
AT_ONCE: Final = frozenset({api_keys.API_VERSIONS, api_keys.PRODUCE, api_keys.FETCH, *CONTROL})


class Handler:
    """The functions of one handler module.

    A request with more than `turns.ELEMENTS_AT_ONCE` elements goes to `handle_many`, which takes turns. If the module has `PARTS` instead,
    it goes to `handle` part by part. With neither, `handle` is fast enough or takes turns itself."""

    __slots__ = ("handle", "handle_many", "parts")

    def __init__(self, module: str) -> None:
        imported = import_module(f"{__name__}.{module}")
        self.handle: Handle = imported.handle
        self.handle_many: Handle | None = getattr(imported, "handle_many", None)
        self.parts: Parts | None = getattr(imported, "PARTS", None)
