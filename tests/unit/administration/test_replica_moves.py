"""What a reassignment moves, and what its throttle covers."""

from __future__ import annotations

import pytest

from barnabas.administration import replica_moves
from barnabas.client.admin.topics.reassignments import PartitionReassignment
from barnabas.errors import IllegalArgument
from barnabas.topic_partition import TopicPartition

P0, P1, P2 = (TopicPartition("topic-throttle", number) for number in range(3))


def test_a_throttle_covers_the_old_replicas_as_leaders_and_the_new_ones_as_followers() -> None:
    """The example of the specification: p0 from [0,1] to [0,2], p1 from [1,2] to [1,0], p2 stays at [2,0]."""
    current = {P0: [0, 1], P1: [1, 2], P2: [2, 0]}
    planned = replica_moves.moves({}, {P0: [0, 2], P1: [1, 0]}, current)
    assert replica_moves.leader_throttles(planned) == {"topic-throttle": "0:0,0:1,1:1,1:2"}
    assert replica_moves.follower_throttles(planned) == {"topic-throttle": "0:2,1:0"}
    assert replica_moves.moving_brokers(planned) == [0, 1, 2]


def test_a_partition_that_is_on_its_way_is_still_read_from_where_it_was() -> None:
    under_way = {P0: PartitionReassignment(replicas=(0, 1, 2), adding_replicas=(2,), removing_replicas=(1,))}
    planned = replica_moves.moves(under_way, {P0: [0, 3]}, {P0: [0, 1, 2]})
    assert replica_moves.leader_throttles(planned) == {"topic-throttle": "0:0,0:1"}
    assert replica_moves.follower_throttles(planned) == {"topic-throttle": "0:3"}


def test_what_is_under_way_is_throttled_with_the_rest() -> None:
    under_way = {P1: PartitionReassignment(replicas=(1, 2), adding_replicas=(2,), removing_replicas=(1,))}
    planned = replica_moves.moves(under_way, {P0: [2]}, {P0: [0]})
    assert replica_moves.leader_throttles(planned) == {"topic-throttle": "0:0,1:1"}
    assert replica_moves.follower_throttles(planned) == {"topic-throttle": "0:2,1:2"}


def test_the_throttles_of_a_plan_are_settings_of_topics_and_brokers() -> None:
    planned = replica_moves.moves({}, {P0: [0, 2]}, {P0: [0, 1]})
    assert replica_moves.topic_throttles(planned) == {
        "topic-throttle": {"leader.replication.throttled.replicas": "0:0,0:1", "follower.replication.throttled.replicas": "0:2"}
    }
    assert replica_moves.broker_throttles([2], 4096) == {
        "2": {"leader.replication.throttled.rate": "4096", "follower.replication.throttled.rate": "4096"}
    }


def test_a_partition_that_nobody_knows_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="topic-throttle-0 with 0 replicas"):
        replica_moves.moves({}, {P0: [1]}, {})
