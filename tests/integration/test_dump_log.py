"""`barnabas dump-log` against Apache Kafka's own DumpLogSegments: the same files and options, line for line and exit code for exit code."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.producer.producer import Producer
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import control_key, end_txn_marker
from barnabas.topic_partition import TopicPartition
from tests import broker, golden, kafka, schema_bytes

pytestmark = pytest.mark.java

OPTION_SETS = [
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--deep-iteration", "--skip-record-metadata"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--max-bytes", "700"],
    ["--verify-index-only"],
    ["--index-sanity-check"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder", "--value-decoder-class"],
]
SURROGATES = [b"\xed\xa0\x80", b"x\xed\xbf\xbfy", b"\xed\xa0", b"\xed\xa0z", b"\xed", b"\xed\x41", b"\xed\xa0\xed\xa0\x80\x80"]
LATER = ("remote-log-metadata",)  # the decoder of what is not here: tiered storage
DECODERS = {
    "offsets-decoder": ("coordinator-records-4.2.0", "(?!TransactionLog|ShareSnapshot|ShareUpdate).*"),
    "transaction-log-decoder": ("coordinator-records-4.2.0", "TransactionLog.*"),
    "share-group-state-decoder": ("coordinator-records-4.2.0", "ShareSnapshot.*|ShareUpdate.*"),
    "cluster-metadata-decoder": ("metadata-records-4.2.0", ".*"),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the golden logs, since Kafka's tool is known to create files that it misses."""
    copy = tmp_path_factory.mktemp("golden") / "logs"
    shutil.copytree(golden.LOGS, copy)
    return copy


@pytest.mark.parametrize("options", OPTION_SETS, ids=" ".join)
def test_every_golden_file_is_dumped_as_kafka_dumps_it(logs: Path, options: list[str]) -> None:
    files = [str(file.relative_to(golden.LOGS)) for directory in golden.partitions() for file in golden.files(directory)]
    files += [str(file.relative_to(golden.LOGS)) for file in sorted(golden.LOGS.rglob("*.checkpoint"))]
    assert len(files) > 150
    assert_same([*options, "--files", ",".join(files)], logs)


@pytest.mark.parametrize("decoder", DECODERS)
def test_records_of_every_type_and_version_are_decoded_as_kafka_decodes_them(tmp_path: Path, decoder: str) -> None:
    file, names = DECODERS[decoder]
    schemas = {name: schema for name, schema in schema_bytes.load(file).items() if re.fullmatch(names, name) and not name.endswith("Key")}
    random = Random(decoder)
    builder = BatchBuilder()
    for name, schema in schemas.items():
        for version in schema_bytes.versions_of(schema):
            for _ in range(20):
                content = schema_bytes.random_bytes(schema, version, random)
                if decoder == "cluster-metadata-decoder":
                    head = b"".join(map(schema_bytes.uvarint, (1, schema["apiKey"], version)))
                    builder.append(1000, None, head + content)
                else:
                    key = schema_bytes.load(file)[name.removesuffix("Value") + "Key"]
                    value = struct.pack(">h", version) + content
                    builder.append(1000, struct.pack(">h", key["apiKey"]) + schema_bytes.random_bytes(key, 0, random), value)
    if decoder != "cluster-metadata-decoder":
        key = next(schema for name, schema in schema_bytes.load(file).items() if re.fullmatch(names, name) and name.endswith("Key"))
        builder.append(1000, struct.pack(">h", key["apiKey"]) + schema_bytes.random_bytes(key, 0, random), None)
        builder.append(1000, struct.pack(">h", 99), b"of a type that nobody knows")
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    assert_same([f"--{decoder}", "--files", "00000000000000000000.log"], tmp_path)
    assert_same([f"--{decoder}", "--skip-record-metadata", "--files", "00000000000000000000.log"], tmp_path)


@pytest.mark.parametrize(
    ("decoder", "file"),
    [
        ("offsets-decoder", "__consumer_offsets-0/00000000000000000000.log"),
        ("transaction-log-decoder", "__transaction_state-0/00000000000000000000.log"),
        ("cluster-metadata-decoder", "__cluster_metadata-0/00000000000000000000.log"),
        ("cluster-metadata-decoder", "bootstrap.checkpoint"),
    ],
)
def test_internal_topics_that_kafka_wrote_are_decoded_as_kafka_decodes_them(logs: Path, decoder: str, file: str) -> None:
    assert_same([f"--{decoder}", "--files", file], logs / "kafka-4.2.0" / "first")


