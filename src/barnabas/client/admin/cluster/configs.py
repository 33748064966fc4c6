"""Settings of topics, brokers, broker loggers, groups and client metrics: describe, and alter one by one or as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls, Route, check_controller
from barnabas.client.admin.cluster.config_entries import (
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs_request as replacing
from barnabas.protocol.messages import incremental_alter_configs_request as incremental
from barnabas.protocol.messages.alter_configs_response import AlterConfigsResponse
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.protocol.messages.list_config_resources_response import ListConfigResourcesResponse

V = TypeVar("V")
Build = Callable[[int, Sequence[ConfigResource]], Message]


class OpType(IntEnum):
    """Java's AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """One change of a setting. DELETE needs no value. APPEND and SUBTRACT are for lists."""

    name: str
    value: str | None = None
    op_type: OpType = OpType.SET


class ConfigCalls:
    """Describes and alters settings."""

    _calls: Calls
    _uses_controllers: bool

    async def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[ConfigResource, Config]:
        """All settings of resources, including defaults. Settings of a broker are requested from that broker."""
        resources_to_describe = list(dict.fromkeys(config_resources))
        call = self._calls.begin("describe_configs", timeout_ms)

        def build(_: int, resources: Sequence[ConfigResource]) -> Message:
            described = [DescribeConfigsResource(resource.type, resource.name, None) for resource in resources]
            return DescribeConfigsRequest(described, include_synonyms, include_documentation)

        def read(response: DescribeConfigsResponse) -> ApiResult[ConfigResource, Config]:
            answer: ApiResult[ConfigResource, Config] = ApiResult()
            for result in response.results:
                resource = ConfigResource(ConfigResourceType.for_id(result.resource_type), result.resource_name)
                if result.error_code:
                    answer.failed[resource] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[resource] = _config(result)
            return answer

        groups: dict[int | None, list[ConfigResource]] = {}
        for resource in resources_to_describe:
            groups.setdefault(_node_of(resource), []).append(resource)
        parts = await asyncio.gather(
            *(self._calls.request_keys(call.branch(), group, self._route(node), build, read) for node, group in groups.items())
        )
        return _combined(resources_to_describe, parts)

    async def incremental_alter_configs(
        self, configs: Mapping[ConfigResource, Iterable[AlterConfigOp]], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[ConfigResource, None]:
        """Changes the given settings of resources; other settings keep their values. All changes of a resource are applied or none."""
        changes = {resource: list(operations) for resource, operations in configs.items()}

        def build(_: int, resources: Sequence[ConfigResource]) -> Message:
            return incremental.IncrementalAlterConfigsRequest(
                [
                    incremental.AlterConfigsResource(
                        resource.type,
                        resource.name,
                        [incremental.AlterableConfig(change.name, change.op_type, change.value) for change in changes[resource]],
                    )
                    for resource in resources
                ],
                validate_only,
            )

        call = self._calls.begin("incremental_alter_configs", timeout_ms)
        return await self._alter(call, list(changes), build)

    async def alter_configs(
        self,
        configs: Mapping[ConfigResource, Config | Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[ConfigResource, None]:
        """Replaces all settings of resources: a setting that is not given returns to its default. Kafka 4 removed this method from Java's
        Admin, but not from the protocol. Most callers need `incremental_alter_configs`."""
        values = {resource: _values(config) for resource, config in configs.items()}

        def build(_: int, resources: Sequence[ConfigResource]) -> Message:
            return replacing.AlterConfigsRequest(
                [
                    replacing.AlterConfigsResource(
                        resource.type, resource.name, [replacing.AlterableConfig(name, value) for name, value in values[resource].items()]
                    )
                    for resource in resources
                ],
                validate_only,
            )

        call = self._calls.begin("alter_configs", timeout_ms)
        return await self._alter(call, list(values), build)

    async def list_config_resources(
        self, config_resource_types: Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """The resources that have settings, of the given types or of all types. A broker before Kafka 4.1 lists only client metrics."""
        type_ids = [int(kind) for kind in config_resource_types]

        def read(response: ListConfigResourcesResponse) -> list[ConfigResource]:
            if response.error_code:
                raise error_for(response.error_code)
            return [
                ConfigResource(ConfigResourceType.for_id(resource.resource_type), resource.resource_name)
                for resource in response.config_resources
            ]

        call = self._calls.begin("list_config_resources", timeout_ms)
        try:
            return await self._calls.request_from_node(call, self._calls.any_node, lambda _: ListConfigResourcesRequest(type_ids), read)
        except UnsupportedVersion:
            if type_ids != [ConfigResourceType.CLIENT_METRICS]:
                raise
        return await self._calls.request_from_node(call, self._calls.any_node, lambda _: ListConfigResourcesRequest(), read)

    async def _alter(self, call: Call, resources: list[ConfigResource], build: Build) -> Outcomes[ConfigResource, None]:
        groups: dict[tuple[int | None, ConfigResource | None], list[ConfigResource]] = {}
        for resource in resources:
            node = _node_of(resource)
            if self._uses_controllers and resource.type is not ConfigResourceType.BROKER_LOGGER:
                node = None
            groups.setdefault((node, None if node is None else resource), []).append(resource)
        parts = await asyncio.gather(
            *(self._calls.request_keys(call.branch(), group, self._route(node), build, _altered) for (node, _), group in groups.items())
        )
        return _combined(resources, parts)

    def _route(self, node_id: int | None) -> Route:
        return self._calls.any_node if node_id is None else self._calls.node(node_id)


def _altered(response: IncrementalAlterConfigsResponse | AlterConfigsResponse) -> ApiResult[ConfigResource, None]:
    answer: ApiResult[ConfigResource, None] = ApiResult()
    for result in response.responses:
        check_controller(result.error_code, result.error_message)
        resource = ConfigResource(ConfigResourceType.for_id(result.resource_type), result.resource_name)
        if result.error_code:
            answer.failed[resource] = error_for(result.error_code, result.error_message)
        else:
            answer.done[resource] = None
    return answer


def _node_of(resource: ConfigResource) -> int | None:
    """The broker to which the request must go; None where any broker can respond."""
    if resource.type is ConfigResourceType.BROKER_LOGGER or (resource.type is ConfigResourceType.BROKER and not resource.is_default):
        try:
            return int(resource.name)
        except ValueError:
            raise IllegalArgument(f"The name of a broker is its id, a number, and not '{resource.name}'") from None
    return None


def _config(result: DescribeConfigsResult) -> Config:
    return Config(_entry(entry) for entry in result.configs)


def _entry(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        entry.name,
        entry.value,
        ConfigSource.for_id(entry.config_source),
        entry.is_sensitive,
        entry.read_only,
        tuple(ConfigSynonym(synonym.name, synonym.value, ConfigSource.for_id(synonym.source)) for synonym in entry.synonyms),
        ConfigType.for_id(entry.config_type),
        entry.documentation,
    )


def _values(config: Config | Mapping[str, str | None]) -> dict[str, str | None]:
    if isinstance(config, Config):
        return {entry.name: entry.value for entry in config.entries}
    return dict(config)


def _combined(resources: Iterable[ConfigResource], parts: Iterable[Outcomes[ConfigResource, V]]) -> Outcomes[ConfigResource, V]:
    values: dict[ConfigResource, V] = {}
    errors: dict[ConfigResource, KafkaError] = {}
    for part in parts:
        values.update(part.successes)
        errors.update(part.errors)
    return Outcomes(resources, values, errors)
