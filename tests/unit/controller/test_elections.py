"""The four election strategies, for every combination of assignment, ISR, live brokers and brokers that shut down."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from barnabas.controller import elections
from barnabas.controller.context import ControllerContext, LeaderAndIsr, LiveBroker
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.metadata.znodes.topics import RECOVERED, RECOVERING, ReplicaAssignment
from barnabas.topic_partition import TopicPartition

T0 = TopicPartition("T", 0)
brokers = st.sampled_from(range(5))
some = st.sets(brokers)


def cluster(
    replicas: tuple[int, ...], live: Iterable[int], leaving: Iterable[int] = (), removing: tuple[int, ...] = ()
) -> ControllerContext:
    context = ControllerContext(shutting_down_broker_ids=set(leaving))
    context.set_live_brokers(LiveBroker(broker_id, 1, BrokerRegistration((), 0)) for broker_id in live)
    context.set_assignment(T0, ReplicaAssignment(replicas, removing_replicas=removing))
    return context


@st.composite
def constellations(draw: st.DrawFn) -> tuple[tuple[int, ...], LeaderAndIsr, set[int]]:
    replicas = tuple(draw(st.lists(brokers, min_size=1, unique=True)))
    isr = tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
    return replicas, LeaderAndIsr(isr[0], isr, leader_epoch=3, partition_epoch=9), draw(some)


@given(constellations(), st.booleans())
def test_offline_elects_the_first_assigned_that_lives_and_is_in_sync(
    case: tuple[tuple[int, ...], LeaderAndIsr, set[int]], unclean: bool
) -> None:
    replicas, current, live = case
    result = elections.offline_leader(cluster(replicas, live), T0, current, unclean)
    in_sync = [replica for replica in replicas if replica in live and replica in current.isr]
    assert result.recipients == [replica for replica in replicas if replica in live]
    if in_sync:
        assert result.leader_and_isr is not None
        assert result.leader_and_isr.leader == in_sync[0]
        assert result.leader_and_isr.isr == tuple(replica for replica in current.isr if replica in live)
        assert result.leader_and_isr.leader_recovery_state == RECOVERED
    elif unclean and result.recipients:
        assert result.leader_and_isr is not None
        first = result.recipients[0]
        assert (result.leader_and_isr.leader, result.leader_and_isr.isr) == (first, (first,))
        assert result.leader_and_isr.leader_recovery_state == RECOVERING
    else:
        assert result.leader_and_isr is None


@given(constellations())
def test_an_election_raises_the_leader_epoch_by_one_and_keeps_the_version_it_read(
    case: tuple[tuple[int, ...], LeaderAndIsr, set[int]],
) -> None:
    replicas, current, live = case
    elected = elections.offline_leader(cluster(replicas, live), T0, current, True).leader_and_isr
    assert elected is None or (elected.leader_epoch, elected.partition_epoch) == (4, 9)


@given(constellations())
def test_preferred_elects_the_first_assigned_or_nobody(case: tuple[tuple[int, ...], LeaderAndIsr, set[int]]) -> None:
    replicas, current, live = case
    result = elections.preferred_leader(cluster(replicas, live), T0, current)
    assert result.recipients == list(replicas)
    if replicas[0] in live and replicas[0] in current.isr:
        assert result.leader_and_isr == current.elected(replicas[0], current.isr)
    else:
        assert result.leader_and_isr is None


@given(constellations(), some)
def test_reassign_elects_among_the_replicas_that_stay(case: tuple[tuple[int, ...], LeaderAndIsr, set[int]], removing: set[int]) -> None:
    replicas, current, live = case
    leaving = tuple(sorted(removing & set(replicas)))
    result = elections.reassigned_leader(cluster(replicas, live, removing=leaving), T0, current)
    assert result.recipients == [replica for replica in replicas if replica not in leaving]
    able = [replica for replica in result.recipients if replica in live and replica in current.isr]
    assert result.leader_and_isr == (current.elected(able[0], current.isr) if able else None)


@given(constellations(), some)
def test_controlled_shutdown_moves_the_leader_away_and_tells_those_who_leave(
    case: tuple[tuple[int, ...], LeaderAndIsr, set[int]], leaving: set[int]
) -> None:
    replicas, current, live = case
    result = elections.controlled_shutdown_leader(cluster(replicas, live, leaving), T0, current)
    assert result.recipients == [replica for replica in replicas if replica in live]
    able = [replica for replica in replicas if replica in live and replica in current.isr and replica not in leaving]
    if able:
        assert result.leader_and_isr == current.elected(able[0], tuple(replica for replica in current.isr if replica not in leaving))
    else:
        assert result.leader_and_isr is None


def test_a_recovering_partition_stays_so_until_its_leader_says_otherwise() -> None:
    current = LeaderAndIsr(0, (0, 1), leader_recovery_state=RECOVERING)
    elected = elections.offline_leader(cluster((0, 1), {1}), T0, current, False).leader_and_isr
    assert elected is not None
    assert elected.leader_recovery_state == RECOVERING
