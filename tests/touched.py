"""`python -m tests.touched [REVISION]`: the unit tests that concern what changed since a revision (HEAD: what is not committed yet).

A test file concerns a changed module if it imports it, itself or through a helper of the tests, or if it has its name:
`tests/unit/storage/log/test_retention.py` is about `barnabas/storage/log/retention.py`. A module without such a test is tested through the
modules that import it; one that nothing imports, such as a handler or a tool, by the tests of its folder. Changed test files are in the
list as they are. `make quick` runs the list.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"


def changed_files(revision: str) -> list[Path]:
    """The files of the checkout that differ from a revision, those that git does not track yet included."""
    tracked = ["git", "diff", "--name-only", "--diff-filter=d", revision]
    untracked = ["git", "ls-files", "--others", "--exclude-standard"]
    lines = (subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout for command in (tracked, untracked))
    return [ROOT / name for name in "".join(lines).splitlines()]


def concerned_by(changed: list[Path]) -> list[Path]:
    files = sorted(UNIT.rglob("test_*.py"))
    concerned = {file for file in files if file in changed}
    for path in changed:
        if path.suffix == ".py":
            concerned |= tests_of(module_name(path), files)
    return sorted(concerned)


def tests_of(module: str, files: list[Path]) -> set[Path]:
    """The tests of a module. If it has none, those of the modules that import it, or that import these; if it has none, of its folder."""
    modules, seen = {module}, {module}
    while modules:
        tests = {file for file in files if not modules.isdisjoint(imported(file)) or same_named_module(file) in modules}
        if tests:
            return tests
        modules = {importer for importer, imports in imports_of_sources().items() if not modules.isdisjoint(imports)} - seen
        seen |= modules
    folder = UNIT.joinpath(*module.split(".")[1:-1])
    return {file for file in files if file.parent == folder and folder != UNIT}


def same_named_module(test: Path) -> str:
    """`tests/unit/client/test_clock.py` is about barnabas.client.clock."""
    folder = test.relative_to(UNIT).parent.parts
    return ".".join(("barnabas", *folder, test.stem.removeprefix("test_")))


@cache
def imports_of_sources() -> dict[str, frozenset[str]]:
    """The modules of src/, each with what it imports."""
    return {module_name(path): frozenset(direct_imports(path)) for path in (ROOT / "src").rglob("*.py")}


def module_name(path: Path) -> str:
    """`src/barnabas/client/clock.py` is barnabas.client.clock, `tests/logged.py` is tests.logged."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "src" else parts).removesuffix(".__init__")


@cache
def imported(file: Path) -> frozenset[str]:
    """The modules that a file of the tests imports, with those that its helpers import."""
    names = set(direct_imports(file))
    for name in list(names):
        helper = ROOT / f"{name.replace('.', '/')}.py"
        if name.startswith("tests.") and helper != file and helper.is_file():
            names |= imported(helper)
    return frozenset(names)


def direct_imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


if __name__ == "__main__":
    for path in concerned_by(changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD")):
        print(path.relative_to(ROOT))
