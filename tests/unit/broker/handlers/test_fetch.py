from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.protocol.slices import Streamed
from barnabas.records.batch import read_batches
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.records.control import end_txn_marker
from barnabas.records.reader import records_of
from barnabas.records.validation.validation import COORDINATOR
from barnabas.storage.disk import files
from barnabas.storage.disk.files import File, Files
from barnabas.storage.log_config import LogConfig
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.leader import OTHER_BROKER, Asked, Leader, batch, with_leader

FOO_ID = Uuid(b"foo-foo-foo-foo-")
BAR_ID = Uuid(b"bar-bar-bar-bar-")
ALL_VERSIONS = range(FetchRequest.HIGHEST_VERSION + 1)


def only(response: FetchResponse) -> PartitionData:
    [topic] = response.responses
    [answer] = topic.partitions
    return answer


def values(answer: PartitionData) -> list[bytes | None]:
    assert answer.records is not None
    return [record.value for record in records_of(answer.records.to_bytes())]


def offsets(answer: PartitionData) -> list[int]:
    assert answer.records is not None
    return [record.offset for record in records_of(answer.records.to_bytes())]


# What is read


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_gets_the_records(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        leader.produce("foo", count=3)
        topic, topic_id = ("", FOO_ID) if version >= 13 else ("foo", Uuid.ZERO)
        answer = only(await leader.fetch(topic, version=version, topic_id=topic_id).answer())
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 3)
        assert values(answer) == [b"A" * 10, b"B" * 10, b"C" * 10]

    with_leader(tmp_path, test)


def test_the_bytes_are_those_of_the_file(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(50, codec=ZSTD))
        leader.produce("foo", data=batch(500, codec=GZIP))
        answer = only(leader.fetch("foo").response())
        assert answer.records is not None
        assert answer.records.to_bytes() == (tmp_path / "foo-0" / "00000000000000000000.log").read_bytes()

    with_leader(tmp_path, test)


def test_the_offsets_of_the_log_go_along(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=3)
        leader.log("foo").increment_log_start_offset(2, "test")
        answer = only(leader.fetch("foo", 2).response())
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 3, 2)
        assert answer.aborted_transactions is None
        assert answer.preferred_read_replica == -1

    with_leader(tmp_path, test)


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_outside_the_log_is_out_of_range(tmp_path: Path, offset: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=3)
        answer = only(leader.fetch("foo", offset, max_wait_ms=100).response())
        assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)
        assert answer.records is not None
        assert answer.records.size == 0

    with_leader(tmp_path, test)


