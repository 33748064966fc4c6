"""Measure how fast records can be produced, as kafka-producer-perf-test does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.java_numbers import parse_double
from barnabas.tools.command_line.arguments import ArgumentsRefused, Parser, number, refused_text
from barnabas.tools.command_line.failures import BadArgument, described, finish, print_cause
from barnabas.tools.connecting.connect import load_properties, open_producer
from barnabas.tools.connecting.load import ThroughputThrottler, now_ms, print_metrics
from barnabas.uuid import Uuid

_SAMPLES_MAX: Final = 500_000
_MB: Final = 1024.0 * 1024.0
_TRANSACTION_MS_DEFAULT: Final = 3000
_PAYLOADS_KEPT: Final = 1024  # random payloads are made once and used in turn: making them would be what is measured


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        build_parser().print_help()
        return 0
    return finish(lambda: _execute(arguments), _failed)


def _failed(error: Exception) -> int:
    print(refused_text(error) if isinstance(error, ArgumentsRefused) else described(error), file=sys.stderr)
    print_cause(error)
    return 1


def _double(text: str) -> float:
    from argparse import ArgumentTypeError

    value = parse_double(text)
    if value is None:
        raise ArgumentTypeError(f"could not convert '{text}' to Double (For input string: \"{text}\")")
    return value


def build_parser() -> Parser:
    parser = Parser(
        prog="kafka-producer-perf-test",
        description="This tool is used to verify the producer performance. With --transactional-id, --transaction-duration-ms or a "
        "transactional.id among the settings, records are sent in transactions.",
    )
    only = "Exactly one of --record-size, --payload-file and --payload-monotonic is needed."
    parser.add_argument("--bootstrap-server", metavar="BOOTSTRAP-SERVER", help="the brokers to connect to")
    payload = parser.add_mutually_exclusive_group(required=True)
    parser.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to produce to")
    parser.add_argument("--num-records", metavar="NUM-RECORDS", type=number("Long"), required=True, help="how many records to produce")
    payload.add_argument("--record-size", metavar="RECORD-SIZE", type=number("Integer"), help=f"bytes of a record. {only}")
    payload.add_argument("--payload-file", metavar="PAYLOAD-FILE", help=f"a text file of payloads, sent in random order. {only}")
    payload.add_argument("--payload-monotonic", action="store_true", help=f"each payload is the number of its record. {only}")
    parser.add_argument("--payload-delimiter", metavar="PAYLOAD-DELIMITER", default="\\n", help="between payloads; default: a line's end")
    parser.add_argument("--throughput", metavar="THROUGHPUT", type=_double, required=True, help="records a second; -1 for no limit")
    for name, about in (
        ("--producer-props", "(DEPRECATED) the same as --command-property"),
        ("--command-property", "settings of the producer"),
    ):
        parser.add_argument(name, metavar="PROP-NAME=PROP-VALUE", nargs="+", help=about)
    for name, about in (("--producer.config", "(DEPRECATED) the same as --command-config"), ("--command-config", "a properties file")):
        parser.add_argument(name, metavar="CONFIG-FILE", help=about)
    parser.add_argument("--print-metrics", action="store_true", help="print the producer's metrics at the end")
    parser.add_argument("--transactional-id", metavar="TRANSACTIONAL-ID", help="send in transactions of this id")
    parser.add_argument(
        "--transaction-duration-ms", metavar="TRANSACTION-DURATION", type=number("Long"), help="commit after so long; default: 3000"
    )
    parser.add_argument("--warmup-records", metavar="WARMUP-RECORDS", type=number("Long"), default=0, help="do not count the first ones")
    parser.add_argument(
        "--reporting-interval", metavar="INTERVAL-MS", type=number("Long"), default=5000, help="between lines; default: 5000"
    )
    return parser


def _execute(arguments: Sequence[str]) -> None:
    parser = build_parser()
    given = parser.parse(list(arguments))
    _check(parser, given)
    payloads = _read_payloads(given.payload_file, given.payload_delimiter.replace("\\n", "\n"))
    settings = _settings(given)
    transactional = "transactional.id" in settings
    duration_ms = given.transaction_duration_ms or _TRANSACTION_MS_DEFAULT
    producer = open_producer(settings)
    try:
        if transactional:
            producer.init_transactions()
        run = ProducerPerfRun(producer, given, _payload_maker(given, payloads), duration_ms if transactional else None)
        run.send_all()
        producer.flush()
        run.print_totals()
        if given.print_metrics:
            print_metrics(producer.metrics())
    finally:
        producer.close()


def _check(parser: Parser, given: Any) -> None:
    def refuse(message: str) -> None:
        raise ArgumentsRefused(message, parser.format_usage(), parser.prog)

    properties, file = given.command_property, given.command_config
    old_properties, old_file = given.producer_props, getattr(given, "producer.config")
    if given.num_records <= 0:
        refuse("--num-records should be greater than zero.")
    if max(given.warmup_records, 0) >= given.num_records:
        refuse("The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.")
    if given.record_size is not None and given.record_size <= 0:
        refuse("--record-size should be greater than zero.")
    if given.bootstrap_server is None and not any((properties, old_properties, file, old_file)):
        refuse(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or --command-config "
            "must be specified."
        )
    if properties and old_properties:
        refuse("--command-property and --producer-props cannot be specified together.")
    if file and old_file:
        refuse("--command-config and --producer.config cannot be specified together.")
    if given.transaction_duration_ms is not None and given.transaction_duration_ms <= 0:
        refuse("--transaction-duration-ms should be greater than zero.")
    if given.reporting_interval <= 0:
        refuse("--reporting-interval should be greater than zero.")


def _settings(given: Any) -> dict[str, Any]:
    for old, new in (("producer-props", "command-property"), ("producer.config", "command-config")):
        if getattr(given, old.replace("-", "_")):
            print(f"Option --{old} has been deprecated and will be removed in a future version. Use --{new} instead.")
    settings: dict[str, Any] = dict(load_properties(getattr(given, "producer.config") or given.command_config))
    for pair in given.producer_props or given.command_property or ():
        pieces = pair.rstrip("=").split("=")
        if len(pieces) != 2:
            raise BadArgument(f"Invalid property: {pair}")
        settings[pieces[0]] = pieces[1]
    settings.setdefault("client.id", "perf-producer-client")
    if given.bootstrap_server is not None:
        settings["bootstrap.servers"] = given.bootstrap_server
    if given.transactional_id is not None:
        settings["transactional.id"] = given.transactional_id
    elif given.transaction_duration_ms is not None:
        settings.setdefault("transactional.id", f"performance-producer-{Uuid.random(random.Random(os.urandom(16)))}")
    return settings


def _read_payloads(path: str | None, delimiter: str) -> list[bytes]:
    if path is None:
        return []
    print(f"Reading payloads from: {os.path.abspath(path)}")
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        raise BadArgument("File does not exist or empty file provided.")
    with open(path, encoding="utf-8", errors="replace") as file:
        payloads = [text.encode() for text in re.split(delimiter, file.read())]
    while payloads and not payloads[-1]:
        payloads.pop()
    print(f"Number of records read: {len(payloads)}")
    return payloads


def _payload_maker(given: Any, payloads: Sequence[bytes]) -> Callable[[int], bytes]:
    """The payload of each record by its number."""
    chosen = random.Random(0)
    if payloads:
        return lambda _: chosen.choice(payloads)
    if given.record_size is None:
        return lambda number: str(number).encode()
    count = max(1, min(_PAYLOADS_KEPT, 64 * 1024 * 1024 // given.record_size))
    made = [bytes(chosen.choices(range(65, 91), k=given.record_size)) for _ in range(min(count, given.num_records))]
    return lambda number: made[number % len(made)]


class ProducerPerfRun:
    """One run: sends, counts, and reports on its way."""

    def __init__(self, producer: Any, given: Any, payload: Callable[[int], bytes], transaction_ms: int | None) -> None:
        self._producer = producer
        self._topic = given.topic
        self._count = given.num_records
        self._warmup = max(given.warmup_records, 0)
        self._interval_ms = given.reporting_interval
        self._payload = payload
        self._transaction_ms = transaction_ms
        self._throttle = ThroughputThrottler(given.throughput, now_ms())
        self._stats = Stats(given.num_records, given.reporting_interval, steady=False)
        self._steady: Stats | None = None

    def send_all(self) -> None:
        if self._warmup:
            print(f"Warmup first {self._warmup} records. Steady state results will print after the complete test summary.")
        in_transaction = 0
        began_ms = 0
        for index in range(self._count):
            payload = self._payload(index)
            if self._transaction_ms is not None and in_transaction == 0:
                self._producer.begin_transaction()
                began_ms = now_ms()
            start_ms = now_ms()
            if self._warmup and index == self._warmup:
                self._steady = Stats(self._count - self._warmup, self._interval_ms, steady=True)
                self._stats.silent = True
            self._producer.send(self._topic, payload, callback=self._callback(start_ms, len(payload)))
            in_transaction += 1
            if self._transaction_ms is not None and self._transaction_ms <= start_ms - began_ms:
                self._producer.commit_transaction()
                in_transaction = 0
            self._throttle.wait(index, start_ms)
        if self._transaction_ms is not None and in_transaction:
            self._producer.commit_transaction()

    def print_totals(self) -> None:
        self._stats.print_total()
        if self._steady is not None:
            self._steady.print_total()

    def _callback(self, start_ms: int, size: int) -> Callable[[Any, Exception | None], None]:
        steady = self._steady

        def done(_: Any, error: Exception | None) -> None:
            if error is not None:
                print(described(error), file=sys.stderr)
                return
            now = now_ms()
            self._stats.record(now - start_ms, size, now)
            if steady is not None:
                steady.record(now - start_ms, size, now)

        return done


class Stats:
    """Latencies and bytes since the start and since the last line."""

    def __init__(self, count: int, interval_ms: int, *, steady: bool) -> None:
        self.silent = False
        self._start_ms = self._window_start_ms = now_ms()
        self._sampling = count // min(count, _SAMPLES_MAX)
        self._interval_ms = interval_ms
        self._is_steady = steady
        self._latencies: list[int] = []
        self._count = self._bytes = self._latency = self._latency_max = 0
        self._window_count = self._window_bytes = self._window_latency = self._window_latency_max = 0

    def record(self, latency_ms: int, size: int, now: int) -> None:
        if self._count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self._count += 1
        self._bytes += size
        self._latency += latency_ms
        self._latency_max = max(self._latency_max, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_latency += latency_ms
        self._window_latency_max = max(self._window_latency_max, latency_ms)
        if now - self._window_start_ms >= self._interval_ms:
            if self._is_steady and self._count == self._window_count:
                print("In steady state.")
            if not self.silent:
                self._print_window(now)
            self._window_start_ms = now
            self._window_count = self._window_bytes = self._window_latency = self._window_latency_max = 0

    def _print_window(self, now: int) -> None:
        elapsed_s = (now - self._window_start_ms) / 1000 or 0.001
        print(
            f"{self._window_count} records sent, {self._window_count / elapsed_s:.1f} records/sec "
            f"({self._window_bytes / elapsed_s / _MB:.2f} MB/sec), {self._window_latency / self._window_count:.1f} ms avg latency, "
            f"{self._window_latency_max:.1f} ms max latency.",
            flush=True,
        )

    def print_total(self) -> None:
        elapsed_s = (now_ms() - self._start_ms) / 1000 or 0.001
        ordered = sorted(self._latencies) or [0]
        shares = [ordered[min(int(share * len(self._latencies)), len(ordered) - 1)] for share in (0.5, 0.95, 0.99, 0.999)]
        average = self._latency / self._count if self._count else float("nan")
        print(
            f"{self._count}{' steady state' if self._is_steady else ''} records sent, {self._count / elapsed_s:f} records/sec "
            f"({self._bytes / elapsed_s / _MB:.2f} MB/sec), {average:.2f} ms avg latency, {self._latency_max:.2f} ms max latency, "
            f"{shares[0]} ms 50th, {shares[1]} ms 95th, {shares[2]} ms 99th, {shares[3]} ms 99.9th.".replace("nan", "NaN")
        )
