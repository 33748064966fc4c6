"""Masks: fields that visitors never see. `console.toml` names them:

    [[masks]]
    mask = "$.card"            # a JSON path into the value
    topic = "payments*"        # optional; all topics without it

    [[masks]]
    mask = "$"                 # all of it
    part = "key"               # value (the default), key, or the name of a header as "header:authorization"

A mask is applied when a message is decoded, before a filter or any output sees it. So a masked field cannot be guessed by filtering. If a
value cannot be read as JSON (or by a schema registry), the masked field cannot be found in it, and the whole value is withheld. A dead
letter names the topic that it comes from; the masks of that topic apply to it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from barnabas.console.messages.json_path import JsonPath, parse_path

MASKED: Final = "•••"
_HEADER: Final = "header:"
_FIELDS: Final = frozenset({"mask", "topic", "part"})


class InvalidMask(ValueError):
    """A mask in the configuration is not understood. The console does not start, so that nothing is shown that should be masked."""


@dataclass(frozen=True)
class Mask:
    """One entry of the configuration."""

    path: JsonPath
    topic: str = "*"
    part: str = "value"


@dataclass(frozen=True)
class TopicMasks:
    """The masks that apply to the messages of one topic."""

    value: tuple[JsonPath, ...] = ()
    key: tuple[JsonPath, ...] = ()
    headers: frozenset[str] = frozenset()  # in lower case

    def __bool__(self) -> bool:
        return bool(self.value or self.key or self.headers)

    def __or__(self, other: TopicMasks) -> TopicMasks:
        if not other or other == self:
            return self
        return TopicMasks(
            tuple(dict.fromkeys(self.value + other.value)), tuple(dict.fromkeys(self.key + other.key)), self.headers | other.headers
        )

    def hides_header(self, name: str) -> bool:
        """Whether the values of this header are masked, in whatever case its name is written."""
        return name.lower() in self.headers


class Masks:
    """All masks of a cluster."""

    def __init__(self, masks: Iterable[Mask] = ()) -> None:
        self._masks = tuple(masks)
        self._by_topic: dict[str, TopicMasks] = {}

    def __bool__(self) -> bool:
        return bool(self._masks)

    def for_topic(self, topic: str) -> TopicMasks:
        """The masks of this topic."""
        if not self._masks:
            return NO_MASKS
        known = self._by_topic.get(topic)
        if known is None:
            if len(self._by_topic) >= _TOPICS_MAX:
                self._by_topic.clear()
            known = self._by_topic[topic] = self._find(topic)
        return known

    def _find(self, topic: str) -> TopicMasks:
        masks = [mask for mask in self._masks if fnmatchcase(topic, mask.topic)]
        return TopicMasks(
            tuple(mask.path for mask in masks if mask.part == "value"),
            tuple(mask.path for mask in masks if mask.part == "key"),
            frozenset(mask.part.removeprefix(_HEADER).lower() for mask in masks if mask.part.startswith(_HEADER)),
        )


NO_MASKS: Final = TopicMasks()
_TOPICS_MAX: Final = 10_000


def parse_masks(tables: Any) -> tuple[Mask, ...]:
    """The masks of `[[masks]]` in console.toml. Raises InvalidMask."""
    if not isinstance(tables, list):
        raise InvalidMask('Masks are tables: write [[masks]], and below it mask = "$.card"')
    return tuple(_mask(table) for table in tables)


def masked(value: Any, paths: Iterable[JsonPath]) -> Any:
    """The value with MASKED at each place of the paths."""
    for path in paths:
        value = path.replace(value, _hide)
    return value


def _hide(value: Any) -> str:
    return MASKED


def _mask(table: Any) -> Mask:
    if not isinstance(table, Mapping) or not isinstance(table.get("mask"), str):
        raise InvalidMask(f'A mask has a JSON path: mask = "$.card"; this one is {table!r}')
    unknown = sorted(set(table) - _FIELDS)
    if unknown:
        raise InvalidMask(f"The mask {table['mask']!r} has {unknown[0]!r}, which is not known: a mask has mask, topic and part")
    topic, part = table.get("topic", "*"), table.get("part", "value")
    if not isinstance(topic, str) or not topic:
        raise InvalidMask(f'topic of the mask {table["mask"]!r} is a name with * for any characters, for example "payments*"')
    if part not in ("value", "key") and not (isinstance(part, str) and part.startswith(_HEADER) and len(part) > len(_HEADER)):
        raise InvalidMask(f'part of the mask {table["mask"]!r} is "value", "key" or "header:NAME", not {part!r}')
    try:
        path = parse_path(table["mask"])
    except ValueError as fault:
        raise InvalidMask(f"The mask {table['mask']!r} is wrong: {fault}") from None
    if part.startswith(_HEADER) and path.steps:
        raise InvalidMask(f'A header is masked as a whole: write mask = "$" for {part!r}')
    return Mask(path, topic, part)
