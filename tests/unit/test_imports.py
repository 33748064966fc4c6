"""Imports point one way, so that each part can be read, tested and simulated without those above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "barnabas"

# A part may import what stands in the lines above its own, and itself; nothing that stands beside or below.
LAYERS = [
    {"errors", "java_hash", "uuid", "properties", "topic_partition", "endpoint", "file_modes", "near_names"},
    {"config_def", "topic_name"},
    {"config_providers"},
    {"metadata"},
    {"protocol"},
    {"network"},
    {"records"},
    {"client"},
    {"storage"},
    {"layout"},
    {"controller"},
    {"coordinator"},
    {"broker"},
    {"simulation"},
    {"tools"},
    {"cli"},
    {"testing"},
    {"pytest_plugin"},
    {"__main__"},
]


def test_no_part_imports_one_that_stands_above_it() -> None:
    wrong = [
        f"{module.relative_to(SOURCES)} imports {imported}"
        for module in SOURCES.rglob("*.py")
        for imported in imports(module)
        if level(imported) > level(part(module)) or (level(imported) == level(part(module)) and imported != part(module))
    ]
    assert wrong == []


def test_every_part_has_its_place() -> None:
    assert {part(module) for module in SOURCES.rglob("*.py") if module.name != "__init__.py"} == set().union(*LAYERS)


def part(module: Path) -> str:
    return module.relative_to(SOURCES).parts[0].removesuffix(".py")


def level(name: str) -> int:
    return next((number for number, layer in enumerate(LAYERS) if name in layer), -1)


def imports(module: Path) -> Iterator[str]:
    """The parts of barnabas a module imports at run time; what only the type checker sees does not count."""
    tree = ast.parse(module.read_text())
    for_types = {id(node) for block in ast.walk(tree) if is_type_checking(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "barnabas":
            parts = node.module.split(".")[1:]
            yield from parts[:1] or (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "barnabas" and len(parts) > 1:
                    yield parts[1]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
