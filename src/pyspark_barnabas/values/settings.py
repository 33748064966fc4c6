"""The options `value.*`: their names, combinations and validation.

Validated on the driver before any request to a broker or a registry. Options of Spark's JSON and CSV parsers have the same names here,
after `value.`; those of a schema registry's client have Confluent's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.options import boolean, choice, client_settings, given, integer, refuse_unknown, text

PREFIX: Final = "value."
VALUE: Final = "value"
FORMATS: Final = ("json", "avro", "protobuf", "csv", "string")
PERMISSIVE: Final = "permissive"
FAILFAST: Final = "failfast"
DROPMALFORMED: Final = "dropmalformed"
MODES: Final = (PERMISSIVE, FAILFAST, DROPMALFORMED)
CORRUPT: Final = "_corrupt"

_COMMON: Final = (
    "value.format",
    "value.schema",
    "value.mode",
    "value.columnNameOfCorruptRecord",
    "value.deadLetterTopic",
    "value.flatten",
    "value.column",
)
_INFERENCE: Final = ("value.inferSchema", "value.sampleRecords")
_TIMES: Final = ("value.timeZone", "value.dateFormat", "value.timestampFormat", "value.timestampNTZFormat")
_JSON: Final = (
    "value.allowComments",
    "value.allowUnquotedFieldNames",
    "value.allowSingleQuotes",
    "value.allowNumericLeadingZeros",
    "value.allowNonNumericNumbers",
    "value.allowBackslashEscapingAnyCharacter",
    "value.allowUnquotedControlChars",
    "value.primitivesAsString",
    "value.prefersDecimal",
)
_CSV: Final = (
    "value.sep",
    "value.delimiter",
    "value.quote",
    "value.escape",
    "value.charToEscapeQuoteEscaping",
    "value.comment",
    "value.nullValue",
    "value.emptyValue",
    "value.nanValue",
    "value.positiveInf",
    "value.negativeInf",
    "value.ignoreLeadingWhiteSpace",
    "value.ignoreTrailingWhiteSpace",
    "value.maxColumns",
    "value.maxCharsPerColumn",
)
_PROTOBUF: Final = ("value.messageName", "value.descFilePath", "value.emitDefaultValues", "value.enumsAsInts")
_STRING: Final = ("value.encoding",)
_REGISTRY: Final = (
    "value.schema.registry.url",
    "value.schema.subject",
    "value.schema.version",
    "value.schema.registry.ssl.truststore.location",
    "value.schema.registry.ssl.keystore.location",
    "value.schema.registry.ssl.key.password",
    "value.basic.auth.credentials.source",
    "value.basic.auth.user.info",
    "value.bearer.auth.credentials.source",
    "value.bearer.auth.token",
    "value.max.retries",
    "value.retries.wait.ms",
    "value.retries.max.wait.ms",
    "value.rules.ignore",
)

# The options of each format, besides those of all formats.
_OF_FORMAT: Final[dict[str, tuple[str, ...]]] = {
    "json": (*_INFERENCE, *_TIMES, *_JSON, *_REGISTRY),
    "csv": (*_INFERENCE, *_TIMES, *_CSV),
    "avro": _REGISTRY,
    "protobuf": (*_PROTOBUF, *_REGISTRY),
    "string": _STRING,
}
OPTIONS: Final = tuple(dict.fromkeys((*_COMMON, *(name for names in _OF_FORMAT.values() for name in names))))

SAMPLE_RECORDS: Final = 1000
SAMPLE_RECORDS_MAX: Final = 1_000_000
REGISTRY_URL: Final = "value.schema.registry.url"
_NOT_OF_THE_CLIENT: Final = frozenset(("value.schema.subject", "value.schema.version"))


@dataclass(frozen=True)
class ValueSettings:
    """The validated options; `parser` contains those of the format, by their names in lower case without the prefix."""

    format: str
    schema: str | None = None
    mode: str = PERMISSIVE
    corrupt_column: str = CORRUPT
    dead_letter_topic: str | None = None
    flatten: bool = False
    column: str = VALUE
    infer: bool = False
    sample_records: int = SAMPLE_RECORDS
    parser: Mapping[str, str] = field(default_factory=dict)
    registry: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None
    version: int | None = None
    clients: Mapping[str, str] = field(default_factory=dict)  # settings of the producer of dead letters

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ValueSettings | None:
        """The settings, or None if values stay bytes."""
        ours = {name.lower(): value for name, value in options.items() if name.lower().startswith(PREFIX)}
        if not ours:
            return None
        if "value.format" not in ours:
            raise OptionError(next(iter(ours)), f"needs the option 'value.format': one of {', '.join(FORMATS)}.")
        form = choice(ours, "value.format", "", FORMATS)
        refuse_unknown(ours, (*_COMMON, *_OF_FORMAT[form]), f"decoding values of value.format={form}")
        ours = _with_case(ours, (*_COMMON, *_OF_FORMAT[form]))
        registry = {name[len(PREFIX) :]: value for name, value in ours.items() if name in _REGISTRY and name not in _NOT_OF_THE_CLIENT}
        settings = cls(
            format=form,
            schema=given(ours, "value.schema"),
            mode=choice(ours, "value.mode", PERMISSIVE, MODES),
            corrupt_column=text(ours, "value.columnNameOfCorruptRecord", CORRUPT),
            dead_letter_topic=given(ours, "value.deadLetterTopic"),
            flatten=boolean(ours, "value.flatten", False),
            column=text(ours, "value.column", VALUE),
            infer=boolean(ours, "value.inferSchema", False),
            sample_records=integer(ours, "value.sampleRecords", SAMPLE_RECORDS, most=SAMPLE_RECORDS_MAX) or SAMPLE_RECORDS,
            parser={name[len(PREFIX) :].lower(): value for name, value in ours.items() if name not in (*_COMMON, *_REGISTRY, *_INFERENCE)},
            registry=registry,
            subject=given(ours, "value.schema.subject"),
            version=_version(ours),
            clients=_clients(options) if "value.deadLetterTopic" in ours else {},
        )
        settings._check(ours)
        return settings

    @property
    def has_corrupt_column(self) -> bool:
        """Whether malformed records are in a column: dead letters and the other modes remove them from the rows, or fail the query."""
        return self.mode == PERMISSIVE and self.dead_letter_topic is None

    @property
    def keeps_bytes(self) -> bool:
        """Whether `value` stays, beside the decoded value in a column of another name."""
        return self.column != VALUE

    def _check(self, ours: Mapping[str, str]) -> None:
        if self.flatten and self.keeps_bytes:
            raise OptionError("value.flatten", "does not go with 'value.column': either each field is a column, or all are in one.")
        if self.dead_letter_topic is not None:
            if not self.dead_letter_topic:
                raise OptionError("value.deadLetterTopic", "must not be empty.")
            if "value.mode" in ours:
                raise OptionError("value.mode", "does not go with 'value.deadLetterTopic': malformed records go to that topic.")
        if "value.columnNameOfCorruptRecord" in ours and not self.has_corrupt_column:
            raise OptionError(
                "value.columnNameOfCorruptRecord", "there is no such column with 'value.deadLetterTopic' or a 'value.mode' but permissive."
            )
        if self.format == "string":
            if self.schema is not None:
                raise OptionError("value.schema", "does not go with value.format=string: the column is a string.")
            return
        sources = [name for name in ("value.schema", "value.inferSchema", REGISTRY_URL, "value.descFilePath") if _is_given(ours, name)]
        if self.format == "json" and sources == ["value.schema", REGISTRY_URL]:
            return  # framed by a registry's serializer, but read with the schema of the query
        if self.format == "avro" and sources == ["value.schema", REGISTRY_URL]:
            return  # the writer's schemas are in the registry, the reader's schema is given
        if len(sources) != 1:
            raise OptionError(
                sources[-1] if sources else "value.schema",
                f"is one way to say what value.format={self.format} reads, and there must be one: {_ways(self.format)}."
                if sources
                else f"must be set, or another of the ways to say what value.format={self.format} reads: {_ways(self.format)}.",
            )


def _ways(form: str) -> str:
    return {
        "json": "value.schema (with or without value.schema.registry.url), value.inferSchema=true, value.schema.registry.url",
        "csv": "value.schema, value.inferSchema=true",
        "avro": "value.schema (with or without value.schema.registry.url), value.schema.registry.url",
        "protobuf": "value.descFilePath with value.messageName, value.schema.registry.url",
    }[form]


def _is_given(ours: Mapping[str, str], name: str) -> bool:
    return boolean(ours, name, False) if name == "value.inferSchema" else name in ours


def _with_case(ours: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    documented = {name.lower(): name for name in names}
    return {documented[name]: value for name, value in ours.items()}


def _version(ours: Mapping[str, str]) -> int | None:
    value = given(ours, "value.schema.version")
    return None if value is None or value.lower() == "latest" else integer(ours, "value.schema.version")


def _clients(options: Mapping[str, str]) -> dict[str, str]:
    return client_settings(options)
