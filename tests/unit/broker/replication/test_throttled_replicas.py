"""Replication throttles on both sides: a replica that is not in sync waits, every other one is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.replication.follower_fetch import FollowerFetch
from barnabas.broker.replication.replica_fetchers import ReplicaFetchers
from barnabas.broker.replication.replica_logs import LocalReplicaLogs
from barnabas.protocol.messages.fetch_response import PartitionData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import BROKER, NOW, TOPIC_ID, TP, Fetched, Replicas

FOLLOWER = 2
OTHER = TopicPartition("orders", 1)
BACKOFF_MS = 1000
RATE = 1000
THROTTLED = {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "0:1"}
RATES = {"leader.replication.throttled.rate": str(RATE), "follower.replication.throttled.rate": str(RATE)}


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


@pytest.fixture
def leader(replicas: Replicas) -> Replicas:
    """It leads a partition with records that the follower, which is not in sync, does not have."""
    replicas.lead(replicas=(BROKER, FOLLOWER), isr=(BROKER,))
    replicas.append(10, acks=1)
    return replicas


def throttle(replicas: Replicas) -> None:
    replicas.manager.quotas.topic_changed("orders", THROTTLED)
    replicas.manager.quotas.rates_changed(RATES, {})


def exceed(replicas: Replicas) -> None:
    for quota in (replicas.manager.quotas.leader, replicas.manager.quotas.follower):
        quota.record(2 * RATE, replicas.clock.monotonic_ms())


def follow(replicas: Replicas, offset: int = 0, max_wait_ms: int = 500) -> Fetched:
    """As a follower fetches: it waits for records."""
    wanted = {"log_start_offset": 0}
    return replicas.fetch(
        offset, wanted=wanted, replica_id=FOLLOWER, isolation=FetchIsolation.LOG_END, max_wait_ms=max_wait_ms, min_bytes=1
    )


# -- the leader's side


def test_a_throttled_follower_gets_records_while_the_rate_allows_it(leader: Replicas) -> None:
    throttle(leader)
    assert follow(leader).result.size > 0


def test_a_throttled_follower_waits_without_records_while_the_rate_is_exceeded(leader: Replicas) -> None:
    throttle(leader)
    exceed(leader)
    fetched = follow(leader)
    assert not fetched.is_done
    leader.pass_time(500)
    assert (fetched.result.error, fetched.result.size) == (0, 0)
    assert fetched.result.high_watermark == 10


def test_a_throttled_follower_is_served_again_when_the_rate_has_fallen(leader: Replicas) -> None:
    throttle(leader)
    exceed(leader)
    leader.pass_time(2000)
    assert follow(leader).result.size > 0


def test_a_follower_that_is_in_sync_never_waits(replicas: Replicas) -> None:
    replicas.lead(replicas=(BROKER, FOLLOWER), isr=(BROKER, FOLLOWER))
    replicas.append(10, acks=1)
    throttle(replicas)
    exceed(replicas)
    assert follow(replicas).result.size > 0


def test_consumers_are_not_throttled(leader: Replicas) -> None:
    throttle(leader)
    exceed(leader)
    assert leader.fetch().result.size > 0


def test_a_replica_that_is_not_named_is_not_throttled(leader: Replicas) -> None:
    throttle(leader)
    leader.manager.quotas.topic_changed("orders", {"leader.replication.throttled.replicas": "1:1,0:7"})
    exceed(leader)
    assert follow(leader).result.size > 0


def test_a_waiting_fetch_of_a_throttled_follower_is_not_completed_by_an_append(leader: Replicas) -> None:
    throttle(leader)
    exceed(leader)
    fetched = follow(leader)
    leader.append(10, acks=1)
    assert not fetched.is_done


def test_a_waiting_fetch_of_a_follower_that_is_not_throttled_is_completed_by_an_append(leader: Replicas) -> None:
    throttle(leader)
    exceed(leader)
    leader.manager.quotas.topic_changed("orders", {})
    fetched = follow(leader, offset=10)
    leader.append(1, acks=1)
    assert fetched.is_done


# -- the follower's side


class Follower:
    """It follows two partitions, of which the first is throttled."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.fetch = FollowerFetch(FOLLOWER, LocalReplicaLogs(replicas.manager), replicas.manager.quotas.follower, BACKOFF_MS)
        for partition in (TP, OTHER):
            replicas.lead(partition, leader=FOLLOWER, replicas=(BROKER, FOLLOWER), isr=(FOLLOWER,))
            self.fetch.add(partition, TOPIC_ID, 0)
        self.fetch.truncate()

    def fetched(self, now_ms: int = 0) -> set[TopicPartition]:
        return {partition for partition, _, _ in self.fetch.next_fetches(now_ms)}

    def receive(self, high_watermark: int, now_ms: int = 0) -> int:
        """The first partition gets a record; returns its size."""
        ((_, _, asked),) = [fetch for fetch in self.fetch.next_fetches(now_ms) if fetch[0] == TP]
        data = build([(NOW, None, b"v" * 1000, ())], base_offset=asked.fetch_offset)
        self.fetch.handle(TP, asked, PartitionData(0, high_watermark=high_watermark, records=Records(data)), now_ms)
        return len(data)


