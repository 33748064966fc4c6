"""Requests of clients above their quotas, through the real dispatcher: throttle times, muted connections, what is exempt."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.quotas.client_quota_callback import DEFAULT
from barnabas.broker.quotas.request_quota import RequestUsage
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.codecs.compression import GZIP
from tests.unit.broker.admin_broker import AdminBroker
from tests.unit.broker.handlers.asking import request_of
from tests.unit.broker.handlers.leader import BROKER, OTHER_BROKER, Asked, Leader, batch, fetch_request, with_leader

QUOTA_ALL = (None, DEFAULT)  # all clients by their ids


def produce(leader: Leader, acks: int = 1, size: int = 10_000, version: int = 9, client_id: str = "client") -> Asked:
    data = PartitionProduceData(0, Records(batch(1, size=size)))
    message = ProduceRequest(None, acks, 1000, [TopicProduceData("foo", partition_data=[data])])
    return leader.ask(api_keys.PRODUCE, message, version, client_id=client_id)


def list_offsets(leader: Leader, partitions: int = 1, version: int = 5) -> Asked:
    partitions_asked = [ListOffsetsPartition(index, timestamp=-1) for index in range(partitions)]
    return leader.ask(api_keys.LIST_OFFSETS, ListOffsetsRequest(-1, 0, [ListOffsetsTopic("foo", partitions_asked)]), version)


# Produce


def test_a_producer_above_its_quota_gets_its_response_and_is_muted(tmp_path: Path) -> None:
    """Kafka's formula: the rate is measured over 10 s, so that a request of size S waits for (S / 10 - 500) / 500 * 10 s."""

    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"producer_byte_rate": 500.0})
        small = produce(leader, size=1000)
        assert (small.response().throttle_time_ms, small.peer.throttled_until_ms) == (0, 0)
        leader.pass_time(100_000)
        large = produce(leader)
        size = large.exchange.size
        expected_ms = round((size / 10 - 500) / 500 * 10_000)
        response = large.response()
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert response.throttle_time_ms == expected_ms > 9000
        assert large.peer.throttled_until_ms == leader.clock.steady_ms + expected_ms

    with_leader(tmp_path, test)


def test_acks_zero_is_throttled_too(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"producer_byte_rate": 500.0})
        pending = produce(leader, acks=0)
        assert pending.is_answered and pending.peer.throttled_until_ms > 9000

    with_leader(tmp_path, test)


def test_versions_without_a_throttle_time_are_muted_all_the_same(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"producer_byte_rate": 500.0, "request_percentage": 0.001})
        leader.clock.ns_per_reading = 1_000_000
        data = PartitionProduceData(0, Records(batch(1, size=10_000, magic=1)))
        message = ProduceRequest(None, 1, 1000, [TopicProduceData("foo", partition_data=[data])])
        pending = leader.ask(api_keys.PRODUCE, message, 0)
        assert pending.response().responses and pending.peer.throttled_until_ms > 9000
        pending = list_offsets(leader, version=1)
        assert (await pending.answer()).topics and pending.peer.throttled_until_ms > 0

    with_leader(tmp_path, test)


