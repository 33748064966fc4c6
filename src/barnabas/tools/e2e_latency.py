"""Measure how long a record takes from the producer to the consumer, as kafka-e2e-latency does.

Options, messages, output and exit codes are those of Apache Kafka 4.2; the words by position of older Kafkas are taken, too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, Final

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.errors import KafkaError
from barnabas.java_numbers import double_text
from barnabas.tools.command_line.failures import Terse, ToolError, WrappedExecution, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.progress import ProgressBar
from barnabas.tools.connecting.connect import load_properties, open_admin, open_consumer, open_producer
from barnabas.tools.connecting.load import now_ms
from barnabas.topic_partition import TopicPartition

ABOUT: Final = "This tool measures end-to-end latency in Kafka by sending messages and timing their reception."
_REQUIRED: Final = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the brokers to connect to.", "required", described_as="bootstrap-server"),
    Option("topic", "REQUIRED: the topic; it is made where it is missing.", "required", described_as="topic-name"),
    Option("num-records", "REQUIRED: how many records to send.", "required", "Integer", "count"),
    Option("producer-acks", "REQUIRED: 1 or all.", "required", described_as="producer-acks"),
    Option("record-size", "REQUIRED: bytes of a record's value.", "required", "Integer", "bytes"),
    Option("record-key-size", "Bytes of a record's key.", "optional", "Integer", "bytes", "0"),
    Option("record-header-key-size", "Bytes of a header's name.", "optional", "Integer", "bytes", "0"),
    Option("record-header-size", "Bytes of a header's value; -1 for null.", "optional", "Integer", "bytes", "0"),
    Option("num-headers", "How many headers each record has.", "optional", "Integer", "count", "0"),
    Option("command-config", "A properties file for the clients.", "optional", described_as="config-file"),
)
_POLL_TIMEOUT_MS: Final = 60_000
_LONG_MAX: Final = 2**63 - 1


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def named(arguments: Sequence[str]) -> list[str]:
    """Words by position become options."""
    if not arguments or any(f"--{name}" in arguments for name in _REQUIRED) or set(arguments) & {"--help", "--version"}:
        return list(arguments)
    if len(arguments) not in (5, 6):
        raise Terse(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(arguments)}. "
            "Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config"
        )
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named arguments instead: "
        "--bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config"
    )
    return [word for pair in zip((f"--{name}" for name in (*_REQUIRED, "command-config")), arguments, strict=False) for word in pair]


def _execute(arguments: Sequence[str]) -> None:
    options = Options.or_usage(OPTIONS, named(arguments))
    _check(options)
    topic = options.text("topic")
    common = load_properties(options.optional("command-config")) | {"bootstrap.servers": options.text("bootstrap-server")}
    reading = {"group.id": f"test-group-{now_ms()}", "enable.auto.commit": "false", "auto.offset.reset": "latest", "fetch.max.wait.ms": "0"}
    writing = {"linger.ms": "0", "max.block.ms": str(_LONG_MAX), "acks": options.text("producer-acks")}
    with open_consumer(common | reading) as consumer, open_producer(common | writing) as producer:
        if topic not in consumer.list_topics():
            _create_topic(options, topic)
        partitions = _partitions(consumer, topic)
        consumer.assign(partitions)
        consumer.seek_to_end(partitions)
        for partition in partitions:
            consumer.position(partition)
        _measure(producer, consumer, options)
        _commit(consumer)


def _partitions(consumer: Any, topic: str) -> list[TopicPartition]:
    """Of a topic that exists: a broker may need a moment before it names those of a new one."""
    deadline = time.monotonic() + _POLL_TIMEOUT_MS / 1000
    while not (infos := consumer.partitions_for(topic)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [TopicPartition(topic, info.partition) for info in infos]


def _check(options: Options) -> None:
    options.maybe_help_or_version(ABOUT)
    options.require(*_REQUIRED)
    if options.text("producer-acks") not in ("1", "all"):
        options.usage("Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' or 'all'.")
    if options.integer("num-records") <= 0:
        options.usage("Value for --num-records must be a positive integer.")
    for name in ("record-size", "record-key-size", "record-header-key-size"):
        if options.integer(name) < 0:
            options.usage(f"Value for --{name} must be a non-negative integer.")
    if options.integer("record-header-size") < -1:
        options.usage("Value for --record-header-size must be a non-negative integer or -1 for null header value.")
    if options.integer("num-headers") < 0:
        options.usage("Value for --num-headers must be a non-negative integer.")


def _create_topic(options: Options, topic: str) -> None:
    from barnabas.client.admin.topics.topics import NewTopic

    print(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
    with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)]).all()
        except KafkaError as error:
            print(f"Creation of topic {topic} failed")
            raise WrappedExecution(error) from error


def _measure(producer: Any, consumer: Any, options: Options) -> None:
    count, topic = options.integer("num-records"), options.text("topic")
    chosen = random.Random(0)

    def some(size: int) -> bytes:
        return bytes([chosen.randrange(65, 91)]) * size

    progress = ProgressBar("sent and received", count, "records", after_s=2)
    total_ns = 0
    latencies_ms = []
    for number in range(count):
        key, value = some(options.integer("record-key-size")), some(options.integer("record-size"))
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(options.integer("num-headers")):
            name, size = some(options.integer("record-header-key-size")).decode(), options.integer("record-header-size")
            headers.append((name, None if size == -1 else some(size)))
        begun_ns = time.perf_counter_ns()
        producer.send(topic, value, key, headers=headers).result()
        records = list(consumer.poll(_POLL_TIMEOUT_MS / 1000))
        elapsed_ns = time.perf_counter_ns() - begun_ns
        fault = _fault(records, key, value, headers)
        if fault is not None:
            _commit(consumer)
            raise ToolError(fault)
        progress.at(number)
        if number % 1000 == 0:
            progress.end()
            print(f"{number}\t{double_text(elapsed_ns / 1000 / 1000)}", flush=True)
        total_ns += elapsed_ns
        latencies_ms.append(elapsed_ns // 1_000_000)
    progress.end()
    latencies_ms.sort()
    shares = [latencies_ms[int(count * share)] for share in (0.5, 0.99, 0.999)]
    print(f"Avg latency: {total_ns / count / 1_000_000:.4f} ms")
    print(f"Percentiles: 50th = {shares[0]}, 99th = {shares[1]}, 99.9th = {shares[2]}")


def _fault(records: Sequence[Any], key: bytes, value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> str | None:
    """What is wrong with what came back, or None."""
    if not records:
        return f"poll() timed out before finding a result (timeout:[{_POLL_TIMEOUT_MS}ms])"
    record = records[0]
    if record.value != value:
        return f"The message value read [{_text(record.value)}] did not match the message value sent [{_text(value)}]"
    if record.key is None:
        return "Expected message key but received null"
    if record.key != key:
        return f"The message key read [{_text(record.key)}] did not match the message key sent [{_text(key)}]"
    if headers and not record.headers:
        return "Expected message headers but received none"
    if headers and list(record.headers) != list(headers):
        return "Header count mismatch between sent and received messages"
    return None if len(records) == 1 else f"Only one result was expected during this test. We found [{len(records)}]"


def _text(content: bytes | None) -> str:
    return "null" if content is None else content.decode("utf-8", "replace")


def _commit(consumer: Any) -> None:
    positions = {partition: OffsetAndMetadata(consumer.position(partition)) for partition in consumer.assignment()}
    consumer.commit_sync(positions)
