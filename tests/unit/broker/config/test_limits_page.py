"""docs/limits.md names every limit that Kafka does not have, with its default."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.config import BROKER_CONFIGS
from barnabas.broker.config.definitions import own
from barnabas.broker.handlers import CONTROL, HANDLERS
from barnabas.config_def import Type
from barnabas.protocol.framing import RequestFrame
from barnabas.protocol.reader import Reader
from barnabas.protocol.registry import APIS, BY_NAME
from tests.documentation import ROOT

COLUMNS = 5  # of the table of settings; those about time on the loop have fewer
ROWS = [
    cells
    for line in (ROOT / "docs" / "limits.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == COLUMNS
]
SETTING = re.compile(r"`([\w.]+)`")


@pytest.mark.parametrize("name", sorted(key.name for key in own.KEYS if key.type is not Type.BOOLEAN))
def test_every_limit_of_our_own_has_a_row(name: str) -> None:
    assert [row for row in ROWS if f"`{name}`" in row[2]]


def test_the_defaults_on_the_page_are_those_of_the_broker() -> None:
    shown = [(name, row[3]) for row in ROWS for name in SETTING.findall(row[2]) if name in BROKER_CONFIGS]
    assert len(shown) > 20
    assert [(name, default) for name, default in shown if str(BROKER_CONFIGS[name].default) != default] == []


ELEMENTS = re.compile(r"^\| (?:Elements in all arrays of a request, tagged fields included|The same, ([^|]+)) \| ([\d,]+) \|", re.MULTILINE)
BY_BROKERS = " on a listener of brokers"


def elements_max(name: str, is_of_broker: bool) -> int:
    return RequestFrame(BY_NAME[name], 0, 0, "", Reader(b"")).elements_max(is_of_broker)


@pytest.mark.parametrize("is_of_broker", [False, True])
def test_the_bounds_of_elements_on_the_page_are_those_of_the_broker(is_of_broker: bool) -> None:
    shown: dict[str, int] = {}
    for names, bound in ELEMENTS.findall((ROOT / "docs" / "limits.md").read_text()):
        if is_of_broker or BY_BROKERS not in names:
            listed = re.findall(r"\b[A-Z]\w+", names) if names else [APIS[key].name for key in (*HANDLERS, *CONTROL)]
            shown |= dict.fromkeys(listed, int(bound.replace(",", "")))
    assert shown == {name: elements_max(name, is_of_broker) for name in shown}
    assert len(shown) == len(HANDLERS) + len(CONTROL)
