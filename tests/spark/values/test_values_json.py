"""JSON values on a real Spark: the same rows, and the same records refused, as from_json gives for the same topic in the same session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "i INT, l BIGINT, s SMALLINT, y TINYINT, d DOUBLE, f FLOAT, o BOOLEAN, t STRING, m DECIMAL(5,2), a DATE, ts TIMESTAMP, "
    "n TIMESTAMP_NTZ, b BINARY, r ARRAY<INT>, p MAP<STRING, INT>, u STRUCT<x: INT, y: STRING>, q ARRAY<STRUCT<x: INT, y: STRING>>, z STRING"
)
PLAIN_SCHEMA = (
    "i INT, l BIGINT, d DOUBLE, f FLOAT, o BOOLEAN, t STRING, a DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, r ARRAY<INT>, "
    "u STRUCT<x: INT, y: STRING>"
)

_TEXTS = """
1 1.0 "1" null true 2147483648 01 1e2 -0 {} {"b":1} [] "" 9223372036854775808 32768 128 -129 255 256 1.5 NaN Infinity -Infinity +INF
-INF INF "NaN" "INF" "+INF" "-INF" "Infinity" 1e400 1e-400 12345678901234567890123 "1.5" 0.1 16777217 1e40 false "true" 1E5 "x"
{"b":1,"c":[1,2]} [1,"x"] "\\u00e9\\n" "\\ud83d\\ude00" "\\q" 0.10 -0.0 0.00001 12345678.9 1.0e10 100000000000000000000 1.239 1.235
"1.23" 12345 999.995 "abc" "1,0" -1.235 {"x":1.10,"y":"\\u00e9\\u0001"} [1,2] [1,"x",3] [null] {"x":1,"y":"p"} {"x":"q","y":"p"}
{"x":null} [{"x":1},{"x":"q","y":"z"}] [5,{"x":1}] {"x":1,"x":2} tru nul "aGVsbG8=" "h!" "aGVsbG8" "aGVs\\nbG8=" 1600000000
1600000000.5 18000 "18000" "2020" "2020-01" "epoch" "2020-1-2" "2020-13-01" "2020-02-30" "0001-01-01" "1500-01-01" "-0044-03-15"
"+2020-01-02" "2020-01-02T" "12345-01-02" 'x' "2020-01-02T03" "2020-01-02T03:04" "2020-01-02T03:04Z" "2020-01-02T03:04:05"
"2020-01-02T03:04:05Z" "2020-01-02T03:04:05z" "2020-01-02T03:04:05.1" "2020-01-02T03:04:05." "2020-01-02T03:04:05.123456789Z"
"2020-01-02T24:00:00" "2020-01-02T03:04:60" "2020-01-02T03:04:05+01:00" "2020-01-02T03:04:05+1:00" "2020-01-02T03:04:05+0100"
"2020-01-02T03:04:05+01" "2020-01-02T03:04:05-00:30" "2020-01-02T03:04:05+19:00" "2020-01-02T03:04:05UTC+1" "2020-01-02T03:04:05GMT"
"2020-01-02T03:04:05Europe/Berlin" "2020-01-02T03:04:05europe/berlin" "2020-03-29T02:30:00Europe/Berlin"
"2020-10-25T02:30:00Europe/Berlin" "2020-01-02T03:04:05EST" "2020-01-02T03:04:05+01:00:01" "2020-1-2T3:4:5" "1600000000"
"""
TEXTS = _TEXTS.split()
SPACED = [
    '" 2020-01-02 "',
    '"2020-01-02 03:04:05"',
    '"2020-01-02 03:04:05 Z"',
    '"2020-01-02 03:04:05.5 Europe/Paris"',
    '"2020-01-02 03:04"',
    '"x\ty"',
]
WHOLE = [
    "", "   ", "null", "[]", '[{"i":1}]', '{"i":1', '{"i":1}}', '{"i":1} x', '{"i":1}{"i":2}', '{"i":1,"i":2}', '{"I":1}', "{'i':1}",
    "{i:1}", '/*c*/{"i":1}', '"x"', "5", '{"i":1,}', ' {"i":1} ', '\ufeff{"i":1}', '{"i":1,"z":tru}', '{"i":"q","l":2,"t":"x"}',
    '{"i":1,"l":2,"z":{', '{"i":1,\n"t":"x"}', '{"t":"x","i":[}', "{}", "{", "}", '{"":1}', "{'i':1,\"t\":'it\\'s'}",
    '{"i" :1 , "t": "x" }', "[1", "tru", '{"i"}', '{"i":}',
]  # fmt: skip


def documents(schema: str) -> list[str]:
    names = [column.split()[0] for column in SCHEMA.split(", ") if column.split()[0].isalpha() and column.split()[0].islower()]
    fields = [name for name in names if f"{name} " in schema]
    return [f'{{"{name}":{text}}}' for name in fields for text in (*TEXTS, *SPACED)] + WHOLE


def compared(spark: SparkSession, bootstrap: str, topic: str, schema: str, options: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Rows of our decoder and of from_json: the offset, whether there is a value, all fields as text, and whether it is malformed."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    def load(more: dict[str, str]) -> DataFrame:
        reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return reader.options(**more).load()

    names = StructType.fromDDL(schema).names  # type: ignore[attr-defined]
    fields = [F.col(f"value.{name}").cast("string").alias(name) for name in names]
    ours = load({"value.format": "json", "value.schema": schema, **{f"value.{name}": value for name, value in options.items()}})
    parsed = F.from_json(F.col("value").cast("string"), f"{schema}, _corrupt_record STRING", options)
    sparks = load({}).withColumn("value", parsed)
    found = []
    for rows, corrupt in ((ours, "_corrupt.value"), (sparks, "value._corrupt_record")):
        selected = rows.select("offset", F.col("value").isNull(), F.col(corrupt).isNotNull(), *fields)
        found.append(sorted(map(tuple, selected.collect())))
    return found[0], found[1]


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (SCHEMA, {}),
        (PLAIN_SCHEMA, {}),
        (
            PLAIN_SCHEMA,
            {
                "allowComments": "true",
                "allowUnquotedFieldNames": "true",
                "allowSingleQuotes": "false",
                "allowNumericLeadingZeros": "true",
                "allowNonNumericNumbers": "false",
                "allowBackslashEscapingAnyCharacter": "true",
                "allowUnquotedControlChars": "true",
                "timeZone": "America/New_York",
            },
        ),
    ],
    ids=["all-types", "types-arrow-reads", "options"],
)
def test_rows_are_those_of_from_json(
    spark: SparkSession, our_broker: str, our_topic: TopicMaker, schema: str, options: dict[str, str]
) -> None:
    topic = our_topic("json-values")
    texts = documents(schema)
    send(our_broker, topic, [Sent(None, text, 1_600_000_000_000) for text in texts])
    ours, sparks = compared(spark, our_broker, topic, schema, options)
    assert len(ours) == len(texts)
    different = [(texts[one[0]], one[1:], other[1:]) for one, other in zip(ours, sparks, strict=True) if one != other]
    assert not different, "\n".join(f"{text}\n  ours  {one}\n  spark {other}" for text, one, other in different)
