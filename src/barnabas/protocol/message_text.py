"""A message as text in log lines, as Kafka's generated classes print themselves: `StopReplicaPartitionState(partitionIndex=0, …)`."""

from __future__ import annotations

from barnabas.protocol.message import Message


def kafka_text(message: Message) -> str:
    fields = [f"{camel_case(name)}={_value(getattr(message, name))}" for name in message.field_names()]
    return f"{type(message).__name__}({', '.join(fields)})"


def camel_case(name: str) -> str:
    """`partition_index` becomes `partitionIndex`."""
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def _value(value: object) -> str:
    if isinstance(value, Message):
        return kafka_text(value)
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_value(element) for element in value)}]"
    return "null" if value is None else str(value)
