"""Resets, validation after a change of leaders, and offsets that the application asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.client.consumer.offsets.offset_reset import EARLIEST, LATEST, NONE, parse_offset_reset
from barnabas.client.consumer.offsets.offsets import FoundOffset
from barnabas.client.errors import Disconnected, LogTruncation, Timeout, TopicAuthorization
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse
from barnabas.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.unit.client.consumer.paper_network import TOPIC, Scene, Sent, partition


def found(number: int, offset: int = -1, timestamp: int = -1, epoch: int = -1, error: int = 0) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=number, error_code=error, timestamp=timestamp, offset=offset, leader_epoch=epoch)


def listed(*rows: ListOffsetsPartitionResponse) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=list(rows))])


def ended(number: int, end_offset: int = -1, epoch: int = -1, error: int = 0) -> OffsetForLeaderEpochResponse:
    row = EpochEndOffset(error_code=error, partition=number, leader_epoch=epoch, end_offset=end_offset)
    return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=[row])])


def asked(sent: Sent) -> dict[int, int]:
    return {row.partition_index: row.timestamp for topic in sent.request.topics for row in topic.partitions}


def play(scene_of: Callable[[], Scene], story: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        scene = scene_of()
        await story(scene)
        await scene.offsets.close()

    asyncio.run(run())


async def settle() -> None:
    """Lets what can run now run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def sent_by(scene: Scene) -> list[Sent]:
    await settle()
    return scene.network.take()


def test_resets_ask_every_leader_for_its_partitions() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0), partition(2)], EARLIEST)
        scene.subscriptions.request_offset_reset([partition(1)], LATEST)
        scene.offsets.reset_positions()
        sent = {request.node_id: request for request in await sent_by(scene)}
        assert {node: asked(request) for node, request in sent.items()} == {1: {0: -2, 1: -1}, 2: {2: -2}}
        sent[1].answer(listed(found(0, 5), found(1, 99)))
        sent[2].answer(listed(found(2, 7)))
        await settle()
        assert [scene.position(number) for number in range(3)] == [5, 99, 7]
        assert scene.subscriptions.has_all_fetch_positions()
        assert scene.progress == 2

    play(lambda: Scene({0: 1, 1: 1, 2: 2}), story)


def test_a_reset_is_asked_for_once_at_a_time() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)])
        scene.offsets.reset_positions()
        scene.offsets.reset_positions()
        assert len(await sent_by(scene)) == 1

    play(lambda: Scene({0: 1}), story)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_NOT_AVAILABLE])
def test_a_reset_that_failed_is_tried_again_with_new_metadata(error: ErrorCode) -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)])
        scene.offsets.reset_positions()
        (sent,) = await sent_by(scene)
        sent.answer(listed(found(0, error=error)))
        await settle()
        assert scene.metadata.update_requested
        scene.offsets.reset_positions()
        assert await sent_by(scene) == []
        scene.clock.ms += 100
        scene.offsets.reset_positions()
        assert len(await sent_by(scene)) == 1

    play(lambda: Scene({0: 1}), story)


def test_a_connection_lost_during_a_reset_is_tried_again() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)])
        scene.offsets.reset_positions()
        (await sent_by(scene))[0].fail(Disconnected("lost"))
        await settle()
        scene.offsets.raise_problem()
        scene.clock.ms += 100
        scene.offsets.reset_positions()
        assert len(await sent_by(scene)) == 1

    play(lambda: Scene({0: 1}), story)


def test_a_topic_that_may_not_be_described_is_told_to_the_application_once() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)])
        scene.offsets.reset_positions()
        (await sent_by(scene))[0].answer(listed(found(0, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
        await settle()
        with pytest.raises(TopicAuthorization):
            scene.offsets.raise_problem()
        scene.offsets.raise_problem()

    play(lambda: Scene({0: 1}), story)


def test_a_seek_during_a_reset_wins() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)])
        scene.offsets.reset_positions()
        (sent,) = await sent_by(scene)
        scene.seek(0, 42)
        sent.answer(listed(found(0, 5)))
        await settle()
        assert scene.position() == 42

    play(lambda: Scene({0: 1}), story)


def test_by_duration_asks_for_a_time_and_then_for_the_end() -> None:
    hour = parse_offset_reset("by_duration:PT1H")

    async def story(scene: Scene) -> None:
        scene.subscriptions.request_offset_reset([partition(0)], hour)
        scene.offsets.reset_positions()
        (sent,) = await sent_by(scene)
        assert asked(sent) == {0: scene.clock.ms - 3_600_000}
        sent.answer(listed(found(0)))
        (later,) = await sent_by(scene)
        assert asked(later) == {0: -1}
        later.answer(listed(found(0, 8)))
        await settle()
        assert scene.position() == 8

    play(lambda: Scene({0: 1}, hour), story)


# Validation


