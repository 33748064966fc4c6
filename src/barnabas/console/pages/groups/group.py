"""One group: members with their partitions, offsets, lag now and over the last hour, and what changes it. Resets are in `group_reset`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response

from barnabas.client.admin.groups.groups import MemberToRemove
from barnabas.console.cluster.group_details import SHARE, STREAMS, GroupDetails, GroupPartition, read_group
from barnabas.console.cluster.history import Point, columns
from barnabas.console.cluster.snapshot import ClusterSnapshot, GroupSnapshot
from barnabas.console.failures import failure_of, sentence
from barnabas.console.pages.lookup import named_in_path
from barnabas.console.web.listing import Column, TablePage, listing_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

MEMBERS_SHOWN: Final = 200
_TREND_MS: Final = 5 * 60_000
_TREND_MIN_MS: Final = 60_000

COLUMNS: Final[tuple[Column[GroupPartition], ...]] = (
    Column("partition", "Partition", lambda row: row.partition),
    Column("member", "Member", lambda row: row.member.client_id if row.member is not None else None),
    Column("committed", "Committed offset", lambda row: row.committed, True),
    Column("end", "End of the log", lambda row: row.end, True),
    Column("lag", "Lag, records", lambda row: row.lag, True),
)


async def group_of(visit: Visit) -> tuple[ClusterSnapshot, GroupSnapshot]:
    """The group that the path names. Raises NotThere."""
    return await named_in_path(visit, "group", lambda snapshot: snapshot.groups, 300)


async def details_of(visit: Visit) -> GroupDetails:
    """The group that the path names, read now."""
    snapshot, listed = await group_of(visit)
    return await read_group(visit.cluster.admin, listed, snapshot)


async def group(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, error: str | None = None, status: int = 200) -> Response:
    values = _values(visit, await details_of(visit))
    if error is not None:
        return visit.refused("group.html", error, status=status, **values)
    return visit.page("group.html", **values)


async def events(visit: Visit) -> Response:
    await group_of(visit)
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    name = visit.path("name")
    async for snapshot in visit.cluster.snapshots.updates():
        listed = snapshot.groups.get(name)
        if listed is None:
            return
        values = _values(visit, await read_group(visit.cluster.admin, listed, snapshot))
        yield "fragment", visit.text("fragments/group_live.html", **values)
        yield "samples", json.dumps({"chart": "group-lag", "columns": values["lag_columns"]})


def _values(visit: Visit, details: GroupDetails) -> dict[str, Any]:
    base = f"/groups/{segment(details.group_id)}"
    listing: TablePage[GroupPartition] = listing_of(visit, details.partitions, COLUMNS, lambda row: str(row.partition))
    points = visit.cluster.snapshots.history.group_lag(details.group_id)
    return {
        "group": details,
        "base": base,
        "listing": listing,
        "members": details.members[:MEMBERS_SHOWN],
        "live": visit.url(f"{base}/events", **{**listing.query, "page": listing.page}),
        "lag_columns": columns(points),
        "trend": trend(points),
        "stuck": sum(row.is_stuck for row in details.partitions),
        "lost": sum(row.is_lost for row in details.partitions),
        "can_remove": details.type not in (SHARE, STREAMS),
    }


def trend(points: list[Point]) -> tuple[int, int] | None:
    """By how many records the lag has changed, and in how many ms, at most in the last five minutes; None while that is unknown."""
    known = [(time_ms, value) for time_ms, value in points if value is not None]
    if not known:
        return None
    last_ms, last = known[-1]
    first_ms, first = next(point for point in known if point[0] >= last_ms - _TREND_MS)
    return (round(last - first), last_ms - first_ms) if last_ms - first_ms >= _TREND_MIN_MS else None


async def remove_member(visit: Visit) -> Response:
    details = await details_of(visit)
    form = await visit.form()
    member = next((one for one in details.members if one.member_id == form.get("member")), None)
    if member is None:
        return await _page(visit, "This member has left the group already.", 409)
    # The member of a static instance is named by the instance alone: the broker knows which member that is now.
    removed = MemberToRemove(member.instance_id) if member.instance_id is not None else MemberToRemove(None, member.member_id)
    try:
        (await visit.cluster.admin.remove_members_from_consumer_group(details.group_id, [removed], reason="removed in the console")).all()
    except KafkaError as error:
        return await _page(visit, _why_not_removed(details, sentence(error)), failure_of(error).status)
    return visit.changed(f"The member {member.member_id} is removed from {details.group_id}.", f"/groups/{segment(details.group_id)}")


def _why_not_removed(details: GroupDetails, text: str) -> str:
    return (
        f"{text}. Members of a group of the new protocol can only be removed if they are static; stop the consumer instead."
        if details.epoch is not None
        else text
    )


async def forget(visit: Visit) -> Response:
    """Deletes the offsets of a topic."""
    details = await details_of(visit)
    topic = (await visit.form()).get("topic", "")
    partitions = [partition for partition in details.committed if partition.topic == topic]
    if not partitions:
        return await _page(visit, "Choose a topic in which the group has offsets.", 422)
    admin = visit.cluster.admin
    try:
        if details.type == SHARE:
            (await admin.delete_share_group_offsets(details.group_id, [topic])).all()
        else:
            (await admin.delete_consumer_group_offsets(details.group_id, partitions)).all()
    except KafkaError as error:
        return await _page(visit, sentence(error), failure_of(error).status)
    return visit.changed(f"The offsets of {topic} are deleted from {details.group_id}.", f"/groups/{segment(details.group_id)}")


async def delete(visit: Visit) -> Response:
    _, listed = await group_of(visit)
    try:
        (await visit.cluster.admin.delete_consumer_groups([listed.group_id])).all()
    except KafkaError as error:
        return await _page(visit, sentence(error), failure_of(error).status)
    return visit.changed(f"The group {listed.group_id} is deleted with its offsets.", "/groups")


ROUTES: Final = (
    get("/groups/{name}", group),
    get("/groups/{name}/events", events),
    post("/groups/{name}/members", remove_member),
    post("/groups/{name}/forget", forget),
    post("/groups/{name}/delete", delete),
)
