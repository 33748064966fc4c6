"""Configurations, quotas and log directories."""

from __future__ import annotations

from barnabas.protocol.messages import alter_client_quotas_request, alter_configs_request, incremental_alter_configs_request
from barnabas.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest
from barnabas.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.security.operations import AclOperation
from tests.integration.security.matrix.case import Acl, Case, Cell, on_cluster, on_group, on_topic
from tests.integration.security.matrix.names import GROUP, MISSING, OTHER, OTHER_GROUP, TOPIC
from tests.integration.security.matrix.peers import BROKER_ID

_TOPICS = (TOPIC, OTHER, MISSING)
_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32  # resource types of configurations
_TOPIC_SETTING = ("retention.ms", "1000")
_BROKER_SETTING = ("log.cleaner.threads", "1")
_GROUP_SETTING = ("consumer.session.timeout.ms", "50000")
_LOGGER_SETTING = ("no.such.logger", "INFO")  # neither broker has it
_METRICS_SETTING = ("interval.ms", "60000")
_ANY_NAME = 2  # a match type of quotas
_ALL_TYPES = 1  # the version of ListConfigResources with types
_MANY = {
    _TOPIC: (_TOPICS, _TOPIC_SETTING),
    _BROKER: ((str(BROKER_ID), ""), _BROKER_SETTING),
    _GROUP: ((GROUP, OTHER_GROUP), _GROUP_SETTING),
    _BROKER_LOGGER: ((str(BROKER_ID),), _LOGGER_SETTING),
    _CLIENT_METRICS: (("subscription",), _METRICS_SETTING),
}


def _describe(kind: int) -> DescribeConfigsRequest:
    names, (setting, _) = _MANY[kind]
    keys = ["root"] if kind == _BROKER_LOGGER else [setting]
    return DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys) for name in names])


def _alter(kind: int) -> AlterConfigsRequest:
    names, (setting, value) = _MANY[kind]
    configs = [alter_configs_request.AlterableConfig(setting, value)]
    return AlterConfigsRequest([alter_configs_request.AlterConfigsResource(kind, name, configs) for name in names], True)


def _alter_incrementally(kind: int) -> IncrementalAlterConfigsRequest:
    names, (setting, value) = _MANY[kind]
    configs = [incremental_alter_configs_request.AlterableConfig(setting, 0, value)]
    resources = [incremental_alter_configs_request.AlterConfigsResource(kind, name, configs) for name in names]
    return IncrementalAlterConfigsRequest(resources, True)


def _describe_quotas(cell: Cell) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest([ComponentData("user", _ANY_NAME, None)])


def _alter_quotas(cell: Cell) -> AlterClientQuotasRequest:
    operations = [alter_client_quotas_request.OpData("producer_byte_rate", 1024.0)]
    entities = [
        [alter_client_quotas_request.EntityData(kind, name)] for kind, name in (("user", "guest"), ("client-id", None), ("planet", ""))
    ]
    return AlterClientQuotasRequest([alter_client_quotas_request.EntryData(entity, operations) for entity in entities], True)


def _alter_log_dirs(cell: Cell) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest([AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(name, [0]) for name in _TOPICS])])


def _describe_log_dirs(cell: Cell) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest([DescribableLogDirTopic(name, [0]) for name in _TOPICS])


def _list_resources(cell: Cell) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest([_TOPIC] if cell.version >= _ALL_TYPES else [])


def _permission(kind: int, operation: AclOperation) -> Acl:
    if kind == _TOPIC:
        return on_topic(operation, TOPIC)
    return on_group(operation, GROUP) if kind == _GROUP else on_cluster(operation)


def _cases(kind: int, noun: str, lowest: int) -> list[Case]:
    def describing(cell: Cell) -> list[Acl]:
        return [_permission(kind, AclOperation.DESCRIBE_CONFIGS)]

    def altering(cell: Cell) -> list[Acl]:
        return [_permission(kind, AclOperation.ALTER_CONFIGS)]

    return [
        Case(f"DescribeConfigs of {noun}", (lowest, 1, 4), lambda cell: _describe(kind), describing),
        Case(f"AlterConfigs of {noun}", (0, 2), lambda cell: _alter(kind), altering),
        Case(f"IncrementalAlterConfigs of {noun}", (0, 1), lambda cell: _alter_incrementally(kind), altering),
    ]


CASES = (
    *_cases(_TOPIC, "topics", 0),
    *_cases(_BROKER, "brokers", 0),
    *_cases(_GROUP, "groups", 1),  # version 0 is answered by Kafka 3.9.1, which has no settings of groups in ZooKeeper mode
    *_cases(_BROKER_LOGGER, "loggers", 1),
    *_cases(_CLIENT_METRICS, "client metrics", 1),
    Case("ListConfigResources", (0, 1), _list_resources, lambda cell: [on_cluster(AclOperation.DESCRIBE_CONFIGS)], lists_everything=True),
    Case("DescribeClientQuotas", (0, 1), _describe_quotas, lambda cell: [on_cluster(AclOperation.DESCRIBE_CONFIGS)]),
    Case("AlterClientQuotas", (0, 1), _alter_quotas, lambda cell: [on_cluster(AclOperation.ALTER_CONFIGS)]),
    Case("AlterReplicaLogDirs", (0, 1, 2), _alter_log_dirs, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case("DescribeLogDirs", (0, 1, 3, 4), _describe_log_dirs, lambda cell: [on_cluster(AclOperation.DESCRIBE)]),
)
