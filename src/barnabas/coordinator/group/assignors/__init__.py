"""The server-side assignors: who of a consumer group reads which partitions.

Pure functions of what the members want and have; an assignor keeps nothing between two calls. The same group always gets the same
assignment, whatever order its members are known in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid

PartitionCount = Callable[[Uuid], int | None]


class PartitionAssignorError(Exception):
    """An assignor that cannot do its work; the heartbeat that asked for it is answered UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """What an assignor knows of a member: the topics it wants, of those that exist, and the target it had."""

    topic_ids: frozenset[Uuid]
    assignment: Assignment
    instance_id: str | None = None
    rack_id: str | None = None


class PartitionAssignor(Protocol):
    @property
    def name(self) -> str: ...

    def assign(self, members: Mapping[str, MemberSpec], *, homogeneous: bool, partition_count: PartitionCount) -> dict[str, Assignment]:
        """The new target of each member; raises PartitionAssignorError. `homogeneous` when all want the same topics."""
