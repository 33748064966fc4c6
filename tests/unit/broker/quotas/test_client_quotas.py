"""The quotas of clients as plain objects: precedence, throttle times, bounds. Numbers are those of Kafka's own tests and formulas."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.client_quota import INACTIVE_MS
from barnabas.broker.quotas.client_quota_callback import (
    DEFAULT,
    ClientQuotaCallback,
    ClientQuotaEntity,
    ClientQuotaType,
    ClusterMetadata,
    DefaultName,
)
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal

ALICE = KafkaPrincipal("User", "alice")
BOB = KafkaPrincipal("User", "bob")

# Kafka's order of precedence, and who shares a quota with alice's client "reports": (user, client id), None: any.
ENTITIES: list[tuple[str | DefaultName | None, str | DefaultName | None]] = [
    ("alice", "reports"),
    ("alice", DEFAULT),
    ("alice", None),
    (DEFAULT, "reports"),
    (DEFAULT, DEFAULT),
    (DEFAULT, None),
    (None, "reports"),
    (None, DEFAULT),
]
SHARES_WITH_OTHER_CLIENTS = {2, 5}
SHARES_WITH_OTHER_USERS = {6, 7}


def quotas_of(settings: Mapping[str, str] | None = None, callback: ClientQuotaCallback | None = None) -> ClientQuotas:
    return ClientQuotas(BrokerConfig(dict(settings or {})).number, callback)


def bound_of(quotas: ClientQuotas, principal: KafkaPrincipal, client_id: str | None) -> float | None:
    sensor = quotas.produce.sensor(principal, client_id, 0)
    return None if sensor is None else sensor.bound


@pytest.mark.parametrize("present", [set(combination) for size in (1, 2, 8) for combination in combinations(range(8), size)], ids=str)
def test_the_most_specific_quota_decides(present: set[int]) -> None:
    quotas = quotas_of()
    for index in present:
        quotas.quota_changed(*ENTITIES[index], {"producer_byte_rate": 1000.0 + index})
    first = min(present)
    assert bound_of(quotas, ALICE, "reports") == 1000 + first
    sensor = quotas.produce.sensor(ALICE, "reports", 0)
    other_client = quotas.produce.sensor(ALICE, "loads", 0)
    other_user = quotas.produce.sensor(BOB, "reports", 0)
    assert (other_client is sensor) == (first in SHARES_WITH_OTHER_CLIENTS)
    assert (other_user is sensor) == (first in SHARES_WITH_OTHER_USERS)


def test_removing_a_quota_uncovers_the_next_in_order() -> None:
    quotas = quotas_of()
    for index, entity in enumerate(ENTITIES):
        quotas.quota_changed(*entity, {"producer_byte_rate": 1000.0 + index})
    for index, entity in enumerate(ENTITIES):
        assert bound_of(quotas, ALICE, "reports") == 1000 + index
        quotas.quota_changed(*entity, {})
    assert bound_of(quotas, ALICE, "reports") is None and not quotas.produce.is_in_use


def test_quotas_of_a_client_id_are_not_for_clients_without_one() -> None:
    quotas = quotas_of()
    quotas.quota_changed(None, DEFAULT, {"producer_byte_rate": 1.0})
    quotas.quota_changed(DEFAULT, DEFAULT, {"producer_byte_rate": 2.0})
    assert [bound_of(quotas, ALICE, client_id) for client_id in (None, "")] == [None, None]
    quotas.quota_changed("alice", None, {"producer_byte_rate": 3.0})
    assert [bound_of(quotas, ALICE, client_id) for client_id in (None, "")] == [3, 3]


def test_each_name_is_the_quota_of_one_type() -> None:
    quotas = quotas_of()
    values = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 3.0, "controller_mutation_rate": 4.0}
    quotas.quota_changed("alice", None, values | {"connection_creation_rate": 5.0})
    of_types = (quotas.produce, quotas.fetch, quotas.request, quotas.controller_mutation)
    sensors = [quota.sensor(ALICE, "c", 0) for quota in of_types]
    assert [None if sensor is None else sensor.bound for sensor in sensors] == [1, 2, 3, 4]
    quotas.quota_changed("alice", None, {"consumer_byte_rate": 7.0})
    assert [quota.is_in_use for quota in of_types] == [False, True, False, False]
    assert quotas.fetch.max_in_windows(ALICE, "c", 0) == 70


def test_a_user_may_be_named_like_the_default() -> None:
    quotas = quotas_of()
    quotas.quota_changed("<default>", None, {"producer_byte_rate": 1.0})
    assert bound_of(quotas, ALICE, "c") is None
    assert bound_of(quotas, KafkaPrincipal("User", "<default>"), "c") == 1


def test_a_spike_is_throttled_as_in_kafka() -> None:
    """400 * 10 + 2300 bytes in 10.5 s are 600 a second: (600 - 500) / 500 * 10.5 s = 2100 ms."""
    quotas = quotas_of()
    quotas.quota_changed("alice", "c", {"producer_byte_rate": 500.0})
    now_ms = 5_000_000
    for _ in range(10):
        assert quotas.produce.record(ALICE, "c", 400, now_ms) == 0
        now_ms += 1000
    now_ms += 500
    assert quotas.produce.record(ALICE, "c", 2300, now_ms) == 2100
    now_ms += 2100
    for _ in range(10):
        quotas.produce.record(ALICE, "c", 400, now_ms)
        now_ms += 1000
    assert quotas.produce.record(ALICE, "c", 0, now_ms) == 0, "the sample of the spike counts no more"


def test_request_time_is_throttled_as_in_kafka_for_one_window_at_most() -> None:
    """1 % are 10 ms a second. 4 * 10 + 67.1 ms in 10.5 s are 10.2 ms a second: (10.2 - 10) / 10 * 10.5 s = 210 ms."""
    quotas = quotas_of()
    quotas.quota_changed("alice", "c", {"request_percentage": 1.0})
    now_ms = 5_000_000
    for _ in range(10):
        assert quotas.request.record(ALICE, "c", 0.4, now_ms) == 0
        now_ms += 1000
    now_ms += 500
    assert quotas.request.record(ALICE, "c", 6.71, now_ms) == 210
    assert quotas.request.record(ALICE, "c", 50, now_ms) == 1000


@pytest.mark.parametrize(
    ("name", "bound", "cost", "took_ms"),
    [
        ("producer_byte_rate", 2_000_000.0, 16_000.0, 1),
        ("producer_byte_rate", 100_000.0, 90_000.0, 2),
        ("consumer_byte_rate", 500_000.0, 50_000.0, 5),
        ("request_percentage", 10.0, 0.5, 5),  # each request holds the event loop for 5 ms, half a percent of a second
        ("request_percentage", 1.0, 0.1, 1),
        ("request_percentage", 50.0, 2.0, 20),
    ],
)
def test_a_client_that_waits_as_it_has_to_is_held_to_the_rate(name: str, bound: float, cost: float, took_ms: int) -> None:
    """It sends one request after the other, as fast as it may. What it had saved is used up in the first windows. As in Kafka the windows
    let it send in bursts: over a few minutes its rate is the bound."""
    quotas = quotas_of()
    quotas.quota_changed("alice", None, {name: bound})
    quota = {"producer_byte_rate": quotas.produce, "consumer_byte_rate": quotas.fetch, "request_percentage": quotas.request}[name]
    now_ms, used = 0, [0.0] * 200  # by second
    while now_ms < 200_000:
        used[now_ms // 1000] += cost
        now_ms += took_ms + quota.record(ALICE, "c", cost, now_ms)
    assert 0.95 * bound <= sum(used[20:]) / 180 <= bound


def test_the_windows_are_settings() -> None:
    """Over 2 windows of 4 s: 1000 bytes in the first second are a rate of 1000 / 4."""
    quotas = quotas_of({"quota.window.num": "2", "quota.window.size.seconds": "4"})
    quotas.quota_changed("alice", None, {"producer_byte_rate": 100.0, "request_percentage": 1.0})
    assert quotas.produce.record(ALICE, "c", 1000, 0) == (250 - 100) / 100 * 4000
    assert quotas.produce.max_in_windows(ALICE, "c", 0) == 400
    assert quotas.request.record(ALICE, "c", 1e6, 0) == 4000


def test_the_largest_value_within_the_windows_is_that_of_all_but_one() -> None:
    quotas = quotas_of()
    assert quotas.fetch.max_in_windows(ALICE, "c", 0) is None
    quotas.quota_changed("alice", None, {"consumer_byte_rate": 1000.0})
    assert quotas.fetch.max_in_windows(ALICE, "c", 0) == 10_000
    assert quotas.fetch.record(ALICE, "c", 10_000, 0) == 0
    assert quotas.fetch.record(ALICE, "c", 1, 0) > 0


def test_a_changed_bound_counts_for_what_was_used_before() -> None:
    quotas = quotas_of()
    quotas.quota_changed("alice", None, {"producer_byte_rate": 1000.0})
    assert quotas.produce.record(ALICE, "c", 10_000, 0) == 0
    quotas.quota_changed("alice", None, {"producer_byte_rate": 500.0})
    assert quotas.produce.record(ALICE, "c", 0, 0) == 10_000
    quotas.quota_changed("alice", None, {"producer_byte_rate": 2000.0})
    assert quotas.produce.record(ALICE, "c", 0, 0) == 0


def test_a_bound_of_zero_and_a_tiny_one_have_a_throttle_time_that_fits() -> None:
    quotas = quotas_of()
    for bound in (0.0, 1e-9):
        quotas.quota_changed("alice", None, {"producer_byte_rate": bound})
        assert quotas.produce.record(ALICE, "c", 1, 0) == 2**31 - 1


def test_made_up_client_ids_are_bounded() -> None:
    quotas = quotas_of({"barnabas.quota.sensors.max": "100"})
    quotas.quota_changed(None, DEFAULT, {"producer_byte_rate": 1000.0})
    for number in range(1000):
        quotas.produce.record(ANONYMOUS, f"client-{number}", 1, number)
    assert len(quotas.produce) == 100
    for number in range(10):
        quotas.produce.record(ANONYMOUS, f"{number}" * 2560, 1, 1000)
    assert len(quotas.produce) == 9, "a client id of 2560 characters takes the place of 11"


def test_the_client_unused_for_longest_is_dropped() -> None:
    quotas = quotas_of({"barnabas.quota.sensors.max": "2"})
    quotas.quota_changed(None, DEFAULT, {"producer_byte_rate": 1000.0})
    kept = quotas.produce.sensor(ANONYMOUS, "a", 0)
    quotas.produce.sensor(ANONYMOUS, "b", 0)
    quotas.produce.sensor(ANONYMOUS, "a", 1)
    quotas.produce.sensor(ANONYMOUS, "c", 2)
    assert quotas.produce.sensor(ANONYMOUS, "a", 3) is kept


def test_clients_expire_after_an_hour_of_inactivity() -> None:
    quotas = quotas_of()
    quotas.quota_changed(None, DEFAULT, {"producer_byte_rate": 1000.0})
    quotas.produce.sensor(ANONYMOUS, "a", 0)
    quotas.produce.sensor(ANONYMOUS, "b", INACTIVE_MS - 1)
    assert len(quotas.produce) == 2
    quotas.produce.sensor(ANONYMOUS, "c", INACTIVE_MS)
    assert len(quotas.produce) == 2


def test_nothing_is_kept_when_the_last_quota_is_removed() -> None:
    quotas = quotas_of()
    quotas.quota_changed(None, DEFAULT, {"producer_byte_rate": 1000.0})
    quotas.produce.sensor(ANONYMOUS, "a", 0)
    quotas.quota_changed(None, DEFAULT, {})
    assert len(quotas.produce) == 0 and quotas.produce.record(ANONYMOUS, "a", 10**9, 0) == 0


class ByTopic(ClientQuotaCallback):
    """Users share quotas by their first letter; a number in an external file, so to say, is the bound."""

    def __init__(self) -> None:
        self.limit: float | None = 100.0
        self.updates: list[tuple[ClientQuotaType, str, float | None]] = []
        self.has_changed = False
        self.clusters: list[ClusterMetadata] = []
        self.is_closed = False

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: KafkaPrincipal, client_id: str) -> Mapping[str, str]:
        return {"letter": principal.name[:1], "type": quota_type.value}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        assert metric_tags["type"] == quota_type.value
        return self.limit if metric_tags["letter"] == "a" else None

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        self.updates.append((quota_type, str(entity), value))

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        self.updates.append((quota_type, str(entity), None))

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        changed, self.has_changed = self.has_changed, False
        return changed

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        self.clusters.append(cluster)
        return True

    def close(self) -> None:
        self.is_closed = True


def test_a_callback_decides_instead() -> None:
    callback = ByTopic()
    quotas = quotas_of(callback=callback)
    assert quotas.produce.is_in_use
    anna = KafkaPrincipal("User", "anna")
    assert quotas.produce.sensor(ALICE, "c", 0) is quotas.produce.sensor(anna, "d", 0) is not None
    assert quotas.produce.sensor(BOB, "c", 0) is None
    assert quotas.produce.record(ALICE, "c", 1500, 0) == 5000


def test_a_callback_receives_what_is_configured() -> None:
    callback = ByTopic()
    quotas = quotas_of(callback=callback)
    quotas.quota_changed("alice", DEFAULT, {"consumer_byte_rate": 5.0})
    assert callback.updates == [
        (ClientQuotaType.PRODUCE, "user alice default client-id", None),
        (ClientQuotaType.FETCH, "user alice default client-id", 5.0),
        (ClientQuotaType.REQUEST, "user alice default client-id", None),
        (ClientQuotaType.CONTROLLER_MUTATION, "user alice default client-id", None),
    ]


def test_a_callback_may_change_its_limits() -> None:
    callback = ByTopic()
    quotas = quotas_of(callback=callback)
    assert bound_of(quotas, ALICE, "c") == 100
    callback.limit = 200.0
    assert bound_of(quotas, ALICE, "c") == 100
    callback.has_changed = True
    assert bound_of(quotas, ALICE, "c") == 200
    callback.limit = None
    quotas.cluster_changed(ClusterMetadata("id", [0], []))
    assert bound_of(quotas, ALICE, "c") is None and len(callback.clusters) == 1
    quotas.close()
    assert callback.is_closed
