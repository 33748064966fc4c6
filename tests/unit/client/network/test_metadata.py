"""What a client wants to know of the cluster and when it asks: decided without a network."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.cluster import LeaderAndEpoch, Node
from barnabas.client.errors import IllegalState, InvalidTopic, SaslAuthentication, Timeout, TopicAuthorization
from barnabas.client.network.metadata import Metadata
from barnabas.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.client_network import config_of, on_loop
from tests.unit.client.clocks import ManualClock

ID = Uuid(bytes(15) + b"\x07")
ANOTHER_ID = Uuid(bytes(15) + b"\x08")
T0 = TopicPartition("t", 0)


def metadata(clock: ManualClock, *, topic_idle_ms: int | None = None, **settings: object) -> Metadata:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = config_of({"bootstrap.servers": "one:9092,two:9093"} | named)
    return Metadata(config, clock=clock, random=Random(1), topic_idle_ms=topic_idle_ms)


def partition(index: int = 0, leader: int = 1, epoch: int = 5, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(error, index, leader, epoch, [1, 2], [1], [])


def topic(
    name: str = "t", *partitions: MetadataResponsePartition, error: int = 0, topic_id: Uuid = ID, internal: bool = False
) -> MetadataResponseTopic:
    return MetadataResponseTopic(error, name, topic_id, internal, list(partitions))


def answer(known: Metadata, *topics: MetadataResponseTopic, nodes: tuple[int, ...] = (1, 2), version: int = 13) -> None:
    """Asks and answers."""
    brokers = [MetadataResponseBroker(node_id, f"host-{node_id}", 9092) for node_id in nodes]
    response = MetadataResponse(0, brokers, "the-cluster", 1, list(topics))
    known.update(response, version, known.next_question(), known.clock.monotonic_ms())


def asked_for(known: Metadata) -> list[str] | None:
    topics = known.next_question().request.topics
    return None if topics is None else [row.name or "" for row in topics]


def test_begins_with_the_bootstrap_addresses_under_negative_ids() -> None:
    known = metadata(ManualClock())
    assert [(node.id, node.host, node.port) for node in known.cluster.nodes] == [(-1, "one", 9092), (-2, "two", 9093)]
    assert known.cluster.is_bootstrap and known.time_to_next_update(0) == 0


def test_an_answer_replaces_the_snapshot_and_tells() -> None:
    known = metadata(ManualClock())
    calls: list[object] = []
    known.on_update.append(calls.append)
    known.set_topics(["t"])
    answer(known, topic("t", partition(0), partition(1, leader=2)))
    cluster = known.cluster
    assert calls == [cluster] and known.update_version == 1
    assert (cluster.cluster_id, cluster.controller, cluster.topic_id("t")) == ("the-cluster", Node(1, "host-1", 9092), ID)
    assert cluster.leader_for(TopicPartition("t", 1)) == Node(2, "host-2", 9092)
    assert cluster.topic_name(ID) == "t"


def test_topics_that_nobody_wants_are_not_kept() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition()), topic("other", partition()))
    assert known.cluster.topics == {"t"}


def test_a_producers_topic_is_asked_for_alone_and_forgotten_when_idle() -> None:
    clock = ManualClock()
    known = metadata(clock, topic_idle_ms=1000)
    answer(known)
    assert known.add("t")
    assert known.time_to_next_update(clock.monotonic_ms()) == 0
    answer(known, topic("t", partition()))
    assert not known.add("t") and not known.update_requested
    assert known.add("u")
    assert asked_for(known) == ["u"]
    answer(known, topic("u", partition(), topic_id=ANOTHER_ID))
    assert known.cluster.topics == {"t", "u"}, "an answer for new topics alone leaves the others"
    clock.advance(999)
    known.add("u")
    clock.advance(1)
    known.request_update()
    answer(known, topic("t", partition()), topic("u", partition(), topic_id=ANOTHER_ID))
    assert known.cluster.topics == {"u"} and not known.contains_topic("t")


def test_an_answer_to_an_older_question_leaves_the_new_topic_wanted() -> None:
    clock = ManualClock()
    known = metadata(clock, topic_idle_ms=1000)
    question = known.next_question()
    known.add("t")
    known.update(MetadataResponse(0, [MetadataResponseBroker(1, "h", 1)], "c", 1), 13, question, clock.monotonic_ms())
    assert known.update_requested and asked_for(known) == ["t"]


def test_a_pattern_asks_for_all_and_keeps_what_matches() -> None:
    known = metadata(ManualClock())
    known.include_internal_topics = False
    known.set_pattern(lambda name: name.startswith("a"))
    question = known.next_question()
    assert question.request.topics is None and not question.request.allow_auto_topic_creation
    answer(known, topic("a1", partition()), topic("b1", partition()), topic("a-internal", partition(), internal=True))
    assert known.cluster.topics == {"a1"}


def test_all_topics() -> None:
    known = metadata(ManualClock())
    known.want_all_topics()
    assert asked_for(known) is None
    answer(known, topic("x", partition()))
    assert known.cluster.topics == {"x"}


def test_topics_that_are_only_looked_up() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    known.set_transient_topics(["once"])
    assert asked_for(known) == ["once", "t"]
    answer(known, topic("once", partition(), topic_id=ANOTHER_ID), topic("t", partition()))
    assert known.cluster.topics == {"once", "t"}
    known.set_transient_topics(())
    known.request_update()
    answer(known, topic("once", partition(), topic_id=ANOTHER_ID), topic("t", partition()))
    assert known.cluster.topics == {"t"}


# Epochs


def test_an_epoch_never_goes_back() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(leader=1, epoch=5)))
    answer(known, topic("t", partition(leader=2, epoch=4)))
    assert known.current_leader(T0) == LeaderAndEpoch(Node(1, "host-1", 9092), 5)
    answer(known, topic("t", partition(leader=2, epoch=6)))
    assert known.current_leader(T0) == LeaderAndEpoch(Node(2, "host-2", 9092), 6)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans())))
def test_whatever_comes_the_leader_is_that_of_the_highest_epoch_so_far(told: list[tuple[int, bool]]) -> None:
    """Each is an epoch and its leader, told by a broker or seen in some other response. An epoch has one leader."""
    known = metadata(ManualClock())
    known.set_topics(["t"])
    highest, highest_told = -1, -1
    for epoch, is_told in told:
        leader = epoch % 3 + 1
        if is_told:
            answer(known, topic("t", partition(leader=leader, epoch=epoch)), nodes=(1, 2, 3))
            highest_told = max(highest_told, epoch)
            highest = max(highest, epoch)
        elif highest >= 0:
            known.update_last_seen_epoch_if_newer(T0, epoch)
            highest = max(highest, epoch)
        if highest < 0:
            continue
        assert known.last_seen_leader_epoch(T0) == highest
        current = known.current_leader(T0)
        assert current.epoch == highest
        if highest_told < highest:
            assert current.leader is None and known.update_requested
        else:
            assert current.leader is not None and current.leader.id == highest % 3 + 1


def test_a_topic_made_anew_begins_with_its_own_epochs() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(epoch=5)))
    answer(known, topic("t", partition(leader=2, epoch=0), topic_id=ANOTHER_ID))
    assert known.last_seen_leader_epoch(T0) == 0 and known.cluster.topic_id("t") == ANOTHER_ID


def test_epochs_before_version_9_are_not_believed() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(epoch=5)))
    answer(known, topic("t", partition(leader=2, epoch=7)), version=8)
    assert known.last_seen_leader_epoch(T0) is None
    assert known.current_leader(T0) == LeaderAndEpoch(Node(2, "host-2", 9092), -1)


def test_a_newer_epoch_seen_elsewhere_makes_the_leader_unknown_and_asks() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(epoch=5)))
    assert not known.update_last_seen_epoch_if_newer(T0, 5) and not known.update_requested
    assert known.update_last_seen_epoch_if_newer(T0, 6) and known.update_requested
    assert known.current_leader(T0) == LeaderAndEpoch(None, 6)
    assert not known.update_last_seen_epoch_if_newer(TopicPartition("unknown", 0), 1)


def test_new_leaders_that_a_response_told_of() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(0), partition(1)))
    t1, unknown = TopicPartition("t", 1), TopicPartition("u", 0)
    leaders = {T0: (3, 6), t1: (2, 5), unknown: (1, 9)}
    assert known.update_partition_leadership(leaders, [Node(3, "host-3", 9092)]) == {T0}
    assert known.current_leader(T0) == LeaderAndEpoch(Node(3, "host-3", 9092), 6)
    assert known.cluster.leader_for(t1) == Node(1, "host-1", 9092)
    assert known.update_partition_leadership({t1: (4, 8)}, []) == set(), "nobody knows where broker 4 is"


def test_a_leader_without_an_address_is_none() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition(leader=9)))
    assert known.cluster.leader_for(T0) is None and known.cluster.available_partitions_for_topic("t") == ()
    assert known.cluster.partition_count("t") == 1


# When to ask


def test_asks_by_age() -> None:
    clock = ManualClock()
    known = metadata(clock, metadata_max_age_ms=5000)
    answer(known)
    assert known.time_to_next_update(clock.monotonic_ms()) == 5000
    clock.advance(5000)
    assert known.time_to_next_update(clock.monotonic_ms()) == 0


def test_backs_off_after_failures() -> None:
    clock = ManualClock()
    known = metadata(clock)
    waits = []
    for _ in range(6):
        known.failed_update(clock.monotonic_ms())
        waits.append(known.time_to_next_update(clock.monotonic_ms()))
        clock.advance(waits[-1])
    expected = [100, 200, 400, 800, 1000, 1000]
    assert all(0.8 * expected_ms <= waited <= min(1.2 * expected_ms, 1000) for expected_ms, waited in zip(expected, waits, strict=True)), (
        waits
    )


def test_backs_off_when_answers_bring_nothing_new() -> None:
    clock = ManualClock()
    known = metadata(clock)
    known.set_topics(["t"])
    answer(known, topic("t", partition()))
    waits = []
    for _ in range(4):
        known.request_update(False)
        waits.append(known.time_to_next_update(clock.monotonic_ms()))
        clock.advance(waits[-1])
        answer(known, topic("t", partition()))
    expected = [100, 100, 200, 400]
    assert all(0.8 * expected_ms <= waited <= 1.2 * expected_ms for expected_ms, waited in zip(expected, waits, strict=True)), waits
    known.request_update(True)
    assert known.time_to_next_update(clock.monotonic_ms()) <= 120, "a change that is known of is asked for at once"


def test_new_topics_are_asked_for_at_once() -> None:
    clock = ManualClock()
    known = metadata(clock)
    known.failed_update(clock.monotonic_ms())
    known.set_topics(["t"])
    assert known.time_to_next_update(clock.monotonic_ms()) == 0


@pytest.mark.parametrize("error", [3, 5])
def test_topics_and_partitions_in_trouble_are_asked_for_again(error: int) -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", error=error))
    assert known.update_requested
    answer(known, topic("t", partition(error=5, leader=-1)))
    assert known.update_requested


def test_wakes_the_one_who_asks() -> None:
    woken: list[int] = []
    known = metadata(ManualClock(), topic_idle_ms=1)
    known.wake = lambda: woken.append(1)
    known.request_update()
    known.add("t")
    assert len(woken) == 2


# What is wrong


def test_topics_that_may_not_be_read_are_told_once_for_each_answer() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t", "u"])
    answer(known, topic("t", error=29), topic("u", error=17))
    assert known.cluster.unauthorized_topics == {"t"} and known.cluster.invalid_topics == {"u"}
    with pytest.raises(TopicAuthorization, match=r"Not authorized to access topics: \[t\]") as raised:
        known.raise_any()
    assert raised.value.unauthorized_topics == {"t"}
    known.raise_any()
    with pytest.raises(InvalidTopic, match=r"Invalid topics: \[u\]"):
        known.raise_for_topic("u")
    known.raise_for_topic("v")


def test_begins_again() -> None:
    known = metadata(ManualClock())
    known.set_topics(["t"])
    answer(known, topic("t", partition()))
    known.rebootstrap()
    assert known.cluster.is_bootstrap and known.cluster.topics == frozenset() and known.update_requested
    assert known.topics_wanted() == {"t"}


# Waiting


def test_waiting_ends_with_the_next_answer() -> None:
    async def run() -> None:
        known = metadata(ManualClock())
        waiting = asyncio.ensure_future(known.wait_for_update(known.request_update(), 5000))
        await asyncio.sleep(0)
        answer(known)
        await waiting
        await known.wait_for_update(0, 0)

    on_loop(run)


def test_waiting_for_too_long() -> None:
    async def run() -> None:
        known = metadata(ManualClock())
        with pytest.raises(Timeout, match=r"Failed to update metadata after 20 ms\."):
            await known.wait_for_update(known.update_version, 20)

    on_loop(run)


def test_waiting_ends_with_what_cannot_get_better() -> None:
    async def run() -> None:
        known = metadata(ManualClock())
        waiting = asyncio.ensure_future(known.wait_for_update(known.update_version, 5000))
        await asyncio.sleep(0)
        known.fatal_error(SaslAuthentication("wrong password"))
        with pytest.raises(SaslAuthentication):
            await waiting
        known.raise_fatal()
        known.fatal_error(SaslAuthentication("wrong password"))
        with pytest.raises(SaslAuthentication):
            known.raise_fatal()
        known.raise_fatal()

    on_loop(run)


def test_waiting_ends_with_the_client() -> None:
    async def run() -> None:
        known = metadata(ManualClock())
        waiting = asyncio.ensure_future(known.wait_for_update(known.update_version, 5000))
        await asyncio.sleep(0)
        known.close()
        with pytest.raises(IllegalState):
            await waiting
        with pytest.raises(IllegalState):
            await known.wait_for_update(known.update_version, 5000)

    on_loop(run)
