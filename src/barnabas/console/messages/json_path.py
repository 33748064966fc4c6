"""JSON paths: `$.card`, `$.items[0].price`, `$['a name']`, `$.items[*].id`, `$..card`.

Masks and filters use them. A path is a sequence of steps; it selects any number of places in a value. There are no filters and no slices
in a path: an expression does that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

PATH_CHARACTERS_MAX: Final = 1000
STEPS_MAX: Final = 50

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)?(?:(?P<dot>(?<!\.)\.)?(?P<name>[^\s.\[\]'\"*()?@,:=<>!]+)|(?P<dot_all>(?<!\.)\.)?(?P<all>\*)"
    r"|\[\s*(?:(?P<index>-?\d{1,18})|(?P<each>\*)|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")\s*\])"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class PathStep:
    """One step: a name, a position, or every child (`key` is None). `deep` looks at all levels below as well."""

    key: str | int | None
    deep: bool = False


@dataclass(frozen=True)
class JsonPath:
    """The result of `parse_path`; `text` is what was written."""

    text: str
    steps: tuple[PathStep, ...]

    def select(self, value: Any) -> Iterator[Any]:
        """The values at this path, in order."""
        return _select(value, self.steps)

    def replace(self, value: Any, replacement: Callable[[Any], Any]) -> Any:
        """A copy of the value with `replacement(old)` at each place of the path. The value itself is not changed."""
        return _replace(value, self.steps, replacement)

    def __str__(self) -> str:
        return self.text


def parse_path(text: str) -> JsonPath:
    """The path, or a ValueError that says where it is wrong."""
    text = text.strip()
    path, end = parse_path_at_start(text)
    if end != len(text):
        raise ValueError(f"The JSON path {text!r} is not understood from {text[end:]!r} on: write it like $.customer.id or $.items[0]")
    return path


def parse_path_at_start(text: str) -> tuple[JsonPath, int]:
    """The path at the start of a text, and where it ends."""
    if len(text) > PATH_CHARACTERS_MAX:
        raise ValueError(f"A JSON path has at most {PATH_CHARACTERS_MAX} characters")
    if not text.startswith("$"):
        raise ValueError("A JSON path begins with $, for example $.customer.id")
    at, steps = 1, []
    while (match := _STEP.match(text, at)) is not None and match.end() > at:
        step = _step(match)
        if step is None:
            break
        steps.append(step)
        at = match.end()
    if len(steps) > STEPS_MAX:
        raise ValueError(f"A JSON path has at most {STEPS_MAX} steps")
    if sum(step.deep for step in steps) > 1:
        raise ValueError("A JSON path has .. at most once: more would look at each value many times")
    return JsonPath(text[:at], tuple(steps)), at


def _step(match: re.Match[str]) -> PathStep | None:
    deep = match["deep"] is not None
    if match["name"] is not None or match["all"] is not None:
        has_dot = match["dot"] is not None or match["dot_all"] is not None
        if deep == has_dot:  # neither `$name` nor `$...name`
            return None
        return PathStep(match["name"], deep)
    if match["index"] is not None:
        return PathStep(int(match["index"]), deep)
    quoted = match["single"] if match["single"] is not None else match["double"]
    return PathStep(None if quoted is None else _ESCAPED.sub(r"\1", quoted), deep)


def _select(value: Any, steps: tuple[PathStep, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    for holder in _all_below(value) if step.deep else (value,):
        for place in _places(holder, step):
            yield from _select(holder[place], rest)


def _all_below(value: Any) -> Iterator[Any]:
    """The value and all that is in it, at any depth, in order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, dict):
            waiting += reversed(item.values())
        elif isinstance(item, list):
            waiting += reversed(item)


def _replace(value: Any, steps: tuple[PathStep, ...], replacement: Callable[[Any], Any]) -> Any:
    if not steps:
        return replacement(value)
    step, rest = steps[0], steps[1:]
    changed: Any = None
    if step.deep:
        for place in _places(value, _EACH):
            child = _replace(value[place], steps, replacement)
            if child is not value[place]:
                changed = _copied(value, changed)
                changed[place] = child
    current = value if changed is None else changed
    for place in _places(value, step):
        child = _replace(current[place], rest, replacement)
        if child is not current[place]:
            changed = _copied(value, changed)
            changed[place] = child
            current = changed
    return value if changed is None else changed


def _copied(value: Any, copy: Any) -> Any:
    if copy is not None:
        return copy
    return dict(value) if isinstance(value, dict) else list(value)


_EACH: Final = PathStep(None)


def _places(value: Any, step: PathStep) -> list[Any]:
    """The keys or positions of a value that a step selects."""
    key = step.key
    if isinstance(value, dict):
        if key is None:
            return list(value)
        return [key] if isinstance(key, str) and key in value else []
    if isinstance(value, list):
        if key is None:
            return list(range(len(value)))
        if isinstance(key, int) and -len(value) <= key < len(value):
            return [key % len(value)]
    return []
