"""Finds the known name that is nearest to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

EDITS_MAX: Final = 2
# A name up to this length is near to too many words, so only one edit is allowed.
SHORT_NAME_MAX: Final = 5

_SAME: Final = str.maketrans("_-", "..")


def near_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs from `name` by at most two edits: a letter added, removed or replaced, or two adjacent ones swapped.

    Case is ignored, and `_` and `-` count as `.`. None if no name is that near.
    """
    plain = name.lower().translate(_SAME)
    nearest: tuple[int, str] | None = None
    for candidate in sorted(known):
        limit = EDITS_MAX if len(candidate) > SHORT_NAME_MAX else 1
        if abs(len(candidate) - len(plain)) > limit:
            continue
        edits = _edits(plain, candidate)
        if edits <= limit and (nearest is None or edits < nearest[0]):
            nearest = edits, candidate
    return None if nearest is None else nearest[1]


def _edits(one: str, other: str) -> int:
    """The distance of Damerau and Levenshtein (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, other_letter in enumerate(other, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other_letter:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
    return row[-1]
