"""Which known name somebody may have meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

EDITS_MAX: Final = 2
# A shorter name is near to too many words: one edit is enough of a difference.
SHORT_NAME_MAX: Final = 5

_SAME: Final = str.maketrans("_-", "..")


def near_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is a misspelling of, by two edits at most: a letter more, less or another, or two that changed places.

    Case does not count, and `_` and `-` count as `.`. None where no name is that near.
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
    """The distance of Damerau and Levenshtein, with adjacent letters changing places once."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
    return row[-1]
