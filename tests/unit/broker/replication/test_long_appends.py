"""Batches that take longer than a turn of the loop: decompressed in a thread, validated in slices, appended at the log end of then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.codecs.compression import FIRST_LOOK, GZIP, LZ4, PRODUCED_SIZE_OF_ANY_RATIO
from barnabas.records.reader import records_of
from tests.unit.broker.handlers.leader import DEADLINE_S, NOW, Asked, Leader, with_leader

SMALL = build([(NOW, None, b"small", ())])
LARGE = build([(NOW, None, b"large" * 1000, ())] * 500, codec=GZIP)  # 2.5 MB in a few KB


def produce(leader: Leader, *batches: bytes, acks: int = 1, remote_ip: str = "10.0.0.1") -> Asked:
    """One batch for each partition from 0 on, on a connection of its own."""
    data = [PartitionProduceData(index, Records(batch)) for index, batch in enumerate(batches)]
    return leader.ask(api_keys.PRODUCE, ProduceRequest(None, acks, 1000, [TopicProduceData("foo", partition_data=data)]), 9, remote_ip)


async def offsets(asked: Asked) -> list[tuple[int, int]]:
    response = await asked.answer()
    return [(part.error_code, part.base_offset) for part in response.responses[0].partition_responses]


def test_a_large_batch_keeps_nobody_waiting_and_comes_where_the_log_ends_by_then(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        large = produce(leader, LARGE)
        assert large.is_waiting
        small = produce(leader, SMALL)  # of another client
        assert small.is_answered
        assert await offsets(small) == [(0, 0)]
        assert await offsets(large) == [(0, 1)]
        assert leader.log("foo").log_end_offset == 501
        assert leader.turns.taken > 2.5 * FIRST_LOOK / (512 * 1024)  # a slice is half a megabyte
        fetched = await leader.fetch("foo", partition_max_bytes=1 << 20).answer()
        read = [record.offset for record in records_of(fetched.responses[0].partitions[0].records.to_bytes())]
        assert read == list(range(501))

    with_leader(tmp_path, test)


def test_what_the_same_client_sends_next_is_held_until_the_large_batch_is_appended(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        large = produce(leader, LARGE)
        large.exchange.is_pipelinable = False  # as a connection sees it now
        async with asyncio.timeout(DEADLINE_S):
            while not large.exchange.is_pipelinable and not large.is_answered:
                assert leader.log("foo").log_end_offset == 0
                await asyncio.sleep(0)
        assert leader.log("foo").log_end_offset == 500

    with_leader(tmp_path, test)


def test_the_sequence_of_an_idempotent_producer_is_checked_when_it_is_appended(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        producer = {"producer_id": 7, "producer_epoch": 0}
        first = build([(NOW, None, b"x" * 5000, ())] * 500, codec=LZ4, base_sequence=0, **producer)
        second = build([(NOW, None, b"y", ())], base_sequence=500, **producer)
        sent = produce(leader, first)
        again = produce(leader, first)  # by the client's next connection, since it has heard nothing on the last
        assert await offsets(sent) == [(0, 0)]
        assert await offsets(again) == [(0, 0)]
        assert await offsets(produce(leader, second)) == [(0, 500)]
        assert leader.log("foo").log_end_offset == 501

    with_leader(tmp_path, test)


def test_each_partition_of_a_request_is_answered_in_its_place(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 4)
        too_large = build([(NOW, None, bytes(PRODUCED_SIZE_OF_ANY_RATIO), ())], codec=GZIP)
        pending = produce(leader, SMALL, LARGE, too_large, SMALL, SMALL)
        assert await offsets(pending) == [
            (0, 0),
            (0, 0),
            (ErrorCode.MESSAGE_TOO_LARGE, -1),
            (0, 0),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]

    with_leader(tmp_path, test)


def test_many_batches_that_unfold_are_not_opened_in_one_turn(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 20)
        just_small_enough = build([(NOW, None, bytes(FIRST_LOOK - 100), ())], codec=GZIP)
        pending = produce(leader, *[just_small_enough] * 20)
        assert [leader.log("foo", index).log_end_offset for index in range(20)].count(1) <= 2
        assert await offsets(pending) == [(0, 0)] * 20
        assert leader.turns.taken >= 9

    with_leader(tmp_path, test)


def test_a_batch_is_the_next_one_opened_however_many_of_another_client_wait(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        others = [produce(leader, LARGE, remote_ip="10.0.0.66") for _ in range(6)]
        assert await offsets(produce(leader, LARGE)) == [(0, 500)]
        assert sorted([await offsets(other) for other in others]) == [[(0, offset)] for offset in (0, 1000, 1500, 2000, 2500, 3000)]

    with_leader(tmp_path, test)


def test_a_partition_that_is_gone_meanwhile_takes_nothing(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = produce(leader, LARGE)
        leader.delete_topic("foo")
        ((error, offset),) = await offsets(pending)
        assert (error, offset) in [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]

    with_leader(tmp_path, test)


def test_a_client_that_waits_for_no_answer_gets_its_records_into_the_log(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        pending = produce(leader, LARGE, acks=0)
        async with asyncio.timeout(DEADLINE_S):
            await pending.peer.answer.wait()
        assert pending.exchange.response == ()
        assert leader.log("foo").log_end_offset == 500

    with_leader(tmp_path, test)
