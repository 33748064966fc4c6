"""The list of topics, which is searched as one types, and the form that creates one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from starlette.responses import Response

from barnabas.administration.topic_settings import parse_settings
from barnabas.client.admin.topics.topics import NewTopic
from barnabas.console.cluster.offered_settings import offered_settings
from barnabas.console.cluster.snapshot import ClusterSnapshot, TopicSnapshot
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.listing import Column, TablePage, listing_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

PARTITIONS_MAX: Final = 1_000_000  # a larger number is a slip of the hand
_SETTING: Final = "setting."  # what the names of fields for common settings begin with

COLUMNS: Final[tuple[Column[TopicSnapshot], ...]] = (
    Column("name", "Topic", lambda topic: topic.name),
    Column("partitions", "Partitions", lambda topic: len(topic.partitions), True),
    Column("replication", "Replication", lambda topic: topic.replication_factor, True),
    Column("size", "Size", lambda topic: topic.size_bytes, True),
    Column("in", "Rate in", lambda topic: topic.records_in_per_s, True),
    Column("out", "Rate out", lambda topic: topic.records_out_per_s, True),
    Column("retention", "Retention", lambda topic: _kept_ms(topic), True),
    Column("lag", "Worst reader", lambda topic: topic.worst_reader[1] if topic.worst_reader is not None else None, True),
)


async def topics(visit: Visit) -> Response:
    return visit.page("topics.html", **_values(visit, await visit.cluster.snapshots.current()))


async def events(visit: Visit) -> Response:
    return visit.events(_updates(visit))


async def _updates(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    async for snapshot in visit.cluster.snapshots.updates():
        yield "fragment", visit.text("fragments/topic_rows.html", **_values(visit, snapshot))


def _values(visit: Visit, snapshot: ClusterSnapshot) -> dict[str, Any]:
    with_internal = visit.argument("internal") == "1"
    shown = [topic for topic in snapshot.topics.values() if with_internal or not topic.is_internal]
    listing: TablePage[TopicSnapshot] = listing_of(
        visit, shown, COLUMNS, lambda topic: topic.name, query={"internal": "1" if with_internal else ""}
    )
    return {
        "snapshot": snapshot,
        "listing": listing,
        "with_internal": with_internal,
        "internal": sum(topic.is_internal for topic in snapshot.topics.values()),
        "live": visit.url("/topics-events", **{**listing.query, "page": listing.page}),
    }


def _kept_ms(topic: TopicSnapshot) -> float | None:
    """How long records are kept, to sort by: for ever is longest."""
    if topic.retention_ms is None:
        return None
    return float("inf") if topic.retention_ms < 0 or "delete" not in (topic.cleanup_policy or "delete") else topic.retention_ms


async def form(visit: Visit) -> Response:
    return visit.page("topic_create.html", **await _form_values(visit, {}))


async def create(visit: Visit) -> Response:
    entered = await visit.form()
    try:
        topic = _new_topic(entered)
        outcomes = await visit.cluster.admin.create_topics([topic])
        outcomes.all()
    except ValueError as fault:
        if isinstance(fault, KafkaError):
            return await _refused(visit, entered, fault)
        return visit.refused("topic_create.html", str(fault), **await _form_values(visit, entered))
    except KafkaError as error:
        return await _refused(visit, entered, error)
    return visit.changed(f"The topic {topic.name} is created.", f"/topics/{segment(topic.name)}")


async def _refused(visit: Visit, entered: Mapping[str, str], error: KafkaError) -> Response:
    values = await _form_values(visit, entered)
    return visit.refused("topic_create.html", sentence(error), status=failure_of(error).status, **values)


async def _form_values(visit: Visit, entered: Mapping[str, str]) -> dict[str, Any]:
    offered = await offered_settings(visit.cluster.admin, await visit.cluster.snapshots.current())
    return {"entered": entered, "offered": offered, "setting_prefix": _SETTING}


def _new_topic(entered: Mapping[str, str]) -> NewTopic:
    """The topic of a filled form. Raises ValueError with a sentence."""
    name = entered.get("name", "").strip()
    if not name:
        raise ValueError("Give the topic a name.")
    settings = {key.removeprefix(_SETTING): value.strip() for key, value in entered.items() if key.startswith(_SETTING) and value.strip()}
    for key, value in parse_settings(entered.get("others", "")).items():
        if key in settings:
            raise ValueError(f"{key} is given twice.")
        settings[key] = value
    return NewTopic(name, _count(entered, "partitions", PARTITIONS_MAX), _count(entered, "replication", 32_767), configs=settings)


def _count(entered: Mapping[str, str], field: str, most: int) -> int | None:
    text = entered.get(field, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise ValueError(f"The number of {'partitions' if field == 'partitions' else 'replicas'} is a whole number from 1 to {most:,}.")
    return int(text)


# `/topics/…` belongs to the topics, which may have any name.
ROUTES: Final = (
    get("/topics", topics),
    get("/topics-events", events),
    get("/create-topic", form),
    post("/create-topic", create),
)
