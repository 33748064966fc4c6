"""The two faces of the admin client, and what connects them."""

from __future__ import annotations

import inspect
import re

import pytest

from barnabas.client.admin import Admin, AsyncAdmin
from barnabas.client.admin.controller_network import _as_metadata
from barnabas.client.errors import IllegalArgument, MismatchedEndpointType
from barnabas.client.metrics.metrics import Metric
from barnabas.config_def import InvalidConfig
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from tests.unit.client.admin.parts import run

SERVERS = {"bootstrap.servers": "localhost:1"}
OWN = {"start"}  # what only the face on asyncio has
PLAIN = {
    "close",
    "last_connection_error",
    "metrics",
    "register_metric_for_subscription",
    "unregister_metric_from_subscription",
}  # what asks no broker
# Java's Admin 4.2, in the names of Python.
JAVA = [
    "abort_transaction",
    "add_raft_voter",
    "alter_client_quotas",
    "alter_consumer_group_offsets",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "alter_share_group_offsets",
    "alter_streams_group_offsets",
    "alter_user_scram_credentials",
    "client_instance_id",
    "close",
    "create_acls",
    "create_delegation_token",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_consumer_group_offsets",
    "delete_consumer_groups",
    "delete_records",
    "delete_share_group_offsets",
    "delete_share_groups",
    "delete_streams_group_offsets",
    "delete_streams_groups",
    "delete_topics",
    "describe_acls",
    "describe_classic_groups",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_consumer_groups",
    "describe_delegation_token",
    "describe_features",
    "describe_log_dirs",
    "describe_metadata_quorum",
    "describe_producers",
    "describe_replica_log_dirs",
    "describe_share_groups",
    "describe_streams_groups",
    "describe_topics",
    "describe_transactions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "expire_delegation_token",
    "fence_producers",
    "force_terminate_transaction",
    "incremental_alter_configs",
    "list_client_metrics_resources",
    "list_config_resources",
    "list_consumer_group_offsets",
    "list_consumer_groups",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_share_group_offsets",
    "list_streams_group_offsets",
    "list_topics",
    "list_transactions",
    "metrics",
    "register_metric_for_subscription",
    "remove_members_from_consumer_group",
    "remove_raft_voter",
    "renew_delegation_token",
    "unregister_broker",
    "unregister_metric_from_subscription",
    "update_features",
]


def public(face: type) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")}


def test_every_operation_of_java_is_there() -> None:
    assert set(JAVA) <= public(Admin)


def test_both_faces_have_the_same_methods() -> None:
    assert public(AsyncAdmin) - public(Admin) == OWN
    assert public(Admin) <= public(AsyncAdmin)


@pytest.mark.parametrize("name", sorted(public(Admin) - PLAIN))
def test_a_blocking_method_has_the_signature_and_the_words_of_its_twin(name: str) -> None:
    blocking, twin = getattr(Admin, name), getattr(AsyncAdmin, name)
    assert inspect.signature(blocking) == inspect.signature(twin)
    assert blocking.__doc__ == twin.__doc__ and blocking.__doc__
    assert "timeout_ms" in inspect.signature(twin).parameters


def test_wrong_settings_are_refused_before_anything_is_started() -> None:
    with pytest.raises(InvalidConfig, match=re.escape("You must set either bootstrap.servers or bootstrap.controllers")):
        Admin({})


def test_a_client_that_was_never_used_is_closed_like_any_other() -> None:
    admin = Admin(SERVERS)
    admin.close()
    admin.close()
    run(AsyncAdmin(SERVERS).close())


def test_a_client_is_not_closed_before_it_is_closed() -> None:
    async def scenario() -> None:
        admin = AsyncAdmin(SERVERS)
        with pytest.raises(IllegalArgument, match="The timeout cannot be negative"):
            await admin.close(-1)
        await admin.close(0)

    run(scenario())


def test_its_metrics_have_its_name() -> None:
    with Admin(SERVERS, client_id="me") as admin:
        assert all(name.tag_map["client-id"] == "me" for name in admin.metrics())


def test_reporters_are_told_of_its_metrics() -> None:
    class Reporter:
        def __init__(self) -> None:
            self.told: list[str] = []

        def configure(self, configs: dict[str, object]) -> None:
            self.told.append(str(configs["client.id"]))

        def init(self, metrics: list[Metric]) -> None:
            self.told.append("init")

        def metric_change(self, metric: Metric) -> None:
            self.told.append(metric.name.group)

        def metric_removal(self, metric: Metric) -> None: ...

        def close(self) -> None:
            self.told.append("close")

    reporter = Reporter()
    Admin(SERVERS, client_id="me", metric_reporters=[reporter, "org.apache.kafka.common.metrics.JmxReporter"]).close()
    assert reporter.told[:2] == ["me", "init"] and reporter.told[-1] == "close"
    assert "admin-client-metrics" in reporter.told


def test_controllers_are_told_of_as_if_they_were_brokers() -> None:
    metadata = _as_metadata(DescribeClusterResponse(cluster_id="c", controller_id=3, brokers=[DescribeClusterBroker(3, "h", 9093)]))
    assert (metadata.cluster_id, metadata.controller_id, [(one.node_id, one.host, one.port) for one in metadata.brokers]) == (
        "c",
        3,
        [(3, "h", 9093)],
    )
    with pytest.raises(MismatchedEndpointType):
        _as_metadata(DescribeClusterResponse(error_code=114))
