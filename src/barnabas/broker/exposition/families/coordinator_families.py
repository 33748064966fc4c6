"""The metrics of the group coordinator, the transaction coordinator and fetch sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from barnabas.broker.exposition.families.histogram_series import distribution
from barnabas.broker.exposition.families.windows import HistogramWindows
from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.registry import Family, Kind, Series, single

_GROUPS: Final = "GroupMetadataManager"
_MODERN: Final = "group-coordinator-metrics"
_TRANSACTIONS: Final = "transaction-coordinator-metrics"
_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")

# Kafka's MBean up to the name, the name, its label, the kind, and the meaning. The coordinators compute the values under these names.
_ROWS: Final = (
    ("kafka.coordinator.group", _GROUPS, "NumGroups", "", Kind.GAUGE, "Classic groups that this broker coordinates."),
    ("kafka.coordinator.group", _GROUPS, "NumOffsets", "", Kind.GAUGE, "Committed offsets of the groups that this broker coordinates."),
    *(
        ("kafka.coordinator.group", _GROUPS, f"NumGroups{state}", "", Kind.GAUGE, f"Classic groups in the state {state}.")
        for state in _STATES
    ),
    ("kafka.server", _MODERN, "group-count", "protocol", Kind.GAUGE, "Groups by their protocol, classic or consumer."),
    ("kafka.server", _MODERN, "consumer-group-count", "state", Kind.GAUGE, "Groups of the consumer protocol by their state."),
    ("kafka.server", _MODERN, "num-partitions", "state", Kind.GAUGE, "Partitions of __consumer_offsets here, by state."),
    ("kafka.server", _MODERN, "offset-commit-count", "", Kind.METER, "Offsets that were committed."),
    ("kafka.server", _MODERN, "offset-expiration-count", "", Kind.METER, "Offsets that expired."),
    ("kafka.server", _MODERN, "offset-deletion-count", "", Kind.METER, "Offsets that were deleted by a request."),
    ("kafka.server", _MODERN, "group-completed-rebalance-count", "", Kind.METER, "Rebalances of classic groups that were completed."),
    ("kafka.server", _MODERN, "consumer-group-rebalance-count", "", Kind.METER, "Rebalances of groups of the consumer protocol."),
    ("kafka.server", _MODERN, "partition-load-time-max", "", Kind.GAUGE, "The longest time to load a partition, in milliseconds."),
    ("kafka.server", _MODERN, "partition-load-time-avg", "", Kind.GAUGE, "The average time to load a partition, in milliseconds."),
    ("kafka.server", _TRANSACTIONS, "partition-load-time-max", "", Kind.GAUGE, "The same of __transaction_state, in milliseconds."),
    ("kafka.server", _TRANSACTIONS, "partition-load-time-avg", "", Kind.GAUGE, "The same on average."),
    (
        "kafka.server",
        "AddPartitionsToTxnManager",
        "VerificationFailureRate",
        "",
        Kind.METER,
        "Partitions of transactional requests that the transaction coordinator did not verify.",
    ),
    (
        "kafka.coordinator.transaction",
        "TransactionMarkerChannelManager",
        "UnknownDestinationQueueSize",
        "",
        Kind.GAUGE,
        "Transaction markers that are not written yet.",
    ),
    ("kafka.server", "ReplicaManager", "ProducerIdCount", "", Kind.GAUGE, "Producer ids that the partitions of this broker remember."),
    (
        "kafka.server",
        "ReplicaManager",
        "PartitionsWithLateTransactionsCount",
        "",
        Kind.GAUGE,
        "Partitions with a transaction that is open for longer than transaction.max.timeout.ms and five minutes.",
    ),
)


def coordinator_families(observed: Observed) -> list[Family]:
    values = _Values(observed)
    windows = HistogramWindows(lambda: observed.broker.verification.times_us.rotate())

    def verifications() -> Iterator[Series]:
        windows.advance(observed.broker.clock.monotonic_ms())
        yield (), distribution(observed.broker.verification.times_us)

    sessions = "FetchSessionCache"
    return [
        *(
            Family(group, of, name, kind, meaning, _reader(values, f"{group}:type={of},name={name}", label), (label,) if label else ())
            for group, of, name, label, kind, meaning in _ROWS
        ),
        Family(
            "kafka.server",
            "AddPartitionsToTxnManager",
            "VerificationTimeMs",
            Kind.HISTOGRAM,
            "Questions to a transaction coordinator whether partitions belong to a transaction, and how long the answers took.",
            verifications,
        ),
        Family(
            "kafka.server",
            sessions,
            "NumIncrementalFetchSessions",
            Kind.GAUGE,
            "Fetch sessions of consumers and followers.",
            single(lambda: len(observed.broker.fetch_sessions.cache)),
        ),
        Family(
            "kafka.server",
            sessions,
            "NumIncrementalFetchPartitionsCached",
            Kind.GAUGE,
            "Partitions in all fetch sessions.",
            single(lambda: observed.broker.fetch_sessions.cache.partition_count),
        ),
        Family(
            "kafka.server",
            sessions,
            "IncrementalFetchSessionEvictionsPerSec",
            Kind.METER,
            "Fetch sessions that had to make room for others.",
            single(lambda: observed.broker.fetch_sessions.cache.eviction_count),
        ),
    ]


class _Values:
    """The values of both coordinators, computed once for all families that are read within VALID_MS: they count all groups."""

    VALID_MS: Final = 500

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._read_ms: int | None = None
        self._values: Mapping[str, int] = {}

    def read(self) -> Mapping[str, int]:
        monotonic_ms = self._observed.broker.clock.monotonic_ms()
        if self._read_ms is None or monotonic_ms - self._read_ms >= self.VALID_MS:
            self._values = self._observed.coordinator_metrics()
            self._read_ms = monotonic_ms
        return self._values


def _reader(values: _Values, name: str, label: str) -> Callable[[], Iterator[Series]]:
    def read() -> Iterator[Series]:
        if not label:
            yield (), values.read()[name]
            return
        prefix = f"{name},{label}="
        for key, value in values.read().items():
            if key.startswith(prefix):
                yield (key.removeprefix(prefix),), value

    return read
