"""JSON paths select and replace."""

import time
from typing import Any

import pytest

from barnabas.console.messages.json_path import parse_path

VALUE: Any = {"card": "x", "items": [{"card": 1, "p": [1, 2]}, {"card": None}], "a b": 5, "a.b": 6}


@pytest.mark.parametrize(
    ("path", "selected"),
    [
        ("$", [VALUE]),
        ("$.card", ["x"]),
        ("$['a b']", [5]),
        ('$["a.b"]', [6]),
        ("$..card", ["x", 1, None]),
        ("$.items[*].card", [1, None]),
        ("$.items[-1].card", [None]),
        ("$.items[0].p[1]", [2]),
        ("$.items[7]", []),
        ("$.card.deeper", []),
        ("$..p[0]", [1]),
        ("$.*", list(VALUE.values())),
    ],
)
def test_a_path_selects(path: str, selected: list[Any]) -> None:
    assert list(parse_path(path).select(VALUE)) == selected


def test_replacing_leaves_the_original_alone() -> None:
    before = repr(VALUE)
    replaced = parse_path("$..card").replace(VALUE, lambda old: "-")
    assert replaced == {"card": "-", "items": [{"card": "-", "p": [1, 2]}, {"card": "-"}], "a b": 5, "a.b": 6}
    assert repr(VALUE) == before


@pytest.mark.parametrize(
    "path", ["", "card", "$card", "$...card", "$.", "$.a[", "$[1:2]", "$.a b", "$..a..b", "$[?(@.x)]", "$" + ".a" * 60]
)
def test_a_wrong_path_is_refused_in_words(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        parse_path(path)


def test_a_deep_and_wide_value_is_searched_once() -> None:
    value: Any = 1
    for _ in range(150):
        value = {"x": value, "y": [0] * 500}
    path = parse_path("$..nowhere")
    began = time.process_time()
    assert list(path.select(value)) == []
    assert time.process_time() - began < 5  # it takes milliseconds; looking again at each level would take minutes
