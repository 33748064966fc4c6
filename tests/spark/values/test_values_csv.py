"""CSV values on a real Spark: the same rows, and the same records refused, as from_csv gives for the same topic in the same session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "n INT, i INT, l BIGINT, s SMALLINT, y TINYINT, d DOUBLE, f FLOAT, o BOOLEAN, m DECIMAL(5,2), a DATE, ts TIMESTAMP, "
    "w TIMESTAMP_NTZ, b BINARY, t STRING"
)
WIDTH = len(SCHEMA.split(", "))
_CELLS = """
1 +1 -1 1.0 x 2147483648 9223372036854775808 32768 128 -129 1.5 1e5 1e400 NaN Inf -Inf Infinity -Infinity 1d 1f 0x1p3 .5 5. -0 inf nan
0.1 TRUE False yes 1.239 1.235 12345 999.995 -1.235 2020-01-02 2020-1-2 2020 2020-01 2020-13-01 2020-02-30 18000 20200102 2020-01-02T03
2020-01-02T03:04 2020-01-02T03:04:05 2020-01-02T03:04:05Z 2020-01-02T03:04:05.1+01:00 2020-01-02T03:04:05.123456789 2020-01-02T24:00:00
2020-01-02T03:04:05Europe/Berlin null 'x' a"b \\x a\\\\ "x" "x""y" "x\\"y" "x"z "a\\b" "a\\\\" "a"b"c" "" "x #x １ 1_0 -Infinity
"""
CELLS = _CELLS.split()
CELLS += [
    "",
    " ",
    " 1",
    "x y ",
    '"x,y"',
    '"x" ',
    ' "x"',
    '"x\ny"',
    "x\ny",
    '"" ',
    '"a" "b"',
    '"a"\t',
    "2020-01-02 03:04:05",
    '"1,000.5"',
    "é",
]
LINES = [
    "",
    " ",
    ",",
    "1",
    "1,2",
    ",".join("1" * (WIDTH + 1)),
    '"1',
    "#1,2",
    "1;2",
    "\ufeff1,2",
    "," * (WIDTH - 1),
    ",".join(["1"] * (WIDTH - 2) + ["b", "t"]),
]


def lines() -> list[str]:
    """Each cell in each column, the others empty, but for the first, so that a line is never empty."""
    lines = [",".join(["7"] + [cell if column == at else "" for column in range(1, WIDTH)]) for cell in CELLS for at in range(1, WIDTH)]
    return lines + LINES


def compared(spark: SparkSession, bootstrap: str, topic: str, schema: str, options: dict[str, str]) -> tuple[list[Any], list[Any]]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    def load(more: dict[str, str]) -> DataFrame:
        reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return reader.options(**more).load()

    fields = [F.col(f"value.{name}").cast("string").alias(name) for name in StructType.fromDDL(schema).names]  # type: ignore[attr-defined]
    ours = load({"value.format": "csv", "value.schema": schema, **{f"value.{name}": value for name, value in options.items()}})
    with_corrupt = {**options, "columnNameOfCorruptRecord": "_corrupt"}
    sparks = load({}).withColumn("value", F.from_csv(F.col("value").cast("string"), f"{schema}, _corrupt STRING", with_corrupt))
    found = []
    for rows, corrupt in ((ours, "_corrupt.value"), (sparks, "value._corrupt")):
        selected = rows.select("offset", F.col("value").isNull(), F.col(corrupt).isNotNull(), *fields)
        found.append(sorted(map(tuple, selected.collect())))
    return found[0], found[1]


TWO = "a STRING, b INT"
PLAIN = [
    "x,1",
    "x;1",
    "x|1",
    "x\t1",
    "'x,y',1",
    '"x,y",1',
    "NA,1",
    "x,NA",
    ",1",
    '"",1',
    " x , 1 ",
    '" x ",1',
    ' "x" ,1',
    "#x,1",
    "x||1",
    '"x|"y",1',
]


@pytest.mark.parametrize(
    ("schema", "texts", "options"),
    [
        (SCHEMA, lines(), {}),
        (TWO, PLAIN, {"sep": "||"}),
        (TWO, PLAIN, {"sep": "\\t", "quote": "'"}),
        (TWO, PLAIN, {"quote": "", "nullValue": "NA"}),
        (TWO, PLAIN, {"emptyValue": "E", "comment": "#", "escape": "|"}),
        (TWO, PLAIN, {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}),
        (
            "a DATE, b TIMESTAMP, c DOUBLE",
            ["02/01/2020,02/01/2020 03:04,NN", "2020-01-02,2/1/2020 03:04,oo", ",02/01/2020 23:59,-oo"],
            {
                "dateFormat": "dd/MM/yyyy",
                "timestampFormat": "dd/MM/yyyy HH:mm",
                "nanValue": "NN",
                "positiveInf": "oo",
                "negativeInf": "-oo",
            },
        ),
        ("a TIMESTAMP, b INT", ["2020-01-02 03:04:05.1,1", "2020-07-02 03:04:05,2", "x,3"], {"timeZone": "America/New_York"}),
    ],
    ids=["all-types", "sep", "tab-quote", "no-quote-null", "empty-comment-escape", "white-space", "formats", "time-zone"],
)
def test_rows_are_those_of_from_csv(
    spark: SparkSession, our_broker: str, our_topic: TopicMaker, schema: str, texts: list[str], options: dict[str, str]
) -> None:
    topic = our_topic("csv-values")
    send(our_broker, topic, [Sent(None, text, 1_600_000_000_000) for text in texts])
    ours, sparks = compared(spark, our_broker, topic, schema, options)
    assert len(ours) == len(texts)
    different = [(texts[one[0]], one[1:], other[1:]) for one, other in zip(ours, sparks, strict=True) if one != other]
    assert not different, "\n".join(f"{text!r}\n  ours  {one}\n  spark {other}" for text, one, other in different)
