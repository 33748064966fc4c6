"""Conditions that the source itself can apply: on topic, partition, offset and timestamp.

In a batch Spark pushes them down from `where`; in a stream, where Spark pushes nothing down, they are the option `filter`. Topics,
partitions and offsets determine what is fetched. A timestamp determines the start offset and is checked again for every record, because
the records of a partition need not be in the order of their timestamps. Spark applies all other conditions.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark_barnabas.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_barnabas.read.ranges import OffsetRange

FILTER: Final = "filter"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
_COLUMNS: Final = {TOPIC: str, PARTITION: int, OFFSET: int, TIMESTAMP: datetime}
_NEVER_NULL: Final = frozenset({*_COLUMNS, "timestampType"})
_IN_ROWS: Final = ("!=", "in", "not in")  # conditions that a range of offsets cannot express

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column operator value`; `in` and `not in` have a tuple. Times are microseconds since 1970, as in Spark's column."""

    column: str
    operator: str
    value: Any

    def holds(self, value: Any) -> bool:
        if self.operator == "in":
            return value in self.value
        if self.operator == "not in":
            return value not in self.value
        return _COMPARISONS[self.operator](value, self.value)

    @property
    def values(self) -> tuple[Any, ...]:
        return self.value if self.operator in ("in", "not in") else (self.value,)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """All conditions hold, for every record that is read."""

    conditions: tuple[Condition, ...] = ()

    def and_also(self, more: Iterable[Condition]) -> RowFilter:
        return RowFilter((*self.conditions, *more))

    def wants(self, topic: str, partition: int) -> bool:
        """Whether any record of a partition can match."""
        place = {TOPIC: topic, PARTITION: partition}
        return all(one.holds(place[one.column]) for one in self.conditions if one.column in place)

    def offsets(self, start: int, end: int) -> tuple[int, int]:
        """The part of [start, end) that can match; empty if its end is not after its start."""
        for one in self._of(OFFSET):
            if one.operator in ("=", "in"):
                start, end = max(start, min(one.values, default=end)), min(end, max(one.values, default=start - 1) + 1)
            elif one.operator in (">", ">="):
                start = max(start, one.value + (one.operator == ">"))
            elif one.operator in ("<", "<="):
                end = min(end, one.value + (one.operator == "<="))
        return start, max(start, end)

    def earliest_ms(self) -> int | None:
        """The earliest timestamp that can match, in milliseconds; None without a limit."""
        bounds = [min(one.values, default=0) for one in self._of(TIMESTAMP) if one.operator in ("=", "in", ">", ">=")]
        return max(0, -(-max(bounds) // 1000)) if bounds else None

    def narrowed(self, offset_range: OffsetRange) -> OffsetRange | None:
        """What is left of a range, or None."""
        if not self.wants(offset_range.topic, offset_range.partition):
            return None
        start, end = self.offsets(offset_range.start, offset_range.end)
        return replace(offset_range, start=start, end=end) if end > start else None

    @property
    def in_rows(self) -> tuple[Condition, ...]:
        """The conditions that must be checked for each record."""
        return tuple(one for one in self.conditions if one.column == TIMESTAMP or (one.column == OFFSET and one.operator in _IN_ROWS))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that match; the batch itself if all do."""
        import pyarrow.compute as pc

        mask = None
        for one in self.in_rows:
            answer = _mask(batch, one)
            mask = answer if mask is None else pc.and_(mask, answer)
        return batch if mask is None or pc.all(mask).as_py() else batch.filter(mask)

    def _of(self, column: str) -> list[Condition]:
        return [one for one in self.conditions if one.column == column]


def _mask(batch: pa.RecordBatch, one: Condition) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(one.column).cast(pa.int64())
    if one.operator in ("in", "not in"):
        inside = pc.is_in(column, value_set=pa.array(one.value, pa.int64()))
        return inside if one.operator == "in" else pc.invert(inside)
    names = {"=": "equal", "!=": "not_equal", ">": "greater", ">=": "greater_equal", "<": "less", "<=": "less_equal"}
    return pc.call_function(names[one.operator], [column, pa.scalar(one.value, pa.int64())])


# Filters that Spark pushes down

_OF_SPARK: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}
_NEGATED: Final = {"=": "!=", "in": "not in", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}


def condition_of(given: Any) -> Condition | bool:
    """Spark's filter as a condition; True if it holds for every record, False if Spark must apply it."""
    kind = type(given).__name__
    negated = kind == "Not"
    if negated:
        given = given.child
        kind = type(given).__name__
    if len(given.attribute) != 1:
        return False
    column = given.attribute[0]
    if kind == ("IsNull" if negated else "IsNotNull"):
        return column in _NEVER_NULL
    if column not in _COLUMNS or kind not in _OF_SPARK:
        return False
    word = _NEGATED[_OF_SPARK[kind]] if negated else _OF_SPARK[kind]
    values = tuple(_typed(column, one) for one in (given.value if word in ("in", "not in") else (given.value,)))
    if None in values:
        return False
    return Condition(column, word, values if word in ("in", "not in") else values[0])


def pushed(record_filter: RowFilter, filters: Iterable[Any]) -> tuple[RowFilter, list[Any]]:
    """A RowFilter of the filters that can be applied here, and the remaining ones for Spark."""
    taken: list[Condition] = []
    rest: list[Any] = []
    for one in filters:
        condition = condition_of(one)
        if isinstance(condition, Condition):
            taken.append(condition)
        elif not condition:
            rest.append(one)
    return record_filter.and_also(taken), rest


def _typed(column: str, value: Any) -> Any:
    """A literal of Spark as a value of the column, or None if it is of another type."""
    if column == TIMESTAMP:
        return _microseconds(value) if isinstance(value, datetime) and value.tzinfo is not None else None
    return value if type(value) is _COLUMNS[column] else None


def _microseconds(time: datetime) -> int:
    since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


# The option `filter`

_EXAMPLE: Final = "\"partition in (0, 1) and timestamp >= '2026-01-31T00:00:00Z'\""
_TERM: Final = re.compile(
    r"\s*(\w+)\s*(not\s+in|in|=|==|!=|<>|>=|<=|>|<)\s*(\([^()]*\)|'[^']*'|-?\w+)\s*(and\b|$)",
    re.IGNORECASE,
)


def parse_filter(text: str | None) -> RowFilter:
    """Comparisons of topic, partition, offset or timestamp with values, joined by `and`. A time is a text with a time zone, or a number
    of milliseconds since 1970."""
    if text is None:
        return RowFilter()
    conditions: list[Condition] = []
    position, more = 0, True
    while more:
        term = _TERM.match(text, position)
        if term is None:
            raise OptionError(FILTER, f"must be comparisons joined by 'and', such as {_EXAMPLE}; this is not: '{text[position:].strip()}'.")
        conditions.append(_condition(*term.group(1, 2, 3)))
        position, more = term.end(), bool(term[4])
    return RowFilter(tuple(conditions))


def _condition(column: str, word: str, text: str) -> Condition:
    column, word = column.lower(), " ".join(word.lower().split())
    if column not in _COLUMNS:
        raise OptionError(FILTER, f"can only compare {', '.join(_COLUMNS)}, not '{column}'. Use where() on the DataFrame for the rest.")
    word = {"==": "=", "<>": "!="}.get(word, word)
    listed = word in ("in", "not in")
    if listed != text.startswith("("):
        raise OptionError(FILTER, f"wants a list such as (0, 1) after 'in', and one value after '{word if not listed else '='}'.")
    if not listed:
        return Condition(column, word, _value(column, text))
    parts = [part.strip() for part in text[1:-1].split(",")]
    return Condition(column, word, tuple(_value(column, part) for part in parts))


def _value(column: str, text: str) -> Any:
    quoted = text.startswith("'") and text.endswith("'") and len(text) > 1
    inner = text[1:-1] if quoted else text
    if column == TOPIC:
        if not quoted:
            raise OptionError(FILTER, f"wants the topic in quotes: '{inner}'.")
        return inner
    if re.fullmatch(r"-?\d{1,18}", inner) and not quoted:
        return int(inner) * 1000 if column == TIMESTAMP else int(inner)
    if column == TIMESTAMP and quoted:
        try:
            time = datetime.fromisoformat(inner)
        except ValueError:
            time = None
        if time is not None and time.tzinfo is not None:
            return _microseconds(time)
        raise OptionError(FILTER, f"'{inner}' is no time with a time zone, such as '2026-01-31T00:00:00Z'.")
    raise OptionError(FILTER, f"'{text}' is no value of {column}.")
