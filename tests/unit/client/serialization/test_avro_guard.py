"""fastavro recurses in C: values that nest too deep are refused before it reads them. Those that ended a process run in a child."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import fastavro
import pytest

from barnabas.client.serialization.avro_guard import MalformedAvro, is_deep, read_datum

LINKED = {"type": "record", "name": "n.L", "fields": [{"name": "next", "type": ["null", "L"]}]}
MANY = {"type": "record", "name": "M", "fields": [{"name": "m", "type": {"type": "array", "items": "M"}}]}
TREE = {
    "type": "record",
    "name": "T",
    "fields": [
        {"name": "id", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "other", "type": ["null", "F", "string", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}]},
        {"name": "share", "type": ["double", "float", "boolean"]},
        {"name": "kids", "type": {"type": "array", "items": "T"}},
        {"name": "named", "type": {"type": "map", "values": ["int", "T"]}},
    ],
}
DESERIALIZER = """
from barnabas.client.serialization.avro import AvroDeserializer, AvroSerializer
from barnabas.client.errors import SerializationError
import sys
schema = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
front = AvroSerializer(schema, schema_registry_url=sys.argv[1], is_key=False).serialize("t", {"next": None})[:5]
read = AvroDeserializer(schema_registry_url=sys.argv[1], is_key=False).deserialize
"""
SPARK = """
import json, sys
from pyspark_barnabas.values.avro.avro_format import _Malformed as SerializationError, _datum, _parsed
schema = _parsed(json.dumps({"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}))
front, read = b"", lambda topic, data: _datum(data, schema, None)
"""
READ = """
print(read("t", front + b"\\2\\2\\0"))
try:
    read("t", front + b"\\2" * 10_000 + b"\\0")
except SerializationError as fault:
    print(fault)
"""


@pytest.mark.parametrize("program", [DESERIALIZER, SPARK], ids=["AvroDeserializer", "Spark"])
def test_a_value_that_would_overflow_the_stack_is_an_error(program: str) -> None:
    from tests.schema_registry import running

    with running() as registry:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program + READ, registry.url]
        child = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert child.returncode == 0, child.stderr
    assert child.stdout.startswith("{'next': {'next': {'next': None}}}\n")
    assert "nests more than 1,000 levels deep" in child.stdout


def test_what_nests_is_read_as_fastavro_reads_it() -> None:
    schema = fastavro.parse_schema(TREE)
    leaf = {"id": 5, "kind": "B", "hash": b"abc", "other": "x" * 300, "share": 0.5, "kids": [], "named": {"n": -(2**31)}}
    value = {**leaf, "other": b"xyz", "share": True, "kids": [leaf, leaf], "named": {"a": leaf, "b": 1}}
    for _ in range(200):
        value = {**leaf, "other": None, "kids": [value]}
    raw = written(schema, value)
    assert is_deep(schema)
    assert read_datum(raw, schema) == fastavro.schemaless_reader(io.BytesIO(raw), schema, None)
    with pytest.raises(MalformedAvro):
        read_datum(raw[:-1], schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]},
        ["null", {"type": "map", "values": MANY}],
        TREE,
        LINKED,
    ],
)
def test_types_that_contain_themselves_are_deep(schema: Any) -> None:
    assert is_deep(fastavro.parse_schema(schema))


def test_types_that_are_used_often_are_not_deep() -> None:
    wide: Any = {"type": "record", "name": "R60", "fields": [{"name": "x", "type": "int"}]}
    for number in reversed(range(60)):
        fields = [{"name": "f0", "type": wide}, *({"name": f"f{index}", "type": f"R{number + 1}"} for index in range(1, 5))]
        wide = {"type": "record", "name": f"R{number}", "fields": fields}
    assert not is_deep(fastavro.parse_schema(wide))


@pytest.mark.parametrize("raw", [b"", b"\x04", b"\x01", b"\xff" * 11, b"\x02" * 50])
def test_bytes_that_are_no_datum_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedAvro):
        read_datum(raw, fastavro.parse_schema(LINKED))


def test_a_type_that_takes_no_bytes_and_contains_itself_has_no_end() -> None:
    schema = fastavro.parse_schema({"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]})
    with pytest.raises(MalformedAvro, match="levels deep"):
        read_datum(b"", schema)


def test_a_block_that_announces_more_than_there_is_is_refused() -> None:
    schema = fastavro.parse_schema({"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "array", "items": "A"}}]})
    with pytest.raises(MalformedAvro, match="bytes are left"):
        read_datum(b"\xfe\xff\xff\xff\x0f", schema)


def written(schema: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, value)
    return buffer.getvalue()
