"""The records of `__barnabas_queries`: a key and a JSON value. docs/spark/queries.md is their schema.

A query has one key for each source, one for the end of reading of each source, and one for each sink, so that compaction keeps one record
of each. The key of a query that restarts stays the same.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from pyspark_barnabas.queries.batch_note import BatchNote
from pyspark_barnabas.queries.identity import QueryIdentity

SCHEMA_VERSION: Final = 1
SOURCE: Final = "source"
READ: Final = "read"
SINK: Final = "sink"
TOPICS_MAX: Final = 100

Record = tuple[str, bytes]


def part_key(*parts: str) -> str:
    """A short name of a source or sink, made from its options."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]


def source_record(query: QueryIdentity, note: BatchNote) -> Record:
    """A batch begins: what it reads, and the batches before."""
    document: dict[str, Any] = {
        "source": note.source,
        "plannedMs": note.planned_ms,
        "inputRows": note.rows,
        "arrivedPerSecond": note.arrived_per_s,
        "topics": [
            {"name": one.name, "partitions": one.partitions, "start": one.start, "end": one.end, "latest": one.latest}
            for one in note.topics
        ],
        "topicsLeftOut": note.topics_left_out,
        "batches": [{"plannedMs": one.planned_ms, "inputRows": one.rows, "intervalMs": one.interval_ms} for one in note.batches],
    }
    return _record(query, SOURCE, note.key, document)


def read_record(query: QueryIdentity, key: str, ended_ms: int) -> Record:
    """A task has read its range to the end."""
    return _record(query, READ, key, {"endedMs": ended_ms})


def sink_record(query: QueryIdentity, key: str, topics: list[str], exactly_once: bool, began_ms: int, ended_ms: int) -> Record:
    """A task has written its rows."""
    document = {
        "topics": [{"name": name} for name in topics[:TOPICS_MAX]],
        "topicsLeftOut": max(len(topics) - TOPICS_MAX, 0),
        "exactlyOnce": exactly_once,
        "beganMs": began_ms,
        "endedMs": ended_ms,
    }
    return _record(query, SINK, key, document)


def _record(query: QueryIdentity, kind: str, part: str, document: dict[str, Any]) -> Record:
    whole = {
        "version": SCHEMA_VERSION,
        "kind": kind,
        "part": part,
        "queryId": query.query_id,
        "runId": query.run_id,
        "name": query.name,
        "batch": query.batch,
        **document,
    }
    return f"{query.query_id}/{kind}/{part}", json.dumps(whole, separators=(",", ":")).encode()
