"""Resets the offsets of an inactive group: a form, a preview that says what is skipped and what is read again, and the change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.console.cluster.group_details import SHARE, GroupDetails
from barnabas.console.cluster.resets import (
    TARGETS,
    decode_plan,
    encode_plan,
    parse_partitions,
    parse_request,
    preview,
)
from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.console.failures import UnusableField, failure_of, sentence
from barnabas.console.pages.groups.group import details_of
from barnabas.console.web.routes import get, post, read_post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

ROWS_SHOWN: Final = 500
PLAN_BYTES_MAX: Final = 8 << 20


async def form(visit: Visit) -> Response:
    details = await details_of(visit)
    return visit.page("group_reset.html", **_values(details, {"topic": visit.argument("topic"), "target": "earliest"}))


async def look(visit: Visit) -> Response:
    """The preview."""
    details = await details_of(visit)
    entered = await visit.form()
    snapshot = await visit.cluster.snapshots.current()
    try:
        _check_inactive(details)
        request = parse_request(entered.get("target", ""), entered)
        partitions = _partitions(details, snapshot, entered)
        rows = await preview(visit.cluster.admin, partitions, details.committed, request, round(time.time() * 1_000))
    except UnusableField as fault:
        return visit.refused("group_reset.html", str(fault), **_values(details, entered))
    except KafkaError as error:
        return visit.refused("group_reset.html", sentence(error), status=failure_of(error).status, **_values(details, entered))
    moving = [row for row in rows if row.before != row.after]
    return visit.page(
        "group_reset.html",
        **{
            **_values(details, entered),
            "rows": rows[:ROWS_SHOWN],
            "total": len(rows),
            "plan": encode_plan(moving),
            "changed": len(moving),
            "skipped": sum(row.skipped for row in rows),
            "read_again": sum(row.read_again for row in rows),
            "lag_after": sum(row.lag_after for row in rows),
        },
    )


async def reset(visit: Visit) -> Response:
    """Commits the offsets of a preview, unless the group has moved since."""
    details = await details_of(visit)
    try:
        _check_inactive(details)
        plan = decode_plan((await visit.form()).get("plan", ""))
        committed = details.committed
        if any(committed.get(partition) != before for partition, (before, _) in plan.items()):
            raise UnusableField("The offsets of the group have changed since the preview: make it again.")
        await _commit(visit, details, {partition: after for partition, (_, after) in plan.items()})
    except UnusableField as fault:
        return visit.refused("group_reset.html", str(fault), status=409, **_values(details, {"target": "earliest"}))
    except KafkaError as error:
        return visit.refused(
            "group_reset.html", sentence(error), status=failure_of(error).status, **_values(details, {"target": "earliest"})
        )
    count = len(plan)
    return visit.changed(
        f"The offsets of {details.group_id} are reset in {count:,} partition{'' if count == 1 else 's'}.",
        f"/groups/{segment(details.group_id)}",
    )


async def _commit(visit: Visit, details: GroupDetails, offsets: Mapping[TopicPartition, int]) -> None:
    admin = visit.cluster.admin
    if details.type == SHARE:
        (await admin.alter_share_group_offsets(details.group_id, offsets)).all()
    else:
        commits = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
        (await admin.alter_consumer_group_offsets(details.group_id, commits)).all()


def _check_inactive(details: GroupDetails) -> None:
    if details.unknown and not details.members and not details.partitions:
        raise UnusableField(details.unknown[0])
    if not details.is_inactive:
        members = len(details.members)
        raise UnusableField(
            f"The group is active: its state is {details.state}, with {members:,} member{'' if members == 1 else 's'}. "
            "Offsets can only be reset while no consumer runs: stop them all, wait until the state is Empty, and try again."
        )


def _partitions(details: GroupDetails, snapshot: ClusterSnapshot, entered: Mapping[str, str]) -> list[TopicPartition]:
    """The partitions of the chosen topic, or all in which the group has offsets."""
    topic, numbers = entered.get("topic", "").strip(), parse_partitions(entered.get("partitions", ""))
    if not topic:
        if numbers is not None:
            raise UnusableField("Choose the topic that these partitions are of.")
        if not details.committed:
            raise UnusableField("The group has no offsets yet: choose a topic.")
        return sorted(partition for partition in details.committed if partition.topic in snapshot.topics)
    known = snapshot.topics.get(topic)
    if known is None:
        raise UnusableField(f"The cluster has no topic {topic[:250]}.")
    existing = {partition.partition for partition in known.partitions}
    missing = sorted((numbers or set()) - existing)
    if missing:
        raise UnusableField(f"{topic} has no partition {missing[0]}: it has 0 to {max(existing)}.")
    return [TopicPartition(topic, number) for number in sorted(numbers or existing)]


def _values(details: GroupDetails, entered: Mapping[str, str]) -> dict[str, Any]:
    return {
        "group": details,
        "base": f"/groups/{segment(details.group_id)}",
        "entered": entered,
        "targets": TARGETS,
        "rows": None,
    }


ROUTES: Final = (
    get("/groups/{name}/reset", form),
    read_post("/groups/{name}/reset/preview", look),
    post("/groups/{name}/reset", reset, form_bytes_max=PLAN_BYTES_MAX),
)
