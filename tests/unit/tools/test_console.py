"""What the console tools make of lines, and of records."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest

from barnabas.client.consumer.record import ConsumerRecord, TimestampType
from barnabas.protocol.coordinator_records.offset_commit_key import OffsetCommitKey
from barnabas.protocol.coordinator_records.offset_commit_value import OffsetCommitValue
from barnabas.protocol.message import serialize
from barnabas.tools.command_line.failures import BadArgument
from barnabas.tools.command_line.options import Options, ShowUsage
from barnabas.tools.console_consumer import OPTIONS as CONSUMER_OPTIONS
from barnabas.tools.console_consumer import consumer_settings, parse_offset
from barnabas.tools.console_producer import OPTIONS as PRODUCER_OPTIONS
from barnabas.tools.console_producer import LineReader, ReadingFailed, load_reader, producer_settings
from barnabas.tools.records.record_formatters import load_formatter

BROKER = ["--bootstrap-server", "h:1", "--topic", "t"]
CONSUMER = "org.apache.kafka.tools.consumer."


def reader(**properties: str) -> LineReader:
    made = LineReader()
    made.configure({"topic": "t"} | {name.replace("_", "."): value for name, value in properties.items()})
    return made


def test_a_line_is_a_value() -> None:
    assert reader().parse("a\tb") == (None, b"a\tb", [])


def test_a_key_stands_before_its_separator() -> None:
    assert reader(parse_key="true").parse("k\tv\tw") == (b"k", b"v\tw", [])


def test_headers_stand_before_the_key() -> None:
    made = reader(parse_key="true", parse_headers="true")
    assert made.parse("a:1,b:2\tk\tv") == (b"k", b"v", [("a", b"1"), ("b", b"2")])


def test_the_null_marker_stands_for_null() -> None:
    made = reader(parse_key="true", parse_headers="true", null_marker="NULL")
    assert made.parse("a:NULL\tNULL\tNULL") == (None, None, [("a", None)])


def test_a_line_without_its_separator_is_refused() -> None:
    with pytest.raises(ReadingFailed, match="No key separator found on line number 0: 'v'"):
        reader(parse_key="true").parse("v")


def test_a_line_without_its_separator_may_be_taken_as_a_value() -> None:
    assert reader(parse_key="true", ignore_error="true").parse("v") == (None, b"v", [])


def test_separators_that_are_equal_are_refused() -> None:
    with pytest.raises(ReadingFailed, match=r"headers.delimiter and headers.separator may not be equal"):
        reader(headers_delimiter=",")


def test_bytes_that_are_no_utf_8_are_sent_as_they_are() -> None:
    assert [record.value for record in reader().read_records(io.BytesIO(b"\xff\nb\n"))] == [b"\xff", b"b"]


@pytest.mark.parametrize("name", ["org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader"])
def test_the_line_reader_has_its_name_of_kafka_4_and_that_of_before(name: str) -> None:
    assert isinstance(load_reader(name), LineReader)


def test_a_producers_setting_counts_more_than_the_default_of_its_option() -> None:
    settings = producer_settings(Options(PRODUCER_OPTIONS, [*BROKER, "--command-property", "linger.ms=7"]))
    assert (settings["linger.ms"], settings["acks"], settings["retries"]) == ("7", "-1", "3")


def test_an_option_counts_more_than_a_setting() -> None:
    settings = producer_settings(Options(PRODUCER_OPTIONS, [*BROKER, "--command-property", "linger.ms=7", "--timeout", "9"]))
    assert settings["linger.ms"] == "9"


def test_compression_without_a_name_is_gzip() -> None:
    assert producer_settings(Options(PRODUCER_OPTIONS, [*BROKER, "--compression-codec"]))["compression.type"] == "gzip"


def record(key: bytes | None = b"k", value: bytes | None = b"v", headers: tuple[Any, ...] = ()) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord("t", 1, 5, 1000, TimestampType.CREATE_TIME, 1, 1, key, value, headers)


def printed(record: ConsumerRecord[Any, Any], name: str = f"{CONSUMER}DefaultMessageFormatter", **properties: str) -> bytes:
    formatter = load_formatter(name)
    formatter.configure({key.replace("_", "."): text for key, text in properties.items()})
    output = io.BytesIO()
    formatter.write(record, output)
    return output.getvalue()


def test_a_record_is_its_value() -> None:
    assert printed(record()) == b"v\n"


def test_a_record_with_everything() -> None:
    shown = {f"print_{part}": "true" for part in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")}
    output = printed(record(headers=(("a", b"1"), ("b", None))), **shown)
    assert output == b"CreateTime:1000\tPartition:1\tOffset:5\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\ta:1,b:null\tk\tv\n"


def test_null_has_a_literal() -> None:
    assert printed(record(value=None), null_literal="~") == b"~\n"


def test_a_value_may_be_deserialized() -> None:
    name = "org.apache.kafka.common.serialization.DoubleDeserializer"
    assert printed(record(value=struct.pack(">d", 1e7)), value_deserializer=name) == b"1.0E7\n"


def test_an_offset_commit_is_shown_as_json() -> None:
    key = struct.pack(">h", 1) + serialize(OffsetCommitKey("g", "t", 0), 0)
    value = struct.pack(">h", 3) + serialize(OffsetCommitValue(5, 2, "m", 9), 3)
    assert printed(record(key, value), f"{CONSUMER}OffsetsMessageFormatter") == (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":0}},'
        b'"value":{"version":3,"data":{"offset":5,"leaderEpoch":2,"metadata":"m","commitTimestamp":9}}}'
    )


def test_an_offset_commit_is_no_group_metadata() -> None:
    key = struct.pack(">h", 1) + serialize(OffsetCommitKey("g", "t", 0), 0)
    assert printed(record(key, None), f"{CONSUMER}GroupMetadataMessageFormatter") == b""


def test_a_formatter_that_is_none_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"^no\.such\.Formatter$"):
        load_formatter("no.such.Formatter")


def test_a_consumer_without_a_group_gets_one_that_commits_nothing() -> None:
    settings = consumer_settings(Options(CONSUMER_OPTIONS, BROKER))
    assert settings["group.id"].startswith("console-consumer-")
    assert settings["enable.auto.commit"] == "false"


def test_groups_given_twice_must_be_the_same() -> None:
    with pytest.raises(ShowUsage, match="Detected group ids: 'a', 'b'"):
        consumer_settings(Options(CONSUMER_OPTIONS, [*BROKER, "--group", "a", "--command-property", "group.id=b"]))


@pytest.mark.parametrize(("text", "offset"), [("earliest", -2), ("LATEST", -1), ("7", 7)])
def test_an_offset_is_a_name_or_a_number(text: str, offset: int) -> None:
    assert parse_offset(Options(CONSUMER_OPTIONS, ["--offset", text])) == offset


@pytest.mark.parametrize("text", ["-1", "soon", "99999999999999999999"])
def test_an_offset_that_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ShowUsage, match="Valid values are 'earliest', 'latest', or a non-negative long"):
        parse_offset(Options(CONSUMER_OPTIONS, [f"--offset={text}"]))
