"""Send lines from standard input as records, as kafka-console-producer does.

Options, messages and exit codes are those of Apache Kafka 4.2. A terminal is shown `>` before each line; a pipe is not.
"""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import IO, Any, Final

from barnabas.tools.command_line.failures import BadArgument, ToolError, described, failed_with_name, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.connecting.connect import address_fault, key_values, load_properties, open_producer

ABOUT: Final = "This tool helps to read data from standard input and publish it to Kafka."
_LOG: Final = logging.getLogger(__name__)
PATIENCE_OPTION: Final = "--max-block-ms"  # how long the tool waits for the first broker
LINE_READER: Final = "org.apache.kafka.tools.LineMessageReader"
_LINE_READER_BEFORE_4: Final = "kafka.tools.ConsoleProducer$LineMessageReader"
_READER: Final = (
    "A property of the line reader as key=value:\n parse.key, parse.headers, ignore.error (false),\n"
    " key.separator, headers.delimiter (\\t),\n headers.separator (,), headers.key.separator (:),\n null.marker: what stands for null"
)
OPTIONS: Final = (
    Option("topic", "REQUIRED: the topic.", "required", described_as="topic"),
    Option(
        "bootstrap-server", "REQUIRED: the brokers to connect to, HOST1:PORT1,HOST2:PORT2.", "required", described_as="server to connect to"
    ),
    Option("broker-list", "The name that --bootstrap-server had before Kafka 2.5.", "required", described_as="broker-list"),
    Option("sync", "Wait for the acknowledgement of each record before the next one is sent."),
    Option("compression-codec", "none, gzip, snappy, lz4 or zstd; gzip if no name follows.", "optional", described_as="compression-codec"),
    Option("batch-size", "How many bytes of records make a full batch (batch.size).", "required", "Integer", "size", "16384"),
    Option(
        "message-send-max-retries", "How often a record is sent again before it is given up (retries).", "required", "Integer", default="3"
    ),
    Option("retry-backoff-ms", "How long to wait before that, in ms (retry.backoff.ms).", "required", "Long", default="100"),
    Option("timeout", "How long a batch waits to become full, in ms (linger.ms).", "required", "Long", "timeout_ms", "1000"),
    Option(
        "request-required-acks",
        "Who must have a record before it counts as sent: 0 nobody, 1 the leader, all or -1 all replicas (acks).",
        "required",
        described_as="request required acks",
        default="-1",
    ),
    Option(
        "request-timeout-ms",
        "How long the answer to a request may take, in ms (request.timeout.ms).",
        "required",
        "Integer",
        "request timeout ms",
        "1500",
    ),
    Option(
        "metadata-expiry-ms",
        "How old the knowledge about the cluster may become, in ms (metadata.max.age.ms).",
        "required",
        "Long",
        "metadata expiration interval",
        "300000",
    ),
    Option(
        "max-block-ms",
        "How long to wait for the cluster or for room in memory, in ms (max.block.ms).",
        "required",
        "Long",
        "max block on send",
        "60000",
    ),
    Option(
        "max-memory-bytes",
        "How much memory records on their way may take (buffer.memory).",
        "required",
        "Long",
        "total memory in bytes",
        "33554432",
    ),
    Option(
        "max-partition-memory-bytes",
        "(DEPRECATED) The same as --batch-size.",
        "required",
        "Integer",
        "memory in bytes per partition",
        "16384",
    ),
    Option("line-reader", "The class that makes records of the input.", "required", described_as="reader_class", default=LINE_READER),
    Option("socket-buffer-size", "The send buffer of a connection (send.buffer.bytes).", "required", "Integer", "size", "102400"),
    Option("property", "(DEPRECATED) The same as --reader-property.", "required", described_as="prop"),
    Option("reader-property", _READER, "required", described_as="prop"),
    Option("reader-config", "A properties file for the line reader.", "required", described_as="config file"),
    Option("producer-property", "(DEPRECATED) The same as --command-property.", "required", described_as="producer_prop"),
    Option("command-property", "A setting of the producer as key=value; may be repeated.", "required", described_as="producer_prop"),
    Option("producer.config", "(DEPRECATED) The same as --command-config.", "required", described_as="config file"),
    Option("command-config", "A properties file for the producer.", "required", described_as="config file"),
)
# Options that are settings of the producer: each counts where it is given, or where nothing else sets the setting.
_SETTINGS: Final = {
    "linger.ms": ("timeout",),
    "acks": ("request-required-acks",),
    "request.timeout.ms": ("request-timeout-ms",),
    "retries": ("message-send-max-retries",),
    "retry.backoff.ms": ("retry-backoff-ms",),
    "send.buffer.bytes": ("socket-buffer-size",),
    "buffer.memory": ("max-memory-bytes",),
    "batch.size": ("batch-size", "max-partition-memory-bytes"),
    "metadata.max.age.ms": ("metadata-expiry-ms",),
    "max.block.ms": ("max-block-ms",),
}
# A newer name, the one it replaces, and whether Kafka warns of it.
_RENAMED: Final = (("command-config", "producer.config"), ("command-property", "producer-property"), ("reader-property", "property"))


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_name)


