"""The screen of `barnabas top`: a snapshot of a cluster as rich draws it. Plain values in, nothing is sent or read."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from barnabas.console.cluster.broker_load import broker_loads
from barnabas.console.cluster.health import health_of
from barnabas.console.cluster.snapshot import ClusterSnapshot, TopicSnapshot

SORTS: Final = ("rate", "size", "lag", "name")
_LINES_OF_HEAD: Final = 6
_LINES_OF_TABLE: Final = 3  # its title, its heading and the line after it
_BROKERS_MAX: Final = 10
_GROUPS_MAX: Final = 8
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_SAMPLES: Final = 60
_COLOURS: Final = {"good": "green", "warning": "yellow", "bad": "bold red"}
_COUNTS: Final = ("", "k", "M", "G", "T", "P", "E")
_BYTES: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_NAME_MAX: Final = 80
_SORT_KEYS: Final[dict[str, Callable[[TopicSnapshot], Any]]] = {
    "rate": lambda topic: (-(topic.records_in_per_s or 0), topic.name),
    "size": lambda topic: (-(topic.size_bytes or 0), topic.name),
    "lag": lambda topic: (-(topic.worst_reader[1] if topic.worst_reader else 0), topic.name),
    "name": lambda topic: topic.name,
}


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of the last hour, oldest first."""

    records_in: Sequence[float] = ()
    records_out: Sequence[float] = ()


def view(snapshot: ClusterSnapshot, rates: Rates, sort: str, height: int | None = None, keys: bool = False) -> RenderableType:
    """The whole screen. With a height, as many topics as there is room for; without one, all tables in full."""
    groups = sorted((group for group in snapshot.groups.values() if group.lag is not None), key=lambda group: -(group.lag or 0))
    brokers = broker_loads(snapshot)
    shown_groups, shown_brokers, shown_topics = len(groups), len(brokers), len(snapshot.topics)
    if height is not None:
        shown_brokers, shown_groups = min(len(brokers), _BROKERS_MAX), min(len(groups), _GROUPS_MAX)
        taken = _LINES_OF_HEAD + shown_brokers + shown_groups + _LINES_OF_TABLE * (2 + bool(groups))
        shown_topics = max(height - taken, 3)
    parts: list[RenderableType] = [*_head(snapshot, rates), Text()]
    parts += [_brokers(brokers[:shown_brokers], len(brokers), snapshot.controller_id), Text()]
    if groups:
        parts += [_groups(groups[:shown_groups], len(groups)), Text()]
    topics = sorted(snapshot.topics.values(), key=_SORT_KEYS[sort])
    parts.append(_topics(topics[:shown_topics], len(topics), sort))
    if keys:
        parts.append(Text("q quit   s sort topics by the next column   r by the one before", style="dim"))
    return Group(*parts)


def _head(snapshot: ClusterSnapshot, rates: Rates) -> list[Text]:
    health = health_of(snapshot)
    lag = sum(group.lag for group in snapshot.groups.values() if group.lag is not None)
    lines = [Text(health.sentence, style=_COLOURS[health.level])]
    controller = "none" if snapshot.controller_id is None else str(snapshot.controller_id)
    counted = ((len(snapshot.brokers), "broker"), (len(snapshot.topics), "topic"), (snapshot.partitions, "partition"))
    numbers = ", ".join(f"{number:,} {noun}{'' if number == 1 else 's'}" for number, noun in counted) + f", controller {controller}"
    lines.append(Text(f"cluster {clean(snapshot.cluster_id or 'unknown')}: {numbers}, lag {scaled(lag, _COUNTS)}"))
    lines.append(_flow("in ", snapshot.records_in_per_s, snapshot.bytes_in_per_s, rates.records_in))
    lines.append(_flow("out", snapshot.records_out_per_s, snapshot.bytes_out_per_s, rates.records_out))
    unknown = [f"{name}: {clean(why)}" for name, why in snapshot.unknown.items() if name != "cluster"]
    if unknown:
        lines.append(Text(f"not known: {'; '.join(unknown)}", style="yellow", overflow="ellipsis", no_wrap=True))
    return lines


