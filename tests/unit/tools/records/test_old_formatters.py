"""The formatters of Kafka 2.8 for internal topics: their names, and the lines that scripts read.

tests/data/kafka-old-formatters-2.8.2.json has records and what Apache Kafka 2.8.2 printed for each (KafkaOldFormatters.java makes it). Some
records are those that a broker of that version wrote for groups and transactions, others are of older versions of the same schemas, of
every state of a transaction, and of so many members and partitions that Scala's hash tables grow.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.tools.records.record_formatters import load_formatter

RECORDS = json.loads((Path(__file__).parents[3] / "data" / "kafka-old-formatters-2.8.2.json").read_text())
NAMES = {
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter",
}


def printed(name: str, key: str = "", value: str | None = None, properties: dict[str, str] | None = None) -> str:
    """The text for a record, whose key and value are in hexadecimal."""
    output = io.BytesIO()
    formatter = load_formatter(name)
    formatter.configure(properties or {})
    formatter.write(SimpleNamespace(key=bytes.fromhex(key), value=None if value is None else bytes.fromhex(value), offset=7), output)
    return output.getvalue().decode()


@pytest.mark.parametrize("record", RECORDS, ids=[f"{number}-{record['printed'][:40].strip()}" for number, record in enumerate(RECORDS)])
def test_the_text_is_that_of_kafka_2_8(record: dict[str, str]) -> None:
    assert printed(record["formatter"], record["key"], record["value"]) == record["printed"]


def test_each_formatter_prints_values_tombstones_and_leaves_records_of_other_types_out() -> None:
    assert {record["formatter"] for record in RECORDS} == NAMES
    assert {record["formatter"] for record in RECORDS if record["printed"].endswith("::NULL\n")} == NAMES
    assert "" in {record["printed"] for record in RECORDS}


def test_the_checksum_of_each_record_is_0() -> None:
    name = "kafka.tools.ChecksumMessageFormatter"
    assert printed(name) == "checksum:0\n"  # what the console consumer of Kafka 2.8.2 prints
    assert printed(name, properties={"topic": "t"}) == "t:checksum:0\n"


@pytest.mark.parametrize("name", ["Default", "Logging", "NoOp"])
def test_the_other_formatters_have_their_old_names_too(name: str) -> None:
    assert type(load_formatter(f"kafka.tools.{name}MessageFormatter")) is type(
        load_formatter(f"org.apache.kafka.tools.consumer.{name}MessageFormatter")
    )
