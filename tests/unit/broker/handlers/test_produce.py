from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.handlers.produce import validate_records
from barnabas.broker.security.access import Access
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.codecs.compression import GZIP, ZSTD
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import no_quotas
from tests.unit.broker.replicas import NOW, TOPIC_ID, TP, Replicas, records
from tests.unit.frames import joined

PRODUCE = BY_NAME["Produce"]
ALL_VERSIONS = range(14)
SINCE_V2 = range(3, 14)  # of the record format


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield replicas
    replicas.close()


class Client:
    """One request, and what came back of it."""

    def __init__(self, replicas: Replicas, message: ProduceRequest, version: int, client_id: str = "client") -> None:
        self.version = version
        self.has_left_queue = False
        self.id = "client"
        self.remote_ip = "127.0.0.1"
        self.session: object = None
        self.listener_name = "PLAINTEXT"
        connection: Any = self
        self.exchange = Exchange(connection, 0, True, 0)
        broker: Any = SimpleNamespace(
            replica_manager=replicas.manager, metadata_cache=replicas.cache, access=Access(None), quotas=no_quotas()
        )
        frame = b"".join(request_frame(message, PRODUCE, version, 7, client_id))
        RequestDispatcher(broker).dispatch(self.exchange, frame[4:])

    def request_left_queue(self, size: int) -> None:
        self.has_left_queue = True

    def answered(self) -> None:
        return None

    @property
    def is_waiting(self) -> bool:
        return self.exchange.response is None and self.has_left_queue

    @property
    def response(self) -> ProduceResponse:
        assert self.exchange.response
        frame = joined(self.exchange.response)
        _, reader = parse_response_header(frame[4:], PRODUCE.response_header_version(self.version))
        response = ProduceResponse.read(reader, self.version)
        reader.finish()
        return response

    @property
    def part(self) -> PartitionProduceResponse:
        return self.response.responses[0].partition_responses[0]


def request(
    data: Records | None, version: int, *, partition: TopicPartition = TP, topic_id: Uuid = TOPIC_ID, acks: int = -1, **more: Any
) -> ProduceRequest:
    name, uuid = ("", topic_id) if version >= 13 else (partition.topic, Uuid.ZERO)
    topics = [TopicProduceData(name, uuid, [PartitionProduceData(partition.partition, data)])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics, **more)


def produce(replicas: Replicas, version: int, data: Records | None = None, **more: Any) -> Client:
    return Client(replicas, request(data or in_the_format_of(version), version, **more), version)


def in_the_format_of(version: int, count: int = 1) -> Records:
    return records(count, magic=0 if version < 2 else 1) if version < 3 else records(count)


# -- what goes well


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_appends_and_tells_the_offset(replicas: Replicas, version: int) -> None:
    produce(replicas, version)
    part = produce(replicas, version).part
    assert (part.index, part.error_code, part.base_offset) == (0, ErrorCode.NONE, 1)
    assert part.log_start_offset == (0 if version >= 5 else -1)
    assert replicas.log().log_end_offset == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_is_named_as_it_was_asked_for(replicas: Replicas, version: int) -> None:
    topic = produce(replicas, version).response.responses[0]
    assert (topic.name, topic.topic_id) == (("", TOPIC_ID) if version >= 13 else ("orders", Uuid.ZERO))


def test_a_topic_that_stamps_its_own_time_tells_it(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"message.timestamp.type": "LogAppendTime"}))
    assert produce(replicas, 9).part.log_append_time_ms == NOW


def test_a_topic_with_the_producers_times_tells_none(replicas: Replicas) -> None:
    assert produce(replicas, 9).part.log_append_time_ms == -1


def test_partitions_are_answered_in_the_order_of_the_request(replicas: Replicas) -> None:
    for index in range(3):
        replicas.lead(TopicPartition("many", index), topic_id=Uuid.ZERO)
    parts = [PartitionProduceData(index, records()) for index in (2, 9, 0)]
    message = ProduceRequest(acks=1, topic_data=[TopicProduceData("many", Uuid.ZERO, parts)])
    response = Client(replicas, message, 9).response
    assert [(part.index, part.error_code) for part in response.responses[0].partition_responses] == [(2, 0), (9, 3), (0, 0)]