def test_a_client_that_is_not_limited_is_not_measured(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(None, "other", {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0, "request_percentage": 0.01})
        leader.clock.ns_per_reading = 1_000_000
        requests = [produce(leader), leader.fetch("foo", max_wait_ms=0), list_offsets(leader)]
        assert [(await each.answer()).throttle_time_ms for each in requests] == [0, 0, 0]
        assert len(leader.quotas.produce) == len(leader.quotas.fetch) == len(leader.quotas.request) == 0

    with_leader(tmp_path, test)


# Fetch


def test_a_fetch_above_the_quota_is_answered_empty_and_does_not_count(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        for _ in range(3):
            leader.produce("foo", data=batch(1, size=6000))
        leader.quotas.quota_changed(*QUOTA_ALL, {"consumer_byte_rate": 1000.0})
        first = leader.fetch("foo", partition_max_bytes=1)
        assert len(first.response().responses) == 1 and first.peer.throttled_until_ms == 0
        second = leader.fetch("foo", partition_max_bytes=1)
        response = second.response()
        assert (response.responses, response.error_code, response.session_id) == ([], ErrorCode.NONE, 0)
        assert 1500 < response.throttle_time_ms < 3000
        assert second.peer.throttled_until_ms == response.throttle_time_ms
        third = leader.fetch("foo", partition_max_bytes=1)
        assert third.response().throttle_time_ms == response.throttle_time_ms, "the second did not count"
        leader.pass_time(12_000)
        assert leader.fetch("foo", partition_max_bytes=1).response().throttle_time_ms == 0

    with_leader(tmp_path, test)


def test_a_fetch_reads_no_more_than_the_quota_allows_in_its_windows(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        for _ in range(50):
            leader.produce("foo", data=batch(1, size=1000))
        leader.quotas.quota_changed(*QUOTA_ALL, {"consumer_byte_rate": 1000.0})
        first = leader.fetch("foo").response()
        assert 0 < first.throttle_time_ms < 200, "the fields around the records are too much, by a little"
        leader.pass_time(first.throttle_time_ms)
        response = leader.fetch("foo").response()
        records = response.responses[0].partitions[0].records
        assert response.throttle_time_ms == 0 and 8000 < len(records.to_bytes()) <= 10_000

    with_leader(tmp_path, test)


def test_a_session_survives_a_throttled_fetch(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(1, size=6000))
        full = leader.fetch("foo", session_id=0, session_epoch=0).response()
        assert full.session_id != 0
        leader.produce("foo", data=batch(1, size=6000))
        leader.quotas.quota_changed(*QUOTA_ALL, {"consumer_byte_rate": 100.0})
        moved = [FetchTopic("foo", partitions=[FetchPartition(0, fetch_offset=1, partition_max_bytes=1_048_576)])]
        throttled = leader.ask(api_keys.FETCH, FetchRequest(session_id=full.session_id, session_epoch=1, topics=moved), 12).response()
        assert (throttled.session_id, throttled.responses, throttled.error_code) == (full.session_id, [], 0)
        assert throttled.throttle_time_ms > 0
        leader.quotas.quota_changed(*QUOTA_ALL, {})
        again = leader.ask(api_keys.FETCH, FetchRequest(session_id=full.session_id, session_epoch=2), 12).response()
        assert len(again.responses) == 1 and again.error_code == 0

    with_leader(tmp_path, test)


def test_followers_are_exempt(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(BROKER, OTHER_BROKER))
        leader.produce("foo", data=batch(1, size=6000))
        leader.quotas.quota_changed(*QUOTA_ALL, {"consumer_byte_rate": 1.0, "request_percentage": 0.001})
        leader.clock.ns_per_reading = 10_000_000
        pending = leader.fetch("foo", replica_id=OTHER_BROKER, max_wait_ms=0)
        assert len(pending.response().responses) == 1 and pending.peer.throttled_until_ms == 0
        assert leader.quotas.request.exempt.total(0) > 0

    with_leader(tmp_path, test)


# The time of requests


def test_the_time_of_a_request_is_charged_and_throttles_its_client(tmp_path: Path) -> None:
    """Each reading of the clock takes 15 ms: in the dispatcher, in the task before the response, and after it. 0.1 % are 1 ms a second."""

    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 0.1})
        leader.clock.ns_per_reading = 15_000_000
        offsets = list_offsets(leader)
        response = await offsets.answer()
        assert response.throttle_time_ms == offsets.peer.throttled_until_ms == 1000, "(3 ms/s - 1 ms/s) / 1 ms/s * 10 s, at most 1 s"
        sensor = leader.quotas.request.sensor(offsets.peer.session.principal, "client", 0)  # type: ignore[attr-defined]
        assert sensor is not None and sensor.rate.total(0) == pytest.approx(4.5), "45 ms are 4.5 % of a second"
        leader.pass_time(60_000)
        leader.clock.ns_per_reading = 4_000_000
        assert (await list_offsets(leader).answer()).throttle_time_ms == 0

    with_leader(tmp_path, test)


def test_the_larger_of_two_throttle_times_is_sent(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.clock.ns_per_reading = 1_000_000_000
        leader.quotas.quota_changed(*QUOTA_ALL, {"producer_byte_rate": 900.0, "request_percentage": 0.1})
        pending = produce(leader)
        bandwidth_ms = round((pending.exchange.size / 10 - 900) / 900 * 10_000)
        assert pending.response().throttle_time_ms == max(1000, bandwidth_ms) == pending.peer.throttled_until_ms
        leader.quotas.quota_changed(*QUOTA_ALL, {"producer_byte_rate": 2000.0, "request_percentage": 0.1})
        leader.pass_time(60_000)
        pending = produce(leader)
        assert pending.response().throttle_time_ms == 1000 == pending.peer.throttled_until_ms - leader.clock.steady_ms

    with_leader(tmp_path, test)


def test_a_fetch_above_the_request_quota_is_answered_empty(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(1, size=6000))
        leader.clock.ns_per_reading = 1_000_000_000
        leader.quotas.quota_changed(*QUOTA_ALL, {"consumer_byte_rate": 1e6, "request_percentage": 0.1})
        pending = leader.fetch("foo")
        assert pending.response().responses == [] and pending.response().throttle_time_ms == 1000 == pending.peer.throttled_until_ms
        sensor = leader.quotas.fetch.sensor(pending.peer.session.principal, "client", 0)  # type: ignore[attr-defined]
        assert sensor is not None and sensor.rate.total(0) == 0

    with_leader(tmp_path, test)


def test_acks_zero_is_exempt_from_the_request_quota(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.clock.ns_per_reading = 1_000_000_000
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 0.1})
        pending = produce(leader, acks=0)
        assert pending.is_answered and pending.peer.throttled_until_ms == 0
        assert leader.quotas.request.exempt.total(0) > 0

    with_leader(tmp_path, test)


def test_the_slices_of_a_long_request_are_charged_to_it(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 50.0})
        leader.clock.ns_per_reading = 1_000_000
        offsets = list_offsets(leader, ELEMENTS_AT_ONCE * 4)
        await offsets.answer()
        await asyncio.sleep(0)
        sensor = leader.quotas.request.sensor(offsets.peer.session.principal, "client", 0)  # type: ignore[attr-defined]
        assert sensor is not None and sensor.rate.total(0) > 2.0, "20 slices of a millisecond and more: 2 % of a second"
        assert leader.turns.usage is None

    with_leader(tmp_path, test)


