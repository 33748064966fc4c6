"""Print the records of topics, as kafka-console-consumer does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. `--tail N` prints the last N records of each partition and goes on
from there (KIP-563).
"""

from __future__ import annotations

import logging
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import Wakeup
from barnabas.tools.command_line.failures import Ended, complain, described, failed_with_name, finish, message_of
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.connecting.connect import key_values, load_properties, open_consumer
from barnabas.tools.connecting.load import on_signals
from barnabas.tools.records.record_formatters import DEFAULT_FORMATTER, Formatter, load_formatter
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer

ABOUT: Final = "This tool helps to read data from Kafka topics and outputs it to standard output."
_FORMATTER: Final = (
    "A property of the formatter as key=value:\n print.timestamp, print.key, print.offset, print.epoch,\n"
    " print.partition, print.headers, print.value (true or false),\n key.separator, line.separator, headers.separator, null.literal,\n"
    " key.deserializer, value.deserializer, headers.deserializer"
)
OPTIONS: Final = (
    Option("topic", "The topic.", "required", described_as="topic"),
    Option("include", "A regular expression for topics.", "required", described_as="Java regex (String)"),
    Option("whitelist", "The name that --include had before Kafka 3.0.", "required", described_as="Java regex (String)"),
    Option("partition", "The partition; read from its end unless --offset says otherwise.", "required", "Integer", "partition"),
    Option("offset", "The offset to begin at, or earliest, or latest.", "required", described_as="consume offset", default="latest"),
    Option("tail", "Begin so many records before the end of each partition. (Not in Kafka.)", "required", "Long", "num_messages"),
    Option("consumer-property", "(DEPRECATED) The same as --command-property.", "required", described_as="consumer_prop"),
    Option("command-property", "A setting of the consumer as key=value; may be repeated.", "required", described_as="consumer_prop"),
    Option("consumer.config", "(DEPRECATED) The same as --command-config.", "required", described_as="config file"),
    Option("command-config", "A properties file for the consumer.", "required", described_as="config file"),
    Option("formatter", "The class that prints records.", "required", described_as="class", default=DEFAULT_FORMATTER),
    Option("property", "(DEPRECATED) The same as --formatter-property.", "required", described_as="prop"),
    Option("formatter-property", _FORMATTER, "required", described_as="prop"),
    Option("formatter-config", "A properties file for the formatter.", "required", described_as="config file"),
    Option("from-beginning", "Begin at the first record where the group has no offset yet."),
    Option("max-messages", "End after so many records.", "required", "Integer", "num_messages"),
    Option("timeout-ms", "End when no record has come for so long.", "required", "Long", "timeout_ms"),
    Option("skip-message-on-error", "Go on after a record that cannot be printed."),
    Option("bootstrap-server", "REQUIRED: the brokers to connect to.", "required", described_as="server to connect to"),
    Option("key-deserializer", "The class that reads keys.", "required", described_as="deserializer for keys"),
    Option("value-deserializer", "The class that reads values.", "required", described_as="deserializer for values"),
    Option("enable-systest-events", "Print lifecycle events, too."),
    Option("isolation-level", "read_committed leaves out what transactions have not committed.", "required", default="read_uncommitted"),
    Option("group", "The consumer group.", "required", described_as="consumer group id"),
)
_LOG: Final = logging.getLogger(__name__)
_EARLIEST: Final = -2
_LATEST: Final = -1
_POLL_MAX_S: Final = 1.0
_LONG_MAX: Final = 2**63 - 1


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_name)


