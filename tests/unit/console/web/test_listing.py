"""Long tables: searched, sorted, one page at a time."""

from __future__ import annotations

from typing import Any

from barnabas.console.web.listing import PAGE_SIZE, Column, TablePage, listing_of

Row = tuple[str, int | None]
COLUMNS: tuple[Column[Row], ...] = (Column("name", "Name", lambda row: row[0]), Column("size", "Size", lambda row: row[1], True))
ROWS: list[Row] = [("beta", 2), ("alpha", None), ("gamma", 10), ("alphabet", 10)]


class Asked:
    def __init__(self, arguments: dict[str, str]) -> None:
        self._arguments = arguments

    def argument(self, name: str, default: str = "") -> str:
        return self._arguments.get(name, default)

    def number_argument(self, name: str, default: int, low: int, high: int) -> int:
        return min(max(int(self._arguments.get(name, default)), low), high)


def listed(rows: list[Row] = ROWS, **arguments: str) -> TablePage[Row]:
    visit: Any = Asked(arguments)
    return listing_of(visit, rows, COLUMNS, lambda row: row[0])


def test_the_first_column_is_the_usual_order() -> None:
    assert [name for name, _ in listed().rows] == ["alpha", "alphabet", "beta", "gamma"]


def test_rows_without_a_value_are_last_in_both_orders() -> None:
    assert [name for name, _ in listed(sort="size").rows] == ["beta", "alphabet", "gamma", "alpha"]
    assert [name for name, _ in listed(sort="size", order="desc").rows][-1] == "alpha"


def test_every_word_of_a_search_is_in_the_name() -> None:
    assert [name for name, _ in listed(q="BET alpha").rows] == ["alphabet"]


def test_a_page_that_is_not_there_is_the_last_one() -> None:
    many: list[Row] = [(f"{number:04}", number) for number in range(PAGE_SIZE * 2 + 1)]
    last = listed(many, page="99")
    assert (last.page, last.pages, last.total, [name for name, _ in last.rows]) == (3, 3, 101, ["0100"])


def test_the_head_of_a_column_sorts_by_it_and_then_turns_it_round() -> None:
    name, size = COLUMNS
    assert listed().sorted_by(size)["order"] == "desc"
    assert listed(sort="size", order="desc").sorted_by(size)["order"] == "asc"
    assert listed(sort="size", order="desc").order_of(size) == "descending"
    assert listed(sort="size").order_of(name) is None
