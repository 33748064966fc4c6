"""Pushes metrics by OTLP over HTTP, as Protobuf: metrics.otlp.endpoint. It needs no package: the encoder is that of client telemetry.

The series are those of /metrics. Counters are monotonic cumulative sums since the start of the broker, everything else is a gauge; a
histogram is a gauge for each quantile and a sum of samples.
"""

from __future__ import annotations

import gzip
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from barnabas.broker.reporting.metrics_reporter import Metric, MetricsReporter
from barnabas.client.metrics.otlp import CUMULATIVE, Point, export_request, metric_of

POINTS_PER_REQUEST: Final = 5000  # about 1 MB: receivers refuse more than 4 MB by default
POINTS_PER_SLICE: Final = 100  # about a millisecond, after which the thread lets the event loop run
TIMEOUT_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class OtlpReporter(MetricsReporter):
    """`resource` describes the broker. A push that fails is not repeated: the next one has the same sums and newer gauges."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        self._endpoint = endpoint
        self._headers = dict(headers)
        self._resource = dict(resource)
        self._now_ms = now_ms
        self._start_ms = now_ms()
        self._opener = urllib.request.build_opener(_NoRedirects())

    def report(self, metrics: Sequence[Metric]) -> None:
        """Raises OSError if the receiver does not accept the metrics."""
        now_ms = self._now_ms()
        ordered = sorted(metrics, key=lambda metric: metric.name)
        for first in range(0, len(ordered), POINTS_PER_REQUEST):
            encoded = list(self._encoded(ordered[first : first + POINTS_PER_REQUEST], now_ms))
            self._send(export_request(encoded, self._resource, "barnabas"))

    def _encoded(self, metrics: Sequence[Metric], now_ms: int) -> Iterator[bytes]:
        done = 0
        for _, series in groupby(metrics, key=lambda metric: metric.name):
            group = list(series)
            yield metric_of(group[0].name, group[0].meaning, [self._point(metric, now_ms) for metric in group])
            done += len(group)
            if done >= POINTS_PER_SLICE:
                done = 0
                time.sleep(0)  # releases the interpreter's lock

    def _point(self, metric: Metric, now_ms: int) -> Point:
        if metric.is_counter:
            return Point(metric.name, metric.value, now_ms, dict(metric.labels), self._start_ms, CUMULATIVE)
        return Point(metric.name, metric.value, now_ms, dict(metric.labels))

    def _send(self, body: bytes) -> None:
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", "User-Agent": "barnabas", **self._headers}
        request = urllib.request.Request(self._endpoint, gzip.compress(body, 1), headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                response.read(65_536)
        except urllib.error.HTTPError as error:  # its text may be anything: the status says enough
            error.close()
            raise OSError(f"metrics.otlp.endpoint={self._endpoint} answered with the status {error.code}") from None
        except urllib.error.URLError as error:
            raise OSError(f"metrics.otlp.endpoint={self._endpoint} cannot be reached: {error.reason}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The headers may be secret, and are for the configured receiver alone."""

    def redirect_request(self, *_: object) -> None:
        return None
