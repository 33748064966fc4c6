"""The server-side assignors: they distribute the partitions of the subscribed topics over the members of a consumer group.

An assignor is a pure function of the members' subscriptions and current targets and keeps no state between calls. The same group always
gets the same assignment, whatever the order of its members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid

PartitionCount = Callable[[Uuid], int | None]


class PartitionAssignorError(Exception):
    """The assignor cannot compute an assignment; the heartbeat that triggered it fails with UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member, as an assignor sees it: its subscribed topics that exist, and its current target assignment."""

    topic_ids: frozenset[Uuid]
    assignment: Assignment
    instance_id: str | None = None
    rack_id: str | None = None


class PartitionAssignor(Protocol):
    @property
    def name(self) -> str: ...

    def assign(self, members: Mapping[str, MemberSpec], *, homogeneous: bool, partition_count: PartitionCount) -> dict[str, Assignment]:
        """The new target of each member; raises PartitionAssignorError. `homogeneous` when all subscribe to the same topics."""
