"""Long tables: the rows that a search finds, sorted by a column, one page of them. What is asked for stands in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from barnabas.console.web.visit import Visit

T = TypeVar("T")
PAGE_SIZE: Final = 50
_PAGES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column that a table is sorted by. `value` is None for a row without one: such rows come last in both orders."""

    key: str
    label: str
    value: Callable[[T], Any]
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class TablePage(Generic[T]):
    """One page of a table. `query` is what its links keep of the address."""

    rows: Sequence[T]
    total: int
    page: int
    pages: int
    search: str
    sort: str
    is_descending: bool
    columns: Sequence[Column[T]]
    query: Mapping[str, object]

    def order_of(self, column: Column[T]) -> str | None:
        """The value of aria-sort."""
        return None if column.key != self.sort else "descending" if self.is_descending else "ascending"

    def sorted_by(self, column: Column[T]) -> dict[str, object]:
        """The arguments of the link in the head of a column: numbers begin with the largest, and the sorted column is turned round."""
        descending = not self.is_descending if column.key == self.sort else column.is_number
        return {**self.query, "sort": column.key, "order": "desc" if descending else "asc"}


def listing_of(
    visit: Visit, rows: Iterable[T], columns: Sequence[Column[T]], name_of: Callable[[T], str], *, query: Mapping[str, object] | None = None
) -> TablePage[T]:
    """The page that a visit asks for by `q`, `sort`, `order` and `page`. Every word of the search has to be in the name. The first column
    is the usual order, and the second one among equals."""
    search = visit.argument("q")
    words = search.lower().split()
    matching = [row for row in rows if all(word in name_of(row).lower() for word in words)]
    column = next((column for column in columns if column.key == visit.argument("sort")), columns[0])
    is_descending = visit.argument("order") == "desc"
    matching.sort(key=columns[0].value)
    present = [row for row in matching if column.value(row) is not None]
    present.sort(key=column.value, reverse=is_descending)
    ordered = present + [row for row in matching if column.value(row) is None]
    pages = max(1, -(-len(ordered) // PAGE_SIZE))
    page = min(visit.number_argument("page", 1, 1, _PAGES_MAX), pages)
    kept = {**(query or {}), "q": search, "sort": visit.argument("sort"), "order": visit.argument("order")}
    return TablePage(
        ordered[(page - 1) * PAGE_SIZE : page * PAGE_SIZE], len(ordered), page, pages, search, column.key, is_descending, columns, kept
    )
