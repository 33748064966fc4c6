"""What Produce and Fetch refuse a client that an authorizer does not allow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from barnabas.protocol.messages.fetch_response import FetchResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import id_of
from tests.unit.broker.handlers.granting import decisions, granting
from tests.unit.broker.handlers.leader import Asked, Leader, batch, with_leader
from tests.unit.broker.handlers.test_transactional_produce import produce
from tests.unit.broker.replicas import Replicas
from tests.unit.broker.verifying import ID, PRODUCER, Verifying, transactional

DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
UNKNOWN_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
ID_DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
MANY = ELEMENTS_AT_ONCE + 10
NAMES = ("t", "u", "v", "w")  # t and u exist


def lead(leader: Leader, *grants: str) -> None:
    leader.create_topic("t", topic_id=id_of("t"))
    leader.create_topic("u", topic_id=id_of("u"))
    leader.access = granting(*grants)


def name_of(name: str, topic_id: Uuid) -> str:
    return name or topic_id.value.decode().strip(".")


def produced(response: ProduceResponse) -> list[tuple[str, int]]:
    return [
        (topic.name or topic.topic_id.value.decode().strip("."), part.error_code)
        for topic in response.responses
        for part in topic.partition_responses
    ]


def produce_request(version: int, acks: int = 1, names: tuple[str, ...] = NAMES) -> ProduceRequest:
    data = [PartitionProduceData(0, Records(batch(magic=2 if version >= 3 else 1)))]
    topics = [TopicProduceData("", id_of(name), data) if version >= 13 else TopicProduceData(name, Uuid.ZERO, data) for name in names]
    return ProduceRequest(None, acks, 1000, topics)


@pytest.mark.parametrize("version", range(14))
def test_records_need_write_on_the_topic(tmp_path: Path, version: int) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "WRITE topic t", "WRITE topic v", "READ topic u")
        response = await leader.ask(api_keys.PRODUCE, produce_request(version), version).answer()
        unknown = [("v", UNKNOWN_ID), ("w", UNKNOWN_ID)] if version >= 13 else [("v", UNKNOWN), ("w", DENIED)]
        assert produced(response) == [("t", 0), ("u", DENIED), *unknown]
        assert [leader.log(name).log_end_offset for name in ("t", "u")] == [1, 0]

    with_leader(tmp_path, use)


def test_denied_records_without_acknowledgement_close_the_connection(tmp_path: Path) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "WRITE topic t")
        assert leader.ask(api_keys.PRODUCE, produce_request(9, acks=0, names=("u",)), 9).exchange.closes
        assert not leader.ask(api_keys.PRODUCE, produce_request(9, acks=0, names=("t",)), 9).exchange.closes

    with_leader(tmp_path, use)


def test_records_for_many_partitions_are_checked_as_well(tmp_path: Path) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "WRITE topic t")
        data = [PartitionProduceData(index, Records(batch())) for index in range(MANY)]
        request = ProduceRequest(None, 1, 1000, [TopicProduceData("u", partition_data=data), TopicProduceData("t", partition_data=data)])
        response = await leader.ask(api_keys.PRODUCE, request, 9).answer()
        denied, allowed = ([part.error_code for part in topic.partition_responses] for topic in response.responses)
        assert denied == [DENIED] * MANY
        assert allowed == [0] + [UNKNOWN] * (MANY - 1)
        assert leader.log("u").log_end_offset == 0

    with_leader(tmp_path, use)


@pytest.fixture
def verifying(tmp_path: Path) -> Iterator[Verifying]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield Verifying(replicas)
    replicas.close()


def codes(pending: Asked) -> list[int]:
    return [part.error_code for part in pending.response().responses[0].partition_responses]


@pytest.mark.parametrize("version", range(3, 14))
def test_records_of_a_transaction_need_write_on_the_id_and_on_the_topic(verifying: Verifying, version: int) -> None:
    assert codes(produce(verifying, version, access=granting("WRITE topic orders"))) == [ID_DENIED]
    assert codes(produce(verifying, version, access=granting(f"WRITE transactional_id {ID}"))) == [DENIED]
    assert codes(produce(verifying, version, access=granting("WRITE topic orders", "WRITE transactional_id other"))) == [ID_DENIED]
    assert verifying.verifier.asked == []
    assert codes(produce(verifying, version, access=granting("WRITE topic orders", f"WRITE transactional_id {ID}"))) == [0]


def test_records_of_a_transaction_without_an_id_are_refused_whatever_is_granted(verifying: Verifying) -> None:
    access = granting("WRITE topic orders", "WRITE transactional_id ", f"WRITE transactional_id {ID}")
    assert codes(produce(verifying, 9, sent_as=None, access=access)) == [ID_DENIED]


def test_one_transactional_batch_among_others_is_enough_for_the_check(verifying: Verifying) -> None:
    """Kafka once looked at the first partition only (CVE-2018-17196)."""
    verifying.replicas.lead(TopicPartition("orders", 1))
    data = {0: Records(batch()), 1: transactional()}
    assert codes(produce(verifying, 9, data, access=granting("WRITE topic orders"))) == [ID_DENIED, ID_DENIED]


def test_plain_records_do_not_need_the_id_that_a_request_names(verifying: Verifying) -> None:
    access = granting("WRITE topic orders")
    assert codes(produce(verifying, 9, {0: Records(batch())}, access=access)) == [0]
    assert decisions(access) == ["WRITE topic orders"]


@pytest.mark.parametrize("version", range(3))
def test_old_requests_cannot_hide_a_transactional_batch_behind_another(tmp_path: Path, version: int) -> None:
    """Before version 3 a request may have several batches for a partition."""

    async def use(leader: Leader) -> None:
        lead(leader, "WRITE topic t")
        hidden = transactional()
        for first in (batch(magic=1), batch()):
            records = Records(first + hidden.data[hidden.start : hidden.end])
            request = ProduceRequest(None, 1, 1000, [TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])])
            response = await leader.ask(api_keys.PRODUCE, request, version).answer()
            assert response.responses[0].partition_responses[0].error_code != 0
        assert leader.log("t").log_end_offset == 0

    with_leader(tmp_path, use)


def test_idempotent_records_need_write_on_the_topic(tmp_path: Path) -> None:
    """A producer id alone allows nothing (CVE-2018-17196)."""

    async def use(leader: Leader) -> None:
        lead(leader, "IDEMPOTENT_WRITE cluster", "WRITE topic t")
        data = [PartitionProduceData(0, Records(batch(producer_id=PRODUCER, producer_epoch=0, base_sequence=0)))]
        request = ProduceRequest(None, 1, 1000, [TopicProduceData(name, partition_data=data) for name in ("t", "u")])
        assert produced(await leader.ask(api_keys.PRODUCE, request, 9).answer()) == [("t", 0), ("u", DENIED)]

    with_leader(tmp_path, use)


def fetch_request(version: int, names: tuple[str, ...] = NAMES, replica_id: int = -1, **settings: Any) -> FetchRequest:
    partitions = [FetchPartition(0, partition_max_bytes=1000)]
    topics = [FetchTopic("", id_of(name), partitions) if version >= 13 else FetchTopic(name, Uuid.ZERO, partitions) for name in names]
    if version >= 15:
        settings["replica_state"] = ReplicaState(replica_id, -1)
    else:
        settings["replica_id"] = replica_id
    return FetchRequest(max_wait_ms=0, topics=topics, **settings)


def fetched(response: FetchResponse) -> dict[str, tuple[int, int]]:
    """The error of each topic, and the number of bytes."""
    return {
        name_of(topic.topic, topic.topic_id): (part.error_code, 0 if part.records is None else part.records.end - part.records.start)
        for topic in response.responses
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(19))
def test_a_consumer_needs_read_on_the_topic(tmp_path: Path, version: int) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "READ topic t", "READ topic v", "DESCRIBE topic u", "CLUSTER_ACTION cluster")
        size = len(batch(magic=1 if version >= 2 else 0)) if version < 4 else len(batch())
        for name in ("t", "u"):
            leader.produce(name, data=batch(magic=2))
        answers = fetched(await leader.ask(api_keys.FETCH, fetch_request(version), version).answer())
        by_id = version >= 13
        assert answers["u"] == (DENIED, 0)
        assert answers["t"] == (0, size)
        assert answers["v"] == (UNKNOWN_ID if by_id else UNKNOWN, 0)
        assert answers["w"] == (UNKNOWN_ID if by_id else DENIED, 0)

    with_leader(tmp_path, use)


@pytest.mark.parametrize("version", range(4, 19))
def test_a_follower_needs_cluster_action(tmp_path: Path, version: int) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "READ topic t", "READ topic u")
        denied = await leader.ask(api_keys.FETCH, fetch_request(version, replica_id=2), version).answer()
        assert fetched(denied) == dict.fromkeys(NAMES, (DENIED, 0))
        assert decisions(leader.access) == ["CLUSTER_ACTION cluster"]
        leader.access = granting("CLUSTER_ACTION cluster")
        allowed = fetched(await leader.ask(api_keys.FETCH, fetch_request(version, replica_id=2), version).answer())
        assert all(code != DENIED for code, _ in allowed.values())

    with_leader(tmp_path, use)


def test_what_a_session_fetches_is_checked_with_every_fetch(tmp_path: Path) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "READ topic t", "READ topic u")
        leader.produce("t")
        first = await leader.ask(api_keys.FETCH, fetch_request(12, ("t", "u"), session_epoch=0), 12).answer()
        assert fetched(first)["t"][0] == 0
        leader.access = granting("READ topic u")
        following = FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
        assert fetched(await leader.ask(api_keys.FETCH, following, 12).answer()) == {"t": (DENIED, 0)}

    with_leader(tmp_path, use)


def test_a_fetch_of_many_partitions_is_checked_once_for_each_topic(tmp_path: Path) -> None:
    async def use(leader: Leader) -> None:
        lead(leader, "READ topic t")
        partitions = [FetchPartition(index, partition_max_bytes=1000) for index in range(MANY)]
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(name, partitions=partitions) for name in ("u", "t")])
        response = await leader.ask(api_keys.FETCH, request, 12).answer()
        answers = {(topic.topic, part.partition_index): part.error_code for topic in response.responses for part in topic.partitions}
        expected = {("t", 0): 0} | {("t", index): UNKNOWN for index in range(1, MANY)} | {("u", index): DENIED for index in range(MANY)}
        assert answers == expected
        assert decisions(leader.access) == ["READ topic u", "READ topic t"]

    with_leader(tmp_path, use)
