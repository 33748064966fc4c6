"""The throttle of replication: which replicas, and when it is exceeded."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.replication_quota import UNBOUNDED, ReplicationQuota, throttled_partitions
from barnabas.broker.quotas.replication_quotas import ReplicationQuotas
from barnabas.topic_partition import TopicPartition

T0, T1 = TopicPartition("T", 0), TopicPartition("T", 1)


def quota(bound: int = 100) -> ReplicationQuota:
    quota = ReplicationQuota(11, 1000)
    quota.bound = bound
    return quota


def test_a_quota_is_in_use_while_a_topic_has_throttled_replicas() -> None:
    throttle = quota()
    assert not throttle.is_in_use
    throttle.throttle("T", {0})
    assert throttle.is_in_use
    throttle.throttle("T", ())
    assert not throttle.is_in_use


def test_only_the_partitions_that_a_topic_names_are_throttled() -> None:
    throttle = quota()
    throttle.throttle("T", {1})
    assert (throttle.is_throttled(T0), throttle.is_throttled(T1)) == (False, True)
    assert not throttle.is_throttled(TopicPartition("U", 1))


@pytest.mark.parametrize(
    ("replicas", "partitions"),
    [
        ("0:1,1:2,2:1", {0, 2}),
        (" 0:1 , 3:1", {0, 3}),
        ("", set()),
        ("0:2", set()),
        ("0-1", set()),  # in the metadata store by hand
    ],
)
def test_the_replicas_of_a_topic_are_pairs_of_partition_and_broker(replicas: str, partitions: set[int]) -> None:
    assert throttled_partitions(replicas, 1) == partitions


def test_a_star_throttles_every_replica() -> None:
    throttle = quota()
    throttle.throttle("T", throttled_partitions("*", 1))
    assert throttle.is_throttled(T0)
    assert throttle.is_throttled(TopicPartition("T", 1234))


def test_the_throttle_is_exceeded_until_the_measured_rate_has_fallen_to_the_bound() -> None:
    throttle = quota(100)
    throttle.record(100, 0)
    assert not throttle.is_exceeded(0)  # the rate is at the bound, not above it
    throttle.record(300, 500)
    assert throttle.is_exceeded(500)
    assert throttle.is_exceeded(3999)
    assert not throttle.is_exceeded(4000)


def test_a_throttle_of_nothing_lets_a_fetch_through_when_all_windows_are_empty() -> None:
    throttle = quota(0)
    assert not throttle.is_exceeded(0)
    throttle.record(1, 0)
    assert throttle.is_exceeded(10_999)
    assert not throttle.is_exceeded(11_000)


def test_without_a_rate_nothing_is_exceeded() -> None:
    throttle = quota(UNBOUNDED)
    throttle.record(1 << 40, 0)
    assert not throttle.is_exceeded(0)
    assert throttle.byte_rate(0) == 1 << 40


def test_the_rate_of_a_broker_stands_above_that_of_all_brokers() -> None:
    quotas = ReplicationQuotas(1, BrokerConfig({}).number)
    every = {"leader.replication.throttled.rate": "5", "replica.alter.log.dirs.io.max.bytes.per.second": "9"}
    quotas.rates_changed({"leader.replication.throttled.rate": "7", "follower.replication.throttled.rate": "8"}, every)
    assert (quotas.leader.bound, quotas.follower.bound, quotas.alter_log_dirs.bound) == (7, 8, 9)
    quotas.rates_changed({}, {})
    assert (quotas.leader.bound, quotas.follower.bound, quotas.alter_log_dirs.bound) == (UNBOUNDED, UNBOUNDED, UNBOUNDED)


def test_a_deleted_topic_is_no_longer_throttled() -> None:
    quotas = ReplicationQuotas(1, BrokerConfig({}).number)
    quotas.topic_changed("T", {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "*"})
    assert (quotas.leader.is_throttled(T0), quotas.leader.is_throttled(T1), quotas.follower.is_throttled(T1)) == (True, False, True)
    quotas.topic_changed("T", {})
    assert not quotas.leader.is_in_use
    assert not quotas.follower.is_in_use


def test_the_windows_are_those_of_the_settings() -> None:
    settings = {"replication.quota.window.num": "2", "alter.log.dirs.replication.quota.window.size.seconds": "5"}
    quotas = ReplicationQuotas(1, BrokerConfig(settings).number)
    for throttle in (quotas.leader, quotas.alter_log_dirs):
        throttle.record(1, 0)
    assert quotas.leader.byte_rate(1999) == pytest.approx(1 / 1.999)
    assert quotas.leader.byte_rate(2000) == 0
    assert quotas.alter_log_dirs.byte_rate(54_999) == pytest.approx(1 / 54.999)