def test_internal_topics_that_our_broker_wrote_are_decoded_as_kafka_decodes_them(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with broker.running(tmp_path / "data") as bootstrap:
        _use(bootstrap)
    for decoder, topic in (("offsets-decoder", "__consumer_offsets"), ("transaction-log-decoder", "__transaction_state")):
        files = [str(file) for file in sorted((tmp_path / "data").rglob(f"{topic}-*/*.log")) if file.stat().st_size]
        assert files
        assert_same([f"--{decoder}", "--files", ",".join(files)], tmp_path)


def _use(bootstrap: str) -> None:
    """Leaves records of groups of both protocols, and of a transaction that commits the offsets of one."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "some-transaction"})
    with producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("orders", b"one")
        for protocol in ("classic", "consumer"):
            settings = {"bootstrap.servers": bootstrap, "group.id": f"{protocol}-group", "group.protocol": protocol}
            consumer: Consumer[Any, Any] = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": "false"})
            with consumer:
                consumer.subscribe(["orders"])
                while not consumer.poll(0.1):
                    pass
                with producer.transaction():
                    producer.send_offsets_to_transaction({TopicPartition("orders", 0): OffsetAndMetadata(1)}, consumer.group_metadata())
                consumer.commit_sync()


def test_the_long_and_integer_decoders_are_kafkas(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for number in (0, -1, 2**63 - 1, -(2**63)):
        builder.append(1000, struct.pack(">i", number >> 32), struct.pack(">q", number))
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    decoders = ["--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"]
    decoders += ["--value-decoder-class=org.apache.kafka.tools.api.LongDecoder"]
    assert_same([*decoders, "--files", "00000000000000000000.log"], tmp_path)


def test_bytes_that_are_no_text_are_shown_as_java_shows_them(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for content in (
        b"\xff\xfe",
        b"\xc3\x28",
        b"\xe2\x82",
        b"\xf0\x9f\x92",
        b"a\x00b\x7f\xc2\xa0",
        bytes(range(256)),
        "🙂ß".encode(),
        *SURROGATES,
    ):
        builder.append(1000, content, content[::-1])
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    assert_same(["--print-data-log", "--files", "00000000000000000000.log"], tmp_path)


def test_control_records_of_every_type_are_shown_as_kafka_shows_them(tmp_path: Path) -> None:
    voter = struct.pack(">i", 7) + bytes(range(16)) + b"\x02\x06PLAIN\x0alocalhost\xff\xfe\x00" + b"\x00\x00\x00\x01\x00" + b"\x00"
    values = {
        2: b"\x00\x00" + struct.pack(">i", 3) + b"\x03\x00\x00\x00\x03\x00\x00\x00\x00\x04\x00" + b"\x02\x00\x00\x00\x03\x00" + b"\x00",
        3: b"\x00\x00" + struct.pack(">q", 1700000000000) + b"\x00",
        4: b"\x00\x00\x00",
        5: b"\x00\x00\x00\x01\x00",
        6: b"\x00\x00\x02" + voter + b"\x01\x07\x02hi",  # with a tagged field to be skipped
        99: b"anything",
    }
    data = end_txn_marker(False, 5, 1, 12, 1000) + end_txn_marker(True, 5, 1, 13, 1000, base_offset=1)
    for offset, (control_type, value) in enumerate(values.items(), start=2):
        builder = BatchBuilder(base_offset=offset, control=True)
        builder.append(1000, control_key(control_type), value)
        data += builder.build()
    (tmp_path / "00000000000000000009-0000000003.checkpoint").write_bytes(data)
    assert_same(["--print-data-log", "--files", "00000000000000000009-0000000003.checkpoint"], tmp_path)


def test_damage_is_reported_as_kafka_reports_it(logs: Path, tmp_path: Path) -> None:
    """Torn tails, flipped bytes, indexes that point elsewhere, timestamps out of order, snapshots with a wrong checksum."""
    source = logs / "kafka-4.2.0" / "first" / "g-multi-0"
    for file in golden.files(source):
        shutil.copy(file, tmp_path)
    log = tmp_path / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data[:-5])
    magic = bytearray((tmp_path / "00000000000000000088.log").read_bytes())
    magic[16] = 5
    (tmp_path / "00000000000000000088.log").write_bytes(magic)
    (tmp_path / "00000000000000000000.index").write_bytes(struct.pack(">iiiii", 2, 0, 43, 0, 77))
    times = [(1700000000005, 3), (1700000000002, 3), (1700000000009, 9), (1700000000010, 100000), (0, 0), (1, 1)]
    (tmp_path / "00000000000000000000.timeindex").write_bytes(b"".join(struct.pack(">qi", *entry) for entry in times))
    (tmp_path / "00000000000000000044.index").write_bytes(struct.pack(">ii", 3, 0) + bytes(800))
    files = ["00000000000000000000.log", "00000000000000000088.log", "00000000000000000000.index", "00000000000000000000.timeindex"]
    files += ["00000000000000000044.index", "partition.metadata"]
    assert_same(["--deep-iteration", "--files", ",".join(files)], tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "options"),
    [
        ("00000000000000000000.log", b"\0" * 8 + struct.pack(">i", 13) + b"\0" * 40, []),
        ("00000000000000000000.index", b"\0" * 11, ["--index-sanity-check"]),
        ("00000000000000000000.index", struct.pack(">ii", 5, 60000), []),
        ("00000000000000000000.timeindex", b"\1" * 13, ["--index-sanity-check"]),
        ("00000000000000000000.timeindex", struct.pack(">qiqi", 10, 5, 9, 6), ["--index-sanity-check"]),
        ("nonsense.log", b"", []),
    ],
)
def test_damage_that_stops_kafka_stops_us_with_the_same_code(
    logs: Path, tmp_path: Path, file: str, content: bytes, options: list[str]
) -> None:
    for intact in golden.files(logs / "kafka-4.2.0" / "first" / "g-none-0"):
        shutil.copy(intact, tmp_path)
    (tmp_path / file).write_bytes(content)
    theirs = kafka.dump_log([*options, "--files", file], tmp_path)
    ours = run([*options, "--files", file], tmp_path)
    assert (ours.code, theirs.code) == (1, 1)
    assert ours.err.strip() and "Traceback" not in ours.err
    assert theirs.out.startswith(ours.out) or ours.out.startswith(theirs.out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bogus"],
        ["--files"],
        ["--files", "a.log", "--files", "b.log"],
        ["--max-bytes", "many", "--files", "a.log"],
        ["--max-bytes", "99999999999", "--files", "a.log"],
        ["--files", "00000000000000000000.log"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_gets_kafkas_words(arguments: list[str], tmp_path: Path) -> None:
    theirs = kafka.dump_log(arguments, tmp_path)
    ours = run(arguments, tmp_path)
    assert (ours.code, theirs.code) == (1, 1)
    reason = theirs.err.splitlines()[0].partition("Exception: ")[2]
    assert ours.err.splitlines()[0].startswith(reason)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--print-data-log"]], ids=["none", "help", "no files"])
def test_the_help_is_kafkas_without_the_decoders_still_to_come(arguments: list[str], tmp_path: Path) -> None:
    theirs = kafka.dump_log(arguments, tmp_path)
    ours = run(arguments, tmp_path)
    assert (ours.code, ours.out, ours.err) == (theirs.code, theirs.out, without(theirs.err, LATER))


def test_the_version_is_that_of_the_kafka_it_stands_in_for(tmp_path: Path) -> None:
    assert run(["--version"], tmp_path) == kafka.dump_log(["--version"], tmp_path)


def assert_same(arguments: Sequence[str], cwd: Path) -> None:
    theirs = kafka.dump_log(arguments, cwd)
    ours = run(arguments, cwd)
    assert ours.out.splitlines() == theirs.out.splitlines()
    assert complaints(ours.err) == complaints(theirs.err)
    assert ours.code == theirs.code


def run(arguments: Sequence[str], cwd: Path) -> kafka.Result:
    """Our tool by Kafka's name, as bin/kafka-dump-log.sh runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "kafka-dump-log", *arguments], cwd=cwd, capture_output=True, timeout=120, check=False
    )
    return kafka.Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def complaints(err: str) -> list[list[str]]:
    """The faults told at the end, file by file; Kafka tells them in the order of a hash table."""
    blocks: list[list[str]] = []
    for line in err.splitlines():
        if line.startswith((" ", "Indexed offset")) and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return sorted(blocks)


def without(help_text: str, options: Sequence[str]) -> str:
    """Kafka's help less some rows, each a line with the option's name and the lines that continue it."""
    kept: list[str] = []
    dropping = False
    for line in help_text.splitlines(keepends=True):
        if line.startswith("--"):
            dropping = line.startswith(tuple(f"--{name}-decoder" for name in options))
        if not dropping:
            kept.append(line)
    return "".join(kept)
