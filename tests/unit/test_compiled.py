"""The hot modules are compiled where they should be, and plain Python where that is what is tested.

`make` says which run this is in BARNABAS_EXPECT; without it nothing is expected, as when one runs pytest on a checkout that was not built.
"""

from __future__ import annotations

import os
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKER = "# Compiled by mypyc: src/compiled.toml lists this module."
HOT = [module for group in tomllib.loads((ROOT / "src/compiled.toml").read_text()).values() for module in group]
NOT_COMPILED = {"barnabas.records.columns.columns"}  # pyarrow and column_walk do its work
EXPECTED = os.environ.get("BARNABAS_EXPECT", "")


def test_compiled_toml_lists_the_modules_that_carry_the_marker() -> None:
    sources = (ROOT / "src/barnabas").rglob("*.py")
    marked = [path for path in sources if MARKER in path.read_text().split("\n", 2)[:2]]
    assert sorted(HOT) == sorted(module_name(path) for path in marked)


def test_all_modules_of_records_are_compiled() -> None:
    records = {module_name(path) for path in (ROOT / "src/barnabas/records").rglob("*.py") if path.name != "__init__.py"}
    assert records - set(HOT) == NOT_COMPILED


@pytest.mark.skipif(not EXPECTED, reason="BARNABAS_EXPECT is not set; `make unit` and `make unit-pure` set it")
@pytest.mark.parametrize("module", HOT)
def test_a_hot_module_is_loaded_in_the_form_this_run_is_for(module: str) -> None:
    origin = import_module(module).__file__ or ""
    assert Path(origin).suffix == {"compiled": ".so", "pure": ".py"}[EXPECTED]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
