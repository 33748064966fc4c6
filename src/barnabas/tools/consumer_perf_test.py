"""Measure how fast records can be consumed, as kafka-consumer-perf-test does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.tools.command_line.failures import BadArgument, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.progress import ProgressBar
from barnabas.tools.connecting.connect import key_values, load_properties, open_consumer
from barnabas.tools.connecting.load import java_date, now_ms, print_metrics
from barnabas.topic_partition import TopicPartition

ABOUT: Final = "This tool is used to verify the consumer performance."
_OLD: Final = "Of older Kafkas; without effect."
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the brokers to connect to.", "required", described_as="server to connect to"),
    Option("broker-list", "The name that --bootstrap-server had before Kafka 2.5.", "required", described_as="broker-list"),
    Option("topic", "The topic.", "required", described_as="topic"),
    Option("include", "A regular expression for topics.", "required", described_as="Java regex (String)"),
    Option("group", "The consumer group.", "required", described_as="gid", default="perf-consumer-N"),
    Option(
        "fetch-size",
        "How many bytes of a partition to fetch at once (max.partition.fetch.bytes).",
        "required",
        "Integer",
        "size",
        str(1024 * 1024),
    ),
    Option("command-property", "A setting of the consumer as key=value; may be repeated.", "required", described_as="prop1=val1"),
    Option("from-latest", "Begin at the end where the group has no offset yet."),
    Option(
        "socket-buffer-size",
        "The receive buffer of a connection (receive.buffer.bytes).",
        "required",
        "Integer",
        "size",
        str(2 * 1024 * 1024),
    ),
    Option("consumer.config", "(DEPRECATED) The same as --command-config.", "required", described_as="config file"),
    Option("command-config", "A properties file for the consumer.", "required", described_as="config file"),
    Option("print-metrics", "Print the consumer's metrics at the end."),
    Option("show-detailed-stats", "Print a line for each interval."),
    Option("timeout", "End when no record has come for so long.", "optional", "Long", "milliseconds", "10000"),
    Option("messages", "(DEPRECATED) The same as --num-records.", "required", "Long", "count"),
    Option("num-records", "REQUIRED: how many records to consume.", "required", "Long", "count"),
    Option("reporting-interval", "How long an interval is.", "required", "Long", "interval_ms", "5000"),
    Option(
        "date-format", "As java.text.SimpleDateFormat has it.", "required", described_as="date format", default="yyyy-MM-dd HH:mm:ss:SSS"
    ),
    Option("hide-header", "Leave out the line of column names."),
    Option("threads", _OLD, "required", "Integer", "count"),
    Option("num-fetch-threads", _OLD, "required", "Integer", "count"),
)
_FETCH_COLUMNS: Final = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_POLL_S: Final = 0.1
_MB: Final = 1024 * 1024


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options.or_usage(OPTIONS, arguments)
    _check(options)
    detailed = options.has("show-detailed-stats")
    if not options.has("hide-header"):
        first = "time, threadId" if detailed else "start.time, end.time"
        print(f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec{_FETCH_COLUMNS}")
    with open_consumer(consumer_settings(options)) as consumer:
        run = ConsumerPerfRun(options)
        started_ms = now_ms()
        run.consume(consumer)
        if not detailed:
            run.print_total(started_ms, now_ms())
        if options.has("print-metrics"):
            print_metrics(consumer.metrics())


def _check(options: Options) -> None:
    options.maybe_help_or_version(ABOUT)
    if not options.has("broker-list"):
        options.require("bootstrap-server")
    options.one_of("topic", "include")
    options.one_of("messages", "num-records")
    options.refuse_with("consumer.config", ("command-config",))
    for old, new in (("messages", "num-records"), ("consumer.config", "command-config")):
        if options.has(old):
            print(f"Warning: --{old} is deprecated. Use --{new} instead.")


def consumer_settings(options: Options) -> dict[str, Any]:
    settings: dict[str, Any] = dict(load_properties(options.optional("consumer.config") or options.optional("command-config")))
    settings |= key_values(options.texts("command-property"))
    settings |= {
        "bootstrap.servers": options.optional("bootstrap-server") or options.text("broker-list"),
        "group.id": options.text("group") if options.has("group") else f"perf-consumer-{random.randrange(100_000)}",
        "receive.buffer.bytes": str(options.integer("socket-buffer-size")),
        "max.partition.fetch.bytes": str(options.integer("fetch-size")),
        "auto.offset.reset": "latest" if options.has("from-latest") else "earliest",
        "check.crcs": "false",
    }
    settings.setdefault("client.id", "perf-consumer-client")
    return settings


class Joining(ConsumerRebalanceListener):
    """How long the group took to hand out partitions, in all and since the last line."""

    def __init__(self) -> None:
        self.total_ms = 0
        self.round_ms = 0
        self._since_ms = now_ms()
        self._assigned: set[TopicPartition] = set()

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned -= set(partitions)
        if not self._assigned:
            self._since_ms = now_ms()

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if not self._assigned:
            elapsed = now_ms() - self._since_ms
            self.total_ms += elapsed
            self.round_ms += elapsed
        self._assigned |= set(partitions)


class ConsumerPerfRun:
    """Polls until --messages records are read, or no record arrives for --timeout."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._record_count_max = options.integer("messages" if options.has("messages") else "num-records")
        self._timeout_ms = options.integer("timeout")
        self._interval_ms = options.integer("reporting-interval")
        if self._interval_ms <= 0:
            raise BadArgument("Reporting interval must be greater than 0.")
        self._pattern = options.text("date-format")
        self._joining = Joining()
        self._records = self._bytes = 0
        self._reported_records = self._reported_bytes = 0

    def consume(self, consumer: Any) -> None:
        options = self._options
        topics = [options.text("topic")] if options.has("topic") else re.compile(options.text("include"))
        consumer.subscribe(topics, self._joining)
        reported_ms = consumed_ms = current_ms = now_ms()
        progress = ProgressBar("consumed", self._record_count_max, "records", after_s=2)
        while self._records < self._record_count_max and current_ms - consumed_ms <= self._timeout_ms:
            records = consumer.poll(_POLL_S)
            current_ms = now_ms()
            if len(records):
                consumed_ms = current_ms
            for record in records:
                self._records += 1
                self._bytes += len(record.key or b"") + len(record.value or b"")
            progress.at(self._records)
            if len(records) and current_ms - reported_ms >= self._interval_ms:
                if options.has("show-detailed-stats"):
                    progress.end()
                    self._print_progress(reported_ms, current_ms)
                self._joining.round_ms = 0
                reported_ms = current_ms
                self._reported_records, self._reported_bytes = self._records, self._bytes
        progress.end()
        if self._records < self._record_count_max:
            print(
                f"WARNING: Exiting before consuming the expected number of records: timeout ({self._timeout_ms} ms) exceeded. "
                "You can use the --timeout option to increase the timeout."
            )

    def print_total(self, started_ms: int, ended_ms: int) -> None:
        elapsed_s = (ended_ms - started_ms) / 1000
        fetch_ms = ended_ms - started_ms - self._joining.total_ms
        mb = self._bytes / _MB
        figures = (
            java_date(self._pattern, started_ms),
            java_date(self._pattern, ended_ms),
            f"{mb:.4f}",
            _rate(mb, elapsed_s),
            str(self._records),
            _rate(self._records, elapsed_s),
            str(self._joining.total_ms),
            str(fetch_ms),
            _rate(mb, fetch_ms / 1000),
            _rate(self._records, fetch_ms / 1000),
        )
        print(", ".join(figures))

    def _print_progress(self, since_ms: int, now: int) -> None:
        mb = (self._bytes - self._reported_bytes) / _MB
        records = self._records - self._reported_records
        elapsed_s = (now - since_ms) / 1000
        fetch_ms = now - since_ms - self._joining.round_ms
        rates = (mb * 1000 / fetch_ms, records * 1000 / fetch_ms) if fetch_ms > 0 else (0.0, 0.0)
        print(
            f"{java_date(self._pattern, now)}, 0, {self._bytes / _MB:.4f}, {_rate(mb, elapsed_s)}, {self._records}, "
            f"{_rate(records, elapsed_s)}, {self._joining.round_ms}, {fetch_ms}, {rates[0]:.4f}, {rates[1]:.4f}",
            flush=True,
        )


def _rate(amount: float, seconds: float) -> str:
    """Java's division by zero is no error."""
    if seconds == 0:
        return "NaN" if amount == 0 else "Infinity"
    return f"{amount / seconds:.4f}"
