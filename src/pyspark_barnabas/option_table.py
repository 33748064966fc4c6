"""Every option of `format("barnabas")`, with its type, unit, default and meaning: the table of the documentation site.

    from pyspark_barnabas.option_table import OPTIONS

    print(OPTIONS["maxTriggerDelay"].default)  # 15m

Spark gives options as text. Names are case-insensitive. An option that is not listed here, and does not begin with `kafka.`, is refused.
The modules that read the options do not import this table; `tests/unit/spark/test_option_table.py` compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

READING: Final = "reading"
WRITING: Final = "writing"
LOG_DIRS: Final = "log directories"
VALUES: Final = "values"


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `default` is the text that has the same effect as leaving the option out; None where there is no such text.

    `uses` says what it is for: reading topics, writing topics, reading log directories, decoding values. `unit` is empty for what has none.
    """

    name: str
    type: str
    default: str | None
    doc: str
    uses: tuple[str, ...]
    unit: str = ""


def _options(
    uses: tuple[str, ...], rows: Iterable[tuple[str, str, str | None, str] | tuple[str, str, str | None, str, str]]
) -> list[Option]:
    return [Option(name, kind, default, doc, uses, *unit) for name, kind, default, doc, *unit in rows]


# fmt: off
_BOTH_WAYS: Final = _options((READING, WRITING), [
    ("kafka.bootstrap.servers", "list", None,
     "Addresses of some brokers, `host1:9092,host2:9092`. Required with a broker. Any other `kafka.X` is a setting of Kafka's clients."),
    ("publishProgress", "boolean", "true", "Publish the progress of a stream to the topic `__barnabas_queries`, for the console."),
])
_READING: Final = _options((READING, LOG_DIRS), [
    ("subscribe", "list", None, "Topics, separated by commas. With a broker, one of subscribe, subscribePattern and assign is required."),
    ("subscribePattern", "regular expression", None, "Topics whose names match anywhere; new topics are read as well."),
    ("assign", "JSON", None, 'Partitions: `{"orders":[0,1]}`.'),
    ("startingOffsets", "text or JSON", "earliest for a batch, latest for a stream",
     'Where a new query begins: `earliest`, `latest` (streams only), or `{"orders":{"0":23,"1":-2}}`, -2 for earliest, -1 for latest.'),
    ("endingOffsets", "text or JSON", "latest", "Where a batch ends; the same values as startingOffsets. Batches only."),
    ("startingTimestamp", "integer", None, "Begin at the first record at or after this time, in all partitions.", "ms since 1970"),
    ("endingTimestamp", "integer", None, "End before the first record at or after this time. Batches only.", "ms since 1970"),
    ("startingOffsetsByTimestamp", "JSON", None, 'A time for each partition: `{"orders":{"0":1700000000000}}`.', "ms since 1970"),
    ("endingOffsetsByTimestamp", "JSON", None, "The same for the end of a batch.", "ms since 1970"),
    ("startingOffsetsByTimestampStrategy", "`error` or `latest`", "error", "What happens if a partition has no record that late."),
    ("filter", "SQL", None, "Comparisons of partition, offset and timestamp joined by `and`; applied before rows leave the source."),
    ("includeHeaders", "boolean", "false", "Adds the column `headers`."),
    ("minPartitions", "integer", None, "Divide large offset ranges so that there are at least so many tasks.", "tasks"),
    ("failOnDataLoss", "boolean", "true", "Fail if records may have been missed; `false` logs a warning and continues."),
    ("kafka.isolation.level", "`read_committed` or `read_uncommitted`", "read_committed", "Whether aborted records are left out."),
])
_READING_FROM_BROKERS: Final = _options((READING,), [
    ("maxRecordsPerPartition", "integer", None, "Divide offset ranges into tasks of at most so many offsets.", "offsets"),
    ("maxOffsetsPerTrigger", "integer", None, "The most that a micro-batch of a stream reads, over all partitions.", "offsets"),
    ("minOffsetsPerTrigger", "integer", None, "A micro-batch waits until so many offsets are there, or for maxTriggerDelay.", "offsets"),
    ("maxTriggerDelay", "duration", "15m", "The longest wait for minOffsetsPerTrigger: `500ms`, `30s`, `15m`.", "ms if it has no unit"),
    ("kafka.group.id", "text", None, "The group that a stream commits its progress to. The query itself continues from its checkpoint."),
    ("groupIdPrefix", "text", None, "Makes the name of that group from this prefix and the subscription."),
    ("commitOffsets", "boolean", "true", "`false`: nothing is committed."),
    ("kafkaConsumer.pollTimeoutMs", "integer", "120000", "How long a task waits for records.", "ms"),
    ("fetchOffset.numRetries", "integer", "3", "How often offsets are requested from the cluster before the query fails.", "attempts"),
    ("fetchOffset.retryIntervalMs", "integer", "1000", "The pause between two of these attempts.", "ms"),
])
_LOG_DIRS: Final = _options((LOG_DIRS,), [
    ("logDirs", "list", None, "Log directories to read without a broker, separated by commas, on any file system that Spark reads."),
    ("maxBytesPerPartition", "integer", "134217728", "How much of the segments one task reads; at least 1024.", "bytes"),
    ("kafka.check.crcs", "boolean", "true", "Whether the checksum of each batch is verified."),
])
_WRITING: Final = _options((WRITING,), [
    ("topic", "text", None, "The topic of all rows; without it each row needs a column `topic`."),
    ("includeHeaders", "boolean", "false", "Accepted as in Spark's connector; the column `headers` is written if it is there."),
    ("exactlyOnce", "boolean", "false", "Write each record of a stream once, in transactions. Needs transactionalIdPrefix."),
    ("transactionalIdPrefix", "text", None, "A name that no other query uses and that stays the same over restarts; 200 bytes at most."),
    ("decisionTopic", "text", "__barnabas_spark_decisions", "The compacted topic of commit decisions. Only with exactlyOnce."),
    ("verifyReplays", "`rows`, `count` or `none`", "rows", "What is compared when a committed batch runs again. Only with exactlyOnce."),
])
_ALL_FORMATS: Final = _options((VALUES,), [
    ("value.format", "`json`, `avro`, `protobuf`, `csv` or `string`", None, "How values are decoded; without it they stay bytes."),
    ("value.schema", "DDL or Avro schema", None, "The columns: `id BIGINT, name STRING`; for Avro, the reader's schema as JSON."),
    ("value.mode", "`permissive`, `failfast` or `dropmalformed`", "permissive", "What happens to values that do not fit, as in Spark."),
    ("value.columnNameOfCorruptRecord", "text", "_corrupt", "The column with the bytes and the reason, in the mode permissive."),
    ("value.deadLetterTopic", "text", None, "Values that do not fit go to this topic instead. Not together with value.mode."),
    ("value.flatten", "boolean", "false", "Each field becomes a column of its own."),
    ("value.column", "text", "value", "The name of the decoded column; with another name than value the bytes stay in `value`."),
])
_INFERENCE: Final = _options((VALUES,), [
    ("value.inferSchema", "boolean", "false", "JSON and CSV: infer the columns from records."),
    ("value.sampleRecords", "integer", "1000", "How many of the newest records the columns are inferred from; at most 1000000.", "records"),
])
_TIMES: Final = _options((VALUES,), [
    ("value.timeZone", "text", "UTC", "JSON and CSV: the zone of times that have none."),
    ("value.dateFormat", "pattern", None, "JSON and CSV: the pattern of dates, with Spark's letters."),
    ("value.timestampFormat", "pattern", None, "JSON and CSV: the pattern of times."),
    ("value.timestampNTZFormat", "pattern", None, "JSON and CSV: the pattern of times without a zone."),
])
_JSON: Final = _options((VALUES,), [
    ("value.allowComments", "boolean", "false", "JSON: allow comments as in Java and C++."),
    ("value.allowUnquotedFieldNames", "boolean", "false", "JSON: allow field names without quotes."),
    ("value.allowSingleQuotes", "boolean", "true", "JSON: allow single quotes."),
    ("value.allowNumericLeadingZeros", "boolean", "false", "JSON: allow numbers such as 007."),
    ("value.allowNonNumericNumbers", "boolean", "true", "JSON: allow NaN and Infinity."),
    ("value.allowBackslashEscapingAnyCharacter", "boolean", "false", "JSON: allow a backslash before any character."),
    ("value.allowUnquotedControlChars", "boolean", "false", "JSON: allow control characters in texts."),
    ("value.primitivesAsString", "boolean", "false", "JSON, inference: all primitive values are strings."),
    ("value.prefersDecimal", "boolean", "false", "JSON, inference: fractions are decimals if they fit."),
])
_CSV: Final = _options((VALUES,), [
    ("value.sep", "text", ",", "CSV: what separates cells."),
    ("value.delimiter", "text", ",", "CSV: another name of value.sep; only one of them is given."),
    ("value.quote", "character", '"', "CSV: encloses cells that contain the separator."),
    ("value.escape", "character", "\\", "CSV: stands before a quote inside of quotes."),
    ("value.charToEscapeQuoteEscaping", "character", "that of value.escape", "CSV: stands before an escape character."),
    ("value.comment", "character", None, "CSV: lines that begin with it are left out."),
    ("value.nullValue", "text", "", "CSV: the text that is null."),
    ("value.emptyValue", "text", "", "CSV: what an empty cell in quotes is."),
    ("value.nanValue", "text", "NaN", "CSV: the text that is not a number."),
    ("value.positiveInf", "text", "Inf", "CSV: the text of infinity."),
    ("value.negativeInf", "text", "-Inf", "CSV: the text of negative infinity."),
    ("value.ignoreLeadingWhiteSpace", "boolean", "false", "CSV: drop blanks before a cell."),
    ("value.ignoreTrailingWhiteSpace", "boolean", "false", "CSV: drop blanks after a cell."),
    ("value.maxColumns", "integer", "20480", "CSV: the most cells of a line.", "cells"),
    ("value.maxCharsPerColumn", "integer", "-1", "CSV: the most characters of a cell; -1 for no limit.", "characters"),
])
_OTHER_FORMATS: Final = _options((VALUES,), [
    ("value.messageName", "text", None, "Protobuf: the message; with a registry, by default the first of the schema."),
    ("value.descFilePath", "path", None, "Protobuf: a descriptor set of protoc, which the driver reads."),
    ("value.emitDefaultValues", "boolean", "false", "Protobuf: fields that are not set have their default values instead of null."),
    ("value.enumsAsInts", "boolean", "false", "Protobuf: enums are numbers instead of names."),
    ("value.encoding", "text", "UTF-8", "string: the character set."),
])
_REGISTRY: Final = _options((VALUES,), [
    ("value.schema.registry.url", "list", None, "Schema registries, `http://host:8081`, tried in turn. For json, avro and protobuf."),
    ("value.schema.subject", "text", "<topic>-value", "The subject that has the columns."),
    ("value.schema.version", "integer or `latest`", "latest", "The version of that subject."),
    ("value.schema.registry.ssl.truststore.location", "path", None, "A PEM file with the certificates to trust."),
    ("value.schema.registry.ssl.keystore.location", "path", None, "A PEM file with the client's certificate and key."),
    ("value.schema.registry.ssl.key.password", "password", None, "The password of that key."),
    ("value.basic.auth.credentials.source", "`URL`, `USER_INFO` or `SASL_INHERIT`", "URL", "Where the registry's user and password are."),
    ("value.basic.auth.user.info", "password", None, "`user:password`, for USER_INFO."),
    ("value.bearer.auth.credentials.source", "`STATIC_TOKEN`", None, "Send a token instead of a password."),
    ("value.bearer.auth.token", "password", None, "That token."),
    ("value.max.retries", "integer", "3", "How often a request to the registry is tried again.", "attempts"),
    ("value.retries.wait.ms", "integer", "1000", "The first wait before such an attempt.", "ms"),
    ("value.retries.max.wait.ms", "integer", "20000", "The longest wait before such an attempt.", "ms"),
    ("value.rules.ignore", "boolean", "false", "Read values of schemas with rules (data contracts) without applying them."),
])
# fmt: on

_ALL: Final = (
    *_BOTH_WAYS,
    *_READING,
    *_READING_FROM_BROKERS,
    *_LOG_DIRS,
    *_WRITING,
    *_ALL_FORMATS,
    *_INFERENCE,
    *_TIMES,
    *_JSON,
    *_CSV,
    *_OTHER_FORMATS,
    *_REGISTRY,
)
OPTIONS: Final = {option.name: option for option in reversed(_ALL)}


def options_for(use: str) -> list[Option]:
    """The options of one use, `READING`, `WRITING`, `LOG_DIRS` or `VALUES`, in the order in which they are explained."""
    return [option for option in _ALL if use in option.uses]