@pytest.fixture
def follower(replicas: Replicas) -> Follower:
    return Follower(replicas)


def test_a_throttled_partition_is_left_out_of_the_fetch_while_the_rate_is_exceeded(follower: Follower) -> None:
    throttle(follower.replicas)
    assert follower.fetched() == {TP, OTHER}
    exceed(follower.replicas)
    assert follower.fetched() == {OTHER}
    assert follower.fetched(2000) == {TP, OTHER}


def test_a_partition_that_has_caught_up_is_fetched_although_the_rate_is_exceeded(follower: Follower) -> None:
    throttle(follower.replicas)
    follower.receive(high_watermark=1)
    exceed(follower.replicas)
    assert follower.fetched() == {TP, OTHER}


def test_what_throttled_partitions_receive_counts(follower: Follower) -> None:
    throttle(follower.replicas)
    size = follower.receive(high_watermark=9)
    assert follower.replicas.manager.quotas.follower.byte_rate(0) == size
    assert follower.fetched() == {OTHER}


def test_without_a_throttle_nothing_is_counted(follower: Follower) -> None:
    follower.receive(high_watermark=9)
    assert follower.replicas.manager.quotas.follower.byte_rate(0) == 0


def test_with_a_throttle_each_fetch_looks_at_all_partitions(follower: Follower) -> None:
    follower.fetched()
    assert follower.fetch.is_settled
    throttle(follower.replicas)
    assert not follower.fetch.is_settled


def test_a_follower_whose_partitions_all_wait_tries_again_after_the_backoff(follower: Follower) -> None:
    follower.fetch.remove(OTHER)
    throttle(follower.replicas)
    exceed(follower.replicas)
    assert follower.fetched(10) == set()
    assert follower.fetch.next_ready_ms(10) == 10 + BACKOFF_MS


# -- fetchers


async def test_partitions_move_to_the_new_fetchers_when_their_number_changes(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    links: dict[int, BrokerLinks] = {}

    def new_links(number: int) -> BrokerLinks:
        links[number] = BrokerLinks(f"fetcher-{number}", replicas.manager.clock, Random(1))
        return links[number]

    fetchers = ReplicaFetchers(replicas.manager, new_links, lambda broker_id: None, lambda: 7)
    partitions = [TopicPartition("orders", number) for number in range(8)]
    for partition in partitions:
        replicas.lead(partition, leader=FOLLOWER, replicas=(BROKER, FOLLOWER))
        fetchers.follow([replicas.partition(partition)])
    assert list(links) == [0]
    replicas.config.update_broker({"num.replica.fetchers": "2"})
    fetchers.resize()
    assert sorted(links) == [0, 1]
    assert fetchers.followed() == set(partitions)
    replicas.config.update_broker({})
    fetchers.resize()
    assert fetchers.followed() == set(partitions)
    assert [sorted(fetcher.state.partitions) for fetcher in fetchers._fetchers.values()] == [partitions]
    await fetchers.close()
    replicas.close()
