# Compiled by mypyc: src/compiled.toml lists this module.
"""The results of several questions, of which each is answered by a callback: at once or later, in any order.

For handlers of requests that ask for many things, each of which may have to wait by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class Gather(Generic[R]):
    """Collects one result per place, and passes them on, in order, when all are there and all were asked for."""

    __slots__ = ("_missing", "_on_all", "_results")

    def __init__(self, count: int, on_all: Callable[[list[R]], None]) -> None:
        self._results: dict[int, R] = {}
        self._missing = count + 1  # one for `all_asked`, so that nothing is passed on before
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
