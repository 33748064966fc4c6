"""The metrics of the session with the metadata store, embedded or ZooKeeper, under the names that Kafka has for ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.broker.exposition.families.histogram_series import distribution
from barnabas.broker.exposition.families.windows import HistogramWindows
from barnabas.broker.exposition.observed import Observed
from barnabas.metadata.session_metrics import SessionMetrics
from barnabas.metrics.registry import Family, Kind, Series, single

_METERS: Final[tuple[tuple[str, Callable[[SessionMetrics], int], str], ...]] = (
    ("ZooKeeperSyncConnectsPerSec", lambda metrics: metrics.connects, "Connections to the metadata store."),
    ("ZooKeeperDisconnectsPerSec", lambda metrics: metrics.disconnects, "Connections to the metadata store that were lost."),
    ("ZooKeeperExpiresPerSec", lambda metrics: metrics.expirations, "Sessions with the metadata store that have expired."),
    ("ZooKeeperAuthFailuresPerSec", lambda metrics: metrics.auth_failures, "Sessions whose credentials ZooKeeper refused."),
    ("ZooKeeperSaslAuthenticationsPerSec", lambda metrics: metrics.sasl_authentications, "Connections that were authenticated by SASL."),
)


def session_families(observed: Observed) -> list[Family]:
    def metrics() -> SessionMetrics:
        return observed.broker.tree.metrics

    def counter(pick: Callable[[SessionMetrics], int]) -> Callable[[], float]:
        return lambda: pick(metrics())

    windows = HistogramWindows(lambda: metrics().request_us.rotate())

    def latencies() -> Iterator[Series]:
        windows.advance(observed.broker.clock.monotonic_ms())
        yield (), distribution(metrics().request_us)

    return [
        *(
            Family("kafka.server", "SessionExpireListener", name, Kind.METER, meaning, single(counter(pick)))
            for name, pick, meaning in _METERS
        ),
        Family(
            "kafka.server",
            "ZooKeeperClientMetrics",
            "ZooKeeperRequestLatencyMs",
            Kind.HISTOGRAM,
            "Requests to the metadata store, and how long their responses took.",
            latencies,
        ),
    ]