async def changed_leader(scene: Scene, offset: int = 10) -> Sent:
    scene.seek(0, offset, epoch=0)
    scene.lead({0: 2}, epoch=3)
    scene.offsets.validate_positions()
    (sent,) = await sent_by(scene)
    return sent


def test_a_new_leader_is_asked_where_the_epoch_of_the_position_ended() -> None:
    async def story(scene: Scene) -> None:
        sent = await changed_leader(scene)
        (row,) = sent.request.topics[0].partitions
        assert (sent.node_id, row.partition, row.current_leader_epoch, row.leader_epoch) == (2, 0, 3, 0)
        assert sent.request.replica_id == -1
        sent.answer(ended(0, 10, 0))
        await settle()
        assert scene.subscriptions.is_fetchable(partition(0))
        assert [request.node_id for request in scene.send()] == [2]

    play(lambda: Scene({0: 1}), story)


def test_truncated_records_are_read_again_from_where_the_logs_part() -> None:
    async def story(scene: Scene) -> None:
        (await changed_leader(scene)).answer(ended(0, 6, 0))
        await settle()
        assert scene.position() == 6

    play(lambda: Scene({0: 1}), story)


def test_truncation_without_strategy_is_raised_with_where_the_logs_part() -> None:
    async def story(scene: Scene) -> None:
        (await changed_leader(scene)).answer(ended(0, 6, 0))
        await settle()
        with pytest.raises(LogTruncation) as raised:
            scene.offsets.raise_problem()
        assert raised.value.divergent_offsets == {partition(0): (6, 0)}
        assert raised.value.offset_out_of_range_partitions == {partition(0): 10}

    play(lambda: Scene({0: 1}, NONE), story)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_a_validation_that_failed_is_tried_again(error: ErrorCode) -> None:
    async def story(scene: Scene) -> None:
        (await changed_leader(scene)).answer(ended(0, error=error))
        await settle()
        assert scene.metadata.update_requested
        scene.offsets.validate_positions()
        assert await sent_by(scene) == []
        scene.clock.ms += 100
        scene.offsets.validate_positions()
        assert len(await sent_by(scene)) == 1

    play(lambda: Scene({0: 1}), story)


# Asked by the application


def test_offsets_by_time_come_from_all_leaders() -> None:
    async def story(scene: Scene) -> None:
        asking = asyncio.ensure_future(scene.offsets.list_offsets({partition(0): 5, partition(1): 6}, scene.clock.ms + 1000))
        sent = {request.node_id: request for request in await sent_by(scene)}
        sent[1].answer(listed(found(0, 3, 5, 0)))
        sent[2].answer(listed(found(1)))
        assert await asking == {partition(0): FoundOffset(3, 5, 0), partition(1): None}

    play(lambda: Scene({0: 1, 1: 2}), story)


def test_only_what_failed_is_asked_again() -> None:
    async def story(scene: Scene) -> None:
        asking = asyncio.ensure_future(scene.offsets.list_offsets({partition(0): -1, partition(1): -1}, scene.clock.ms + 1000))
        (sent,) = await sent_by(scene)
        sent.answer(listed(found(0, 3), found(1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        await settle()
        scene.lead({0: 1, 1: 2}, epoch=1)
        (again,) = await sent_by(scene)
        assert (again.node_id, asked(again)) == (2, {1: -1})
        again.answer(listed(found(1, 4)))
        assert {where.partition: offset.offset for where, offset in (await asking).items() if offset} == {0: 3, 1: 4}

    play(lambda: Scene({0: 1, 1: 1}), story)


def test_what_cannot_be_asked_in_time_times_out() -> None:
    async def story(scene: Scene) -> None:
        scene.lead({})
        with pytest.raises(Timeout, match="Failed to get offsets by times in 0ms"):
            await scene.offsets.list_offsets({partition(0): -1}, scene.clock.ms)

    play(lambda: Scene({0: 1}), story)


def test_a_format_without_timestamps_has_nothing_to_find() -> None:
    async def story(scene: Scene) -> None:
        asking: Any = asyncio.ensure_future(scene.offsets.list_offsets({partition(0): 5}, scene.clock.ms + 1000))
        (await sent_by(scene))[0].answer(listed(found(0, error=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)))
        assert await asking == {partition(0): None}

    play(lambda: Scene({0: 1}), story)


def test_two_that_ask_at_once_do_not_forget_each_others_topics() -> None:
    async def story(scene: Scene) -> None:
        scene.subscriptions.unsubscribe()
        scene.metadata.set_topics([])
        first = asyncio.ensure_future(scene.offsets.list_offsets({partition(0): -1}, scene.clock.ms + 1000))
        second = asyncio.ensure_future(scene.offsets.list_offsets({partition(1): -1}, scene.clock.ms + 1000))
        asked_first, _ = await sent_by(scene)
        asked_first.answer(listed(found(0, 3)))
        await first
        assert scene.metadata.topics_wanted() == {TOPIC}
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert scene.metadata.topics_wanted() == set()

    play(lambda: Scene({0: 1, 1: 2}), story)
