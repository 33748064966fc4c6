"""The bytes and values that Apache Kafka's own classes gave, for the messages and versions kio does not know: the oldest versions, the
ZooKeeper era's APIs (3.9.1), and the records of the coordinators (4.2.0). `kafka_oracle.py` made the answers.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid
from tests.unit.protocol.instances import ALL, class_of
from tests.unit.protocol.kafka_oracle import GOLDEN

ANSWERS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("answer", ANSWERS, ids=[f"{answer['name']}-v{answer['version']}" for answer in ANSWERS])
def test_a_message_has_the_bytes_and_the_values_that_kafka_gives_it(answer: dict[str, Any]) -> None:
    message, version, raw = ALL[answer["name"]], answer["version"], bytes.fromhex(answer["bytes"])
    ours = parse(class_of(message), raw, version)
    assert serialize(ours, version) == raw
    assert differences(answer["name"], ours, answer["values"]) == []


def test_the_messages_between_controller_and_brokers_are_among_them() -> None:
    names = {answer["name"] for answer in ANSWERS}
    assert {"LeaderAndIsrRequest", "StopReplicaRequest", "UpdateMetadataRequest", "ControlledShutdownRequest", "OffsetCommitValue"} <= names


def differences(name: str, ours: Message, values: dict[str, Any]) -> list[str]:
    """Where our message differs from Kafka's JSON of it, which names the fields that travelled."""
    differing = []
    fields = {one.kafka_name: one for one in ALL[name].structs[type(ours).__name__].fields}
    for key, theirs in values.items():
        value = getattr(ours, fields[key].attribute)
        if isinstance(value, Records):
            continue  # Kafka leaves them out of its JSON; that they are the same is seen from the bytes
        if isinstance(value, Message):
            differing += differences(name, value, theirs)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for element, their_element in zip(value, theirs, strict=True):
                differing += differences(name, element, their_element)
        elif plain(value) != theirs:
            differing.append(f"{key}: {plain(value)!r} is not {theirs!r}")
    return differing


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, Uuid):
        return str(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value
