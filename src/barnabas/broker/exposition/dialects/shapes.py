"""How a family of an MBean is named in the text format: the rules of jmx_exporter's examples, Strimzi's reporter and Confluent's stacks.

| dialect | `BytesInPerSec` | `TotalTimeMs` |
|---|---|---|
| jmx_exporter | `…_bytesin_total` | quantiles in `…_totaltimems`, the count in `…_totaltimems_count` |
| strimzi_reporter | `…_bytesinpersec_total` | a summary `…_totaltimems`, without the sum, which is not counted |
| confluent | `…_bytesinpersec` | quantiles and the count in `…_totaltimems` |

A name may stand in a text once. If two dialects give the same name, the dialect that metrics.dialects names first has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.broker.config.metrics_listener import CONFLUENT, JMX_EXPORTER, STRIMZI_REPORTER
from barnabas.metrics.registry import QUANTILES, Family, Kind

_PER_SECOND: Final = "PerSec"
_PERCENT: Final = "Percent"
_TOTAL: Final = "_total"
_COUNT: Final = "_count"
_SOCKET_SERVER: Final = "socket-server-metrics"
_LONG_QUANTILES: Final = tuple(f"{quantile:.2f}" if quantile <= 0.99 else str(quantile) for quantile in QUANTILES)
_SHORT_QUANTILES: Final = tuple(str(quantile) for quantile in QUANTILES)


class Content(Enum):
    """The samples of a family under one name."""

    VALUE = "value"
    QUANTILES = "quantiles"
    COUNT = "count"
    SUMMARY = "summary"  # quantiles, and the count under the name with _count
    BOTH = "both"  # quantiles and the count under the same name


@dataclass(frozen=True, slots=True)
class Shape:
    """One name of a family: its type in the text format, its label names, and what it shows."""

    name: str
    type: str
    labels: tuple[str, ...]
    content: Content = Content.VALUE
    quantiles: tuple[str, ...] = _LONG_QUANTILES

    @property
    def sample_names(self) -> tuple[str, ...]:
        return (self.name, self.name + _COUNT, self.name + "_sum") if self.content is Content.SUMMARY else (self.name,)


Shaped = tuple[Family, Shape]


def shaped(families: Iterable[Family], dialects: Sequence[str]) -> list[Shaped]:
    """The families with each of their names, without names that are taken."""
    taken: set[str] = set()
    with_names: list[Shaped] = []
    rules = [_RULES[dialect] for dialect in dialects if dialect in _RULES]
    for family in families:
        for shape in [shape for rule in rules for shape in rule(family)] if family.group else [_own(family)]:
            if taken.isdisjoint(shape.sample_names):
                taken.update(shape.sample_names)
                with_names.append((family, shape))
    return with_names


def jmx_shapes(family: Family) -> list[Shape]:
    """A percentage has two names: dashboards use both forms."""
    if not family.group:
        return [_own(family)]
    prefix, name, labels = _prefix(family), _plain(family.name), family.labels
    if family.kind is Kind.HISTOGRAM:
        return [
            Shape(prefix + name, "gauge", labels, Content.QUANTILES),
            Shape(f"{prefix}{name}{_COUNT}", "counter", labels, Content.COUNT),
        ]
    if family.kind is Kind.METER:
        if family.name.endswith(_PER_SECOND):
            return [Shape(f"{prefix}{_plain(family.name.removesuffix(_PER_SECOND))}{_TOTAL}", "counter", labels)]
        return [Shape(prefix + name if _is_of_kafka(family) else f"{prefix}{name}{_COUNT}", "counter", labels)]
    if family.name.endswith(_PERCENT):
        percent = Shape(f"{prefix}{_plain(family.name.removesuffix(_PERCENT))}_percent", "gauge", labels)
        return [percent, Shape(prefix + name, "gauge", labels)]
    return [Shape(prefix + name, "gauge", labels)]


def _strimzi_shapes(family: Family) -> list[Shape]:
    """Kafka's own metrics, whose type is in lower case, are gauges: only those of Yammer have types."""
    name = _prefix(family) + _plain(family.name)
    if family.kind is Kind.HISTOGRAM:
        return [Shape(name, "summary", family.labels, Content.SUMMARY, _SHORT_QUANTILES)]
    if family.kind is Kind.METER and not _is_of_kafka(family):
        return [Shape(name + _TOTAL, "counter", family.labels)]
    return [Shape(name.removesuffix(_TOTAL), "gauge", family.labels)]


def _confluent_shapes(family: Family) -> list[Shape]:
    """Of Kafka's own metrics, the rules have those of the socket server."""
    labels = tuple(label.lower() for label in family.labels)
    name = _prefix(family) + _plain(family.name)
    if _is_of_kafka(family):
        if family.type != _SOCKET_SERVER:
            return []
        sockets = tuple("network_processor" if label == "networkprocessor" else label for label in labels)
        return [Shape(name.replace("socket_server_metrics", "socketservermetrics"), "gauge", sockets)]
    if family.kind is Kind.HISTOGRAM:
        return [Shape(name, "untyped", labels, Content.BOTH)]
    if family.kind is Kind.METER:
        return [Shape(name, "untyped", labels)]
    if family.name == "RequestHandlerAvgIdlePercent":  # the rate of a meter in Kafka
        return [Shape(name + _TOTAL, "gauge", labels)]
    return [Shape(name, "gauge", labels)]


_RULES: Final[dict[str, Callable[[Family], list[Shape]]]] = {
    JMX_EXPORTER: jmx_shapes,
    STRIMZI_REPORTER: _strimzi_shapes,
    CONFLUENT: _confluent_shapes,
}


def _own(family: Family) -> Shape:
    """A family without an MBean has the name that it was given."""
    return Shape(family.name, "counter" if family.kind is Kind.METER else "gauge", family.labels)


def _is_of_kafka(family: Family) -> bool:
    return family.type[:1].islower()


def _prefix(family: Family) -> str:
    return _plain(f"{family.group}_{family.type}_")


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
