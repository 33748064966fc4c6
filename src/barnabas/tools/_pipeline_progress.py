"""How a pipeline that runs is doing: rows a second and the time of a batch from Spark's metrics, lag from the groups it commits to.

Only reads and only adds up; whatever cannot be asked at a moment is left out of the line for that moment.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_TIMEOUT_S: Final = 2.0
_GAUGE: Final = re.compile(r".*?\.driver\.spark\.streaming\.(?P<flow>.+)\.(?P<gauge>[^.]+)")


@dataclass(frozen=True)
class Flow:
    """What Spark tells of one flow."""

    name: str
    rows_per_s: float
    batch_ms: int

    def text(self) -> str:
        return f"{self.name}: {self.rows_per_s:,.0f} rows/s, batch {self.batch_ms / 1000:.1f} s"


def flows_of(metrics: Mapping[str, Any]) -> list[Flow]:
    """From the gauges that Spark's metrics servlet serves as JSON."""
    found: dict[str, dict[str, float]] = {}
    for name, gauge in metrics.get("gauges", {}).items():
        part = _GAUGE.fullmatch(name)
        if part is not None:
            found.setdefault(part["flow"], {})[part["gauge"]] = gauge.get("value") or 0
    return [
        Flow(name.rpartition(".")[2], float(gauges.get("processingRate-total", 0)), int(gauges.get("latency", 0)))
        for name, gauges in sorted(found.items())
    ]


def ask_flows(port: int) -> list[Flow]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/json/", timeout=_TIMEOUT_S) as answer:
            return flows_of(json.load(answer))
    except (OSError, ValueError):
        return []  # not there yet, or no more


def ask_lag(admin: Admin, prefix: str) -> int | None:
    """What the groups of this name, or with names that begin with it and a dash, have still to read; None where there are none yet."""
    from barnabas.client.admin.offsets import OffsetSpec
    from barnabas.errors import KafkaError

    try:
        groups = [each.group_id for each in admin.list_groups().valid if each.group_id == prefix or each.group_id.startswith(f"{prefix}-")]
        committed = admin.list_consumer_group_offsets(dict.fromkeys(groups)).successes if groups else {}
        offsets = [(partition, found.offset) for each in committed.values() for partition, found in each.items() if found is not None]
        ends = admin.list_offsets({partition: OffsetSpec.latest() for partition, _ in offsets}).successes if offsets else {}
    except KafkaError:
        return None
    behind = [max(0, ends[partition].offset - offset) for partition, offset in offsets if partition in ends]
    return sum(behind) if behind else None


def progress_line(flows: Sequence[Flow], lag: int | None) -> str:
    parts = [flow.text() for flow in flows]
    if lag is not None:
        parts.append(f"lag {lag:,}")
    return "; ".join(parts)
