"""Conditions that the source answers itself, from Spark or from the option `filter`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.read.filters import Condition, RowFilter, condition_of, parse_filter
from pyspark_barnabas.read.ranges import OffsetRange

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_US = 1_769_860_800_000_000


def batch(offsets: list[int], times_us: list[int]) -> pa.RecordBatch:
    times = pa.array(times_us, pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays([pa.array(offsets, pa.int64()), times], names=["offset", "timestamp"])


def test_partitions_and_topics_decide_what_is_read_at_all() -> None:
    parsed = parse_filter("partition in (0, 2) and topic = 'a'")
    assert parsed.wants("a", 2)
    assert not parsed.wants("a", 1)
    assert not parsed.wants("b", 0)
    assert not parse_filter("partition not in (1)").wants("a", 1)
    assert parsed.in_rows == ()


def test_offsets_narrow_the_range() -> None:
    assert parse_filter("offset >= 5 and offset < 8").offsets(0, 100) == (5, 8)
    assert parse_filter("offset > 5 and offset <= 8").offsets(0, 100) == (6, 9)
    assert parse_filter("offset = 7").offsets(0, 100) == (7, 8)
    assert parse_filter("offset in (3, 9)").offsets(0, 100) == (3, 10)
    assert parse_filter("offset >= 5").narrowed(OffsetRange("a", 0, 0, 5)) is None
    assert parse_filter("partition = 1").narrowed(OffsetRange("a", 0, 0, 5)) is None
    assert parse_filter("offset < 3").narrowed(OffsetRange("a", 0, 0, 5)) == OffsetRange("a", 0, 0, 3)


def test_times_are_texts_with_a_zone_or_milliseconds() -> None:
    for text in ("'2026-01-31T12:00:00Z'", "'2026-01-31 13:00:00+01:00'", str(NOON_US // 1000)):
        assert parse_filter(f"timestamp >= {text}").conditions == (Condition("timestamp", ">=", NOON_US),)


def test_only_a_lower_bound_of_times_says_where_to_begin() -> None:
    assert parse_filter(f"timestamp >= {NOON_US // 1000}").earliest_ms() == NOON_US // 1000
    assert parse_filter(f"timestamp < {NOON_US // 1000}").earliest_ms() is None
    assert RowFilter((Condition("timestamp", ">", 1_500), Condition("timestamp", "=", 999))).earliest_ms() == 2


def test_times_are_looked_at_in_every_record() -> None:
    rows = batch([1, 2, 3], [NOON_US, NOON_US - 1, NOON_US + 5])
    parsed = parse_filter(f"timestamp >= {NOON_US // 1000}")
    assert parsed.rows(rows).column("offset").to_pylist() == [1, 3]
    assert parsed.rows(rows.slice(0, 1)).num_rows == 1
    assert parse_filter("offset not in (1, 3)").rows(rows).column("offset").to_pylist() == [2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "partition",
        "partition =",
        "partition = x",
        "partition in 1",
        "partition = (1)",
        "partition = 1 or partition = 2",
        "value = 1",
        "topic = a",
        "timestamp > 'yesterday'",
        "timestamp > '2026-01-31T12:00:00'",
        "offset > '5'",
        "partition = 1 and",
        "offset = 1 offset = 2",
        "partition in ()",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="Option 'filter'"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("given_filter", "expected"),
    [
        (EqualTo(("partition",), 1), Condition("partition", "=", 1)),
        (Not(EqualTo(("topic",), "a")), Condition("topic", "!=", "a")),
        (GreaterThan(("offset",), 5), Condition("offset", ">", 5)),
        (In(("partition",), (1, 2)), Condition("partition", "in", (1, 2))),
        (Not(In(("offset",), (1, 2))), Condition("offset", "not in", (1, 2))),
        (GreaterThanOrEqual(("timestamp",), NOON), Condition("timestamp", ">=", NOON_US)),
        (LessThan(("timestamp",), NOON), Condition("timestamp", "<", NOON_US)),
        (Not(LessThanOrEqual(("offset",), 5)), Condition("offset", ">", 5)),
        (IsNotNull(("offset",)), True),
        (Not(IsNull(("topic",))), True),
        (IsNotNull(("key",)), False),
        (IsNull(("offset",)), False),
        (EqualTo(("key",), b"x"), False),
        (EqualTo(("partition",), 1.5), False),
        (EqualTo(("partition",), None), False),
        (LessThan(("timestamp",), datetime(2026, 1, 31)), False),
        (StringContains(("topic",), "a"), False),
        (EqualTo(("headers", "key"), "a"), False),
    ],
)
def test_sparks_filters_are_taken_or_left(given_filter: Filter, expected: Condition | bool) -> None:
    assert condition_of(given_filter) == expected


_OPERATORS = st.sampled_from(["=", "!=", ">", ">=", "<", "<=", "in", "not in"])


@given(_OPERATORS, st.integers(-2, 12), st.sampled_from(["offset", "timestamp"]))
def test_range_and_rows_together_are_the_condition(operator: str, value: int, column: str) -> None:
    shown: Any = (value, value + 2) if "in" in operator else value
    row_filter = RowFilter((Condition(column, operator, shown),))
    start, end = row_filter.offsets(0, 10)
    offsets = list(range(start, end))
    rows = batch(offsets, offsets)
    assert row_filter.rows(rows).column("offset").to_pylist() == [n for n in range(10) if row_filter.conditions[0].holds(n)]


def test_a_time_keeps_its_microseconds() -> None:
    condition = condition_of(EqualTo(("timestamp",), NOON + timedelta(microseconds=7)))
    assert condition == Condition("timestamp", "=", NOON_US + 7)
