"""The drawing of a pipeline, topic → query → topic, as plain geometry: a template writes it as SVG, with attributes and no styles.

Source topics stand on the left, the query in the middle, and sink topics on the right. Long names are cut; the list beside the drawing has
them whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.console.pipelines.queries import StreamingQuery

BOX_WIDTH: Final = 220
BOX_HEIGHT: Final = 34
GAP: Final = 12
MIDDLE: Final = 90  # between two columns
TOPICS_DRAWN: Final = 12
NAME_MAX: Final = 26


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a name. `topic` is the topic that it links to; None for the query, and for "and 5 more"."""

    x: int
    y: int
    label: str
    title: str
    kind: str
    topic: str | None = None

    @property
    def right(self) -> int:
        return self.x + BOX_WIDTH

    @property
    def middle(self) -> int:
        return self.y + BOX_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class Drawing:
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[str, ...]  # the `d` of each path


def drawing_of(query: StreamingQuery) -> Drawing:
    """The drawing of one query. A source or sink that is not ours is left out: the query then begins or ends the drawing."""
    left = _named([topic.name for topic in query.reads])
    right = _named(query.writes)
    rows = max(len(left), len(right), 1)
    height = rows * (BOX_HEIGHT + GAP) - GAP
    columns: list[list[Box]] = []
    x = 0
    for names, kind in ((left, "topic"), (((query.title, None),), "query"), (right, "topic")):
        if names:
            columns.append(_column(x, height, names, kind))
            x += BOX_WIDTH + MIDDLE
    middle = next(column[0] for column in columns if column[0].kind == "query")
    lines = [_line(box.right, box.middle, middle.x, middle.middle) for column in columns for box in column if box.right < middle.x]
    lines += [_line(middle.right, middle.middle, box.x, box.middle) for column in columns for box in column if box.x > middle.right]
    boxes = tuple(box for column in columns for box in column)
    return Drawing(x - MIDDLE, height, boxes, tuple(lines))


def _named(names: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Labels with the topics that they link to."""
    shown = [(name, name) for name in sorted(dict.fromkeys(names))]
    if len(shown) > TOPICS_DRAWN:
        return (*shown[: TOPICS_DRAWN - 1], (f"and {len(shown) - TOPICS_DRAWN + 1} more", None))
    return tuple(shown)


def _column(x: int, height: int, names: Sequence[tuple[str, str | None]], kind: str) -> list[Box]:
    own = len(names) * (BOX_HEIGHT + GAP) - GAP
    top = (height - own) // 2
    return [
        Box(x, top + number * (BOX_HEIGHT + GAP), _cut(label), label, kind, topic)
        for number, (label, topic) in enumerate(names)
    ]  # fmt: skip


def _cut(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…"


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    bend = (x1 + x2) // 2
    return f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2 - 7} {y2}"
