"""Settings of resources."""

from __future__ import annotations

import pytest

from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType, ConfigSource, ConfigSynonym, ConfigType, OpType
from barnabas.client.errors import IllegalArgument, IllegalState
from barnabas.errors import UnknownTopicOrPartition
from barnabas.protocol import api_keys
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest
from barnabas.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest
from barnabas.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse as IncrementalResult,
)
from barnabas.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.protocol.messages.list_config_resources_response import ConfigResource as Listed
from barnabas.protocol.messages.list_config_resources_response import ListConfigResourcesResponse
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
BROKER = ConfigResource(ConfigResourceType.BROKER, "2")
LOGGER = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")


def described(node_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    entry = DescribeConfigsResourceResult(
        "retention.ms", str(node_id), False, False, 1, False, [DescribeConfigsSynonym("log.retention.ms", "7", 4)], 5, "How long."
    )
    results = [DescribeConfigsResult(0, None, resource.resource_type, resource.resource_name, [entry]) for resource in request.resources]
    return DescribeConfigsResponse(results=results)


def test_a_broker_is_asked_about_itself_and_any_about_the_rest() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeConfigsRequest, described)
    configs = run(ScriptedAdmin(cluster).describe_configs([TOPIC, BROKER, LOGGER, DEFAULT]))
    assert {resource: configs[resource]["retention.ms"].value for resource in configs} == {
        TOPIC: "3",
        BROKER: "2",
        LOGGER: "1",
        DEFAULT: "3",
    }
    assert len(cluster.sent) == 3


def test_an_entry_tells_where_its_value_comes_from() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeConfigsRequest, described)
    entry = run(ScriptedAdmin(cluster).describe_configs([TOPIC], include_synonyms=True, include_documentation=True))[TOPIC]["retention.ms"]
    assert (entry.source, entry.type, entry.documentation) == (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigType.LONG, "How long.")
    assert entry.synonyms == (ConfigSynonym("log.retention.ms", "7", ConfigSource.STATIC_BROKER_CONFIG),)
    assert not entry.is_default
    request = cluster.requests(DescribeConfigsRequest)[0]
    assert request.include_synonyms and request.include_documentation and request.resources[0].configuration_keys is None


def test_a_broker_has_a_number_for_a_name() -> None:
    with pytest.raises(IllegalArgument, match="number"):
        run(ScriptedAdmin(FakeCluster()).describe_configs([ConfigResource(ConfigResourceType.BROKER, "one")]))


def altered(node_id: int, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalResult(3 if resource.resource_name == "gone" else 0, None, resource.resource_type, resource.resource_name)
            for resource in request.resources
        ]
    )


def test_changes_are_made_one_by_one() -> None:
    cluster = FakeCluster()
    cluster.on(IncrementalAlterConfigsRequest, altered)
    gone = ConfigResource(ConfigResourceType.TOPIC, "gone")
    changes = {
        TOPIC: [AlterConfigOp("a", "1"), AlterConfigOp("b", op_type=OpType.DELETE), AlterConfigOp("c", "x", OpType.APPEND)],
        gone: [AlterConfigOp("a", "1")],
        BROKER: [AlterConfigOp("d", "2")],
    }
    outcomes = run(ScriptedAdmin(cluster).incremental_alter_configs(changes, validate_only=True))
    assert outcomes[TOPIC] is None and outcomes[BROKER] is None
    assert isinstance(outcomes.errors[gone], UnknownTopicOrPartition)
    assert sorted(cluster.nodes_asked(IncrementalAlterConfigsRequest)) == [2, 3]
    request = next(one for one in cluster.requests(IncrementalAlterConfigsRequest) if len(one.resources) == 2)
    assert [(row.name, row.config_operation, row.value) for row in request.resources[0].configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
        ("c", 2, "x"),
    ]
    assert request.validate_only


def test_all_settings_can_be_replaced() -> None:
    cluster = FakeCluster()
    cluster.on(AlterConfigsRequest, AlterConfigsResponse(responses=[AlterConfigsResourceResponse(0, None, 2, "t")]))
    run(ScriptedAdmin(cluster).alter_configs({TOPIC: {"retention.ms": "5"}})).all()
    assert [(row.name, row.value) for row in cluster.requests(AlterConfigsRequest)[0].resources[0].configs] == [("retention.ms", "5")]


def test_resources_with_settings_are_listed() -> None:
    cluster = FakeCluster()
    cluster.on(ListConfigResourcesRequest, ListConfigResourcesResponse(config_resources=[Listed("m", 16), Listed("t", 2)]))
    assert run(ScriptedAdmin(cluster).list_config_resources()) == [ConfigResource(ConfigResourceType.CLIENT_METRICS, "m"), TOPIC]


def test_older_brokers_list_client_metrics_only() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.LIST_CONFIG_RESOURCES] = 0
    cluster.on(ListConfigResourcesRequest, ListConfigResourcesResponse(config_resources=[Listed("m")]))
    admin = ScriptedAdmin(cluster)
    assert [listing.name for listing in run(admin.list_client_metrics_resources())] == ["m"]
    with pytest.raises(UnsupportedVersion):
        run(admin.list_config_resources([ConfigResourceType.TOPIC]))


def test_a_client_that_pushes_no_metrics_has_no_id() -> None:
    with pytest.raises(IllegalState, match="Telemetry is not enabled"):
        run(ScriptedAdmin(FakeCluster()).client_instance_id())
