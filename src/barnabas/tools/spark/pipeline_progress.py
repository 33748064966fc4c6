"""The progress of a running pipeline: rows a second and batch times from Spark's event log, lag from its consumer groups.

This module only reads and adds up. The summary of a flow covers the whole run and names the windows that are still open, with what must
arrive before they close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.command_line.progress import progress_line as bar_line
from barnabas.tools.spark.spark_event_log import PROGRESS, STARTED, TERMINATED

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

# One of our errors in what Spark prints: the class, and the message up to the end of the line.
_OUR_ERROR: Final = re.compile(r"\b(?:pyspark_)?barnabas\.(?:\w+\.)*([A-Z]\w+): ([^\n]+)")
# Errors that a retry cannot mend; for other errors Spark retries three times.
_PERMANENT: Final = frozenset(
    {"UnknownTopicError", "OptionError", "SchemaError", "ClusterError", "CheckpointError", "DataLossError", "TopicRecreatedError"}
)
_AGGREGATION: Final = "stateStoreSave"  # Spark's operator that holds groups until their windows close
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)  # Spark's watermark before the first event


@dataclass(frozen=True)
class FlowFailure:
    """An error of ours that ended a flow."""

    kind: str
    message: str

    @property
    def is_permanent(self) -> bool:
        return self.kind in _PERMANENT


def failure_in(text: str) -> FlowFailure | None:
    """The first error of ours in the output of Spark."""
    match = _OUR_ERROR.search(text)
    return None if match is None else FlowFailure(match[1], match[2])


@dataclass
class Flow:
    """The figures of one flow over all batches of this run."""

    name: str
    rows: int = 0
    batches: int = 0
    total_ms: int = 0
    slowest_ms: int = 0
    last_rows: int = 0  # of the last batch with rows
    last_ms: int = 0
    open_groups: int = 0
    watermark: datetime = _NEVER
    newest: datetime | None = None
    lateness: timedelta | None = None
    is_running: bool = True
    failure: FlowFailure | None = None

    def take(self, progress: Mapping[str, Any]) -> None:
        """Adds one batch."""
        rows = sum(source["numInputRows"] for source in progress["sources"])
        batch_ms = int(progress["durationMs"].get("triggerExecution", 0))
        self.rows += rows
        self.batches += 1
        self.total_ms += batch_ms
        self.slowest_ms = max(self.slowest_ms, batch_ms)
        if rows:
            self.last_rows, self.last_ms = rows, batch_ms
        self._take_times(progress.get("eventTime", {}))
        held = [operator["numRowsTotal"] for operator in progress["stateOperators"] if operator["operatorName"] == _AGGREGATION]
        self.open_groups = sum(held)

    def _take_times(self, times: Mapping[str, str]) -> None:
        if "watermark" in times:
            watermark = datetime.fromisoformat(times["watermark"])
            if watermark > self.watermark and self.newest is not None:
                # The watermark follows the newest record of this run before this batch.
                self.lateness = self.newest - watermark
            self.watermark = watermark
        if "max" in times:
            newest = datetime.fromisoformat(times["max"])
            self.newest = newest if self.newest is None else max(self.newest, newest)

    def text(self) -> str:
        """The line for the current moment."""
        if not self.batches:
            return f"{self.name}: the first batch is running"
        return f"{self.name}: {_rate(self.last_rows, self.last_ms)} rows/s, batch {self.last_ms / 1000:.1f} s"

    def summary(self) -> Iterator[str]:
        """The lines for the end of the run."""
        if not self.batches:
            yield f"{self.name}: there was nothing new to read"
            return
        batches = "1 batch" if self.batches == 1 else f"{self.batches} batches"
        speed = f"{_rate(self.rows, self.total_ms)} rows/s, the slowest batch took {self.slowest_ms / 1000:.1f} s"
        yield f"{self.name}: {self.rows:,} rows in {batches}, {speed}"
        if self.open_groups and self.watermark > _NEVER:
            yield f"{self.name}: {self._open_windows()}"

    def _open_windows(self) -> str:
        groups = "1 group is" if self.open_groups == 1 else f"{self.open_groups:,} groups are"
        what = f"{groups} in windows that are still open, which end after the watermark, {_time(self.watermark)}"
        if self.lateness is None or self.newest is None:
            return f"{what}. A window closes when the watermark passes its end; the watermark follows the newest record by the lateness"
        late = f"{self.lateness.total_seconds():g} s"
        return f"{what} ({late} before the newest record). A window closes when a record arrives whose time is {late} or more after its end"


class Flows:
    """All flows of a run, from the events of Spark's listeners."""

    def __init__(self) -> None:
        self._by_run: dict[str, Flow] = {}
        self._flows: dict[str, Flow] = {}

    def take(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == STARTED:
            name = short_name(str(event["name"]))
            flow = self._flows.setdefault(name, Flow(name))
            flow.is_running, flow.failure = True, None
            self._by_run[event["runId"]] = flow
        elif kind == PROGRESS and event["progress"]["runId"] in self._by_run:
            self._by_run[event["progress"]["runId"]].take(event["progress"])
        elif kind == TERMINATED and event["runId"] in self._by_run:
            flow = self._by_run[event["runId"]]
            flow.is_running = False
            flow.failure = failure_in(event.get("exception") or "")

    @property
    def all(self) -> list[Flow]:
        return sorted(self._flows.values(), key=lambda flow: flow.name)

    def running(self) -> list[Flow]:
        return [flow for flow in self.all if flow.is_running]

    def failures(self) -> list[str]:
        """A line for each flow that an error of ours has ended."""
        return [f"flow {flow.name}: {flow.failure.message}" for flow in self.all if flow.failure is not None]

    def are_hopeless(self, unfinished: Set[str]) -> bool:
        """Whether the failed flows would fail again and no other flow runs or waits. `unfinished` are the flows that Spark announced."""
        failures = {flow.name: flow.failure for flow in self.all if flow.failure is not None}
        is_certain = bool(failures) and all(failure.is_permanent for failure in failures.values())
        return is_certain and not self.running() and unfinished <= failures.keys()


def short_name(flow: str) -> str:
    """Without the catalog and the database."""
    return flow.rpartition(".")[2]


def ask_lag(admin: Admin, prefix: str) -> int | None:
    """The lag of the group of this name and of groups whose names begin with it and a dash; None if there is no such group yet."""
    from barnabas.client.admin.topics.offsets import OffsetSpec
    from barnabas.errors import KafkaError

    try:
        groups = [
            group.group_id for group in admin.list_groups().valid if group.group_id == prefix or group.group_id.startswith(f"{prefix}-")
        ]
        committed = admin.list_consumer_group_offsets(dict.fromkeys(groups)).successes if groups else {}
        offsets = [
            (partition, position.offset)
            for by_partition in committed.values()
            for partition, position in by_partition.items()
            if position is not None
        ]
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


def terminal_line(flows: Sequence[Flow], lag: int | None) -> str:
    """The line with a bar of what is read, once the lag is known."""
    rows = sum(flow.rows for flow in flows)
    if lag is None or not rows:
        return progress_line(flows, lag)
    per_s = sum(flow.last_rows * 1000 / flow.last_ms for flow in flows if flow.last_ms)
    return "; ".join([bar_line("read", rows, rows + lag, "rows", per_s or None), *(flow.text() for flow in flows)])


def _rate(rows: int, duration_ms: int) -> str:
    """Rows a second; low rates have one decimal, so that a slow flow is not shown as 0."""
    rate = rows * 1000 / duration_ms if duration_ms else 0.0
    return f"{rate:,.1f}" if rate < 10 else f"{rate:,.0f}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