def test_partition_max_bytes_bounds_all_but_the_first_batch(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        for _ in range(3):
            leader.produce("foo", data=batch(1, size=1000))
        assert offsets(only(leader.fetch("foo", partition_max_bytes=1).response())) == [0]
        assert offsets(only(leader.fetch("foo", partition_max_bytes=2500).response())) == [0, 1]

    with_leader(tmp_path, test)


def test_max_bytes_is_shared_by_the_partitions(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 3)
        for index in range(3):
            leader.produce("foo", index, batch(1, size=1000))
        partitions = [FetchPartition(index, partition_max_bytes=10_000) for index in range(3)]
        message = FetchRequest(max_bytes=1500, topics=[FetchTopic("foo", partitions=partitions)])
        [topic] = leader.ask(api_keys.FETCH, message, 12).response().responses
        assert [answer.records.size > 0 for answer in topic.partitions] == [True, False, False]

    with_leader(tmp_path, test)


def test_the_broker_bounds_a_fetch_by_fetch_max_bytes(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        for _ in range(4):
            leader.produce("foo", data=batch(1, size=1000))
        answer = only(leader.fetch("foo").response())
        assert offsets(answer) == [0, 1]

    with_leader(tmp_path, test, {"fetch.max.bytes": "2500"})


@pytest.mark.parametrize("size", [-1, 0, -(2**31)])
def test_sizes_without_sense_do_no_harm(tmp_path: Path, size: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        for how in ({"max_bytes": size}, {"partition_max_bytes": size}, {"min_bytes": size}, {"max_wait_ms": size}):
            assert leader.fetch("foo", **how).is_answered

    with_leader(tmp_path, test)


def test_an_isolation_level_that_is_none_is_refused_for_all(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        response = leader.fetch("foo", isolation_level=7).response()
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert only(response).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        by_id = leader.fetch("", version=13, topic_id=FOO_ID, isolation_level=7).response()
        assert (by_id.error_code, by_id.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])

    with_leader(tmp_path, test)


# Transactions


def produce_transaction(leader: Leader, *, ends: bool | None = None) -> None:
    """One record of a transaction, which is committed, aborted, or still open."""
    data = batch(1, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    leader.produce("foo", data=data, origin=COORDINATOR)
    if ends is not None:
        leader.produce("foo", data=end_txn_marker(ends, 5, 0, 0, leader.clock.now_ms(), 0), origin=COORDINATOR)


def test_read_committed_ends_where_a_transaction_is_open(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        produce_transaction(leader)
        committed = only(leader.fetch("foo", isolation_level=1).response())
        assert (offsets(committed), committed.last_stable_offset, committed.high_watermark) == ([0], 1, 2)
        assert committed.aborted_transactions == []
        assert offsets(only(leader.fetch("foo").response())) == [0, 1]

    with_leader(tmp_path, test)


def test_read_committed_hears_of_aborted_transactions(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        produce_transaction(leader, ends=False)
        answer = only(leader.fetch("foo", isolation_level=1).response())
        assert answer.aborted_transactions is not None
        assert [(aborted.producer_id, aborted.first_offset) for aborted in answer.aborted_transactions] == [(5, 1)]
        assert only(leader.fetch("foo").response()).aborted_transactions is None

    with_leader(tmp_path, test)


def test_a_read_committed_fetch_waits_for_the_end_of_a_transaction(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        produce_transaction(leader)
        pending = leader.fetch("foo", isolation_level=1, max_wait_ms=500, min_bytes=1)
        assert pending.is_waiting
        leader.produce("foo", data=end_txn_marker(True, 5, 0, 0, leader.clock.now_ms(), 0), origin=COORDINATOR)
        assert values(only(pending.response()))[0] == b"A" * 10

    with_leader(tmp_path, test)


def test_an_old_client_gets_no_markers(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        produce_transaction(leader, ends=True)
        leader.produce("foo")
        assert offsets(only(await leader.fetch("foo", version=3).answer())) == [0, 2]

    with_leader(tmp_path, test)


# Waiting


def test_a_fetch_waits_until_there_is_something(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = leader.fetch("foo", max_wait_ms=500, min_bytes=1)
        assert pending.is_waiting
        leader.produce("foo")
        assert offsets(only(pending.response())) == [0]

    with_leader(tmp_path, test)


def test_a_fetch_waits_until_there_is_enough(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = leader.fetch("foo", max_wait_ms=500, min_bytes=100)
        leader.produce("foo")
        assert pending.is_waiting
        leader.produce("foo")
        assert offsets(only(pending.response())) == [0, 1]

    with_leader(tmp_path, test)


def test_a_fetch_is_answered_with_what_there_is_when_its_time_is_over(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = leader.fetch("foo", max_wait_ms=500, min_bytes=100)
        leader.pass_time(499)
        assert pending.is_waiting
        leader.pass_time(2)
        answer = only(pending.response())
        assert (answer.error_code, answer.records.size if answer.records else 0) == (ErrorCode.NONE, 0)

    with_leader(tmp_path, test)


def test_a_fetch_that_cannot_be_satisfied_does_not_wait(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = leader.fetch("nowhere", max_wait_ms=500, min_bytes=1)
        assert only(pending.response()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_leader(tmp_path, test)


def test_min_bytes_is_no_more_than_the_broker_would_send(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        for _ in range(3):
            leader.produce("foo", data=batch(1, size=1000))
        assert leader.fetch("foo", max_wait_ms=500, min_bytes=2**31 - 1).is_answered

    with_leader(tmp_path, test, {"fetch.max.bytes": "1024"})


def test_a_waiting_fetch_is_answered_when_another_broker_takes_over(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        pending = leader.fetch("", version=16, topic_id=FOO_ID, max_wait_ms=500, min_bytes=1, current_leader_epoch=0)
        assert pending.is_waiting
        leader.create_topic("foo", topic_id=FOO_ID, leader=OTHER_BROKER, leader_epoch=1, replicas=(1, 2))
        assert only(pending.response()).error_code == ErrorCode.FENCED_LEADER_EPOCH

    with_leader(tmp_path, test)


# Who leads


def test_a_partition_that_is_elsewhere_names_its_leader(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID, leader=OTHER_BROKER, leader_epoch=4, replicas=(OTHER_BROKER,), hosted=False)
        response = leader.fetch("", version=16, topic_id=FOO_ID).response()
        answer = only(response)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader is not None
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (OTHER_BROKER, 4)
        [node] = response.node_endpoints
        assert (node.node_id, node.host, node.port, node.rack) == (OTHER_BROKER, "host2", 9093, "rack2")

    with_leader(tmp_path, test)


def test_before_version_16_the_leader_is_not_named(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID, leader=OTHER_BROKER, replicas=(OTHER_BROKER,), hosted=False)
        response = leader.fetch("", version=15, topic_id=FOO_ID).response()
        assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert only(response).current_leader is None
        assert response.node_endpoints == []

    with_leader(tmp_path, test)


@pytest.mark.parametrize(
    ("epoch", "error"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.NONE), (4, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.NONE)]
)
def test_the_leader_epoch_of_the_client_is_checked(tmp_path: Path, epoch: int, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", leader_epoch=3)
        assert only(leader.fetch("foo", current_leader_epoch=epoch).response()).error_code == error

    with_leader(tmp_path, test)


def test_a_fetcher_whose_history_differs_is_told_where_it_ends(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", leader_epoch=1)
        leader.produce("foo", count=2)
        leader.create_topic("foo", leader_epoch=3)
        leader.produce("foo")
        answer = only(leader.fetch("foo", 3, last_fetched_epoch=2).response())
        assert answer.diverging_epoch is not None
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, 2)

    with_leader(tmp_path, test)


def test_a_follower_sees_up_to_the_log_end_and_moves_the_high_watermark(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(1, OTHER_BROKER))
        leader.produce("foo", count=2)
        assert offsets(only(leader.fetch("foo").response())) == []
        assert offsets(only(leader.fetch("foo", replica_id=OTHER_BROKER).response())) == [0, 1]
        leader.fetch("foo", 2, replica_id=OTHER_BROKER)
        assert offsets(only(leader.fetch("foo").response())) == [0, 1]

    with_leader(tmp_path, test)


def test_from_version_15_on_the_replica_state_says_who_fetches(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(1, OTHER_BROKER), topic_id=FOO_ID)
        leader.produce("foo")
        follower = leader.fetch("", version=15, topic_id=FOO_ID, replica_state=ReplicaState(OTHER_BROKER, 9))
        assert offsets(only(follower.response())) == [0]
        assert offsets(only(leader.fetch("", version=15, topic_id=FOO_ID).response())) == []

    with_leader(tmp_path, test)


# Topic ids


def test_an_id_that_is_not_known_is_an_error_of_its_partitions(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        leader.produce("foo")
        topics = [FetchTopic("", topic_id, [FetchPartition(partition_max_bytes=1000)]) for topic_id in (BAR_ID, FOO_ID, Uuid.ZERO)]
        response = leader.ask(api_keys.FETCH, FetchRequest(topics=topics), 13).response()
        errors = {topic.topic_id: topic.partitions[0].error_code for topic in response.responses}
        assert response.error_code == ErrorCode.NONE
        assert errors == {FOO_ID: ErrorCode.NONE, BAR_ID: ErrorCode.UNKNOWN_TOPIC_ID, Uuid.ZERO: ErrorCode.UNKNOWN_TOPIC_ID}

    with_leader(tmp_path, test)


def test_a_partition_that_a_known_id_does_not_have_is_unknown(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        for partition in (1, -1, 2**31 - 1):
            answer = only(leader.fetch("", version=13, topic_id=FOO_ID, partition=partition).response())
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_leader(tmp_path, test)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        session_id = leader.fetch("", version=13, topic_id=FOO_ID, session_epoch=0).response().session_id
        leader.delete_topic("foo")
        leader.create_topic("foo", topic_id=BAR_ID)
        response = leader.ask(api_keys.FETCH, FetchRequest(session_id=session_id, session_epoch=1), 13).response()
        assert only(response).error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    with_leader(tmp_path, test)


def test_a_topic_that_was_deleted_is_unknown_to_a_session(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        session_id = leader.fetch("", version=13, topic_id=FOO_ID, session_epoch=0).response().session_id
        leader.delete_topic("foo")
        response = leader.ask(api_keys.FETCH, FetchRequest(session_id=session_id, session_epoch=1), 13).response()
        assert only(response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert only(leader.fetch("", version=13, topic_id=FOO_ID).response()).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    with_leader(tmp_path, test)


# Sessions and hostile lists


def test_a_session_hears_only_of_what_has_changed(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 3)
        partitions = [FetchPartition(index, partition_max_bytes=1000) for index in range(3)]
        first = leader.ask(api_keys.FETCH, FetchRequest(session_epoch=0, topics=[FetchTopic("foo", partitions=partitions)]), 12).response()
        assert [answer.partition_index for answer in first.responses[0].partitions] == [0, 1, 2]
        leader.produce("foo", 1)
        follow_up = FetchRequest(session_id=first.session_id, session_epoch=1)
        [topic] = leader.ask(api_keys.FETCH, follow_up, 12).response().responses
        assert [answer.partition_index for answer in topic.partitions] == [1]

    with_leader(tmp_path, test)


def test_a_session_forgets_a_topic_by_its_id(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", topic_id=FOO_ID)
        leader.create_topic("bar", topic_id=BAR_ID)
        topics = [FetchTopic("", topic_id, [FetchPartition(partition_max_bytes=1000)]) for topic_id in (FOO_ID, BAR_ID)]
        session_id = leader.ask(api_keys.FETCH, FetchRequest(session_epoch=0, topics=topics), 13).response().session_id
        leader.produce("foo")
        leader.produce("bar")
        forget = FetchRequest(session_id=session_id, session_epoch=1, forgotten_topics_data=[ForgottenTopic("", FOO_ID, [0, 5])])
        [topic] = leader.ask(api_keys.FETCH, forget, 13).response().responses
        assert topic.topic_id == BAR_ID

    with_leader(tmp_path, test)


def test_an_unknown_session_is_told_at_once(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        response = leader.fetch("foo", session_id=3, session_epoch=4, max_wait_ms=500).response()
        assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])

    with_leader(tmp_path, test)


def test_a_partition_named_a_thousand_times_is_read_once(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        topics = [FetchTopic("foo", partitions=[FetchPartition(partition_max_bytes=1000)] * 10)] * 100
        assert offsets(only(await leader.ask(api_keys.FETCH, FetchRequest(topics=topics), 12).answer())) == [0]

    with_leader(tmp_path, test)


def test_a_fetch_of_nothing_is_answered_with_nothing(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        assert leader.ask(api_keys.FETCH, FetchRequest(max_wait_ms=500, min_bytes=1), 12).response().responses == []

    with_leader(tmp_path, test)


# Old clients


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4])
def test_old_clients_get_the_format_they_know(tmp_path: Path, version: int, magic: int, codec: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(3, codec=codec))
        leader.produce("foo", data=batch(2, codec=codec))
        read: list[int] = []
        while len(read) < 5:
            answer = only(await leader.fetch("foo", len(read), version=version).answer())
            assert answer.records is not None
            assert {read.magic for read in read_batches(answer.records.to_bytes())} == {magic}
            read += [offset for offset in offsets(answer) if offset >= len(read)]
        assert read == [0, 1, 2, 3, 4]

    with_leader(tmp_path, test)


def test_an_old_client_that_asks_from_the_middle_of_a_batch_gets_that_record_first(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        assert offsets(only(await leader.fetch("foo", 3, version=2).answer())) == [3, 4]

    with_leader(tmp_path, test)


@pytest.mark.parametrize("version", range(4))
def test_zstd_topics_are_refused_to_clients_that_cannot_read_them(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", config=LogConfig.from_properties({"compression.type": "zstd"}))
        leader.produce("foo")
        answer = only(await leader.fetch("foo", version=version).answer())
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize("version", [4, 9, 10])
def test_others_read_zstd_topics(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", config=LogConfig.from_properties({"compression.type": "zstd"}))
        leader.produce("foo")
        assert offsets(only(leader.fetch("foo", version=version).response())) == [0]

    with_leader(tmp_path, test)


def test_a_zstd_batch_cannot_be_converted(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        leader.produce("foo", data=batch(2, codec=ZSTD))
        assert offsets(only(await leader.fetch("foo", version=3).answer())) == [0]
        answer = only(await leader.fetch("foo", 1, version=3).answer())
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    with_leader(tmp_path, test)


def test_conversion_can_be_switched_off(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        assert only(await leader.fetch("foo", version=3).answer()).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert only(leader.fetch("foo", version=4).response()).error_code == ErrorCode.NONE

    with_leader(tmp_path, test, {"log.message.downconversion.enable": "false"})


def test_conversion_can_be_switched_off_for_a_topic(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        for topic in ("foo", "bar"):
            leader.create_topic(topic)
            leader.produce(topic)
        leader.log_manager.update_topic_config("foo", LogConfig.from_properties({"message.downconversion.enable": "false"}))
        assert only(await leader.fetch("foo", version=3).answer()).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert only(leader.fetch("foo", version=4).response()).error_code == ErrorCode.NONE
        assert offsets(only(await leader.fetch("bar", version=3).answer())) == [0]

    with_leader(tmp_path, test)


def test_a_batch_too_large_for_an_old_client_is_the_beginning_of_a_message(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", data=batch(1, size=1000))
        answer = only(await leader.fetch("foo", version=2, partition_max_bytes=100).answer())
        assert answer.error_code == ErrorCode.NONE
        assert answer.records is not None
        assert answer.records.to_bytes() == b"\xff" * 8 + (61).to_bytes(4, "big")

    with_leader(tmp_path, test)


@pytest.mark.parametrize(("version", "error"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)])
def test_a_failed_disk_is_told_in_words_the_client_knows(tmp_path: Path, version: int, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        leader.replica_manager.log_dir_failed(str(tmp_path))
        assert only(await leader.fetch("foo", version=version).answer()).error_code == error

    with_leader(tmp_path, test)


# The disk


def in_pure_python(test: Callable[[Path], None]) -> Callable[[Path], None] | None:
    """Compiled classes cannot be derived from: where they are compiled there is no such test, `make unit-pure` runs it."""
    return test if (files.__file__ or "").endswith(".py") else None


class ColdFiles(Files):
    """A page cache that has nothing: whatever a fetch wants would have to be waited for."""

    def open(self, path: str, **how: Any) -> Any:
        file = super().open(path, **how)
        return ColdFile(self.pool, path, file.size, file.flags) if path.endswith(".log") else file


class ColdFile(File):
    __slots__ = ()

    def pread_nowait(self, size: int, position: int) -> bytes | None:
        return None


class HeldThreads(Executor):
    """Runs what it was given when told."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(call(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        self.held.append(run)
        return future

    def run(self) -> None:
        held, self.held = self.held, []
        for call in held:
            call()


async def turns_of_the_loop(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_pure_python
def test_what_the_page_cache_has_not_is_read_in_a_thread(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 2)
        leader.disk_threads = threads = HeldThreads()
        for index in range(2):
            leader.produce("foo", index)
        partitions = [FetchPartition(index, partition_max_bytes=1000) for index in range(2)]
        request = leader.ask(api_keys.FETCH, FetchRequest(topics=[FetchTopic("foo", partitions=partitions)]), 12)
        await turns_of_the_loop()
        assert not request.is_answered
        assert len(threads.held) == 2  # side by side
        threads.run()
        [topic] = (await request.answer()).responses
        assert [offsets(answer) for answer in topic.partitions] == [[0], [0]]

    with_leader(tmp_path, test, files=ColdFiles())


@in_pure_python
def test_a_file_is_pinned_while_a_thread_reads_it(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.disk_threads = threads = HeldThreads()
        leader.produce("foo")
        file: Any = leader.log("foo").active_segment.file
        request = leader.fetch("foo")
        await turns_of_the_loop()
        assert file.pins == 1
        threads.run()
        await request.answer()
        assert file.pins == 0

    with_leader(tmp_path, test, files=ColdFiles())


class FailingThreads(Executor):
    """Reads of the file of one topic fail in its threads."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        result = call(*args, **kwargs)
        if "bad-0" in args[0].file.path:
            future.set_exception(OSError(errno.EIO, "Input/output error"))
        else:
            future.set_result(result)
        return future


@in_pure_python
def test_a_read_that_fails_is_an_error_of_its_partition(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.disk_threads = FailingThreads()
        errors = {}
        for topic in ("bad", "good"):
            leader.create_topic(topic)
            leader.produce(topic)
        topics = [FetchTopic(topic, partitions=[FetchPartition(partition_max_bytes=1000)]) for topic in ("bad", "good")]
        for answered in (await leader.ask(api_keys.FETCH, FetchRequest(topics=topics), 12).answer()).responses:
            errors[answered.topic] = answered.partitions[0].error_code
        assert errors == {"bad": ErrorCode.KAFKA_STORAGE_ERROR, "good": ErrorCode.NONE}

    with_leader(tmp_path, test, files=ColdFiles())


def large_fetch(leader: Leader, partitions: int = 8, version: int = 12) -> Asked:
    leader.create_topic("foo", partitions)
    for index in range(partitions):
        leader.produce("foo", index, batch(1, size=900_000))
    partitions_asked = [FetchPartition(index, partition_max_bytes=1_000_000) for index in range(partitions)]
    return leader.ask(api_keys.FETCH, FetchRequest(topics=[FetchTopic("foo", partitions=partitions_asked)]), version)


def test_a_large_fetch_is_answered_without_being_read(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        request = large_fetch(leader)
        assert request.exchange.response is not None
        assert [part.size > 900_000 for part in request.exchange.response if isinstance(part, Streamed)] == [True] * 8
        [topic] = request.response().responses
        assert [offsets(answer) for answer in topic.partitions] == [[0]] * 8

    with_leader(tmp_path, test)


def test_a_large_fetch_can_be_read_after_its_topic_is_gone(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        request = large_fetch(leader)
        files: list[Any] = [leader.log("foo", index).active_segment.file for index in range(8)]
        leader.delete_topic("foo", 8)
        for file in files:
            file.close()
        [topic] = request.response().responses
        assert [offsets(answer) for answer in topic.partitions] == [[0]] * 8
        assert [file.pins for file in files] == [0] * 8

    with_leader(tmp_path, test)


def test_a_large_fetch_that_nobody_takes_lets_its_files_go(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        request = large_fetch(leader)
        files: list[Any] = [leader.log("foo", index).active_segment.file for index in range(8)]
        assert [file.pins for file in files] == [1] * 8
        request.exchange.abandon()
        assert [file.pins for file in files] == [0] * 8

    with_leader(tmp_path, test)


def test_an_old_client_gets_a_large_fetch_converted(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        [topic] = (await large_fetch(leader, version=3).answer()).responses
        assert [offsets(answer) for answer in topic.partitions] == [[0]] * 8

    with_leader(tmp_path, test)


def test_a_file_that_is_cut_while_it_is_sent_is_an_error_of_reading(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        request = large_fetch(leader, 2)
        leader.log("foo").active_segment.file.truncate(500_000)
        assert request.exchange.response is not None
        part, other = [part for part in request.exchange.response if isinstance(part, Streamed)]
        with pytest.raises(OSError, match="truncated while it was being sent"):
            part.source.read_nowait(0, part.size)
        part.source.close()
        other.source.close()

    with_leader(tmp_path, test)


@in_pure_python
def test_a_cold_piece_is_read_in_a_thread_and_outlives_its_reader(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.disk_threads = threads = HeldThreads()
        request = large_fetch(leader, 2)
        file: Any = leader.log("foo").active_segment.file
        assert request.exchange.response is not None
        part, other = [part for part in request.exchange.response if isinstance(part, Streamed)]
        answered: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        assert part.source.read_nowait(0, 1000) is None
        part.source.read_later(100, 1000, lambda piece, error: answered.set_result(piece))
        part.source.close()
        other.source.close()
        assert file.pins == 1
        threads.run()
        assert await answered == file.pread(1000, 100)
        assert file.pins == 0

    with_leader(tmp_path, test, files=ColdFiles())


def test_a_waiting_fetch_that_fails_closes_its_own_connection_only(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = leader.fetch("foo", max_wait_ms=500, min_bytes=1, session_epoch=0)
        times = iter([0])  # the partitions are read at that time; what cannot be, breaks: the new session has none
        leader.clock.monotonic_ms = lambda: next(times)  # type: ignore[method-assign]
        leader.produce("foo")
        assert pending.is_refused

    with_leader(tmp_path, test)
