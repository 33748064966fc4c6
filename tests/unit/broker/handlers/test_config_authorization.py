"""What the handlers of configs refuse a client that an authorizer does not allow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.config_def import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_configs_request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.incremental_alter_configs_request import AlterableConfig as ChangedConfig
from barnabas.protocol.messages.incremental_alter_configs_request import AlterConfigsResource as ChangedResource
from barnabas.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tests.unit.broker.config_broker import ConfigBroker
from tests.unit.broker.handlers.granting import decisions, granting

TOPIC, GROUP = ConfigResourceType.TOPIC, ConfigResourceType.GROUP
BROKER, LOGGER, METRICS = ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS

TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

# A config of each resource that a client may set, the operand of the grant, and the error without it.
RESOURCES = [
    (TOPIC, "orders", "retention.ms", "5000", "topic orders", TOPIC_DENIED),
    (GROUP, "g", "consumer.session.timeout.ms", "46000", "group g", GROUP_DENIED),
    (BROKER, "0", "log.cleaner.threads", "1", "cluster", CLUSTER_DENIED),
    (BROKER, "", "log.cleaner.threads", "1", "cluster", CLUSTER_DENIED),
    (METRICS, "m", "interval.ms", "1000", "cluster", CLUSTER_DENIED),
]
LOG_LEVELS = (LOGGER, "0", "kafka", "INFO", "cluster", CLUSTER_DENIED)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ConfigBroker]:
    with ConfigBroker(tmp_path, {"broker.id": "0"}, topics=["orders"]) as broker:
        yield broker


def describe(broker: ConfigBroker, *resources: tuple[ConfigResourceType, str], version: int = 4) -> list[tuple[int, str, int, str | None]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(int(kind), name, None) for kind, name in resources])
    answer: Any = broker.ask("describe_configs", request, version)
    assert not any(result.error_code and result.configs for result in answer.results)
    return [(result.resource_type, result.resource_name, result.error_code, result.error_message) for result in answer.results]


def alter(broker: ConfigBroker, handler: str, kind: ConfigResourceType, name: str, config: str, value: str) -> tuple[int, str | None]:
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest
    if handler == "alter_configs":
        request = AlterConfigsRequest([AlterConfigsResource(int(kind), name, [AlterableConfig(config, value)])])
    else:
        request = IncrementalAlterConfigsRequest([ChangedResource(int(kind), name, [ChangedConfig(config, 0, value)])])
    (result,) = broker.ask(handler, request, 1).responses  # type: ignore[attr-defined]
    return result.error_code, result.error_message


@pytest.mark.parametrize(("kind", "name", "config", "value", "operand", "code"), [*RESOURCES, LOG_LEVELS])
def test_configs_are_described_with_describe_configs_on_the_resource(
    broker: ConfigBroker, kind: ConfigResourceType, name: str, config: str, value: str, operand: str, code: ErrorCode
) -> None:
    broker.access = granting(f"DESCRIBE {operand}", f"ALTER_CONFIGS {operand}", "DESCRIBE_CONFIGS topic other")
    assert describe(broker, (kind, name)) == [(kind, name, code, code.message)]
    broker.access = granting(f"DESCRIBE_CONFIGS {operand}")
    assert describe(broker, (kind, name)) == [(kind, name, 0, "")]


def test_a_topic_that_may_not_be_described_may_exist_or_not(broker: ConfigBroker) -> None:
    broker.access = granting("DESCRIBE_CONFIGS cluster")
    topics = [(TOPIC, "orders"), (BROKER, "0"), (TOPIC, "gone"), (TOPIC, "not a topic")]
    denied = [(TOPIC, name, TOPIC_DENIED, "Topic authorization failed.") for name in ("orders", "gone", "not a topic")]
    assert describe(broker, *topics) == [(BROKER, "0", 0, ""), *denied]


@pytest.mark.parametrize("handler", ["alter_configs", "incremental_alter_configs"])
@pytest.mark.parametrize(("kind", "name", "config", "value", "operand", "code"), RESOURCES)
def test_configs_are_altered_with_alter_configs_on_the_resource(
    broker: ConfigBroker, handler: str, kind: ConfigResourceType, name: str, config: str, value: str, operand: str, code: ErrorCode
) -> None:
    broker.access = granting(f"ALTER {operand}", f"DESCRIBE_CONFIGS {operand}", "ALTER_CONFIGS topic other")
    assert alter(broker, handler, kind, name, config, value) == (code, code.message)
    broker.access = granting(f"ALTER_CONFIGS {operand}")
    assert alter(broker, handler, kind, name, config, value) == (0, None)


def test_log_levels_are_altered_with_alter_configs_on_the_cluster(broker: ConfigBroker) -> None:
    kind, name, config, value, _, code = LOG_LEVELS
    broker.loggers.getLogger(config)
    broker.access = granting("DESCRIBE_CONFIGS cluster")
    assert alter(broker, "incremental_alter_configs", kind, name, config, value) == (code, None)
    broker.access = granting("ALTER_CONFIGS cluster")
    assert alter(broker, "incremental_alter_configs", kind, name, config, value)[0] != code


@pytest.mark.parametrize("handler", ["alter_configs", "incremental_alter_configs"])
def test_a_denied_client_does_not_learn_what_is_wrong_with_its_values(broker: ConfigBroker, handler: str) -> None:
    broker.access = granting()
    assert alter(broker, handler, BROKER, "0", "log.cleaner.threads", "many")[0] == CLUSTER_DENIED
    assert alter(broker, handler, TOPIC, "gone", "retention.ms", "long")[0] == TOPIC_DENIED
    assert alter(broker, handler, BROKER, "7", "log.cleaner.threads", "1")[0] == ErrorCode.INVALID_REQUEST


def test_a_denied_resource_does_not_affect_the_others(broker: ConfigBroker) -> None:
    broker.access = granting("ALTER_CONFIGS topic orders")
    changes = [
        ChangedResource(int(kind), name, [ChangedConfig(config, 0, value)])
        for kind, name, config, value in ((GROUP, "g", "consumer.session.timeout.ms", "46000"), (TOPIC, "orders", "retention.ms", "5000"))
    ]
    answer: Any = broker.ask("incremental_alter_configs", IncrementalAlterConfigsRequest(changes), 1)
    assert [(result.resource_name, result.error_code) for result in answer.responses] == [("g", GROUP_DENIED), ("orders", 0)]
    assert decisions(broker.access) == ["ALTER_CONFIGS group g", "ALTER_CONFIGS topic orders"]
