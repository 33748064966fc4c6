"""Finds the names of settings that the sources read: as text, as the end of an f-string, or as the attribute of a config object."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "barnabas"
_DEFINING = ("key", "_key", "ConfigKey", "_config")  # functions whose first argument is the name of the setting that they define


class Readings:
    """What the modules below `SOURCES` read, without those whose path begins with one of `passed_over`."""

    def __init__(self, passed_over: Iterable[str]) -> None:
        self.texts: set[str] = set()
        self.attributes: set[str] = set()
        without = tuple(passed_over)
        for path, tree in trees():
            if not path.startswith(without):
                self._read(tree)

    def has(self, name: str) -> bool:
        return name in self.texts

    def _read(self, tree: ast.Module) -> None:
        no_reading = set(_no_reading(tree))
        texts: set[str] = set()
        endings: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in no_reading:
                texts.add(node.value)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.attributes.add(node.attr)
            elif isinstance(node, ast.JoinedStr):
                endings |= set(_ending(node))
        self.texts |= texts | {text + ending for text in texts for ending in endings}


def _no_reading(tree: ast.Module) -> Iterator[ast.AST]:
    """Docstrings, the parts of f-strings, and the names in definitions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from node.values
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DEFINING:
            yield from node.args[:1]


def _ending(node: ast.JoinedStr) -> Iterator[str]:
    """The end of a text like f"{prefix}.replication.factor". The prefix is a text of the same module."""
    if len(node.values) == 2 and isinstance(node.values[0], ast.FormattedValue) and isinstance(node.values[1], ast.Constant):
        ending = str(node.values[1].value)
        if re.fullmatch(r"(\.[a-z]+)+", ending):
            yield ending


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    """Each module as a syntax tree, with its path below `SOURCES`. Generated messages have no settings."""
    paths = (path for path in sorted(SOURCES.rglob("*.py")) if "protocol/messages" not in path.as_posix())
    return tuple((path.relative_to(SOURCES).as_posix(), ast.parse(path.read_text())) for path in paths)