def test_acks_all_is_answered_when_the_replicas_have_it(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.follow(2, 0)
    client = produce(replicas, 9)
    assert client.is_waiting
    replicas.follow(2, 1)
    assert client.part.error_code == ErrorCode.NONE


def test_a_request_without_any_partition_is_answered(replicas: Replicas) -> None:
    assert Client(replicas, ProduceRequest(acks=-1), 9).response.responses == []


# -- acks 0


def test_acks_0_gets_no_answer(replicas: Replicas) -> None:
    client = produce(replicas, 9, acks=0)
    assert (client.exchange.response, client.exchange.closes) == ((), False)
    assert replicas.log().log_end_offset == 1


@pytest.mark.parametrize("partition", [TopicPartition("none", 0), TopicPartition("orders", 9)])
def test_acks_0_closes_the_connection_on_an_error(replicas: Replicas, partition: TopicPartition) -> None:
    client = produce(replicas, 9, acks=0, partition=partition)
    assert (client.exchange.response, client.exchange.closes) == ((), True)


def test_acks_0_without_any_partition_gets_no_answer(replicas: Replicas) -> None:
    client = Client(replicas, ProduceRequest(acks=0), 9)
    assert (client.exchange.response, client.exchange.closes) == ((), False)


# -- what is refused


def test_acks_that_do_not_exist_are_refused(replicas: Replicas) -> None:
    assert produce(replicas, 9, acks=3).part.error_code == ErrorCode.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("version", range(13))
def test_an_unknown_topic_is_told_by_name(replicas: Replicas, version: int) -> None:
    part = produce(replicas, version, partition=TopicPartition("none", 0)).part
    assert (part.error_code, part.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_an_unknown_topic_id_is_told(replicas: Replicas) -> None:
    assert produce(replicas, 13, topic_id=Uuid(b"x" * 16)).part.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_id_that_the_log_does_not_have_is_unknown(replicas: Replicas) -> None:
    newer = Uuid(b"newer".ljust(16, b"."))
    replicas.tell(topic_id=newer)
    assert produce(replicas, 13, topic_id=newer).part.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_partition_of_a_topic_id_is_told(replicas: Replicas) -> None:
    assert produce(replicas, 13, partition=TopicPartition("orders", 5)).part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", SINCE_V2)
def test_from_version_3_on_there_must_be_a_batch(replicas: Replicas, version: int) -> None:
    for nothing in (None, Records(b"")):
        assert Client(replicas, request(nothing, version), version).part.error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("version", SINCE_V2)
def test_from_version_3_on_there_may_be_no_second_batch(replicas: Replicas, version: int) -> None:
    two = Records(records().data * 2)
    assert produce(replicas, version, two).part.error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_from_version_3_on_old_formats_are_refused(replicas: Replicas, magic: int) -> None:
    part = produce(replicas, 3, records(magic=magic)).part
    assert (part.error_code, part.error_message) == (ErrorCode.INVALID_RECORD, None)


@pytest.mark.parametrize(("version", "error"), [(3, 76), (6, 76), (7, 0), (13, 0)])
def test_zstd_came_with_version_7(replicas: Replicas, version: int, error: int) -> None:
    assert produce(replicas, version, records(codec=ZSTD)).part.error_code == error


def test_other_codecs_were_always_there(replicas: Replicas) -> None:
    assert produce(replicas, 3, records(codec=GZIP)).part.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_may_send_many_entries_and_none(replicas: Replicas, version: int) -> None:
    assert produce(replicas, version, in_the_format_of(version, 3)).part.error_code == ErrorCode.NONE
    part = Client(replicas, request(Records(b""), version), version).part
    assert (part.error_code, part.base_offset) == (ErrorCode.NONE, -1)
    assert Client(replicas, request(None, version), version).part.error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("version", [7, 8, 9])
def test_rejected_records_are_named_from_version_8_on(replicas: Replicas, version: int) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"message.timestamp.before.max.ms": "1000"}))
    part = produce(replicas, version, records(2, timestamp=NOW - 5000)).part
    assert part.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in part.record_errors] == ([0, 1] if version >= 8 else [])
    assert (part.error_message is not None) == (version >= 8)


def test_internal_topics_are_for_kafkas_own_tools(replicas: Replicas) -> None:
    internal = TopicPartition("__consumer_offsets", 0)
    replicas.lead(internal, topic_id=Uuid.ZERO)
    message = request(records(), 9, partition=internal)
    assert Client(replicas, message, 9).part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert Client(replicas, message, 9, "__admin_client").part.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (8, b"\x00\x00\x00\x03", "Record size 3 is less than the minimum record overhead (14)"),
        (8, b"\xff\xff\xff\xff", "Record size -1 is less than the minimum record overhead (14)"),
        (16, b"\x09", "Invalid magic found in record: 9"),
        (8, b"\x00\x00\x00\x14", None),
    ],
)
def test_a_batch_with_an_impossible_header_is_corrupt(replicas: Replicas, at: int, value: bytes, message: str | None) -> None:
    data = records().data
    part = produce(replicas, 9, Records(data[:at] + value + data[at + len(value) :])).part
    assert (part.error_code, part.error_message) == (ErrorCode.CORRUPT_MESSAGE, message)


# -- transactions


TRANSACTIONAL = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def test_transactional_records_without_an_id_are_nobodys(replicas: Replicas) -> None:
    part = produce(replicas, 9, records(**TRANSACTIONAL)).part
    assert part.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# -- who leads instead


@pytest.mark.parametrize("version", [9, 10, 13])
def test_from_version_10_on_the_leader_is_named(replicas: Replicas, version: int) -> None:
    replicas.lead(leader=2, epoch=4, replicas=(1, 2))
    client = produce(replicas, version)
    assert client.part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader, nodes = client.part.current_leader, client.response.node_endpoints
    if version < 10:
        assert (leader, nodes) == (None, [])
    else:
        assert leader is not None
        assert (leader.leader_id, leader.leader_epoch) == (2, 4)
        assert [(node.node_id, node.host, node.port) for node in nodes] == [(2, "host2", 9094)]


def test_a_leader_this_broker_only_heard_of_is_named_too(replicas: Replicas) -> None:
    away = TopicPartition("away", 0)
    replicas.tell(away, leader=2, epoch=8, replicas=(2,), topic_id=Uuid.ZERO)
    leader = produce(replicas, 10, partition=away).part.current_leader
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (2, 8)


# -- hostile records


@settings(max_examples=200)
@given(st.binary(max_size=120), st.sampled_from(ALL_VERSIONS))
def test_no_bytes_bring_the_check_of_records_down(data: bytes, version: int) -> None:
    try:
        validate_records(version, Records(data))
    except KafkaError as error:
        assert error.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_batch_is_refused_or_appended_and_nothing_else(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    damaged = bytearray(records(2).data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    replicas = Replicas(tmp_path_factory.mktemp("damaged"))
    replicas.lead()
    part = produce(replicas, 9, Records(bytes(damaged))).part
    assert part.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
    assert (part.error_code == ErrorCode.NONE) == (replicas.log().log_end_offset > 0)
    replicas.close()
