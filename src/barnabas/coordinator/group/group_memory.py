"""Limits the bytes that the groups of a broker hold: one account for members, one for committed offsets.

A size is that of the strings and bytes that clients have sent, plus a constant for each object, rounded up.
"""

from __future__ import annotations

from typing import Final

from barnabas.config_def import LONG_MAX
from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.errors import CoordinatorNotAvailable, GroupMaxSizeReached

GROUP_BYTES: Final = 1_000  # of a group without members
MEMBER_BYTES: Final = 1_500  # of a member without its strings: objects, timers, entries in tables
PENDING_MEMBER_BYTES: Final = 700  # of a member id that was handed out and not used yet
OFFSET_BYTES: Final = 250  # of a committed offset without its metadata
REGEX_BYTES: Final = 300  # of a resolved expression without its topics
REGEX_TOPIC_BYTES: Final = 100  # of a topic that an expression matches


class GroupMemory:
    """The accounts of a broker. `group_max_bytes` bounds one group; each account bounds all groups together."""

    __slots__ = ("group_max_bytes", "members", "offsets")

    def __init__(self, group_max_bytes: int = LONG_MAX, members_max_bytes: int = LONG_MAX, offsets_max_bytes: int = LONG_MAX) -> None:
        self.group_max_bytes = group_max_bytes
        self.members = MemoryAccount(members_max_bytes)
        self.offsets = MemoryAccount(offsets_max_bytes)

    def check_growth(self, held_bytes: int, more: int) -> None:
        """Raises if a group that holds `held_bytes` may not grow by `more` bytes.

        GROUP_MAX_SIZE_REACHED ends a consumer. COORDINATOR_NOT_AVAILABLE is retriable: the other groups use the memory, not this one.
        """
        if more > 0 and held_bytes + more > self.group_max_bytes:
            raise GroupMaxSizeReached(
                f"The group would hold {held_bytes + more} bytes; barnabas.group.max.bytes is {self.group_max_bytes}."
            )
        if not self.members.has_room(more):
            raise CoordinatorNotAvailable(
                f"All groups of the broker hold {self.members.used} bytes; barnabas.groups.max.bytes is {self.members.limit}."
            )
