"""Produce increasing numbers and print what became of each as JSON, as kafka-verifiable-producer does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from barnabas.client.producer.record import ProducerRecord
from barnabas.tools.command_line.arguments import ArgumentsRefused, Parser, number, refused_text
from barnabas.tools.command_line.failures import ToolError, described, finish, java_name, message_of, print_cause
from barnabas.tools.command_line.text import compact_json
from barnabas.tools.connecting.connect import load_properties, open_producer
from barnabas.tools.connecting.load import ThroughputThrottler, now_ms, on_signals

_FOREVER: Final = 2**63 - 1


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        build_parser().print_help()
        return 0
    return finish(lambda: _execute(arguments), failed)


def failed(error: Exception) -> int:
    print(refused_text(error) if isinstance(error, ArgumentsRefused) else described(error), file=sys.stderr)
    print_cause(error)
    return 1


def build_parser() -> Parser:
    parser = Parser(
        prog="verifiable-producer",
        description="This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each send, so "
        "that it can be seen from outside which messages have been acked and which have not.",
    )
    parser.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to produce to")
    connection = parser.add_mutually_exclusive_group(required=True)
    connection.add_argument("--bootstrap-server", metavar="HOST1:PORT1[,HOST2:PORT2[...]]", help="REQUIRED: the brokers to connect to")
    parser.add_argument(
        "--max-messages", metavar="MAX-MESSAGES", type=number("Integer"), default=-1, help="how many; -1: until it is stopped"
    )
    parser.add_argument("--throughput", metavar="THROUGHPUT", type=number("Integer"), default=-1, help="messages a second, if >= 0")
    parser.add_argument("--acks", metavar="ACKS", type=number("Integer"), choices=(0, 1, -1), default=-1, help="0, 1 or -1")
    parser.add_argument("--producer.config", metavar="CONFIG-FILE", help="(DEPRECATED) the same as --command-config")
    parser.add_argument(
        "--message-create-time", metavar="CREATE-TIME", type=number("Long"), default=-1, help="the first message's time, in ms"
    )
    parser.add_argument("--value-prefix", metavar="VALUE-PREFIX", type=number("Integer"), help="before each value, with a dot")
    parser.add_argument("--repeating-keys", metavar="REPEATING-KEYS", type=number("Integer"), help="keys from 0 to this, again and again")
    parser.add_argument("--command-config", metavar="CONFIG-FILE", help="a properties file for the producer")
    return parser


def read_config(parser: Parser, given: Any, old: str) -> dict[str, str]:
    """The file of --command-config or of its old name."""
    deprecated = getattr(given, old)
    if deprecated is not None and given.command_config is not None:
        raise ArgumentsRefused(f"Options --{old} and --command-config are mutually exclusive.", parser.format_usage(), parser.prog)
    if deprecated is not None:
        print(f"Option --{old} has been deprecated and will be removed in a future version. Use --command-config instead.")
    try:
        return load_properties(deprecated or given.command_config)
    except ToolError as error:
        raise ArgumentsRefused(str(error), parser.format_usage(), parser.prog) from None


def print_event(name: str, **fields: Any) -> None:
    print(compact_json({"timestamp": now_ms(), "name": name, **fields}), flush=True)


def _execute(arguments: Sequence[str]) -> None:
    parser = build_parser()
    given = parser.parse(list(arguments))
    settings: dict[str, Any] = {"bootstrap.servers": given.bootstrap_server, "acks": str(given.acks), "retries": "0"}
    settings |= read_config(parser, given, "producer.config")
    producer = open_producer(settings)
    started_ms = now_ms()
    run = ProducerRun(producer, given, started_ms)
    on_signals(run.stop)
    run.send_all(ThroughputThrottler(given.throughput, started_ms))
    producer.close()
    print_event("shutdown_complete")
    rate = 1000 * run.acked / ((now_ms() - started_ms) or 1)
    print_event("tool_data", sent=run.sent, acked=run.acked, target_throughput=given.throughput, avg_throughput=rate)


class ProducerRun:
    def __init__(self, producer: Any, given: Any, started_ms: int) -> None:
        self.sent = 0
        self.acked = 0
        self._producer = producer
        self._given = given
        self._started_ms = started_ms
        self._create_time = given.message_create_time
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def send_all(self, throttle: ThroughputThrottler) -> None:
        print_event("startup_complete")
        count = _FOREVER if self._given.max_messages < 0 else self._given.max_messages
        while self.sent < count and not self._stopped:
            start_ms = now_ms()
            index = self.sent
            self._send(self._key(index), self._value(index))
            throttle.wait(index, start_ms)

    def _key(self, index: int) -> str | None:
        keys = self._given.repeating_keys
        return None if keys is None else str(index % keys)

    def _value(self, index: int) -> str:
        return str(index) if self._given.value_prefix is None else f"{self._given.value_prefix}.{index}"

    def _send(self, key: str | None, value: str) -> None:
        timestamp = None
        if self._create_time != -1:
            timestamp = self._create_time
            self._create_time += now_ms() - self._started_ms
        self.sent += 1
        topic = self._given.topic
        record = ProducerRecord(topic, value.encode(), None if key is None else key.encode(), timestamp=timestamp)

        def done(metadata: Any, error: Exception | None) -> None:
            if error is not None:
                _print_failure(key, value, topic, error)
                return
            self.acked += 1
            sent = {"key": key, "value": value, "topic": metadata.topic, "partition": metadata.partition, "offset": metadata.offset}
            print_event("producer_send_success", **sent)

        try:
            self._producer.send(record, callback=done)
        except Exception as error:
            _print_failure(key, value, topic, error)


def _print_failure(key: str | None, value: str, topic: str, error: Exception) -> None:
    fields = {"key": key, "value": value, "topic": topic, "exception": f"class {java_name(error)}", "message": message_of(error)}
    print_event("producer_send_error", **fields)
