"""Two ranges over the subscribers of a topic, sorted by load: the least loaded and the most loaded members.

    partitions         least       most          The least loaded range grows to the right: when each member in it has got one more
      |                loaded      loaded  #     partition, its level rises, and the members already on that level join it. The most
      |               [..->   ]##[###<-  ]##     loaded range grows to the left in the same way. Members that have no partition of this
      |               [#######]##[#######]##     topic to give are excluded from it on the right.
      +------------------------------------- members

After each call that returns a member, the caller must give that member a partition, or take one from it, before the next call.
"""

from __future__ import annotations


class LoadRanges:
    """`loads` is shared with the caller, which changes it between calls."""

    def __init__(self, loads: list[int], members: list[int]) -> None:
        self._loads = loads
        self._sorted = sorted(members, key=lambda member: (loads[member], member))
        lowest, highest = loads[self._sorted[0]], loads[self._sorted[-1]]
        self.imbalance = highest - lowest
        self._least_end = 0
        self._least_level = lowest - 1
        self._next_least = 0
        self._most_start = len(members)
        self._most_end = len(members)
        self._most_level = highest + 1
        self._next_most = len(members) - 1

    @property
    def is_balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        if self._next_least >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._sorted) and self._loads[self._sorted[self._least_end]] == self._least_level:
                self._least_end += 1
            self._next_least = 0
        member = self._sorted[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int | None:
        """None when no member is left that could give a partition."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All members of the range were excluded: continue with the next lower ones, which may be more than one level down.
                self._most_level = self._loads[self._sorted[self._most_start - 1]]
            else:
                self._most_level -= 1
            while self._most_start > 0 and self._loads[self._sorted[self._most_start - 1]] == self._most_level:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._sorted[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Exclude the member that `next_most_loaded` returned last: it has no partition of this topic to give."""
        at = self._next_most + 1
        last = self._most_end - 1
        self._sorted[at], self._sorted[last] = self._sorted[last], self._sorted[at]
        self._most_end -= 1
