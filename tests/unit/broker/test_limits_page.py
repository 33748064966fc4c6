"""docs/limits.md names every limit of our own, with the default it has."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.config import BROKER_CONFIGS
from barnabas.broker.config.definitions import own
from tests.documentation import ROOT

COLUMNS = 5  # of the table of settings; those about time on the loop have fewer
ROWS = [
    cells
    for line in (ROOT / "docs" / "limits.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == COLUMNS
]
SETTING = re.compile(r"`([\w.]+)`")


@pytest.mark.parametrize("name", sorted(key.name for key in own.KEYS))
def test_every_limit_of_our_own_has_a_row(name: str) -> None:
    assert [row for row in ROWS if f"`{name}`" in row[2]]


def test_the_defaults_on_the_page_are_those_of_the_broker() -> None:
    shown = [(name, row[3]) for row in ROWS for name in SETTING.findall(row[2]) if name in BROKER_CONFIGS]
    assert len(shown) > 20
    assert [(name, default) for name, default in shown if str(BROKER_CONFIGS[name].default) != default] == []
