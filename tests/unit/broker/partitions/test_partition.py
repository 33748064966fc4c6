from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.partitions.replica import Replica
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_offset import LogOffset
from tests.unit.broker.replicas import LAG_MS_MAX, NOW, Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


# -- the high watermark


def test_the_high_watermark_is_the_least_of_those_in_sync(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3))
    replicas.append(10, acks=1)
    replicas.follow(2, 7)
    assert replicas.log().high_watermark == 0
    replicas.follow(3, 4)
    assert replicas.log().high_watermark == 4


def test_a_replica_out_of_sync_does_not_hold_the_high_watermark(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3), isr=(1, 2))
    replicas.append(10, acks=1)
    replicas.follow(2, 10)
    assert replicas.log().high_watermark == 10


def test_the_high_watermark_does_not_move_under_the_minimum(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.append(1, acks=1)
    assert replicas.log().high_watermark == 0
    assert replicas.partition().is_under_min_isr


def test_a_replica_on_its_way_into_the_set_is_waited_for(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.follow(2, 0)
    assert replicas.partition().isr.maximal == {1, 2}
    appended = replicas.append(3)
    assert not appended.is_done
    replicas.follow(2, 3)
    assert appended.error == ErrorCode.NONE


# -- who is in sync


def test_a_replica_that_has_caught_up_is_proposed(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.append(3, acks=1)
    replicas.follow(2, 2)
    assert replicas.decider.proposals == []
    replicas.follow(2, 3)
    assert [proposal[:3] for proposal in replicas.decider.proposals] == [([1, 2], 0, 0)]
    replicas.decider.accept()
    assert replicas.partition().isr.committed == {1, 2}
    assert replicas.partition().partition_epoch == 1


def test_there_is_one_proposal_at_a_time(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3), isr=(1,))
    replicas.follow(2, 0)
    replicas.follow(3, 0)
    assert len(replicas.decider.proposals) == 1


def test_a_broker_that_is_not_alive_is_not_proposed(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,), tell=False)
    replicas.follow(2, 0)
    assert replicas.decider.proposals == []


def test_a_replica_that_lags_is_left_out_and_counts_until_that_is_decided(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2))
    replicas.follow(2, 0)
    appended = replicas.append(1, timeout_ms=10 * LAG_MS_MAX)
    replicas.pass_time(LAG_MS_MAX)
    replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    assert replicas.decider.proposals == []
    replicas.pass_time(1)
    replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    assert [proposal[0] for proposal in replicas.decider.proposals] == [[1]]
    assert not appended.is_done
    replicas.decider.accept()
    assert appended.error == ErrorCode.NONE
    assert replicas.log().high_watermark == 1


def test_an_idle_replica_at_the_end_does_not_lag(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2))
    replicas.follow(2, 0)
    replicas.pass_time(10 * LAG_MS_MAX)
    replicas.manager.shrink_isrs(replicas.clock.steady_ms)
    assert replicas.decider.proposals == []


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_a_refused_proposal_leaves_everything_as_it_was(replicas: Replicas, error: ErrorCode) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.follow(2, 0)
    replicas.decider.refuse(error)
    assert replicas.partition().isr.committed == replicas.partition().isr.maximal == frozenset({1})


@pytest.mark.parametrize("is_known_first", [True, False])
def test_what_waited_for_a_replica_that_may_not_come_in_is_acknowledged_when_it_is_gone(replicas: Replicas, is_known_first: bool) -> None:
    """Nobody else would move the high watermark: the others have everything already, and the producer sends no more."""
    replicas.lead(replicas=(1, 2, 3), isr=(1, 2))
    replicas.follow(3, 0)
    appended = replicas.append(3)
    replicas.follow(2, 3)
    if is_known_first:
        replicas.tell(replicas=(1, 2))
        assert not appended.is_done
        replicas.decider.refuse(ErrorCode.INELIGIBLE_REPLICA)
    else:
        replicas.decider.refuse(ErrorCode.INELIGIBLE_REPLICA)
        assert not appended.is_done
        replicas.tell(replicas=(1, 2))
    assert appended.error == ErrorCode.NONE
    assert replicas.log().high_watermark == 3


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION])
def test_a_proposal_the_controller_knows_better_about_stays_open_until_it_tells(replicas: Replicas, error: ErrorCode) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.follow(2, 0)
    replicas.decider.refuse(error)
    assert replicas.partition().isr.maximal == {1, 2}
    replicas.lead(epoch=1, replicas=(1, 2), isr=(1,))
    assert replicas.partition().isr.maximal == {1}


def test_a_proposal_that_failed_otherwise_is_made_again(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.follow(2, 0)
    replicas.decider.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert [proposal[0] for proposal in replicas.decider.proposals] == [[1, 2]]


def test_a_decision_about_an_older_epoch_is_ignored(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2), isr=(1,))
    replicas.follow(2, 0)
    replicas.lead(epoch=1, replicas=(1, 2), isr=(1,), partition_epoch=7)
    replicas.decider.accept()
    assert (replicas.partition().isr.committed, replicas.partition().partition_epoch) == (frozenset({1}), 7)


# -- leaders and followers


def test_an_older_partition_epoch_changes_nothing(replicas: Replicas) -> None:
    replicas.lead(epoch=1, partition_epoch=5)
    replicas.lead(leader=2, epoch=2, partition_epoch=4, replicas=(1, 2))
    assert replicas.partition().is_leader


def test_a_new_leader_epoch_begins_at_the_log_end(replicas: Replicas) -> None:
    replicas.lead()
    replicas.append(3)
    replicas.lead(epoch=4)
    assert replicas.log().epochs.epoch_entry(4) == (4, 3)
    assert replicas.partition().leader_epoch_start_offset == 3


def test_a_follower_keeps_no_account_of_others(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2))
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    partition = replicas.partition()
    assert (partition.is_leader, partition.leader_id, partition.remote_replicas, set(partition.isr.committed)) == (False, 2, {}, set())


def test_a_replica_taken_from_the_assignment_is_forgotten(replicas: Replicas) -> None:
    replicas.lead(replicas=(1, 2, 3))
    replicas.lead(epoch=1, replicas=(1, 3))
    assert list(replicas.partition().remote_replicas) == [3]


# -- a replica, as its leader sees it


def test_a_replica_that_keeps_up_with_a_busy_leader_is_caught_up() -> None:
    replica = Replica(2)
    replica.reset(0, True, False, 0)
    replica.fetched(LogOffset(0), 0, 10, -1, 1000)
    replica.fetched(LogOffset(10), 0, 20, -1, 2000)  # has what the leader had at its last fetch
    assert replica.last_caught_up_ms == 1000


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_a_replica_is_never_caught_up_later_than_its_last_fetch(fetches: list[tuple[int, int]]) -> None:
    replica, now_ms = Replica(2), NOW
    for end, leader_end in fetches:
        now_ms += 10
        replica.fetched(LogOffset(end), 0, leader_end, -1, now_ms)
        assert replica.last_caught_up_ms <= now_ms
        assert end < leader_end or replica.last_caught_up_ms == now_ms
