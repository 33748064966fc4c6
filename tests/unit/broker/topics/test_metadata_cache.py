from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.topics.metadata_cache import HIDE_UNREACHABLE, LEADER_DURING_DELETE, LEADER_MISSING, LISTENER_MISSING, MetadataCache
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

ID = Uuid(b"i" * 16)
OTHER_ID = Uuid(b"o" * 16)


def broker(broker_id: int, *listeners: str, rack: str | None = None) -> UpdateMetadataBroker:
    endpoints = [UpdateMetadataEndpoint(9092 + broker_id, f"host{broker_id}", listener) for listener in listeners or ("PLAINTEXT",)]
    return UpdateMetadataBroker(broker_id, endpoints=endpoints, rack=rack)


def state(partition: int, leader: int = 0, replicas: list[int] | None = None, isr: list[int] | None = None) -> UpdateMetadataPartitionState:
    replicas = [0] if replicas is None else replicas
    return UpdateMetadataPartitionState("", partition, 1, leader, 7, replicas if isr is None else isr, 3, replicas, [])


def topic(name: str, *states: UpdateMetadataPartitionState, topic_id: Uuid = ID) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(name, topic_id, list(states))


def update(
    *topics: UpdateMetadataTopicState, brokers: list[UpdateMetadataBroker] | None = None, controller_id: int = 0
) -> UpdateMetadataRequest:
    brokers = [broker(0)] if brokers is None else brokers
    return UpdateMetadataRequest(controller_id, controller_epoch=5, broker_epoch=1, topic_states=list(topics), live_brokers=brokers)


def cache_of(*topics: UpdateMetadataTopicState, brokers: list[UpdateMetadataBroker] | None = None) -> MetadataCache:
    cache = MetadataCache(0)
    cache.update(update(*topics, brokers=brokers))
    return cache


def only_partition(cache: MetadataCache, listener: str = "PLAINTEXT", style: int = LISTENER_MISSING) -> MetadataResponsePartition:
    (metadata,) = cache.topic_metadata(["t"], listener, style)
    (partition,) = metadata.partitions
    return partition


def test_a_new_cache_knows_nothing() -> None:
    cache = MetadataCache(0)
    assert (list(cache.topics()), cache.alive_brokers(), cache.controller_id) == ([], [], None)


def test_a_partition_is_known_after_an_update() -> None:
    cache = cache_of(topic("t", state(0), state(1)))
    assert cache.contains("t") and cache.contains("t", 1) and not cache.contains("t", 2)
    assert cache.partition_info("t", 1) == state(1)
    assert cache.partition_count("t") == 2


def test_an_unknown_topic_has_no_partitions_and_no_count() -> None:
    cache = cache_of(topic("t", state(0)))
    assert (cache.partition_info("u", 0), cache.partition_count("u"), cache.partitions("u")) == (None, None, [])


def test_an_update_leaves_what_it_does_not_name() -> None:
    cache = cache_of(topic("t", state(0), state(1)))
    cache.update(update(topic("t", state(1, leader=-1)), topic("u", state(0), topic_id=OTHER_ID)))
    assert sorted(cache.topics()) == ["t", "u"]
    assert cache.partition_info("t", 0) == state(0)
    assert cache.partition_info("t", 1) == state(1, leader=-1)


def test_a_partition_being_deleted_is_forgotten_and_named() -> None:
    cache = cache_of(topic("t", state(0), state(1)))
    assert cache.update(update(topic("t", state(1, leader=LEADER_DURING_DELETE)))) == [TopicPartition("t", 1)]
    assert cache.partitions("t") == [0]
    assert cache.topic_id("t") == ID


def test_a_topic_is_forgotten_with_its_last_partition() -> None:
    cache = cache_of(topic("t", state(0)))
    cache.update(update(topic("t", state(0, leader=LEADER_DURING_DELETE))))
    assert (cache.contains("t"), cache.topic_id("t"), cache.topic_name(ID)) == (False, None, None)


def test_a_partition_deleted_and_made_again_in_one_update_is_not_deleted() -> None:
    cache = cache_of(topic("t", state(0)))
    deleted = cache.update(update(topic("t", state(0, leader=LEADER_DURING_DELETE)), topic("t", state(0), topic_id=OTHER_ID)))
    assert (deleted, cache.topic_id("t"), cache.topic_name(ID)) == ([], OTHER_ID, None)


