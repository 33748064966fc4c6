"""The overview: the health of the cluster, its traffic, and what needs attention."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response

from barnabas.console.cluster.health import HealthSummary, health_of
from barnabas.console.cluster.history import columns
from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.console.web.routes import get
from barnabas.console.web.visit import Visit

WORST_GROUPS: Final = 8
BUSIEST_TOPICS: Final = 8
PARTITIONS_SHOWN: Final = 20


async def overview(visit: Visit) -> Response:
    snapshot = await visit.cluster.snapshots.current()
    return visit.page("overview.html", **_values(visit, snapshot))


async def events(visit: Visit) -> Response:
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    async for snapshot in visit.cluster.snapshots.updates():
        values = _values(visit, snapshot)
        yield "fragments", visit.text("fragments/overview_live.html", **values)
        for chart in ("throughput", "bytes"):
            yield "samples", json.dumps({"chart": chart, "columns": values[chart]})


def _values(visit: Visit, snapshot: ClusterSnapshot) -> dict[str, Any]:
    history = visit.cluster.snapshots.history
    groups = sorted((group for group in snapshot.groups.values() if group.lag), key=lambda group: group.lag or 0, reverse=True)
    topics = sorted(
        (topic for topic in snapshot.topics.values() if topic.records_in_per_s and not topic.is_internal),
        key=lambda topic: topic.records_in_per_s or 0,
        reverse=True,
    )
    health: HealthSummary = health_of(snapshot)
    return {
        "snapshot": snapshot,
        "health": health,
        "partitions": health.partitions[:PARTITIONS_SHOWN],
        "groups": groups[:WORST_GROUPS],
        "topics": topics[:BUSIEST_TOPICS],
        "throughput": columns(history.total("records_in"), history.total("records_out")),
        "bytes": columns(history.total("bytes_in"), *([history.total("bytes_out")] if visit.cluster.config.metrics else [])),
        "has_metrics": bool(visit.cluster.config.metrics),
    }


ROUTES: Final = (get("/", overview), get("/overview/events", events))
