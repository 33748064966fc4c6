"""The definition of a broker setting, and the constants that the tables in `definitions` use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from barnabas.config_def import ConfigKey, Importance, InvalidConfig, Type, Validator

BOOLEAN: Final = Type.BOOLEAN
STRING: Final = Type.STRING
INT: Final = Type.INT
SHORT: Final = Type.SHORT
LONG: Final = Type.LONG
DOUBLE: Final = Type.DOUBLE
LIST: Final = Type.LIST
CLASS: Final = Type.CLASS
PASSWORD: Final = Type.PASSWORD

HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW


class UpdateMode(Enum):
    """How a setting can be changed dynamically: not at all, per broker, or per broker and cluster-wide."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


READ_ONLY: Final = UpdateMode.READ_ONLY
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE


@dataclass(frozen=True)
class BrokerConfigKey(ConfigKey):
    update_mode: UpdateMode = READ_ONLY


def key(
    name: str,
    kind: Type,
    default: Any,
    validator: Validator | None,
    importance: Importance,
    update_mode: UpdateMode,
    doc: str,
    hidden: bool = False,
) -> BrokerConfigKey:
    return BrokerConfigKey(name, kind, default, validator, importance, doc, hidden, update_mode)


class QuorumVoters:
    _ENTRY: Final = re.compile(r"[0-9]+@[^:@]+:[0-9]+|[0-9]+@\[[0-9a-fA-F:.]+\]:[0-9]+")

    def check(self, name: str, value: Any) -> None:
        if not all(self._ENTRY.fullmatch(entry.strip()) for entry in value):
            raise InvalidConfig(f"Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`.")

    def __str__(self) -> str:
        return "non-empty list"


class BootstrapServers:
    _ENTRY: Final = re.compile(r"([^:]+|\[[0-9a-fA-F:.]+\]):[0-9]+")

    def check(self, name: str, value: Any) -> None:
        for entry in value:
            if not self._ENTRY.fullmatch(entry.strip()):
                raise InvalidConfig(
                    f"Failed to parse host name from {entry} for the configuration {name}. "
                    'Each entry should be in the form "{host}:{port}"'
                )

    def __str__(self) -> str:
        return "non-empty list"
