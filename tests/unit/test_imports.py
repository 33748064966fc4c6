"""Imports point one way, so that each part can be read, tested and simulated without the parts above it.

imports.toml is the table of who may import whom: first the parts of src/, then the rooms and loose modules inside the large parts. It names
exactly the imports that exist, so that a new one is a decision and not an accident.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

SOURCES: Final = Path(__file__).parents[2] / "src"
TABLES: Final[dict[str, dict[str, list[str]]]] = tomllib.loads(Path(__file__).with_name("imports.toml").read_text())
MODULES: Final = {
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES.rglob("*.py")
}


@pytest.mark.parametrize("table", TABLES)
def test_a_module_imports_what_the_table_allows_and_the_table_allows_nothing_else(table: str) -> None:
    assert {unit: sorted(imported) for unit, imported in imports_of(table).items()} == TABLES[table]


@pytest.mark.parametrize("table", TABLES)
def test_the_table_is_a_partial_order(table: str) -> None:
    TopologicalSorter(TABLES[table]).prepare()  # raises CycleError


def imports_of(table: str) -> dict[str, set[str]]:
    """What each unit of a part imports of the other units of the same part."""
    imports: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        importer = unit(module, table)
        if importer is None or (path.name == "__init__.py" and module.count(".") == 0):
            continue
        imports[importer] |= {imported for name in imported_modules(path) if (imported := unit(name, table)) not in (None, importer)}
    return imports


def unit(module: str, table: str) -> str | None:
    """The part a module belongs to; in the table of a part its room, or the module itself where it is in no room. None: in no unit."""
    names = module.removeprefix("barnabas.").split(".") if module != "barnabas" else []
    if table == "parts":
        return names[0] if names else None
    if names[:1] != [table] or len(names) < 2:
        return None
    is_a_tool = table == "tools" and not (SOURCES / "barnabas" / "tools" / names[1]).is_dir()
    return "commands" if is_a_tool else names[1]


def imported_modules(path: Path) -> Iterator[str]:
    """The modules of this project that a module imports at run time; imports for the type checker alone do not count."""
    tree = ast.parse(path.read_text())
    for_types = {id(node) for block in ast.walk(tree) if is_type_checking(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from (name if (name := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
