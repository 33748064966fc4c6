"""Expressions: what they may say, and that they can say nothing else."""

from typing import Any

import pytest

from barnabas.console.messages.expression import FilterExpression, FilterExpressionError, OutOfTime


class Scope:
    def __init__(self, deadline: float = float("inf"), **values: Any) -> None:
        self.deadline = deadline
        self._values = values

    def get(self, name: str, /) -> Any:
        return self._values.get(name)


SCOPE = Scope(
    key="k1",
    value={"total": 120.5, "tags": ["new", "vip"], "customer": {"name": "Ann"}, "flag": True, "none": None},
    headers={"trace": "abc"},
    timestamp=1_700_000_000_000,
    offset=17,
    partition=2,
)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('value["total"] > 100 and key != "test"', True),
        ('value["customer"]["name"] == "Ann" or offset < 5', True),
        ('"vip" in value["tags"] and value["tags"][0] == "new"', True),
        ('value["tags"][-1] == "vip"', True),
        ('value["missing"]["deeper"] is None', True),
        ('value["missing"] > 3', False),
        ('value["total"] < "text"', False),
        ("not (partition in [0, 1])", True),
        ("10 < offset <= 17", True),
        ('headers["trace"] == "abc"', True),
        ('"An" in value["customer"]["name"]', True),
        ('value["flag"] is True', True),
        ("offset == -17", False),
        ("timestamp >= 1700000000000", True),
        ('value[value["tags"][0]] is None', True),
        ("value", True),
        ('value["none"]', False),
    ],
)
def test_it_is_true_or_not(text: str, result: bool) -> None:
    assert FilterExpression(text).matches(SCOPE) is result


@pytest.mark.parametrize(
    "text",
    [
        "value.__class__",
        "key.upper()",
        "print(1)",
        "__import__('os')",
        "open",
        "[x for x in value]",
        "{x: 1 for x in value}",
        "(x for x in value)",
        "lambda: 1",
        "f'{value}'",
        "'a' * 1000000000",
        "9 ** 9 ** 9",
        "'%1000000000d' % 1",
        "1 + 1",
        "~offset",
        "-key",
        "value[0:10]",
        "value[0, 1]",
        "value if key else 1",
        "(x := 5)",
        "{'a': 1}",
        "{1, 2}",
        "[*value]",
        "...",
        "b'bytes'",
        "1j",
        "offset is 17",
        "9" * 50,
        "true",
        "",
        "value[",
        "key = 1",
        "import os",
        "key; key",
        "not " * 60 + "key",
        "(" * 300 + "key" + ")" * 300,
        " and ".join(["key == 'x'"] * 100),
        "key == '" + "x" * 3000 + "'",
        "await key",
    ],
)
def test_anything_else_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(FilterExpressionError):
        FilterExpression(text)


def test_a_message_has_a_time_budget() -> None:
    with pytest.raises(OutOfTime):
        FilterExpression("offset > 1").matches(Scope(deadline=0.0, offset=1))
