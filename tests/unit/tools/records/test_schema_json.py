"""Records of internal topics as JSON: by the schemas they read what our own classes wrote, and damage is told in its place."""

from __future__ import annotations

import json
import re
from importlib import import_module
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import cli
from barnabas.protocol.message import Message, parse, serialize
from barnabas.records.builder import BatchBuilder
from barnabas.tools.records.dump_decoders import NAMES
from barnabas.tools.records.schema_json import COORDINATOR_RECORDS, json_text, read_json, schemas, versions
from tests import golden, schema_bytes

LOG = "00000000000000000000.log"
INTERNAL = golden.LOGS / "kafka-4.2.0" / "first"


def record_class(name: str) -> type[Message]:
    module = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    message_type: type[Message] = getattr(import_module(f"barnabas.protocol.coordinator_records.{module}"), name)
    return message_type


@pytest.mark.parametrize("name", sorted(schemas(COORDINATOR_RECORDS)))
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_a_record_says_the_same_whoever_wrote_it(name: str, seed: int) -> None:
    schema = schema_bytes.load(COORDINATOR_RECORDS)[name]
    for version in schema_bytes.versions_of(schema):
        data = schema_bytes.random_bytes(schema, version, Random(seed))
        ours = serialize(parse(record_class(name), data, version), version)
        assert read_json(schema, ours, version) == read_json(schema, data, version)


@pytest.mark.parametrize(("text", "expected"), [("0", (0, 0)), ("2-5", (2, 5)), ("3+", (3, 2**15 - 1)), ("none", (0, -1))])
def test_ranges_of_versions(text: str, expected: tuple[int, int]) -> None:
    assert versions(text) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        (1e10, "1.0E10"),
        (float("nan"), '"NaN"'),
        ('"\\\t\x01\x1fß🙂', '"\\"\\\\\\t\\u0001\\u001Fß🙂"'),
    ],
)
def test_json_is_written_as_jackson_writes_it(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("decoder", "file", "told"),
    [
        ("offsets-decoder", "__consumer_offsets-0", '"subscription":{"topics":["g-txn"]'),
        ("transaction-log-decoder", "__transaction_state-0", '{"transactionalId":"tx-1"}'),
        ("cluster-metadata-decoder", "__cluster_metadata-0", '{"type":"TOPIC_RECORD","version":0,"data":{"name":"g-none"'),
    ],
)
def test_what_kafka_wrote_is_decoded(decoder: str, file: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dump-log", f"--{decoder}", "--files", str(INTERNAL / file / LOG)]) == 0
    assert told in capsys.readouterr().out


def dump(decoder: str, records: list[tuple[bytes | None, bytes | None]], tmp_path_text: str) -> int:
    builder = BatchBuilder()
    for key, value in records:
        builder.append(1000, key, value)
    with open(tmp_path_text, "wb") as file:
        file.write(builder.build())
    return cli.main(["dump-log", f"--{decoder}", "--files", tmp_path_text])


@pytest.mark.parametrize("decoder", NAMES)
@settings(max_examples=25)
@given(content=st.binary(max_size=30))
def test_no_bytes_stop_a_dump(decoder: str, content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = str(tmp_path_factory.getbasetemp() / LOG)
    assert dump(decoder, [(content, content), (content, None)], place) == 0


def test_a_record_without_a_key_ends_the_dump_as_it_ends_kafkas(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert dump("offsets-decoder", [(None, b"x")], str(tmp_path_factory.mktemp("log") / LOG)) == 1


def test_bytes_of_another_version_are_told_about(tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> None:
    key = b"\x00\x02\x00\x01g"
    assert dump("offsets-decoder", [(key, b"\x00\x63")], str(tmp_path_factory.mktemp("log") / LOG)) == 0
    assert "Error at offset 0, skipping. GroupMetadataValue has the versions 0 to 4, not 99" in capsys.readouterr().out


def test_deleted_records_and_unknown_types_are_named(tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> None:
    records: list[tuple[bytes | None, bytes | None]] = [(b"\x00\x02\x00\x01g", None), (b"\x00\x63", b"")]
    assert dump("offsets-decoder", records, str(tmp_path_factory.mktemp("log") / LOG)) == 0
    deleted, unknown = capsys.readouterr().out.splitlines()[-2:]
    assert deleted.endswith('key: {"type":"2","data":{"group":"g"}} payload: <DELETE>')
    assert unknown.endswith("key: Unknown record type 99 at offset 1, skipping.")
    assert json.loads(deleted.partition("key: ")[2].partition(" payload")[0])["type"] == "2"
