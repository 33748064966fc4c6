"""The registry of the metrics that clients have pushed: the last value of each series, by client. Metrics are exported from here.

A series is a metric name with its labels. A gauge has the last value; a sum has its total, to which deltas are added. The number of series
is bounded in total and for each client, and so is their text.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.broker.telemetry.otlp_reader import Labels, ReceivedPoint
from barnabas.uuid import Uuid

SERIES_MAX: Final = 50_000
SERIES_PER_CLIENT_MAX: Final = 5_000
TEXT_MAX: Final = 1_024  # characters of a name and its labels together; a longer series is not kept
LABELS_MAX: Final = 20  # a series with more is not kept: short labels take more memory than their text
RESOURCE_LABELS_MAX: Final = 20

_log = logging.getLogger(__name__)


class Series(NamedTuple):
    """`kind` is "gauge" or "counter". The labels name the client: client_id, client_instance_id, and what the client says of itself."""

    name: str
    kind: str
    value: float
    labels: Mapping[str, str]


class _Client:
    __slots__ = ("client_id", "resource", "values")

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.resource: Mapping[str, str] = {}
        self.values: dict[tuple[str, Labels], tuple[bool, float]] = {}  # (is a sum, value); the series updated last is at the end


class ReceivedMetrics:
    def __init__(self, series_max: int = SERIES_MAX, series_per_client_max: int = SERIES_PER_CLIENT_MAX) -> None:
        self.series_count = 0
        self.points_received = 0
        self.points_dropped = 0  # they were too long, or there was no room for their series
        self._series_max = series_max
        self._per_client_max = series_per_client_max
        self._clients: dict[Uuid, _Client] = {}
        self._has_warned = False

    @property
    def client_count(self) -> int:
        return len(self._clients)

    def record(self, client_instance_id: Uuid, client_id: str, resource: Mapping[str, str], points: Sequence[ReceivedPoint]) -> None:
        """Takes the points of one push. `resource` are the labels that the client gives itself."""
        client = self._clients.get(client_instance_id)
        if client is None:
            client = self._clients[client_instance_id] = _Client(client_id[:TEXT_MAX])
        if resource:
            client.resource = _bounded(resource)
        for point in points:
            self._record(client, point)

    def drop(self, count: int) -> None:
        """Points that were read and cannot be kept."""
        self.points_received += count
        self.points_dropped += count

    def forget(self, client_instance_id: Uuid) -> None:
        """Removes the series of a client that has left."""
        client = self._clients.pop(client_instance_id, None)
        if client is not None:
            self.series_count -= len(client.values)
            self._has_warned = self._has_warned and self.series_count >= self._series_max

    def series(self) -> Iterator[Series]:
        """All series. They may be read in parts: clients that leave or push meanwhile do no harm."""
        for client_instance_id, client in list(self._clients.items()):
            about = {**client.resource, "client_id": client.client_id, "client_instance_id": str(client_instance_id)}
            for (name, labels), (is_sum, value) in list(client.values.items()):
                yield Series(name, "counter" if is_sum else "gauge", value, dict(labels) | about)

    def _record(self, client: _Client, point: ReceivedPoint) -> None:
        self.points_received += 1
        key = (point.name, point.labels)
        previous = client.values.pop(key, None)
        if previous is None:
            if not self._make_room(client, key):
                self.points_dropped += 1
                return
            self.series_count += 1
        value = point.value
        if point.is_delta and previous is not None:
            value += previous[1]
        client.values[key] = (point.is_sum, value)

    def _make_room(self, client: _Client, key: tuple[str, Labels]) -> bool:
        name, labels = key
        if len(labels) > LABELS_MAX or len(name) + sum(len(label) + len(text) for label, text in labels) > TEXT_MAX:
            return False
        if len(client.values) >= self._per_client_max:
            del client.values[next(iter(client.values))]  # such as those of a topic that the client no longer uses
            self.series_count -= 1
            self.points_dropped += 1
        if self.series_count < self._series_max:
            return True
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "Clients have pushed %d series of metrics, the most that are kept (barnabas.telemetry.series.max): no new ones are kept. "
                "Subscribe to fewer metrics or clients with kafka-client-metrics, or raise the setting",
                self.series_count,
            )
        return False


def _bounded(resource: Mapping[str, str]) -> dict[str, str]:
    kept = list(resource.items())[:RESOURCE_LABELS_MAX]
    return {label[:TEXT_MAX]: text[:TEXT_MAX] for label, text in kept}