def test_a_deletion_of_an_unknown_topic_leaves_no_trace() -> None:
    cache = MetadataCache(0)
    assert cache.update(update(topic("t", state(0, leader=LEADER_DURING_DELETE)))) == [TopicPartition("t", 0)]
    assert (cache.contains("t"), cache.topic_id("t"), cache.topic_name(ID)) == (False, None, None)


def test_topics_are_found_by_id_and_ids_by_topic() -> None:
    cache = cache_of(topic("t", state(0)))
    assert (cache.topic_id("t"), cache.topic_name(ID), cache.topic_name(OTHER_ID)) == (ID, "t", None)


def test_an_id_that_changed_is_not_found_any_more() -> None:
    cache = cache_of(topic("t", state(0)))
    cache.update(update(topic("t", state(0), topic_id=OTHER_ID)))
    assert (cache.topic_name(ID), cache.topic_name(OTHER_ID)) == (None, "t")


def test_a_controller_that_sends_no_id_takes_it_back() -> None:
    cache = cache_of(topic("t", state(0)))
    cache.update(update(topic("t", state(0), topic_id=Uuid.ZERO)))
    assert (cache.contains("t"), cache.topic_id("t"), cache.topic_name(ID), cache.topic_name(Uuid.ZERO)) == (True, None, None, None)


def test_the_controller_is_whoever_sent_the_last_update() -> None:
    cache = MetadataCache(0)
    cache.update(update(controller_id=3))
    assert cache.controller_id == 3
    cache.update(update(controller_id=-1))
    assert cache.controller_id is None


def test_brokers_are_those_of_the_last_update_in_the_order_of_their_ids() -> None:
    cache = cache_of(brokers=[broker(2, rack="r"), broker(0)])
    assert [(alive.id, alive.rack) for alive in cache.alive_brokers()] == [(0, None), (2, "r")]
    cache.update(update(brokers=[broker(0)]))
    assert cache.has_alive_broker(0) and not cache.has_alive_broker(2)


def test_a_broker_is_found_by_its_listener() -> None:
    cache = cache_of(brokers=[broker(1, "IN", "OUT")])
    assert cache.broker_endpoint(1, "OUT") == EndPoint("OUT", "host1", 9093, SecurityProtocol.PLAINTEXT)
    assert cache.broker_endpoint(1, "ELSEWHERE") is None
    assert cache.broker_endpoint(2, "OUT") is None


def test_an_endpoint_without_a_listener_is_named_by_its_protocol() -> None:
    old = UpdateMetadataBroker(1, endpoints=[UpdateMetadataEndpoint(9093, "h", "", SecurityProtocol.SSL)])
    oldest = UpdateMetadataBroker(2, "h", 9092)
    cache = cache_of(brokers=[old, oldest])
    assert cache.broker_endpoint(1, "SSL") is not None
    assert cache.broker_endpoint(2, "PLAINTEXT") is not None


def test_states_that_are_not_grouped_by_topic_are_taken_too() -> None:
    cache = MetadataCache(0)
    ungrouped = UpdateMetadataPartitionState("t", 0, leader=0, isr=[0], replicas=[0])
    cache.update(UpdateMetadataRequest(0, ungrouped_partition_states=[ungrouped], live_brokers=[broker(0)]))
    assert cache.partition_info("t", 0) is ungrouped


@pytest.mark.parametrize("version", range(9))
def test_an_update_of_any_version_is_understood(version: int) -> None:
    request = update(topic("t", state(0), topic_id=ID if version >= 7 else Uuid.ZERO), brokers=[broker(0)])
    if version < 5:
        request.topic_states = []
        request.ungrouped_partition_states = [UpdateMetadataPartitionState("t", 0, 1, 0, 7, [0], 3, [0])]
    if version == 0:
        request.live_brokers = [UpdateMetadataBroker(0, "host0", 9092)]
    if version < 5:
        request.broker_epoch = -1
    cache = MetadataCache(0)
    cache.update(parse(UpdateMetadataRequest, serialize(request, version), version))
    assert cache.leader_endpoint("t", 0, "PLAINTEXT") == (0, EndPoint("PLAINTEXT", "host0", 9092))