def _execute(arguments: Sequence[str]) -> None:
    options = Options.or_usage(OPTIONS, arguments)
    _check(options)
    reader = load_reader(options.text("line-reader"))
    reader.configure(_reader_properties(options))
    producer = open_producer(producer_settings(options))
    try:
        for record in reader.read_records(sys.stdin.buffer):
            delivery = producer.send(record)
            if options.has("sync"):
                delivery.result()
            else:
                delivery.add_done_callback(_log_failure)
    finally:
        reader.close()
        producer.close()


def _log_failure(delivery: Any) -> None:
    error = delivery.exception(0)
    if error is not None:
        _LOG.error("Error when sending message to topic %s with error: %s", delivery.topic_partition.topic, described(error))


def _check(options: Options) -> None:
    options.maybe_help_or_version(ABOUT)
    options.require("topic")
    for newer, older in _RENAMED:
        if options.has(newer) and options.has(older):
            options.usage(f"Options --{newer} and --{older} cannot be specified together.")
    for newer, older in (_RENAMED[1], _RENAMED[0], _RENAMED[2]):
        if options.has(older):
            print(f"Warning: --{older} is deprecated and will be removed in a future version. Use --{newer} instead.")
    if options.has("max-partition-memory-bytes"):
        print("Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. Use --batch-size instead.")
    fault = address_fault(_bootstrap(options))
    if fault is not None:
        options.usage(fault)


def _bootstrap(options: Options) -> str | None:
    return options.optional("bootstrap-server") or options.optional("broker-list")


def producer_settings(options: Options) -> dict[str, Any]:
    settings: dict[str, Any] = dict(load_properties(options.optional("producer.config") or options.optional("command-config")))
    settings |= key_values(options.texts("producer-property") or options.texts("command-property"))
    settings["bootstrap.servers"] = _bootstrap(options)
    codec = options.optional("compression-codec")
    settings["compression.type"] = (codec or "gzip") if options.has("compression-codec") else "none"
    settings.setdefault("client.id", "console-producer")
    for name, given in _SETTINGS.items():
        for option in given:
            if options.has(option) or name not in settings:
                settings[name] = options.text(option) if name == "acks" else str(options.integer(option))
    return settings


def _reader_properties(options: Options) -> dict[str, str]:
    properties = load_properties(options.optional("reader-config"))
    properties["topic"] = options.text("topic")
    return properties | key_values(options.texts("property") or options.texts("reader-property"))


