"""What an operation is about: the topics, groups or users somebody named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

K = TypeVar("K")


def each_of(keys: Iterable[K]) -> list[K]:
    """Each of them once. A text alone is one name and not its letters: nobody means the topics `a` and `b` by "ab"."""
    return [cast("K", keys)] if isinstance(keys, str) else list(dict.fromkeys(keys))
