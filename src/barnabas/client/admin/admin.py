"""The blocking admin client: runs the methods of `AsyncAdmin` on an event loop thread of its own and waits for their results.

It is thread-safe; calls from different threads run concurrently.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.errors import IllegalState, KafkaError
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics.metrics import Metric, MetricName

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(method: Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Admin, P], R]:
    """A blocking version of a method of `AsyncAdmin`. The call's own deadline bounds the wait."""

    @functools.wraps(method)
    def call(self: Admin, /, *arguments: P.args, **keywords: P.kwargs) -> R:
        return self._thread.run(method(self._admin, *arguments, **keywords))

    return call


class Admin:
    """`with Admin(bootstrap_servers="localhost:9092") as admin: admin.create_topics([NewTopic("orders", 6, 3)]).all()`

    Configured by Kafka's dotted names in a mapping, or by keyword arguments with `_` for the dots. Every method takes `timeout_ms`, which
    replaces default.api.timeout.ms.
    """

    def __init__(self, config: Mapping[str, object] | None = None, **keywords: object) -> None:
        self._admin = AsyncAdmin(config, **keywords)
        self._thread = LoopThread("barnabas-admin")
        self._thread.start()
        self._closed = False

    def close(self, timeout_ms: int | None = None) -> None:
        """Waits for pending calls for at most `timeout_ms` (None: until they finish), then closes the connections and ends the thread. May
        be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.run(self._admin.close(timeout_ms))
        except IllegalState:
            pass  # in a forked child process the event loop thread does not exist
        finally:
            self._thread.close()

    def last_connection_error(self) -> KafkaError | None:
        """The last connection failure of an address that has not been connected to since; None if there is none.

        Every Timeout of this client has it as its cause.
        """
        return self._admin.last_connection_error()

    def metrics(self) -> dict[MetricName, Metric]:
        """The client's own metrics."""
        return self._admin.metrics()

    def register_metric_for_subscription(self, metric: Metric) -> None:
        """Pushes a metric of the application with the client's own metrics, if the cluster subscribes to it (KIP-1076)."""
        self._admin.register_metric_for_subscription(metric)

    def unregister_metric_from_subscription(self, metric: Metric) -> None:
        """Stops pushing a metric of the application."""
        self._admin.unregister_metric_from_subscription(metric)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Topics

    create_topics = _blocking(AsyncAdmin.create_topics)
    delete_topics = _blocking(AsyncAdmin.delete_topics)
    list_topics = _blocking(AsyncAdmin.list_topics)
    describe_topics = _blocking(AsyncAdmin.describe_topics)
    create_partitions = _blocking(AsyncAdmin.create_partitions)

    # Settings

    describe_configs = _blocking(AsyncAdmin.describe_configs)
    incremental_alter_configs = _blocking(AsyncAdmin.incremental_alter_configs)
    alter_configs = _blocking(AsyncAdmin.alter_configs)
    list_config_resources = _blocking(AsyncAdmin.list_config_resources)
    list_client_metrics_resources = _blocking(AsyncAdmin.list_client_metrics_resources)
    client_instance_id = _blocking(AsyncAdmin.client_instance_id)

    # Cluster

    describe_cluster = _blocking(AsyncAdmin.describe_cluster)
    describe_api_versions = _blocking(AsyncAdmin.describe_api_versions)
    unregister_broker = _blocking(AsyncAdmin.unregister_broker)
    controlled_shutdown = _blocking(AsyncAdmin.controlled_shutdown)
    describe_metadata_quorum = _blocking(AsyncAdmin.describe_metadata_quorum)
    add_raft_voter = _blocking(AsyncAdmin.add_raft_voter)
    remove_raft_voter = _blocking(AsyncAdmin.remove_raft_voter)
    describe_features = _blocking(AsyncAdmin.describe_features)
    update_features = _blocking(AsyncAdmin.update_features)

    # Groups

    list_groups = _blocking(AsyncAdmin.list_groups)
    list_consumer_groups = _blocking(AsyncAdmin.list_consumer_groups)
    describe_consumer_groups = _blocking(AsyncAdmin.describe_consumer_groups)
    describe_classic_groups = _blocking(AsyncAdmin.describe_classic_groups)
    delete_consumer_groups = _blocking(AsyncAdmin.delete_consumer_groups)
    delete_share_groups = _blocking(AsyncAdmin.delete_share_groups)
    delete_streams_groups = _blocking(AsyncAdmin.delete_streams_groups)
    remove_members_from_consumer_group = _blocking(AsyncAdmin.remove_members_from_consumer_group)
    list_consumer_group_offsets = _blocking(AsyncAdmin.list_consumer_group_offsets)
    list_streams_group_offsets = _blocking(AsyncAdmin.list_streams_group_offsets)
    alter_consumer_group_offsets = _blocking(AsyncAdmin.alter_consumer_group_offsets)
    alter_streams_group_offsets = _blocking(AsyncAdmin.alter_streams_group_offsets)
    delete_consumer_group_offsets = _blocking(AsyncAdmin.delete_consumer_group_offsets)
    delete_streams_group_offsets = _blocking(AsyncAdmin.delete_streams_group_offsets)
    describe_share_groups = _blocking(AsyncAdmin.describe_share_groups)
    list_share_group_offsets = _blocking(AsyncAdmin.list_share_group_offsets)
    alter_share_group_offsets = _blocking(AsyncAdmin.alter_share_group_offsets)
    delete_share_group_offsets = _blocking(AsyncAdmin.delete_share_group_offsets)
    describe_streams_groups = _blocking(AsyncAdmin.describe_streams_groups)

    # Partitions

    list_offsets = _blocking(AsyncAdmin.list_offsets)
    delete_records = _blocking(AsyncAdmin.delete_records)
    describe_log_dirs = _blocking(AsyncAdmin.describe_log_dirs)
    describe_replica_log_dirs = _blocking(AsyncAdmin.describe_replica_log_dirs)
    alter_replica_log_dirs = _blocking(AsyncAdmin.alter_replica_log_dirs)
    alter_partition_reassignments = _blocking(AsyncAdmin.alter_partition_reassignments)
    list_partition_reassignments = _blocking(AsyncAdmin.list_partition_reassignments)
    elect_leaders = _blocking(AsyncAdmin.elect_leaders)
    describe_producers = _blocking(AsyncAdmin.describe_producers)
    list_transactions = _blocking(AsyncAdmin.list_transactions)
    describe_transactions = _blocking(AsyncAdmin.describe_transactions)
    abort_transaction = _blocking(AsyncAdmin.abort_transaction)
    fence_producers = _blocking(AsyncAdmin.fence_producers)
    force_terminate_transaction = _blocking(AsyncAdmin.force_terminate_transaction)

    # Security

    describe_acls = _blocking(AsyncAdmin.describe_acls)
    create_acls = _blocking(AsyncAdmin.create_acls)
    delete_acls = _blocking(AsyncAdmin.delete_acls)
    describe_user_scram_credentials = _blocking(AsyncAdmin.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(AsyncAdmin.alter_user_scram_credentials)
    create_delegation_token = _blocking(AsyncAdmin.create_delegation_token)
    renew_delegation_token = _blocking(AsyncAdmin.renew_delegation_token)
    expire_delegation_token = _blocking(AsyncAdmin.expire_delegation_token)
    describe_delegation_token = _blocking(AsyncAdmin.describe_delegation_token)
    describe_client_quotas = _blocking(AsyncAdmin.describe_client_quotas)
    alter_client_quotas = _blocking(AsyncAdmin.alter_client_quotas)