def _flow(label: str, records: float | None, size: float | None, history: Sequence[float]) -> Text:
    line = Text(f"{label} {scaled(records, _COUNTS):>8} records/s {scaled(size, _BYTES):>9}/s  ")
    line.append(spark(history), style="cyan")
    return line


def _brokers(loads: Sequence[Any], total: int, controller: int | None) -> Table:
    table = _table(
        "Brokers", len(loads), total, ("broker", "address", "leads", "replicas", "not in sync", "records in/s", "data", "fullest disk"), 2
    )
    for load in loads:
        broker, full = load.broker, load.fullest
        table.add_row(
            f"{broker.id}{' *' if broker.id == controller else ''}",
            Text(clean(broker.address)),
            f"{broker.leads:,}",
            f"{broker.replicas:,}",
            Text(f"{load.not_in_sync:,}", style="red" if load.not_in_sync else ""),
            scaled(load.records_in_per_s, _COUNTS),
            scaled(broker.size_bytes, _BYTES),
            "–" if full is None else Text(f"{full:.0%}", style="red" if full > 0.9 else ""),
        )
    return table


def _groups(groups: Sequence[Any], total: int) -> Table:
    table = _table("Groups, those that are behind most first", len(groups), total, ("group", "state", "members", "lag", "stuck"), 2)
    for group in groups:
        stuck = len(group.stuck)
        table.add_row(
            Text(clean(group.group_id)),
            Text(clean(group.state)),
            "–" if group.members is None else f"{group.members:,}",
            f"{group.lag:,}",
            Text(f"{stuck:,} partition{'' if stuck == 1 else 's'}", style="yellow") if stuck else "",
        )
    return table


def _topics(topics: Sequence[TopicSnapshot], total: int, sort: str) -> Table:
    title = f"Topics by {sort}"
    table = _table(title, len(topics), total, ("topic", "partitions", "replicas", "records in/s", "bytes in/s", "size", "worst lag"), 1)
    for topic in topics:
        lag = "–" if topic.worst_reader is None else f"{scaled(topic.worst_reader[1], _COUNTS)} {clean(topic.worst_reader[0])}"
        table.add_row(
            Text(clean(topic.name)),
            f"{len(topic.partitions):,}",
            str(topic.replication_factor),
            scaled(topic.records_in_per_s, _COUNTS),
            scaled(topic.bytes_in_per_s, _BYTES),
            scaled(topic.size_bytes, _BYTES),
            Text(lag),
        )
    return table


def _table(title: str, shown: int, total: int, columns: Sequence[str], left: int) -> Table:
    """A table whose first `left` columns are texts and the others numbers."""
    of = f"{shown:,} of {total:,}" if shown < total else f"{total:,}"
    table = Table(title=f"{title} ({of})", title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right", no_wrap=True, overflow="ellipsis")
    return table


def spark(values: Sequence[float]) -> str:
    """A line of bars, the newest on the right."""
    last = list(values)[-_SAMPLES:]
    highest = max(last, default=0)
    return "".join(_SPARKS[round(value / highest * (len(_SPARKS) - 1))] for value in last) if highest > 0 else ""


def scaled(value: float | None, units: Sequence[str]) -> str:
    """A number of at most four characters with its unit; a dash for an unknown one."""
    if value is None:
        return "–"
    index = 0
    while value >= 999.5 and index < len(units) - 1:
        value, index = value / 1000, index + 1
    text = f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.1f}"
    return f"{text} {units[index]}".rstrip()


def clean(text: str) -> str:
    """A name without characters that would move the cursor or change the direction of text. As a cell it is a Text: rich reads markup in
    strings."""
    shown = "".join("�" if unicodedata.category(character).startswith("C") else character for character in text)
    return shown if len(shown) <= _NAME_MAX else f"{shown[: _NAME_MAX - 1]}…"