def test_a_leader_is_found_with_its_address() -> None:
    cache = cache_of(topic("t", state(0, leader=1)), brokers=[broker(0), broker(1)])
    assert cache.leader_endpoint("t", 0, "PLAINTEXT") == (1, EndPoint("PLAINTEXT", "host1", 9093))


@pytest.mark.parametrize("leader", [-1, 5])
def test_there_is_no_address_of_a_leader_that_is_not_there(leader: int) -> None:
    cache = cache_of(topic("t", state(0, leader=leader)))
    assert cache.leader_endpoint("t", 0, "PLAINTEXT") is None
    assert cache.leader_endpoint("t", 1, "PLAINTEXT") is None


def test_whoever_asked_is_told_after_each_update() -> None:
    cache, seen = MetadataCache(0), []
    cache.on_update.append(lambda: seen.append(cache.contains("t")))
    cache.update(update(topic("t", state(0))))
    assert seen == [True]


def test_whoever_asked_is_told_of_which_topics_an_update_spoke() -> None:
    cache = cache_of(topic("old", state(0)))
    seen: list[list[str]] = []
    cache.on_topics_changed.append(seen.append)
    cache.update(update(topic("t", state(0)), topic("u", state(0), topic_id=OTHER_ID)))
    cache.update(update(brokers=[broker(0), broker(1)]))
    assert seen == [["t", "u"]]


def test_the_rack_is_that_of_a_broker_that_is_alive() -> None:
    cache = cache_of(brokers=[broker(0, rack="r"), broker(1)])
    assert [cache.rack(broker_id) for broker_id in (0, 1, 2)] == ["r", None, None]


def test_a_topic_is_answered_with_all_it_has() -> None:
    cache = cache_of(topic("t", state(1, leader=1, replicas=[1, 0]), state(0)), brokers=[broker(0), broker(1)])
    (metadata,) = cache.topic_metadata(["t"], "PLAINTEXT")
    assert (metadata.error_code, metadata.name, metadata.topic_id, metadata.is_internal) == (0, "t", ID, False)
    assert metadata.partitions == [
        MetadataResponsePartition(0, 0, 0, 7, [0], [0], []),
        MetadataResponsePartition(0, 1, 1, 7, [1, 0], [1, 0], []),
    ]


def test_topics_that_are_not_known_are_left_out_and_the_others_come_in_the_order_asked_for() -> None:
    cache = cache_of(topic("a", state(0)), topic("b", state(0), topic_id=OTHER_ID))
    assert [metadata.name for metadata in cache.topic_metadata(["b", "x", "a"], "PLAINTEXT")] == ["b", "a"]


def test_internal_topics_are_marked() -> None:
    cache = cache_of(topic("__consumer_offsets", state(0)))
    assert cache.topic_metadata(["__consumer_offsets"], "PLAINTEXT")[0].is_internal


@pytest.mark.parametrize("style", [HIDE_UNREACHABLE, LEADER_MISSING, LISTENER_MISSING])
def test_a_dead_leader_is_no_leader(style: int) -> None:
    partition = only_partition(cache_of(topic("t", state(0, leader=1, replicas=[0, 1]))), style=style)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, 7)


