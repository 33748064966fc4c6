"""The list of groups of all types, which is searched as one types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response

from barnabas.console.cluster.snapshot import ClusterSnapshot, GroupSnapshot
from barnabas.console.web.listing import Column, TablePage, listing_of
from barnabas.console.web.routes import get
from barnabas.console.web.visit import Visit

COLUMNS: Final[tuple[Column[GroupSnapshot], ...]] = (
    Column("group", "Group", lambda group: group.group_id),
    Column("type", "Type", lambda group: group.type),
    Column("state", "State", lambda group: group.state),
    Column("members", "Members", lambda group: group.members, True),
    Column("topics", "Topics", lambda group: len(group.lag_by_topic), True),
    Column("stuck", "Stuck partitions", lambda group: len(group.stuck), True),
    Column("lag", "Lag, records", lambda group: group.lag, True),
)
TYPES: Final = ("Classic", "Consumer", "Share", "Streams")


async def groups(visit: Visit) -> Response:
    return visit.page("groups.html", **_values(visit, await visit.cluster.snapshots.current()))


async def events(visit: Visit) -> Response:
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    async for snapshot in visit.cluster.snapshots.updates():
        yield "fragment", visit.text("fragments/group_rows.html", **_values(visit, snapshot))


def _values(visit: Visit, snapshot: ClusterSnapshot) -> dict[str, Any]:
    kind, state = visit.argument("type")[:20], visit.argument("state")[:30]
    shown = [group for group in snapshot.groups.values() if kind in ("", group.type) and state in ("", group.state)]
    listing: TablePage[GroupSnapshot] = listing_of(
        visit, shown, COLUMNS, lambda group: group.group_id, query={"type": kind, "state": state}
    )
    return {
        "snapshot": snapshot,
        "listing": listing,
        "types": [("", "all types"), *((one, one.lower()) for one in TYPES)],
        "states": [("", "all states"), *((one, one) for one in sorted({group.state for group in snapshot.groups.values()}))],
        "chosen_type": kind,
        "chosen_state": state,
        "live": visit.url("/groups-events", **{**listing.query, "page": listing.page}),
    }


ROUTES: Final = (get("/groups", groups), get("/groups-events", events))
