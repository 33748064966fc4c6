"""The metrics of replica fetchers. A single broker has none, because it follows no leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.rate import MovingRate
from barnabas.metrics.registry import Family, Kind, Series

if TYPE_CHECKING:
    from barnabas.broker.replication.log_dir_mover import LogDirMover
    from barnabas.broker.replication.replica_fetchers import ReplicaFetcher

_REPLICA: Final = "Replica"  # the clientId of Kafka's manager of replica fetchers
_MOVES: Final = "ReplicaAlterLogDirs"  # and that of its manager of copies between log directories


def fetcher_families(observed: Observed) -> list[Family]:
    def fetchers() -> list[tuple[int, int, ReplicaFetcher]]:
        cluster = observed.broker.cluster
        return [] if cluster is None else cluster.fetchers.running()

    def lags() -> Iterator[Series]:
        for leader_id, number, fetcher in fetchers():
            for partition in fetcher.state.partitions:
                lag = fetcher.state.lag(partition)
                if lag is not None:
                    yield (f"ReplicaFetcherThread-{number}-{leader_id}", partition.topic, str(partition.partition)), lag

    def max_lag() -> Iterator[Series]:
        yield (_REPLICA,), max((lag for _, lag in lags() if isinstance(lag, int)), default=0)

    def failed() -> Iterator[Series]:
        yield (_REPLICA,), sum(len(fetcher.state.failed) for _, _, fetcher in fetchers())

    def dead() -> Iterator[Series]:
        yield (_REPLICA,), sum(fetcher.task.done() for _, _, fetcher in fetchers())

    def of_leaders(pick: Callable[[ReplicaFetcher], int]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for leader_id, number, fetcher in fetchers():
                endpoint = fetcher.endpoint
                if endpoint is not None:
                    yield (f"ReplicaFetcherThread-{number}-{leader_id}", endpoint.host, str(endpoint.port)), pick(fetcher)

        return read

    rates: dict[ReplicaFetcher, MovingRate] = {}  # of the fetchers that ran at the last scrape

    def min_rate() -> Iterator[Series]:
        monotonic_ms = observed.broker.clock.monotonic_ms()
        running = {fetcher: rates.get(fetcher) or MovingRate() for _, _, fetcher in fetchers()}
        rates.clear()
        rates.update(running)
        yield (_REPLICA,), min((rate.read(fetcher.requests, monotonic_ms) for fetcher, rate in running.items()), default=0)

    manager, client_id = "ReplicaFetcherManager", ("clientId",)
    fetcher_labels = ("clientId", "brokerHost", "brokerPort")
    return [
        Family(
            "kafka.server",
            "FetcherLagMetrics",
            "ConsumerLag",
            Kind.GAUGE,
            "Records that a replica on this broker is behind its leader, by its last fetch.",
            lags,
            ("clientId", "topic", "partition"),
        ),
        Family(
            "kafka.server",
            "FetcherStats",
            "RequestsPerSec",
            Kind.METER,
            "Fetches of the fetchers on this broker, by leader.",
            of_leaders(lambda fetcher: fetcher.requests),
            fetcher_labels,
        ),
        Family(
            "kafka.server",
            "FetcherStats",
            "BytesPerSec",
            Kind.METER,
            "Bytes of records that they fetched.",
            of_leaders(lambda fetcher: fetcher.bytes_in),
            fetcher_labels,
        ),
        Family("kafka.server", manager, "MinFetchRate", Kind.GAUGE, "Fetches a second of the slowest fetcher.", min_rate, client_id),
        Family("kafka.server", manager, "MaxLag", Kind.GAUGE, "The largest of these.", max_lag, client_id),
        Family(
            "kafka.server",
            manager,
            "FailedPartitionsCount",
            Kind.GAUGE,
            "Replicas on this broker that are not fetched until the controller sends a new state, because appending failed.",
            failed,
            client_id,
        ),
        Family("kafka.server", manager, "DeadThreadCount", Kind.GAUGE, "Fetchers that have ended by an error.", dead, client_id),
        *_move_families(observed),
    ]


def _move_families(observed: Observed) -> list[Family]:
    """Of copies of replicas between the log directories of this broker."""
    rate = MovingRate()

    def mover() -> LogDirMover:
        return observed.broker.replica_manager.mover

    def gauge(name: str, value: Callable[[], float], meaning: str) -> Family:
        def read() -> Iterator[Series]:
            yield (_MOVES,), value()

        return Family("kafka.server", "ReplicaAlterLogDirsManager", name, Kind.GAUGE, meaning, read, ("clientId",))

    return [
        gauge("MaxLag", lambda: mover().lag_max(), "Records that the copy of a replica to another log directory is behind, at most."),
        gauge(
            "MinFetchRate",
            lambda: rate.read(mover().copies, observed.broker.clock.monotonic_ms()),
            "Slices a second that are copied between log directories.",
        ),
        gauge("FailedPartitionsCount", lambda: len(mover().failed), "Replicas whose move to another log directory was given up."),
        gauge("DeadThreadCount", lambda: observed.dead_movers(), "1 if the task that copies has ended by an error. It ends the broker."),
    ]
