"""Queries from the documents that the Spark source and sink publish: docs/spark/queries.md is their schema.

The documents come from a topic that every user with the right may write to. So a field of another type than the schema's is ignored, and
everything that is kept has a bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

VERSION: Final = 1
QUERIES_MAX: Final = 2_000
BATCHES_MAX: Final = 20
PARTS_MAX: Final = 50  # sources, and sinks, of one query
TOPICS_MAX: Final = 100
TEXT_MAX: Final = 500
_NUMBER_MAX: Final = 2**63


@dataclass(frozen=True, slots=True)
class TopicRead:
    """What the newest batch reads of one topic; offsets are sums over the partitions."""

    name: str
    partitions: int
    start: int
    end: int


@dataclass(slots=True)
class MicroBatch:
    """A micro-batch. `ended_ms` is when the last task of source or sink that has reported had ended."""

    number: int | None
    planned_ms: int
    rows: int
    ended_ms: int | None = None
    interval_ms: int | None = None

    @property
    def took_ms(self) -> int | None:
        return None if self.ended_ms is None else max(self.ended_ms - self.planned_ms, 0)

    @property
    def rows_per_s(self) -> float | None:
        """Of the time that the batch took; of the interval to the next one if that is all that is known."""
        took_ms = self.took_ms or self.interval_ms
        return None if not took_ms else self.rows * 1000 / took_ms


@dataclass(slots=True)
class QuerySource:
    text: str
    topics: tuple[TopicRead, ...]
    topics_left_out: int
    arrived_per_s: float | None
    planned_ms: int


@dataclass(slots=True)
class QuerySink:
    topics: tuple[str, ...]
    exactly_once: bool
    ended_ms: int


@dataclass(slots=True)
class StreamingQuery:
    """A query with its sources, sinks and last batches, newest first."""

    query_id: str
    name: str | None = None
    run_id: str | None = None
    batch: int = -1
    sources: dict[str, QuerySource] = field(default_factory=dict)
    sinks: dict[str, QuerySink] = field(default_factory=dict)
    batches: list[MicroBatch] = field(default_factory=list)
    _ends: dict[int, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.name or f"query {self.query_id[:8]}"

    @property
    def seen_ms(self) -> int:
        """The newest time that anything of this query has."""
        times = [one.planned_ms for one in self.sources.values()] + [one.ended_ms for one in self.sinks.values()]
        return max([*times, *self._ends.values()], default=0)

    @property
    def reads(self) -> tuple[TopicRead, ...]:
        return tuple(topic for source in self.sources.values() for topic in source.topics)

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(sorted({topic for sink in self.sinks.values() for topic in sink.topics}))

    @property
    def exactly_once(self) -> bool:
        return bool(self.sinks) and all(sink.exactly_once for sink in self.sinks.values())

    @property
    def last_batch(self) -> MicroBatch | None:
        return self.batches[0] if self.batches else None

    @property
    def rows_per_s(self) -> float | None:
        """The input rate over the last batches."""
        known = [batch for batch in self.batches if batch.interval_ms]
        if not known:
            return self.last_batch.rows_per_s if self.last_batch is not None else None
        return sum(batch.rows for batch in known) * 1000 / sum(batch.interval_ms or 0 for batch in known)

    def lag(self, ends: Mapping[str, int]) -> int | None:
        """The records after the newest batch, by the current ends of the topics; None if a topic is not known."""
        if not self.sources or any(source.topics_left_out for source in self.sources.values()):
            return None
        if any(topic.name not in ends for topic in self.reads):
            return None
        return sum(max(ends[topic.name] - topic.end, 0) for topic in self.reads)

    def take(self, kind: str, part: str, batch: int, document: Mapping[str, Any]) -> None:
        """Applies one document of this query."""
        run_id = _text(document.get("runId")) or None
        if run_id != self.run_id:
            self.run_id = run_id
        self.name = _text(document.get("name")) or None
        self.batch = max(self.batch, batch) if batch >= self.batch - BATCHES_MAX else batch
        if kind == "source":
            self._take_source(part, batch, document)
        elif kind == "sink":
            self._take_sink(part, document)
        if kind in ("read", "sink"):
            self._take_end(batch, _number(document.get("endedMs")))

    def _take_source(self, part: str, batch: int, document: Mapping[str, Any]) -> None:
        planned_ms, rows = _number(document.get("plannedMs")), _number(document.get("inputRows"))
        if planned_ms is None or rows is None or (part not in self.sources and len(self.sources) >= PARTS_MAX):
            return
        topics = [topic for one in _list(document.get("topics"))[:TOPICS_MAX] if (topic := _topic(one)) is not None]
        arrived = document.get("arrivedPerSecond")
        self.sources[part] = QuerySource(
            _text(document.get("source")),
            tuple(topics),
            _number(document.get("topicsLeftOut")) or 0,
            float(arrived) if isinstance(arrived, int | float) and 0 <= arrived < _NUMBER_MAX else None,
            planned_ms,
        )
        self._take_batches(MicroBatch(batch, planned_ms, rows), document)

    def _take_batches(self, newest: MicroBatch, document: Mapping[str, Any]) -> None:
        known = {one.planned_ms: one for one in self.batches}
        same = next((one for one in self.batches if one.number == newest.number), None)
        if same is not None and len(self.sources) > 1:  # another source of the same batch
            same.rows += newest.rows if same.planned_ms != newest.planned_ms else 0
            return
        newest.ended_ms = self._ends.get(newest.number if newest.number is not None else -1)
        known[newest.planned_ms] = newest
        for one in _list(document.get("batches"))[:BATCHES_MAX]:
            if not isinstance(one, dict):
                continue
            planned_ms, rows, interval_ms = (_number(one.get(name)) for name in ("plannedMs", "inputRows", "intervalMs"))
            if planned_ms is not None and rows is not None:
                known.setdefault(planned_ms, MicroBatch(None, planned_ms, rows)).interval_ms = interval_ms
        self.batches = sorted(known.values(), key=lambda one: -one.planned_ms)[:BATCHES_MAX]

    def _take_sink(self, part: str, document: Mapping[str, Any]) -> None:
        if part not in self.sinks and len(self.sinks) >= PARTS_MAX:
            return
        names = [_text(one.get("name")) for one in _list(document.get("topics"))[:TOPICS_MAX] if isinstance(one, dict)]
        known = self.sinks[part].topics if part in self.sinks else ()
        topics = tuple(sorted({*known, *filter(None, names)}))[:TOPICS_MAX]
        self.sinks[part] = QuerySink(topics, document.get("exactlyOnce") is True, _number(document.get("endedMs")) or 0)

    def _take_end(self, batch: int, ended_ms: int | None) -> None:
        if ended_ms is None:
            return
        self._ends[batch] = max(self._ends.get(batch, 0), ended_ms)
        for old in sorted(self._ends)[: -2 * BATCHES_MAX]:
            del self._ends[old]
        for one in self.batches:
            if one.number == batch and ended_ms >= one.planned_ms:
                one.ended_ms = self._ends[batch]


class Queries:
    """All queries of a cluster, from the records of the topic in their order."""

    def __init__(self) -> None:
        self.by_id: dict[str, StreamingQuery] = {}
        self.refused = 0  # records that are not of the schema

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record; a record without a value forgets the query of its key."""
        if value is None:
            self.by_id.pop((key or b"").split(b"/")[0].decode("utf-8", "replace"), None)
            return
        document = _document(value)
        batch = _number(document.get("batch"))
        query_id, kind = _text(document.get("queryId")), document.get("kind")
        if document.get("version") != VERSION or not query_id or batch is None or kind not in ("source", "read", "sink"):
            self.refused += 1
            return
        if query_id not in self.by_id and len(self.by_id) >= QUERIES_MAX:
            del self.by_id[min(self.by_id, key=lambda one: self.by_id[one].seen_ms)]
        self.by_id.setdefault(query_id, StreamingQuery(query_id)).take(str(kind), _text(document.get("part")), batch, document)

    def newest_first(self) -> list[StreamingQuery]:
        return sorted(self.by_id.values(), key=lambda query: -query.seen_ms)


def _document(value: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _topic(value: object) -> TopicRead | None:
    if not isinstance(value, dict):
        return None
    name = _text(value.get("name"))
    partitions, start, end = (_number(value.get(field_name)) for field_name in ("partitions", "start", "end"))
    if not name or partitions is None or start is None or end is None:
        return None
    return TopicRead(name, partitions, start, end)


def _text(value: object) -> str:
    return value[:TEXT_MAX] if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NUMBER_MAX else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
