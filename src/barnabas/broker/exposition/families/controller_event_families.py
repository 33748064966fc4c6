"""The metrics of the controller's work: the times of its events by its state, its queue, and its requests to the brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.broker.exposition.families.histogram_series import distribution
from barnabas.broker.exposition.families.windows import HistogramWindows
from barnabas.broker.exposition.observed import Observed
from barnabas.controller.controller_metrics import STATE_NAMES, ControllerMetrics, ControllerState
from barnabas.metrics.histogram import Histogram
from barnabas.metrics.registry import Family, Kind, Series, single

_STATS = "ControllerStats"
_EVENTS = "ControllerEventManager"
_CHANNELS = "ControllerChannelManager"


def controller_event_families(observed: Observed) -> list[Family]:
    def metrics() -> ControllerMetrics:
        return observed.broker.controller.metrics

    windows = HistogramWindows(lambda: metrics().rotate())

    def times(pick: Callable[[ControllerMetrics], Histogram]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            windows.advance(observed.broker.clock.monotonic_ms())
            yield (), distribution(pick(metrics()))

        return read

    def of_state(state: ControllerState) -> Callable[[ControllerMetrics], Histogram]:
        return lambda metrics: metrics.event_us[state]

    return [
        Family(
            "kafka.controller",
            "KafkaController",
            "ControllerState",
            Kind.GAUGE,
            "The number of the state of this broker's controller: 0 while it processes no event.",
            single(lambda: int(metrics().state)),
        ),
        Family(
            "kafka.controller",
            _EVENTS,
            "EventQueueSize",
            Kind.GAUGE,
            "Events that wait for their processing.",
            single(lambda: observed.broker.controller.queued_events),
        ),
        Family(
            "kafka.controller",
            _EVENTS,
            "EventQueueTimeMs",
            Kind.HISTOGRAM,
            "From putting an event into the queue to the begin of its processing.",
            times(lambda metrics: metrics.queue_us),
        ),
        *(
            Family(
                "kafka.controller",
                _STATS,
                f"{name}RateAndTimeMs",
                Kind.HISTOGRAM,
                f"Events that were processed in the state {state.name}, and how long each took.",
                times(of_state(state)),
            )
            for state, name in STATE_NAMES.items()
        ),
        *_channel_families(observed),
    ]


def _channel_families(observed: Observed) -> list[Family]:
    broker = ("broker_id",)

    def rotate() -> None:
        for queue in observed.channel_queues().values():
            queue.waited_us.rotate()

    windows = HistogramWindows(rotate)

    def sizes() -> Iterator[Series]:
        for broker_id, queue in observed.channel_queues().items():
            yield (str(broker_id),), len(queue)

    def times() -> Iterator[Series]:
        windows.advance(observed.broker.clock.monotonic_ms())
        for broker_id, queue in observed.channel_queues().items():
            yield (str(broker_id),), distribution(queue.waited_us)

    return [
        Family(
            "kafka.controller",
            _CHANNELS,
            "TotalQueueSize",
            Kind.GAUGE,
            "Control requests of the active controller that wait, to all brokers.",
            single(lambda: sum(map(len, observed.channel_queues().values()))),
        ),
        Family("kafka.controller", _CHANNELS, "QueueSize", Kind.GAUGE, "Those to each broker.", sizes, broker),
        Family(
            "kafka.controller",
            _CHANNELS,
            "RequestRateAndQueueTimeMs",
            Kind.HISTOGRAM,
            "Control requests to each broker, and how long they waited in its queue.",
            times,
            broker,
        ),
    ]
