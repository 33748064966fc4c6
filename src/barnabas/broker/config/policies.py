"""Loads the classes of create.topic.policy.class.name and alter.config.policy.class.name, which may reject new topics and config changes.

The value is the dotted path of a Python class. The broker makes one instance at its start, calls `configure` with the broker's properties,
`validate` before each write, and `close` at the shutdown. A policy rejects a request by raising PolicyViolation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig

CREATE_TOPIC_POLICY: Final = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY: Final = "alter.config.policy.class.name"
POLICY_METHODS: Final = ("configure", "validate", "close")


@dataclass(frozen=True, slots=True)
class CreateTopicMetadata:
    """A topic to be created. With a manual assignment, `num_partitions` and `replication_factor` are None."""

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, tuple[int, ...]] | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AlterConfigMetadata:
    """The requested configs of one resource. `resource_type` is the number in the protocol."""

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    def configure(self, configs: dict[str, str]) -> None: ...

    def validate(self, metadata: CreateTopicMetadata) -> None: ...

    def close(self) -> None: ...


class AlterConfigPolicy(Protocol):
    def configure(self, configs: dict[str, str]) -> None: ...

    def validate(self, metadata: AlterConfigMetadata) -> None: ...

    def close(self) -> None: ...


def load_policy(config: BrokerConfig, key: str, methods: Collection[str] = POLICY_METHODS) -> Any:
    """The configured policy of a setting; None if it is not set. Raises InvalidConfig if there is no such class, or without these methods.

    Nothing but a class is called: the setting may name any function."""
    name = config.text(key)
    if not name:
        return None
    module_name, _, class_name = name.rpartition(".")
    try:
        named = getattr(import_module(module_name), class_name)
        missing = [method for method in methods if not callable(getattr(named, method, None))]
        policy = named() if isinstance(named, type) and not missing else None
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidConfig(
            f"Invalid value {name} for configuration {key}: no Python class can be made of it ({error}); "
            "give the dotted path of a class that is on PYTHONPATH, as in rules.topics.NamingPolicy"
        ) from error
    if policy is None:
        raise InvalidConfig(f"Invalid value {name} for configuration {key}: it must be a class with the methods {', '.join(methods)}")
    policy.configure(dict(config.properties))
    return policy
