"""Spark queries that read or write with Barnabas: how fast they are, how far behind, and which topics they connect."""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.console.failures import NotThere, sentence
from barnabas.console.pipelines.drawing import drawing_of
from barnabas.console.pipelines.queries import StreamingQuery
from barnabas.console.pipelines.queries_reader import TOPIC, queries_of
from barnabas.console.web.routes import get
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

SHOWN_MAX: Final = 200
QUIET_MS: Final = 5 * 60_000


async def pipelines(visit: Visit) -> Response:
    snapshot = await visit.cluster.snapshots.current()
    unknown, shown, total, search = None, [], 0, visit.argument("q")
    try:
        queries = await queries_of(visit.cluster)
    except KafkaError as error:
        queries, unknown = None, sentence(error)
    if queries is not None:
        matching = [query for query in queries.newest_first() if _matches(query, search.lower())]
        total = len(matching)
        ends = _ends(snapshot)
        shown = [_row(query, ends) for query in matching[:SHOWN_MAX]]
    return visit.page("pipelines.html", rows=shown, total=total, search=search, topic=TOPIC, exists=queries is not None, unknown=unknown)


async def pipeline(visit: Visit) -> Response:
    queries = await queries_of(visit.cluster)
    query = queries.by_id.get(visit.path("id")) if queries is not None else None
    if query is None:
        raise NotThere("No query with this id has published its progress within a week.")
    snapshot = await visit.cluster.snapshots.current()
    ends = _ends(snapshot)
    reads = [(topic, None if topic.name not in ends else max(ends[topic.name] - topic.end, 0)) for topic in query.reads]
    return visit.page("pipeline.html", row=_row(query, ends), query=query, reads=reads, drawing=drawing_of(query))


def _matches(query: StreamingQuery, search: str) -> bool:
    texts = (query.title, query.query_id, *(topic.name for topic in query.reads), *query.writes)
    return not search or any(search in text.lower() for text in texts)


def _ends(snapshot: ClusterSnapshot) -> dict[str, int]:
    """The sum of the end offsets of each topic of which all partitions are known."""
    sums: dict[str, int] = {}
    for name, topic in snapshot.topics.items():
        offsets = [partition.end_offset for partition in topic.partitions]
        if all(offset is not None for offset in offsets):
            sums[name] = sum(offset for offset in offsets if offset is not None)
    return sums


def _row(query: StreamingQuery, ends: dict[str, int]) -> dict[str, object]:
    lag = query.lag(ends)
    quiet = int(time.time() * 1000) - query.seen_ms > QUIET_MS
    state, kind = ("running", "good") if not quiet else ("no batch for a while", "warning") if lag else ("idle", "")
    if quiet and lag is None:
        state, kind = "no batch for a while", ""
    return {"query": query, "lag": lag, "state": state, "kind": kind, "batch": query.last_batch}


ROUTES: Final = (get("/pipelines", pipelines), get("/pipelines/{id}", pipeline))
