"""Kafka's own serializers and ours write the same bytes, alone and in lists."""

from __future__ import annotations

import random
import struct
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import serialization
from tests import kafka

pytestmark = pytest.mark.java

ORACLE = Path(__file__).parents[1] / "java" / "SerializerOracle.java"
CASES = 50


def values(kind: str, source: random.Random) -> list[Any]:
    def one() -> Any:
        if kind == "String":
            return "".join(chr(source.choice((65, 233, 0x4E2D, 0x1F600))) for _ in range(source.randrange(1, 9)))
        if kind == "Boolean":
            return source.random() < 0.5
        if kind == "UUID":
            return uuid.UUID(int=source.getrandbits(128))
        if kind == "Float":
            return struct.unpack(">f", struct.pack(">f", source.uniform(-1e9, 1e9)))[0]
        if kind == "Double":
            return source.uniform(-1e300, 1e300)
        bits = {"Short": 16, "Integer": 32, "Long": 64}[kind]
        return source.randrange(-(1 << bits - 1), 1 << bits - 1)

    return [None if source.random() < 0.2 else one() for _ in range(source.randrange(1, 6))]


def test_kafkas_serializers_write_the_same_bytes() -> None:
    source = random.Random(11)
    kinds = ("String", "Short", "Integer", "Long", "Float", "Double", "Boolean", "UUID")
    cases = [(kind, values(kind, source)) for kind in kinds for _ in range(CASES)]
    lines = [f"{kind} {','.join('~' if each is None else str(each).encode().hex() for each in given)}" for kind, given in cases]
    command = kafka.source_command(kafka.available(kafka.prepare), ORACLE)
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=240, check=True)
    for (kind, given), theirs in zip(cases, done.stdout.splitlines(), strict=True):
        serializer = getattr(serialization, f"{kind}Serializer")()
        ours = [serializer.serialize("t", value) for value in given]
        ours.append(serialization.ListSerializer(serializer).serialize("t", given))
        assert [None if each == "~" else bytes.fromhex(each[1:]) for each in theirs.split(" ")] == ours, (kind, given)
        deserializer = getattr(serialization, f"{kind}Deserializer")()
        assert serialization.ListDeserializer(deserializer).deserialize("t", ours[-1]) == given
