"""A schema given as text: Spark's DDL (`name STRING, tags ARRAY<INT>`) or the JSON that `StructType.json()` writes.

Spark parses DDL only in a session, and the Python workers of a data source have none: so it is parsed here. Unknown text is rejected with
its position.
"""

from __future__ import annotations

import json
import re
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_barnabas.errors import OptionError, SchemaError
from pyspark_barnabas.values.arrow_types import arrow_type, nullable

OPTION: Final = "value.schema"

_SIMPLE: Final[dict[str, DataType]] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "real": FloatType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "char": StringType(),
    "character": StringType(),
    "varchar": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ltz": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}
_WITH_LENGTH: Final = ("char", "character", "varchar")
_DECIMALS: Final = ("decimal", "dec", "numeric")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>[\w.-]+)|(?P<mark>[<>(),:]))"
)
_DEPTH_MAX: Final = 100


def struct_of(text: str, option: str = OPTION) -> StructType:
    """The columns of a text. Raises OptionError if it is not a schema or has an unsupported type."""
    try:
        kind = _from_json(text) if text.lstrip().startswith("{") else _Ddl(text).struct()
        if not isinstance(kind, StructType):
            kind = StructType([StructField("value", kind)])
        if not kind.fields:
            raise SchemaError("it has no columns")
        arrow_type(kind)
    except (SchemaError, RecursionError) as fault:
        raise OptionError(option, f"cannot be used: {str(fault).rstrip('.')}. It is '{text[:200]}'.") from None
    struct = nullable(kind)
    assert isinstance(struct, StructType)
    return struct


def _from_json(text: str) -> DataType:
    try:
        kind = StructType.fromJson(json.loads(text))
    except Exception as fault:  # Spark raises different exceptions for different faults
        raise SchemaError(f"it is neither DDL nor the JSON of a schema ({fault or type(fault).__name__})") from None
    return kind


class _Ddl:
    """Parses DDL from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def struct(self) -> StructType:
        fields = self._fields("", 0)
        if self._at < len(self._tokens):
            raise SchemaError(f"'{self._tokens[self._at]}' is not expected there")
        return StructType(fields)

    def _fields(self, end: str, depth: int) -> list[StructField]:
        fields: list[StructField] = []
        while self._peek() != end:
            if fields:
                self._expect(",")
            name = self._name()
            if self._peek() == ":":
                self._at += 1
            fields.append(StructField(name, self._type(depth)))
            self._skip_attributes()
        return fields

    def _skip_attributes(self) -> None:
        if self._peek().lower() == "not":
            self._at += 1
            if self._next().lower() != "null":
                raise SchemaError("NOT is followed by NULL")
        if self._peek().lower() == "comment":
            self._at += 1
            if self._next()[:1] not in ("'", '"'):
                raise SchemaError("COMMENT is followed by a text in quotes")
            while self._peek()[:1] in ("'", '"'):
                self._at += 1

    def _type(self, depth: int) -> DataType:
        if depth > _DEPTH_MAX:
            raise SchemaError(f"it is nested more than {_DEPTH_MAX} times")
        word = self._next()
        name = word.lower()
        if name == "array":
            self._expect("<")
            element = self._type(depth + 1)
            self._expect(">")
            return ArrayType(element)
        if name == "map":
            self._expect("<")
            key = self._type(depth + 1)
            self._expect(",")
            value = self._type(depth + 1)
            self._expect(">")
            return MapType(key, value)
        if name == "struct":
            self._expect("<")
            fields = self._fields(">", depth + 1)
            self._expect(">")
            return StructType(fields)
        if name in _DECIMALS:
            return self._decimal()
        simple = _SIMPLE.get(name)
        if simple is None:
            raise SchemaError(f"'{word}' is no type that values can have" if word else "a type is missing at the end")
        if name in _WITH_LENGTH:
            self._numbers(1)
        return simple

    def _decimal(self) -> DataType:
        numbers = self._numbers(2) if self._peek() == "(" else (10,)
        precision, scale = numbers if len(numbers) == 2 else (numbers[0], 0)
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise SchemaError(f"DECIMAL({precision},{scale}) is not possible: at most 38 digits, of which the scale is a part")
        return DecimalType(precision, scale)

    def _numbers(self, most: int) -> tuple[int, ...]:
        """The numbers in parentheses."""
        self._expect("(")
        numbers: list[int] = []
        while not numbers or self._peek() == ",":
            if numbers:
                self._at += 1
            word = self._next()
            if not re.fullmatch(r"\d{1,9}", word) or len(numbers) == most:
                raise SchemaError(f"'{word}' is not expected in the parentheses of a type")
            numbers.append(int(word))
        self._expect(")")
        return tuple(numbers)

    def _name(self) -> str:
        word = self._next()
        if word.startswith("`"):
            return word[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", word):
            raise SchemaError(f"'{word}' is no name; put it in backquotes" if word else "a name is missing at the end")
        return word

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _expect(self, mark: str) -> None:
        word = self._next()
        if word != mark:
            raise SchemaError(f"'{mark}' is expected where '{word}' stands" if word else f"'{mark}' is missing at the end")


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise SchemaError(f"'{text[at : at + 20].strip()}' cannot be read")
        tokens.append(match[match.lastgroup or 0])
        at = match.end()
    return tokens