def test_the_validation_of_large_batches_is_charged_to_their_request(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 50.0})
        leader.clock.ns_per_reading = 1_000_000
        data = PartitionProduceData(0, Records(batch(2000, size=2000, codec=GZIP)))
        pending = leader.ask(api_keys.PRODUCE, ProduceRequest(None, 1, 1000, [TopicProduceData("foo", partition_data=[data])]), 9)
        assert not pending.is_answered, "it is validated in slices"
        response = await pending.answer()
        assert response.responses[0].partition_responses[0].error_code == 0
        await asyncio.sleep(0)
        sensor = leader.quotas.request.sensor(pending.peer.session.principal, "client", 0)  # type: ignore[attr-defined]
        assert sensor is not None and sensor.rate.total(0) > 0.4

    with_leader(tmp_path, test)


def test_a_fetch_that_waited_is_charged_when_it_is_answered(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(None, "client", {"consumer_byte_rate": 100.0, "request_percentage": 100.0})
        pending = leader.ask(api_keys.FETCH, fetch_request("foo", min_bytes=1, max_wait_ms=1000), 12)
        assert pending.is_waiting
        leader.produce("foo", data=batch(1, size=6000))
        assert pending.is_answered and pending.response().throttle_time_ms > 0 and pending.response().responses == []
        assert leader.turns.usage is None

    with_leader(tmp_path, test)


def charged_ms(leader: Leader, asked: Asked, client_id: str = "client") -> float:
    """How long the requests of a client held the event loop."""
    sensor = leader.quotas.request.sensor(asked.peer.session.principal, client_id, leader.clock.steady_ms)  # type: ignore[attr-defined]
    assert sensor is not None
    return sensor.rate.total(leader.clock.steady_ms) * 10


def many_partitions(count: int, **settings: Any) -> FetchRequest:
    partitions = [FetchPartition(index, partition_max_bytes=1_048_576) for index in range(count)]
    return FetchRequest(topics=[FetchTopic("foo", partitions=partitions)], **settings)


@pytest.mark.parametrize("version", [2, 12])
def test_a_producer_does_not_pay_for_the_fetch_whose_wait_it_ends(tmp_path: Path, version: int) -> None:
    """Each reading of the clock takes 1 ms. Version 2 is converted in a task, version 12 is answered during the Produce."""

    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 100.0})
        leader.clock.ns_per_reading = 1_000_000
        alone = produce(leader, client_id="first")
        pending = leader.ask(api_keys.FETCH, fetch_request("foo", 1, min_bytes=1, max_wait_ms=1000), version)
        assert pending.is_waiting
        producer = produce(leader, client_id="second")
        assert (await pending.answer()).responses[0].partitions[0].error_code == ErrorCode.NONE
        await asyncio.sleep(0)
        assert leader.turns.usage is None
        paid_ms = charged_ms(leader, producer, "second") - charged_ms(leader, alone, "first")
        assert paid_ms == pytest.approx(1), "its step is in two pieces, and each takes a reading of the clock"
        expected_ms = 3 if version == 12 else 7
        assert charged_ms(leader, pending) == pytest.approx(expected_ms), (
            "the request, the end of its wait, and two steps of the task, which also measures the conversion"
        )

    with_leader(tmp_path, test)


def test_a_conversion_after_a_timeout_is_charged_to_its_fetch(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(1, size=6000))
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 100.0})
        leader.clock.ns_per_reading = 1_000_000
        pending = leader.ask(api_keys.FETCH, fetch_request("foo", min_bytes=1_000_000, max_wait_ms=1000), 2)
        assert pending.is_waiting
        leader.pass_time(1001)
        await pending.answer()
        await asyncio.sleep(0)
        assert leader.turns.usage is None
        assert charged_ms(leader, pending) == pytest.approx(7), (
            "the request, the end of its wait, and two steps of the task, which also measures the conversion"
        )

    with_leader(tmp_path, test)


