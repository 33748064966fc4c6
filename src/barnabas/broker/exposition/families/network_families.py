"""The metrics of connections and of the event loop, which is both the network thread and the request handler of a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.rate import MovingRate
from barnabas.metrics.registry import Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.broker.scheduling.loop_lag import LoopLag
    from barnabas.network.receive_memory import ReceiveMemory
    from barnabas.network.server import SocketServer

PROCESSOR: Final = "0"  # there is one event loop
# The names of Kafka's socket-server-metrics, the attributes of ListenerMetrics, and the meanings.
_OF_LISTENERS: Final = (
    ("connection-count", "connections", Kind.GAUGE, "Open connections."),
    ("connection-creation-total", "connections_accepted", Kind.METER, "Connections that were accepted."),
    ("connection-close-total", "connections_closed", Kind.METER, "Connections that have ended."),
    ("request-total", "requests", Kind.METER, "Requests that were received."),
    ("response-total", "responses", Kind.METER, "Responses that were sent."),
    ("incoming-byte-total", "bytes_in", Kind.METER, "Bytes that were received."),
    ("outgoing-byte-total", "bytes_out", Kind.METER, "Bytes that were sent."),
)
# Those of authentication, the attributes of SaslListener, and the meanings.
_OF_SASL: Final = (
    ("successful-authentication-total", "successful", "Connections that were authenticated by SASL."),
    ("failed-authentication-total", "failed", "Connections whose authentication by SASL has failed."),
    ("successful-reauthentication-total", "renewed", "Authentications of a connection whose session had been authenticated before."),
    ("failed-reauthentication-total", "renewals_failed", "Those that have failed."),
    ("expired-connections-killed-count", "expired", "Connections that were closed because their session had expired."),
)


def network_families(observed: Observed) -> list[Family]:
    idle = _IdleShare(observed)
    lag = "barnabas_event_loop_lag"
    return [
        *(_of_listeners(observed, *row) for row in _OF_LISTENERS),
        *(_of_sasl(observed, *row) for row in _OF_SASL),
        Family(
            "kafka.network",
            "SocketServer",
            "ExpiredConnectionsKilledCount",
            Kind.GAUGE,
            "Connections that were closed because their session had expired, of all listeners.",
            single(lambda: sum(listener.expired for listener in observed.sasl.values())),
        ),
        Family(
            "kafka.network",
            "SocketServer",
            "MemoryPoolAvailable",
            Kind.GAUGE,
            "Bytes that large requests may still take while they arrive, of barnabas.requests.receiving.max.bytes.",
            single(lambda: 0 if observed.sockets is None else max(0, _memory(observed.sockets).limit - _memory(observed.sockets).used)),
        ),
        Family(
            "kafka.network",
            "SocketServer",
            "MemoryPoolUsed",
            Kind.GAUGE,
            "Bytes that large requests take while they arrive.",
            single(lambda: 0 if observed.sockets is None else _memory(observed.sockets).used),
        ),
        Family(
            "kafka.network",
            "Acceptor",
            "AcceptorBlockedPercent",
            Kind.GAUGE,
            "The share of the last minute in which a listener accepted no connections because of a limit, from 0 to 1.",
            _blocked_shares(observed),
            ("listener",),
        ),
        Family(
            "kafka.network",
            "Processor",
            "IdlePercent",
            Kind.GAUGE,
            "The share of the last minute in which the event loop handled no requests, from 0 to 1.",
            lambda: iter((((PROCESSOR,), idle.read()),)),
            ("networkProcessor",),
        ),
        Family(
            "kafka.network",
            "RequestChannel",
            "ResponseQueueSize",
            Kind.GAUGE,
            "Responses that wait for earlier ones of their connections.",
            lambda: iter((((PROCESSOR,), 0 if observed.sockets is None else observed.sockets.waiting_responses),)),
            ("processor",),
        ),
        Family(
            "kafka.network",
            "SocketServer",
            "NetworkProcessorAvgIdlePercent",
            Kind.GAUGE,
            "The share of the last minute in which the event loop handled no requests, from 0 to 1.",
            single(idle.read),
        ),
        Family(
            "kafka.server",
            "KafkaRequestHandlerPool",
            "RequestHandlerAvgIdlePercent",
            Kind.GAUGE,
            "The same: the event loop is the pool of request handlers, too.",
            single(idle.read),
        ),
        Family(
            "kafka.network",
            "RequestChannel",
            "RequestQueueSize",
            Kind.GAUGE,
            "Requests that this broker works on, of at most queued.max.requests.",
            single(lambda: 0 if observed.sockets is None else observed.sockets.data_plane.requests),
        ),
        Family(
            "kafka.network",
            "RequestChannel",
            "ControlPlaneRequestQueueSize",
            Kind.GAUGE,
            "The same, of the listener control.plane.listener.name.",
            single(lambda: 0 if observed.sockets is None else observed.sockets.control_plane.requests),
        ),
        Family("", "", f"{lag}_seconds_total", Kind.METER, "The sum of delays of a timer.", single(lambda: _lag(observed).total_ms / 1000)),
        Family("", "", f"{lag}_ticks_total", Kind.METER, "The calls of that timer, ten a second.", single(lambda: _lag(observed).ticks)),
        Family(
            "", "", f"{lag}_max_seconds", Kind.GAUGE, "The longest delay since the start.", single(lambda: _lag(observed).max_ms / 1000)
        ),
        Family("", "", f"{lag}_over_budget_total", Kind.METER, "Delays above 50 ms.", single(lambda: _lag(observed).over_budget)),
        Family(
            "",
            "",
            "barnabas_long_requests_total",
            Kind.METER,
            "Requests that held the event loop for more than 50 ms in one call.",
            single(lambda: _lag(observed).long_requests),
        ),
    ]


def _lag(observed: Observed) -> LoopLag:
    return observed.broker.loop_lag


def _of_listeners(observed: Observed, name: str, attribute: str, kind: Kind, meaning: str) -> Family:
    def read() -> Iterator[Series]:
        if observed.sockets is not None:
            for listener in observed.sockets.listeners.values():
                yield (listener.name, PROCESSOR), getattr(listener.context.metrics, attribute)

    return Family("kafka.server", "socket-server-metrics", name, kind, f"{meaning} By listener.", read, ("listener", "networkProcessor"))


def _of_sasl(observed: Observed, name: str, attribute: str, meaning: str) -> Family:
    """Listeners without SASL count nothing."""

    def read() -> Iterator[Series]:
        if observed.sockets is not None:
            for listener in observed.sockets.listeners.values():
                sasl = observed.sasl.get(listener.name)
                yield (listener.name, PROCESSOR), 0 if sasl is None else getattr(sasl, attribute)

    labels = ("listener", "networkProcessor")
    return Family("kafka.server", "socket-server-metrics", name, Kind.METER, f"{meaning} By listener.", read, labels)


def _memory(sockets: SocketServer) -> ReceiveMemory:
    return sockets.receive_memory


def _blocked_shares(observed: Observed) -> Callable[[], Iterator[Series]]:
    rates: dict[str, MovingRate] = {}  # by listener

    def read() -> Iterator[Series]:
        if observed.sockets is not None:
            monotonic_ms = observed.broker.clock.monotonic_ms()
            for listener in observed.sockets.listeners.values():
                rate = rates.setdefault(listener.name, MovingRate())
                yield (listener.name,), min(1.0, max(0.0, rate.read(listener.blocked_ns / 1_000_000_000, monotonic_ms)))

    return read


class _IdleShare:
    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._busy = MovingRate()

    def read(self) -> float:
        sockets = self._observed.sockets
        if sockets is None:
            return 1.0
        busy_ns = sum(listener.context.metrics.busy_ns for listener in sockets.listeners.values())
        busy = self._busy.read(busy_ns / 1_000_000_000, self._observed.broker.clock.monotonic_ms())
        return min(1.0, max(0.0, 1.0 - busy))
