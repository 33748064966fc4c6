"""The metrics that clients have pushed (KIP-714) in the text format of Prometheus, under their own names: `org.apache.kafka.producer.x.y`
is `org_apache_kafka_producer_x_y`. A name that is one of the broker's own gets a prefix. The labels name the client."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from barnabas.broker.exposition.prometheus_text import LINES_PER_SLICE, escaped, number
from barnabas.broker.telemetry.received_metrics import Series

RESERVED_PREFIX: Final = "client_"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")


def render_received(received: Iterable[Series], reserved: Collection[str]) -> Iterator[str]:
    """The text, in slices. All series of a name stand together, so they are sorted first, in slices too. A name that two clients use for a
    gauge and for a counter has the type of the first. `reserved` are the names of the broker's own metrics: a client must not add series to
    them, and a name may have one HELP and TYPE only."""
    kinds: dict[str, str] = {}
    lines: dict[str, dict[str, str]] = {}  # by labels: of two series that become the same, the last
    for count, series in enumerate(received, 1):
        name = _name(series.name)
        while name in reserved:
            name = RESERVED_PREFIX + name
        kinds.setdefault(name, series.kind)
        labels = _labels(series.labels)
        lines.setdefault(name, {})[labels] = f"{name}{{{labels}}} {number(series.value)}"
        if count % LINES_PER_SLICE == 0:
            yield ""
    for name, kind in kinds.items():
        yield f"# HELP {name} Pushed by clients.\n# TYPE {name} {kind}\n" + "\n".join(lines[name].values()) + "\n"


def _name(text: str) -> str:
    name = _NOT_IN_NAMES.sub("_", text)
    return name if name and not name[0].isdigit() else f"_{name}"


def _labels(labels: Mapping[str, str]) -> str:
    named = {_name(label): value for label, value in labels.items()}  # of two labels that become the same, the last
    return ",".join(f'{label}="{escaped(value)}"' for label, value in named.items())
