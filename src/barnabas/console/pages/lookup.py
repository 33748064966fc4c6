"""The topic or group that the path of a page names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.console.failures import NotThere
from barnabas.console.web.visit import Visit

T = TypeVar("T")


async def named_in_path(
    visit: Visit, kind: str, table: Callable[[ClusterSnapshot], Mapping[str, T]], characters_max: int
) -> tuple[ClusterSnapshot, T]:
    """The snapshot, and its entry with the name in the path. A name that it lacks may be new: a second sample is taken for it.
    Raises NotThere, with the name cut at `characters_max`."""
    name = visit.path("name")
    snapshot = await visit.cluster.snapshots.current()
    if name not in table(snapshot):
        visit.cluster.snapshots.look_again()
        snapshot = await visit.cluster.snapshots.current()
    if name not in table(snapshot):
        raise NotThere(f"The cluster has no {kind} {name[:characters_max]}, or your user may not see it.")
    return snapshot, table(snapshot)[name]
