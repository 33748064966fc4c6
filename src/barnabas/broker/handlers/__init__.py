"""What the broker can do, one file per API: a request in, a response out. The table says which file answers which API, in which versions.

A module is imported when its API is first asked for, so that a broker starts with the code it needs. Each has
`handle(broker, request)`, which returns the response, or None when it will call `request.respond` later, or where it has to wait for the
metadata tree or for turns of the loop an awaitable of either. The range of versions in the table is what ApiVersions advertises.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from barnabas.protocol import api_keys
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.handlers.parts import Parts
    from barnabas.broker.requests.request import Request

    Handle = Callable[[Broker, Request[Any]], Message | Awaitable[Message | None] | None]
    HandleMany = Callable[[Broker, Request[Any]], Awaitable[Message | None]]

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
    api_keys.DESCRIBE_CONFIGS: "describe_configs",
    api_keys.ALTER_CONFIGS: "alter_configs",
    api_keys.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs",
    api_keys.DESCRIBE_LOG_DIRS: "describe_log_dirs",
    api_keys.CREATE_PARTITIONS: "create_partitions",
    api_keys.DELETE_GROUPS: "delete_groups",
    api_keys.ELECT_LEADERS: "elect_leaders",
    api_keys.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    api_keys.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    api_keys.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    api_keys.OFFSET_DELETE: "offset_delete",
    api_keys.DESCRIBE_CLUSTER: "describe_cluster",
    api_keys.DESCRIBE_PRODUCERS: "describe_producers",
    api_keys.DESCRIBE_TRANSACTIONS: "describe_transactions",
    api_keys.LIST_TRANSACTIONS: "list_transactions",
    api_keys.CONSUMER_GROUP_HEARTBEAT: "consumer_group_heartbeat",
    api_keys.CONSUMER_GROUP_DESCRIBE: "consumer_group_describe",
    api_keys.LIST_CONFIG_RESOURCES: "list_config_resources",
    api_keys.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions",
}

# What brokers of one cluster say to each other. Served where there are others, and only to who comes by the listener that brokers use.
CONTROL: Final = {
    api_keys.LEADER_AND_ISR: "leader_and_isr",
    api_keys.STOP_REPLICA: "stop_replica",
    api_keys.UPDATE_METADATA: "update_metadata",
    api_keys.CONTROLLED_SHUTDOWN: "controlled_shutdown",
    api_keys.ALTER_PARTITION: "alter_partition",
    api_keys.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids",
}

# Answered at once, also by a broker that has just joined a cluster and not been told yet what there is: all else would be answered wrongly.
# Who produces or fetches asks again where this broker does not know of its partition.
AT_ONCE: Final = frozenset({api_keys.API_VERSIONS, api_keys.PRODUCE, api_keys.FETCH, *CONTROL})


class Handler:
    """One entry of the table, with its module once it was needed.

    A request with more than `turns.ELEMENTS_AT_ONCE` elements goes to `handle_many`, a coroutine that takes turns, or where the module has
    `PARTS` to `handle` part by part; where it has neither, `handle` is fast enough, or takes turns itself."""

    __slots__ = ("handle", "handle_many", "parts")

    def __init__(self, module: str) -> None:
        found = import_module(f"{__name__}.{module}")
        self.handle: Handle = found.handle
        self.handle_many: HandleMany | None = getattr(found, "handle_many", None)
        self.parts: Parts | None = getattr(found, "PARTS", None)
