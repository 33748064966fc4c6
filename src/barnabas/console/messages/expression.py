"""Expressions that visitors write to filter messages: `value["total"] > 100 and key != "test"`.

The syntax is Python's, and only this part of it: the names key, value, headers, timestamp, offset and partition; texts, numbers, True,
False and None; lists of them; `value["name"]` and `value[0]`; comparisons with ==, !=, <, <=, >, >=, in, not in, is None; and, or, not.
Anything else is refused before anything is evaluated: no attributes, no calls, no arithmetic, no comprehensions, no f-strings. Nothing is
compiled or passed to `eval`: the tree is walked. So an expression can neither reach an object that it was not given, nor make a value that
is larger than the message.

What is not there is None, and values that cannot be compared are not less and not greater.
"""

from __future__ import annotations

import ast
import operator
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

CHARACTERS_MAX: Final = 2000
NODES_MAX: Final = 200
DEPTH_MAX: Final = 30
DIGITS_MAX: Final = 40

NAMES: Final = frozenset({"key", "value", "headers", "timestamp", "offset", "partition"})


class Scope(Protocol):
    """What the names of an expression stand for, and until when it may be evaluated, as a time of `time.monotonic`."""

    deadline: float

    def get(self, name: str, /) -> Any:
        """The value of one of NAMES."""


_Evaluate = Callable[[Scope], Any]

_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_NAMES_OF_REFUSED: Final = {
    ast.Attribute: 'attributes (write value["name"], not value.name)',
    ast.Call: "calls",
    ast.BinOp: "arithmetic",
    ast.JoinedStr: "f-strings",
    ast.Lambda: "lambdas",
    ast.IfExp: "if … else",
    ast.NamedExpr: "assignments",
    ast.Slice: "slices",
    ast.Dict: "dictionaries",
    ast.Set: "sets",
    ast.Starred: "stars",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.ListComp: "comprehensions",
    ast.SetComp: "comprehensions",
    ast.DictComp: "comprehensions",
    ast.GeneratorExp: "comprehensions",
}


class FilterExpressionError(ValueError):
    """The expression is refused; the message says what is wrong and what may be written."""


class OutOfTime(Exception):
    """The evaluation of one message took longer than it may."""


class FilterExpression:
    """A checked expression. `matches` may be called from any thread."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > CHARACTERS_MAX:
            raise FilterExpressionError(f"An expression has at most {CHARACTERS_MAX} characters, this one has {len(text)}")
        self._evaluate = _Checked(_parsed(text)).evaluate

    def matches(self, scope: Scope) -> bool:
        """Whether the result counts as true. Raises OutOfTime after the deadline of the scope."""
        return bool(self._evaluate(scope))


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as fault:
        place = f" at character {fault.offset}" if fault.offset else ""
        raise FilterExpressionError(f'This is not an expression: {fault.msg}{place}. Write for example: value["total"] > 100') from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as fault:
        raise FilterExpressionError(f"This is not an expression: {fault or 'it is nested too deep'}") from None


class _Checked:
    """Turns the tree into functions, node by node; a node that is not on the list is a FilterExpressionError."""

    def __init__(self, tree: ast.expr) -> None:
        self._nodes = 0
        self.evaluate = self._node(tree, 0)

    def _node(self, node: ast.expr, depth: int) -> _Evaluate:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise FilterExpressionError(f"An expression has at most {NODES_MAX} parts")
        if depth > DEPTH_MAX:
            raise FilterExpressionError(f"An expression is nested at most {DEPTH_MAX} levels deep")
        if isinstance(node, ast.Constant):
            return _constant(node)
        if isinstance(node, ast.Name):
            return _name(node)
        if isinstance(node, ast.List | ast.Tuple):
            return _sequence([self._node(element, depth + 1) for element in node.elts])
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, depth)
        if isinstance(node, ast.BoolOp):
            parts = [self._node(part, depth + 1) for part in node.values]
            return _all_of(parts) if isinstance(node.op, ast.And) else _any_of(parts)
        if isinstance(node, ast.Compare):
            sides = [self._node(side, depth + 1) for side in (node.left, *node.comparators)]
            for comparison, right in zip(node.ops, node.comparators, strict=True):
                is_single = isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
                if isinstance(comparison, ast.Is | ast.IsNot) and not is_single:
                    raise FilterExpressionError("After `is` stands None, True or False: write == to compare with anything else")
            return _comparison(sides, [_COMPARISONS[type(comparison)] for comparison in node.ops])
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Slice | ast.Tuple):
                raise _refused(ast.Slice)
            return _subscript(self._node(node.value, depth + 1), self._node(node.slice, depth + 1))
        raise _refused(type(node))

    def _unary(self, node: ast.UnaryOp, depth: int) -> _Evaluate:
        operand = node.operand
        if isinstance(node.op, ast.Not):
            inner = self._node(operand, depth + 1)
            return lambda scope: not inner(scope)
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant):
            self._node(operand, depth + 1)
            if isinstance(operand.value, int | float):
                number = -operand.value
                return lambda scope: number
        raise _refused(ast.BinOp)


def _refused(kind: type[ast.AST]) -> FilterExpressionError:
    what = _NAMES_OF_REFUSED.get(kind, f"{kind.__name__}")
    return FilterExpressionError(
        f"An expression may not have {what}: only key, value, headers, timestamp, offset, partition, texts, numbers, [ ], comparisons, "
        "in, and, or, not"
    )


def _constant(node: ast.Constant) -> _Evaluate:
    constant = node.value
    if not (constant is None or isinstance(constant, str | bool | int | float)):
        raise FilterExpressionError(
            f"An expression may not have {type(constant).__name__} literals: only texts, numbers, True, False and None"
        )
    if type(constant) is int and abs(constant) >= 10**DIGITS_MAX:
        raise FilterExpressionError(f"A number in an expression has at most {DIGITS_MAX} digits")
    return lambda scope: constant


def _name(node: ast.Name) -> _Evaluate:
    name = node.id
    if name in ("true", "false", "null"):
        raise FilterExpressionError(f"Write {({'true': 'True', 'false': 'False', 'null': 'None'})[name]} for {name}")
    if name not in NAMES:
        raise FilterExpressionError(f"There is no {name[:50]!r} in a message: only key, value, headers, timestamp, offset and partition")
    return lambda scope: scope.get(name)


def _sequence(elements: list[_Evaluate]) -> _Evaluate:
    return lambda scope: [element(scope) for element in elements]


def _all_of(parts: list[_Evaluate]) -> _Evaluate:
    return lambda scope: all(part(scope) for part in parts)


def _any_of(parts: list[_Evaluate]) -> _Evaluate:
    return lambda scope: any(part(scope) for part in parts)


def _comparison(sides: list[_Evaluate], operators: list[Callable[[Any, Any], Any]]) -> _Evaluate:
    def compare(scope: Scope) -> bool:
        if time.monotonic() > scope.deadline:
            raise OutOfTime
        left = sides[0](scope)
        for side, holds in zip(sides[1:], operators, strict=True):
            right = side(scope)
            try:
                if not holds(left, right):
                    return False
            except (TypeError, RecursionError):
                return False
            left = right
        return True

    return compare


def _subscript(holder: _Evaluate, place: _Evaluate) -> _Evaluate:
    def item(scope: Scope) -> Any:
        inside, key = holder(scope), place(scope)
        if isinstance(inside, dict):
            return inside.get(key) if isinstance(key, str) else None
        if isinstance(inside, list | str) and type(key) is int and -len(inside) <= key < len(inside):
            return inside[key]
        return None

    return item
