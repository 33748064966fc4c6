"""The metrics of requests: kafka.network RequestMetrics, by the API of the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.broker.exposition.families.windows import HistogramWindows
from barnabas.broker.exposition.observed import Observed
from barnabas.broker.metrics.request_kinds import FETCH, FETCH_CONSUMER, FETCH_FOLLOWER
from barnabas.broker.metrics.topic_metrics import Conversions
from barnabas.metrics.histogram import Histogram, merged, quantiles, with_zeros
from barnabas.metrics.registry import QUANTILES, Distribution, Family, Kind, Series
from barnabas.network.request_metrics import RequestMetrics
from barnabas.protocol.errors import ErrorCode

_MICROSECONDS: Final = 1000.0  # in a millisecond
_NAMES: Final = {int(code): code.name for code in ErrorCode}

_Pick = Callable[[RequestMetrics], Histogram]


def request_families(observed: Observed) -> list[Family]:
    def rotate() -> None:
        for kind in observed.kinds.all():
            kind.rotate()

    def rotate_conversions() -> None:
        for conversions_of_api in _conversions(observed).values():
            conversions_of_api.rotate()

    windows = HistogramWindows(rotate)
    conversions = HistogramWindows(rotate_conversions)

    def family(name: str, pick: _Pick, unit: float, meaning: str) -> Family:
        return Family(
            "kafka.network",
            "RequestMetrics",
            name,
            Kind.HISTOGRAM,
            meaning,
            lambda: _distributions(observed, windows, pick, unit),
            ("request",),
        )

    return [
        Family(
            "kafka.network",
            "RequestMetrics",
            "RequestsPerSec",
            Kind.METER,
            "Requests, by API and version. FetchConsumer and FetchFollower are also counted in Fetch.",
            lambda: _requests(observed),
            ("request", "version"),
        ),
        Family(
            "kafka.network",
            "RequestMetrics",
            "ErrorsPerSec",
            Kind.METER,
            "Error codes in responses, one for each partition, topic or group of the response; NONE counts what succeeded.",
            lambda: _errors(observed),
            ("request", "error"),
        ),
        family("TotalTimeMs", lambda kind: kind.total_us, _MICROSECONDS, "From receiving a request to the end of sending its response."),
        family(
            "RequestQueueTimeMs",
            lambda kind: kind.request_queue_us,
            _MICROSECONDS,
            "From receiving a request to its turn: behind other requests, or at the limit queued.max.requests.",
        ),
        family("LocalTimeMs", lambda kind: kind.local_us, _MICROSECONDS, "Handling the request on this broker."),
        family(
            "RemoteTimeMs",
            lambda kind: kind.remote_us,
            _MICROSECONDS,
            "Waiting for others: for replicas (acks=all), for records to fetch, for the members of a group.",
        ),
        family("ThrottleTimeMs", lambda kind: kind.throttle_us, _MICROSECONDS, "How long a quota has the client wait."),
        family(
            "ResponseQueueTimeMs",
            lambda kind: kind.response_queue_us,
            _MICROSECONDS,
            "From the complete response to the begin of sending it: earlier responses of the connection are sent first.",
        ),
        family(
            "ResponseSendTimeMs",
            lambda kind: kind.response_send_us,
            _MICROSECONDS,
            "Sending the response: until the kernel has a large one, until the transport has a small one.",
        ),
        family("RequestBytes", lambda kind: kind.request_bytes, 1.0, "The size of a request."),
        family("ResponseBytes", lambda kind: kind.response_bytes, 1.0, "The size of a response."),
        Family(
            "kafka.network",
            "RequestMetrics",
            "MessageConversionsTimeMs",
            Kind.HISTOGRAM,
            "Converting or compressing the records of a request anew, of Produce and Fetch; 0 for a request without.",
            lambda: _converted(observed, conversions, lambda one: one.us, _MICROSECONDS),
            ("request",),
        ),
        Family(
            "kafka.network",
            "RequestMetrics",
            "TemporaryMemoryBytes",
            Kind.HISTOGRAM,
            "The memory that this took.",
            lambda: _converted(observed, conversions, lambda one: one.temporary_bytes, 1.0),
            ("request",),
        ),
    ]


def _conversions(observed: Observed) -> dict[str, Conversions]:
    counters = observed.broker.replica_manager.host.topic_metrics
    return {"Produce": counters.converted_produces, FETCH: counters.converted_fetches}


def _converted(observed: Observed, windows: HistogramWindows, pick: Callable[[Conversions], Histogram], unit: float) -> Iterator[Series]:
    windows.advance(observed.broker.clock.monotonic_ms())
    conversions = _conversions(observed)
    for name, kinds in observed.kinds.by_name().items():
        if name in conversions:
            count, totals = merged([kind.total_us for kind in kinds])
            yield (name,), Distribution(count, _values(with_zeros(pick(conversions[name]).counts(), sum(totals)), unit))


def _requests(observed: Observed) -> Iterator[Series]:
    for name, kinds in observed.kinds.by_name().items():
        for version in range(len(kinds[0].versions)):
            count = sum(kind.versions[version] for kind in kinds)
            if count:
                yield (name, str(version)), count


def _errors(observed: Observed) -> Iterator[Series]:
    for name, kinds in observed.kinds.by_name().items():
        if name in (FETCH_CONSUMER, FETCH_FOLLOWER):
            continue  # as in Kafka: an error code counts once, for Fetch
        for code in sorted({code for kind in kinds for code in kind.errors}):
            yield (name, _NAMES[code]), sum(kind.errors.get(code, 0) for kind in kinds)


def _distributions(observed: Observed, windows: HistogramWindows, pick: _Pick, unit: float) -> Iterator[Series]:
    windows.advance(observed.broker.clock.monotonic_ms())
    for name, kinds in observed.kinds.by_name().items():
        count, totals = merged([kind.total_us for kind in kinds])
        _, counts = merged([pick(kind) for kind in kinds])
        yield (name,), Distribution(count, _values(with_zeros(counts, sum(totals)), unit))


def _values(counts: list[int], unit: float) -> tuple[float, ...]:
    return tuple(value / unit for value in quantiles(counts, QUANTILES))