def test_a_producer_does_not_pay_for_the_slices_of_a_long_fetch_whose_wait_it_ends(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", ELEMENTS_AT_ONCE + 1)
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 100.0})
        pending = leader.ask(api_keys.FETCH, many_partitions(ELEMENTS_AT_ONCE + 1, min_bytes=1, max_wait_ms=1000), 12)
        while not leader.purgatories[1].watched:
            await asyncio.sleep(0)
        leader.clock.ns_per_reading = 1_000_000
        producer = produce(leader, client_id="producer")
        assert not pending.is_answered
        await pending.answer()
        await asyncio.sleep(0)
        assert charged_ms(leader, producer, "producer") <= 4
        assert charged_ms(leader, pending) >= 6, "a slice of 100 partitions takes a reading"
        assert leader.turns.usage is None

    with_leader(tmp_path, test)


def test_a_response_that_cannot_be_sent_ends_the_step(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.quotas.quota_changed(*QUOTA_ALL, {"request_percentage": 100.0})
        request = request_of(HeartbeatRequest("g"), 4)
        request.usage = RequestUsage(leader.quotas.request, None, False, leader.clock, leader.turns)
        request.respond(HeartbeatResponse())
        with pytest.raises(RuntimeError, match="answered twice"):
            request.respond(HeartbeatResponse())
        assert leader.turns.usage is None

    with_leader(tmp_path, test)


# Changes of topics


async def limited(rate: float) -> AdminBroker:
    """A bucket of 11 seconds: 11 partitions at a rate of 1."""
    broker = await AdminBroker.start()
    broker.quotas.quota_changed("ANONYMOUS", None, {"controller_mutation_rate": rate})
    return broker


def topics_of(count: int, partitions: int) -> list[CreatableTopic]:
    return [CreatableTopic(f"t{index}", partitions, 1) for index in range(count)]


def test_new_clients_are_refused_further_topics() -> None:
    async def test() -> None:
        broker = await limited(1.0)
        response = await broker.ask_and_act("create_topics", CreateTopicsRequest(topics_of(4, 10), 1000), 7)
        codes = {topic.name: topic.error_code for topic in response.topics}
        assert codes == {"t0": 0, "t1": 0, "t2": 89, "t3": 89}, "11 - 10 = 1 is left for t1, then -9"
        assert response.throttle_time_ms == 9000
        refused = next(topic for topic in response.topics if topic.name == "t2")
        assert refused.error_message == "The throttling quota has been exceeded."

    asyncio.run(test())


def test_old_clients_create_their_topics_and_wait() -> None:
    async def test() -> None:
        broker = await limited(1.0)
        response = await broker.ask_and_act("create_topics", CreateTopicsRequest(topics_of(4, 10), 1000), 5)
        assert [topic.error_code for topic in response.topics] == [0, 0, 0, 0]
        assert response.throttle_time_ms == 29_000

    asyncio.run(test())


def test_validation_and_errors_use_no_quota() -> None:
    async def test() -> None:
        broker = await limited(1.0)
        for _ in range(3):
            response = await broker.ask_and_act("create_topics", CreateTopicsRequest(topics_of(2, 10), 1000, True), 7)
            assert [topic.error_code for topic in response.topics] == [0, 0] and response.throttle_time_ms == 0
        for _ in range(3):
            response = await broker.ask_and_act("create_topics", CreateTopicsRequest([CreatableTopic("b@d", 10, 1)], 1000), 7)
            assert [topic.error_code for topic in response.topics] == [17] and response.throttle_time_ms == 0

    asyncio.run(test())


def test_deletions_and_new_partitions_count_as_well() -> None:
    async def test() -> None:
        broker = await limited(1.0)
        await broker.ask_and_act("create_topics", CreateTopicsRequest(topics_of(2, 5), 1000), 7)
        more = CreatePartitionsRequest([CreatePartitionsTopic("t0", 8, None), CreatePartitionsTopic("t1", 8, None)], 1000)
        response = await broker.ask_and_act("create_partitions", more, 3)
        assert [topic.error_code for topic in response.results] == [0, 89], "11 - 10 - 3 are -2"
        assert response.throttle_time_ms == 2000
        response = await broker.ask_and_act("delete_topics", DeleteTopicsRequest([DeleteTopicState("t0")], timeout_ms=1000), 6)
        assert [topic.error_code for topic in response.responses] == [89]
        broker.clock.ms += 2000
        response = await broker.ask_and_act("delete_topics", DeleteTopicsRequest(topic_names=["t0", "t1"], timeout_ms=1000), 5)
        assert sorted(topic.error_code for topic in response.responses) == [0, 89]

    asyncio.run(test())
