# Compiled by mypyc: src/compiled.toml lists this module.
"""Collects the results of several calls that each answer by a callback, at once or later, in any order.

Used where one request names many groups, transactions or partitions, each of which may have to wait by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class Gather(Generic[R]):
    """Collects one result per slot. Passes them to `on_all` in the order of the slots, once all are there and `all_asked` was called."""

    __slots__ = ("_missing", "_on_all", "_results")

    def __init__(self, count: int, on_all: Callable[[list[R]], None]) -> None:
        self._results: dict[int, R] = {}
        self._missing = count + 1  # one for `all_asked`, so that `on_all` is not called before all calls were made
        self._on_all = on_all

    def slot(self, index: int) -> Callable[[R], None]:
        def fill(result: R) -> None:
            self._results[index] = result
            self._arrived()

        return fill

    def all_asked(self) -> None:
        self._arrived()

    def _arrived(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._on_all([self._results[index] for index in range(len(self._results))])
