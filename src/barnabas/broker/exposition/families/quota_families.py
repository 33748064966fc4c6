"""The metrics of quotas: the rates and throttle times of clients with a quota, and the rates of throttled replication.

Kafka has one MBean for each client with a quota. A default quota of client ids makes one for every id that a client thinks of, so that only
the SENSORS_MAX clients that were active last are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.observed import Observed
from barnabas.broker.quotas.mutation_quota import BucketSensor
from barnabas.broker.quotas.rate_quota import RateQuota, RateSensor
from barnabas.metrics.registry import Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.broker.quotas.replication_quota import ReplicationQuota
    from barnabas.broker.quotas.replication_quotas import ReplicationQuotas

SENSORS_MAX: Final = 1000  # of each quota
_CLIENT: Final = ("user", "client_id")

# Kafka's type, the quota, Kafka's name of the rate, and its meaning.
_QUOTAS: Final[tuple[tuple[str, Callable[[ClientQuotas], RateQuota], str, str], ...]] = (
    ("Produce", lambda quotas: quotas.produce, "byte-rate", "Bytes a second that a client with a quota produces."),
    ("Fetch", lambda quotas: quotas.fetch, "byte-rate", "Bytes a second that a client with a quota fetches."),
    ("Request", lambda quotas: quotas.request, "request-time", "Percent of the time of the event loop that a client with a quota uses."),
)
_REPLICATION: Final[tuple[tuple[str, Callable[[ReplicationQuotas], ReplicationQuota], str], ...]] = (
    ("LeaderReplication", lambda quotas: quotas.leader, "Bytes a second that throttled replicas fetch from this leader."),
    ("FollowerReplication", lambda quotas: quotas.follower, "Bytes a second that throttled replicas on this broker fetch."),
    ("AlterLogDirsReplication", lambda quotas: quotas.alter_log_dirs, "Bytes a second that are copied between log directories."),
)


def quota_families(observed: Observed) -> list[Family]:
    def monotonic_ms() -> int:
        return observed.broker.clock.monotonic_ms()

    def clients(pick: Callable[[ClientQuotas], RateQuota], value: Callable[[RateSensor], float]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for key, sensor in pick(observed.broker.quotas).recent(SENSORS_MAX):
                if sensor.bound is not None:
                    yield _labels(key), value(sensor)

        return read

    def mutations(value: Callable[[BucketSensor], float]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for key, sensor in observed.broker.quotas.controller_mutation.recent(SENSORS_MAX):
                if sensor.bound is not None:
                    yield _labels(key), value(sensor)

        return read

    def replication(pick: Callable[[ReplicationQuotas], ReplicationQuota]) -> Callable[[], float]:
        return lambda: pick(observed.broker.replica_manager.quotas).byte_rate(monotonic_ms())

    gauge = Kind.GAUGE
    return [
        *(
            Family("kafka.server", of, name, gauge, meaning, clients(pick, lambda sensor: sensor.rate.rate(monotonic_ms())), _CLIENT)
            for of, pick, name, meaning in _QUOTAS
        ),
        *(
            Family(
                "kafka.server",
                of,
                "throttle-time",
                gauge,
                "Milliseconds that a client with a quota had to wait last; 0 after the windows of the quota.",
                clients(pick, lambda sensor: sensor.throttle_time_ms(monotonic_ms())),
                _CLIENT,
            )
            for of, pick, _, _ in _QUOTAS
        ),
        Family(
            "kafka.server",
            "ControllerMutation",
            "throttle-time",
            gauge,
            "Milliseconds that a client with controller_mutation_rate had to wait last; 0 after the windows of the quota.",
            mutations(lambda sensor: sensor.throttle_time_ms(monotonic_ms())),
            _CLIENT,
        ),
        Family(
            "kafka.server",
            "ControllerMutation",
            "tokens",
            gauge,
            "Partitions that a client with controller_mutation_rate can create or delete at once; below 0 the next one is refused.",
            mutations(lambda sensor: sensor.bucket.tokens(monotonic_ms())),
            _CLIENT,
        ),
        Family(
            "kafka.server",
            "Request",
            "exempt-request-time",
            gauge,
            "Percent of the time of the event loop that requests without a quota use: those of brokers.",
            single(lambda: observed.broker.quotas.request.exempt.rate(monotonic_ms())),
        ),
        *(Family("kafka.server", of, "byte-rate", gauge, meaning, single(replication(pick))) for of, pick, meaning in _REPLICATION),
    ]


def _labels(key: tuple[str, ...]) -> tuple[str, str]:
    """User and client id of the key of a sensor; the tags of a ClientQuotaCallback as one text."""
    return (key[0], key[1]) if len(key) == len(_CLIENT) else (" ".join(key), "")