def load_reader(name: str) -> Any:
    if name in (LINE_READER, _LINE_READER_BEFORE_4):
        return LineReader()
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        made = getattr(import_module(module), attribute)()
    except (ImportError, ValueError, AttributeError):
        raise NoReader(name) from None
    if not hasattr(made, "read_records"):
        raise BadArgument("The reader must implement org.apache.kafka.tools.api.RecordReader interface")
    return made


class NoReader(ToolError):
    """ClassNotFoundException."""

    java_name = "java.lang.ClassNotFoundException"


class ReadingFailed(ToolError):
    """KafkaException."""

    java_name = "org.apache.kafka.common.KafkaException"


class LineReader:
    """Each line a record: `headers<TAB>key<TAB>value`, of which the first two are read only if asked for.

    Bytes that are not UTF-8 are sent as they are.
    """

    def __init__(self) -> None:
        self._topic = ""
        self._parse_key = False
        self._parse_headers = False
        self._ignore_error = False
        self._separators = {"key.separator": "\t", "headers.delimiter": "\t", "headers.separator": ",", "headers.key.separator": ":"}
        self._null: str | None = None
        self._line_number = 0

    def configure(self, properties: Mapping[str, str]) -> None:
        def is_true(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        self._topic = properties["topic"]
        self._parse_key, self._parse_headers, self._ignore_error = map(is_true, ("parse.key", "parse.headers", "ignore.error"))
        self._separators |= {name: properties[name] for name in self._separators if name in properties}
        self._null = properties.get("null.marker")
        for one, other in (("delimiter", "separator"), ("delimiter", "key.separator"), ("separator", "key.separator")):
            if self._separators[f"headers.{one}"] == self._separators[f"headers.{other}"]:
                raise ReadingFailed(f"headers.{one} and headers.{other} may not be equal")
        for name in ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator"):
            if self._separators[name] == self._null:
                raise ReadingFailed(f"null.marker and {name} may not be equal")

    def read_records(self, stream: IO[bytes]) -> Iterator[Any]:
        from barnabas.client.producer.record import ProducerRecord

        prompt = sys.stdin.isatty() and sys.stdout.isatty()
        lines = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline=None)
        while True:
            self._line_number += 1
            if prompt:
                print(">", end="", flush=True)
            line = lines.readline()
            if not line:
                return
            key, value, headers = self.parse(line.removesuffix("\n"))
            yield ProducerRecord(self._topic, value, key, headers=headers)

    def close(self) -> None:
        return None

    def parse(self, line: str) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
        """The key, the value and the headers of a line."""
        start = 0
        headers = self._part(self._parse_headers, line, start, "headers.delimiter", "headers delimiter")
        if headers is not None:
            start = len(headers) + len(self._separators["headers.delimiter"])
        key = self._part(self._parse_key, line, start, "key.separator", "key separator")
        if key is not None:
            start += len(key) + len(self._separators["key.separator"])
        pairs = [] if headers is None or headers == self._null else self._headers(headers)
        return self._bytes(key), self._bytes(line[start:]), pairs

    def _part(self, is_set: bool, line: str, start: int, separator: str, what: str) -> str | None:
        if not is_set:
            return None
        end = line.find(self._separators[separator], start)
        if end >= 0:
            return line[start:end]
        if self._ignore_error:
            return None
        raise ReadingFailed(f"No {what} found on line number {self._line_number}: '{line}'")

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null else text.encode("utf-8", "surrogateescape")

    def _headers(self, text: str) -> list[tuple[str, bytes | None]]:
        pairs = re.split(self._separators["headers.separator"], text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return [self._header(pair) for pair in pairs]

    def _header(self, pair: str) -> tuple[str, bytes | None]:
        name, separator, value = pair.partition(self._separators["headers.key.separator"])
        if not separator:
            if self._ignore_error:
                return pair, None
            raise ReadingFailed(f"No header key separator found in pair '{pair}' on line number {self._line_number}")
        if name == self._null:
            raise ReadingFailed(f"Header keys should not be equal to the null marker '{self._null}' as they can't be null")
        return name, self._bytes(value)
