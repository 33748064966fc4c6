"""The keys of an admin call: the topics, groups or users that the caller named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

K = TypeVar("K")


def distinct(keys: Iterable[K]) -> list[K]:
    """The distinct keys in their order. A single string is one name and not an iterable of letters: "ab" never means the topics `a` and
    `b`."""
    return [cast("K", keys)] if isinstance(keys, str) else list(dict.fromkeys(keys))
