"""The hot modules are compiled where they should be, and plain Python where that is what is tested.

`make` says which run this is in BARNABAS_EXPECT; without it nothing is expected, as when one runs pytest on a checkout that was not built.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOT = re.findall(r'^    "(barnabas/\S+)\.py",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
NOT_COMPILED = {
    "src/barnabas/records/__init__.py",
    "src/barnabas/records/columns.py",  # its work is done by pyarrow and by column_walk
}
EXPECTED = os.environ.get("BARNABAS_EXPECT", "")


def test_the_list_of_hot_modules_names_files_that_exist_and_all_of_records() -> None:
    listed = {f"src/{module}.py" for module in HOT}
    assert all((ROOT / path).is_file() for path in listed)
    records = {f"src/barnabas/records/{path.name}" for path in (ROOT / "src/barnabas/records").glob("*.py")}
    assert records - listed <= NOT_COMPILED


@pytest.mark.skipif(not EXPECTED, reason="BARNABAS_EXPECT is not set; `make unit` and `make unit-pure` set it")
@pytest.mark.parametrize("module", HOT)
def test_a_hot_module_is_loaded_in_the_form_this_run_is_for(module: str) -> None:
    origin = import_module(module.replace("/", ".")).__file__ or ""
    assert Path(origin).suffix == {"compiled": ".so", "pure": ".py"}[EXPECTED]
