"""Applies the operations of IncrementalAlterConfigs to the configs of a resource, without writing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from barnabas.config_def import ConfigKey, InvalidConfig, Type, value_text
from barnabas.errors import InvalidRequest, KafkaError

KeyOf = Callable[[str], ConfigKey | None]


class OpType(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OP_TYPES: Final = frozenset(int(kind) for kind in OpType)


@dataclass(frozen=True, slots=True)
class Operation:
    """`type` is the number in the request, which may not be a valid OpType."""

    name: str
    type: int
    value: str | None


def check_names_and_values(operations: Iterable[Operation]) -> None:
    """Raises InvalidRequest for a duplicate name or a missing value."""
    operations = list(operations)
    if len({operation.name for operation in operations}) < len(operations):
        raise InvalidRequest("Error due to duplicate config keys")
    missing = [operation.name for operation in operations if operation.value is None and operation.type != OpType.DELETE]
    if missing:
        raise InvalidRequest(f"Null value not supported for : {', '.join(missing)}")


def apply_to_broker(current: Mapping[str, str], operations: Iterable[Operation], key_of: KeyOf) -> dict[str, str]:
    """The configs of a broker after the operations. APPEND and SUBTRACT are only valid for a config of type LIST."""
    changed = dict(current)
    for operation in operations:
        if operation.type not in _OP_TYPES:
            raise InvalidRequest(f"Unknown operations type {operation.type}")
        if operation.type in (OpType.APPEND, OpType.SUBTRACT):
            key = key_of(operation.name)
            if key is None:
                raise KafkaError  # UNKNOWN_SERVER_ERROR: Kafka does not find an unknown name in its table either, and fails
            if key.type is not Type.LIST:
                verb = "append" if operation.type == OpType.APPEND else "subtract"
                raise InvalidConfig(f"Config value {verb} is not allowed for config key: {operation.name}")
        _apply(changed, operation, key_of)
    return changed


def apply_to_others(current: Mapping[str, str], operations: Iterable[Operation], key_of: KeyOf) -> dict[str, str]:
    """The configs of a topic, a group or a client metrics subscription after the operations."""
    changed = dict(current)
    for operation in operations:
        if operation.type not in _OP_TYPES:
            raise KafkaError  # UNKNOWN_SERVER_ERROR, as from Kafka's controller
        if operation.type in (OpType.APPEND, OpType.SUBTRACT):
            key = key_of(operation.name)
            if key is None or key.type is not Type.LIST:
                raise InvalidConfig(f"Can't {OpType(operation.type).name} to key {operation.name} because its type is not LIST.")
        _apply(changed, operation, key_of)
    return changed


def _apply(properties: dict[str, str], operation: Operation, key_of: KeyOf) -> None:
    name, value = operation.name, operation.value
    if operation.type == OpType.DELETE:
        properties.pop(name, None)
        return
    assert value is not None, "checked before"
    if operation.type == OpType.SET:
        properties[name] = value
        return
    key = key_of(name)
    assert key is not None, "checked by the caller"
    before = properties.get(name) if name in properties else value_text(key.default)
    entries = [entry for entry in (before or "").split(",") if entry]
    for entry in value.split(","):
        if operation.type == OpType.APPEND and entry not in entries:
            entries.append(entry)
        elif operation.type == OpType.SUBTRACT and entry in entries:
            entries.remove(entry)
    properties[name] = ",".join(entries)