def _execute(arguments: Sequence[str]) -> None:
    options = Options.or_usage(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    _check(options)
    settings = consumer_settings(options)
    offset = parse_offset(options)
    timeout_ms = options.optional_integer("timeout-ms")
    formatter = _formatter(options)
    printer = Printer(formatter, options.optional_integer("max-messages"), options.has("skip-message-on-error"))
    consumer = open_consumer(settings)
    on_signals(consumer.wakeup)  # how this tool is usually ended; it says how far it came
    try:
        _begin(consumer, options, offset)
        printer.run(consumer, None if timeout_ms is None or timeout_ms < 0 else timeout_ms)
    finally:
        try:
            consumer.close()
        finally:
            formatter.close()
            print(f"Processed a total of {printer.count} messages", file=sys.stderr)
            if options.has("enable-systest-events"):
                print("shutdown_complete")


class Printer:
    """Polls and prints until `count_max` records are printed, or no record arrives within the timeout."""

    def __init__(self, formatter: Formatter, count_max: int | None, skip_errors: bool) -> None:
        self.count = 0
        self._formatter = formatter
        self._count_max = count_max
        self._skip_errors = skip_errors

    def run(self, consumer: Consumer[Any, Any], timeout_ms: int | None) -> None:
        patience_s = None if timeout_ms is None else timeout_ms / 1000
        waited_since = time.monotonic()
        while not self._enough():
            try:
                records = consumer.poll(_POLL_MAX_S if patience_s is None else min(patience_s, _POLL_MAX_S))
            except Wakeup:
                return
            except Exception as error:
                _LOG.error("Error processing message, terminating consumer process: %s", described(error))
                return
            for record in records:
                if self._enough():
                    consumer.seek(record.topic_partition, record.offset)  # so that nothing is committed that nobody has seen
                    self._rewind(consumer, records, record)
                    return
                self._print(record)
            sys.stdout.buffer.flush()
            if len(records):
                waited_since = time.monotonic()
            elif patience_s is not None and time.monotonic() - waited_since >= patience_s:
                _LOG.error("Error processing message, terminating consumer process: org.apache.kafka.common.errors.TimeoutException")
                return

    def _enough(self) -> bool:
        return self._count_max is not None and self._count_max != -1 and self.count >= self._count_max

    def _print(self, record: Any) -> None:
        self.count += 1
        try:
            self._formatter.write(record, sys.stdout.buffer)
        except BrokenPipeError:
            raise
        except Exception as error:
            if not self._skip_errors:
                raise
            _LOG.error("Error processing message, skipping this message: %s", described(error))

    def _rewind(self, consumer: Consumer[Any, Any], records: Any, first: Any) -> None:
        """The other partitions of the same poll go back as well to the first record that was not printed."""
        sys.stdout.buffer.flush()
        seen = False
        unseen: dict[TopicPartition, int] = {}
        for record in records:
            seen = seen or record is first
            if seen:
                unseen.setdefault(record.topic_partition, record.offset)
        for partition, offset in unseen.items():
            consumer.seek(partition, offset)


def _check(options: Options) -> None:
    included = "whitelist" if options.has("whitelist") and not options.has("include") else "include"
    if sum(map(options.has, ("topic", included))) != 1:
        options.one_of("topic", "include")
    if options.has("partition"):
        options.integer("partition")
        if not options.has("topic"):
            options.usage("The topic is required when partition is specified.")
        if options.has("from-beginning") and options.has("offset"):
            options.usage("Options from-beginning and offset cannot be specified together.")
    elif options.has("offset"):
        options.usage("The partition is required when offset is specified.")
    options.require("bootstrap-server")
    options.refuse_with("tail", ("offset", "from-beginning", "include", "whitelist", "group"))
    for older, newer in (("consumer-property", "command-property"), ("consumer.config", "command-config")):
        if options.has(older) and options.has(newer):
            options.usage(f"Options --{older} and --{newer} cannot be specified together.")
    for older, newer in (("consumer-property", "command-property"), ("consumer.config", "command-config")):
        if options.has(older):
            print(f"Option --{older} is deprecated and will be removed in a future version. Use --{newer} instead.")


def consumer_settings(options: Options) -> dict[str, Any]:
    from_file = load_properties(options.optional("consumer.config") or options.optional("command-config"))
    extra = key_values(options.texts("consumer-property") or options.texts("command-property"))
    given = [options.optional("group"), from_file.get("group.id"), extra.get("group.id")]
    groups = list(dict.fromkeys(group for group in given if group is not None))
    if len(groups) > 1:
        listed = ", ".join(f"'{group}'" for group in groups)
        options.usage(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via '--consumer.config') "
            f"do not match. Detected group ids: {listed}"
        )
    if groups and options.has("partition"):
        options.usage("Options group and partition cannot be specified together.")
    settings: dict[str, Any] = from_file | extra
    reset = settings.get("auto.offset.reset")
    if reset is not None and options.has("from-beginning") and reset != "earliest":
        raise complain(f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option")
    settings.setdefault("auto.offset.reset", "earliest" if options.has("from-beginning") else "latest")
    settings["bootstrap.servers"] = options.text("bootstrap-server")
    settings.setdefault("client.id", "console-consumer")
    if options.has("isolation-level") or "isolation.level" not in settings:
        settings["isolation.level"] = options.text("isolation-level")
    if groups:
        settings["group.id"] = groups[0]
    else:
        settings["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        settings.setdefault("enable.auto.commit", "false")
    return settings


def parse_offset(options: Options) -> int:
    if not options.has("offset"):
        return _EARLIEST if options.has("from-beginning") else _LATEST
    text = options.text("offset")
    if text.lower() in ("earliest", "latest"):
        return _EARLIEST if text.lower() == "earliest" else _LATEST
    if not re.fullmatch(r"\+?[0-9]{1,19}", text) or int(text) > _LONG_MAX:
        options.usage(f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.")
    return int(text)


def _formatter(options: Options) -> Formatter:
    if options.has("formatter-property") and options.has("property"):
        options.usage("Options --property and --formatter-property cannot be specified together.")
    try:
        formatter = load_formatter(options.text("formatter"))
        if options.has("property"):
            print("Option --property is deprecated and will be removed in a future version. Use --formatter-property instead.")
        properties = load_properties(options.optional("formatter-config"))
        for part in ("key", "value"):
            if options.optional(f"{part}-deserializer"):
                properties[f"{part}.deserializer"] = options.text(f"{part}-deserializer")
        formatter.configure(properties | key_values(options.texts("property") or options.texts("formatter-property")))
    except Ended:
        raise
    except Exception as error:
        options.usage(message_of(error))
    return formatter


def _begin(consumer: Consumer[Any, Any], options: Options, offset: int) -> None:
    topic = options.optional("topic")
    if topic is None:
        consumer.subscribe(re.compile(options.optional("include") or options.text("whitelist")))
    elif options.has("tail"):
        _seek_tail(consumer, topic, options.optional_integer("partition"), options.integer("tail"))
    elif not options.has("partition"):
        consumer.subscribe([topic])
    else:
        partition = TopicPartition(topic, options.integer("partition"))
        consumer.assign([partition])
        if offset in _SEEKS:
            _SEEKS[offset](consumer, partition)
        else:
            consumer.seek(partition, offset)


_SEEKS: Final[dict[int, Callable[[Any, TopicPartition], object]]] = {
    _EARLIEST: lambda consumer, partition: consumer.seek_to_beginning([partition]),
    _LATEST: lambda consumer, partition: consumer.seek_to_end([partition]),
}


def _seek_tail(consumer: Consumer[Any, Any], topic: str, partition: int | None, count: int) -> None:
    partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic) or ()]
    selected = [candidate for candidate in partitions if partition in (None, candidate.partition)]
    if not selected:
        raise complain(f"There is no partition {partition} of {topic}" if partitions else f"There is no topic {topic}")
    consumer.assign(selected)
    begins, ends = consumer.beginning_offsets(selected), consumer.end_offsets(selected)
    for assigned in selected:
        consumer.seek(assigned, max(begins[assigned], ends[assigned] - count))