@pytest.mark.parametrize(
    ("style", "error"),
    [
        (HIDE_UNREACHABLE, ErrorCode.LEADER_NOT_AVAILABLE),
        (LEADER_MISSING, ErrorCode.LEADER_NOT_AVAILABLE),
        (LISTENER_MISSING, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
def test_a_leader_without_the_listener_is_told_as_the_version_knows_it(style: int, error: ErrorCode) -> None:
    cache = cache_of(topic("t", state(0, leader=1, replicas=[1])), brokers=[broker(0, "IN", "OUT"), broker(1, "IN")])
    partition = only_partition(cache, "OUT", style)
    assert (partition.error_code, partition.leader_id) == (error, -1)


def test_the_first_version_leaves_unreachable_replicas_out_and_says_so() -> None:
    cache = cache_of(topic("t", state(0, replicas=[0, 1], isr=[0])))
    partition = only_partition(cache, style=HIDE_UNREACHABLE)
    assert (partition.error_code, partition.leader_id, partition.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, 0, [0])


def test_the_first_version_misses_an_unreachable_replica_in_the_isr_as_well() -> None:
    cache = cache_of(topic("t", state(0, replicas=[0], isr=[0, 1])))
    assert only_partition(cache, style=HIDE_UNREACHABLE).error_code == ErrorCode.REPLICA_NOT_AVAILABLE


def test_later_versions_keep_unreachable_replicas() -> None:
    cache = cache_of(topic("t", state(0, replicas=[0, 1])))
    partition = only_partition(cache)
    assert (partition.error_code, partition.replica_nodes, partition.isr_nodes) == (0, [0, 1], [0, 1])


def test_offline_replicas_are_those_the_controller_names() -> None:
    offline = UpdateMetadataPartitionState("", 0, 1, 0, 7, [0], 3, [0, 1], [1])
    assert only_partition(cache_of(topic("t", offline))).offline_replicas == [1]


def test_an_answer_is_built_once_until_its_topic_changes() -> None:
    cache = cache_of(topic("t", state(0)), topic("u", state(0), topic_id=OTHER_ID))
    before = cache.topic_metadata(["t", "u"], "PLAINTEXT")
    cache.update(update(topic("u", state(0, leader=-1), topic_id=OTHER_ID)))
    after = cache.topic_metadata(["t", "u"], "PLAINTEXT")
    assert after[0] is before[0]
    assert after[1].partitions[0].leader_id == -1


def test_answers_follow_the_brokers() -> None:
    cache = cache_of(topic("t", state(0, leader=1)), brokers=[broker(0), broker(1)])
    assert only_partition(cache).leader_id == 1
    cache.update(update(brokers=[broker(0)]))
    assert only_partition(cache).error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_brokers_with_different_listeners_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    cache_of(brokers=[broker(0, "IN", "OUT"), broker(1, "IN")])
    assert "Listeners are not identical across brokers" in caplog.text


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([LEADER_DURING_DELETE, -1, 0, 1])), max_size=40))
def test_whatever_the_updates_were_answers_and_maps_agree_with_the_last_of_each_partition(changes: list[tuple[str, int, int]]) -> None:
    cache, expected = MetadataCache(0), {}
    ids = {name: Uuid(name.encode() * 16) for name in "abc"}
    for name, partition, leader in changes:
        cache.update(update(topic(name, state(partition, leader), topic_id=ids[name])))
        cache.topic_metadata(["a", "b"], "PLAINTEXT")  # so that stale answers would be noticed
        expected[name, partition] = leader
    alive = {key: leader for key, leader in expected.items() if leader != LEADER_DURING_DELETE}
    errors = {
        (metadata.name, partition.partition_index): partition.leader_id
        for metadata in cache.topic_metadata(["a", "b", "c"], "PLAINTEXT")
        for partition in metadata.partitions
    }
    assert errors == {key: leader if leader == 0 else -1 for key, leader in alive.items()}
    assert set(cache.topics()) == {name for name, _ in alive}
    assert {name: cache.topic_id(name) for name in cache.topics()} == {name: ids[name] for name in cache.topics()}
    assert {cache.topic_name(topic_id) for topic_id in ids.values()} - {None} == set(cache.topics())


def test_metadata_of_ten_thousand_partitions_is_made_once_for_all_who_ask() -> None:
    topics = [topic(f"topic-{n}", *[state(p) for p in range(10)], topic_id=Uuid(n.to_bytes(16, "big"))) for n in range(1, 1001)]
    cache = cache_of(*topics)
    first, second = (cache.topic_metadata(sorted(cache.topics()), "PLAINTEXT") for _ in range(2))
    assert all(one is another for one, another in zip(first, second, strict=True))
    assert len(serialize(MetadataResponse(topics=first), 12)) > 10_000 * 20


def test_a_partition_is_known_by_one_key_until_its_topic_is_deleted() -> None:
    cache = cache_of(topic("orders", state(0)))
    key = cache.partition_key("orders", 0)
    assert key == TopicPartition("orders", 0)
    assert cache.partition_key("orders", 0) is key
    assert cache.partition_key("orders", 1) is None
    cache.update(update(topic("orders", state(0, leader=LEADER_DURING_DELETE))))
    assert cache.partition_key("orders", 0) is None
