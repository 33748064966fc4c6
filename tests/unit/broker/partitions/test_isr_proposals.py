"""Proposals of in-sync replicas on their way to the controller: together, one request at a time, until they are decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.broker.partitions.isr import IsrResult
from barnabas.broker.partitions.isr_proposals import PARTITIONS_AT_ONCE, IsrProposals
from barnabas.client.errors import Disconnected
from barnabas.errors import OutOfDescriptors
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_partition_response as told
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

ID = Uuid(b"t" * 16)
EPOCHS = {1: 100, 2: 200}
Answer = Callable[[AlterPartitionRequest], told.AlterPartitionResponse]


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def accepted(request: AlterPartitionRequest, error: int = 0) -> told.AlterPartitionResponse:
    topics = [
        told.TopicData(
            topic_id=topic.topic_id,
            partitions=[
                told.PartitionData(
                    partition.partition_index,
                    error,
                    1,
                    partition.leader_epoch,
                    [s.broker_id for s in partition.new_isr_with_epochs],
                    0,
                    partition.partition_epoch + 1,
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return told.AlterPartitionResponse(topics=topics)


class Controller:
    """Answers as told, or when it is let."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.asked: list[AlterPartitionRequest] = []
        self._answers = list(answers)
        self.let = asyncio.Event()
        self.let.set()

    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        assert isinstance(request, AlterPartitionRequest)
        assert version == 3
        self.asked.append(request)
        await self.let.wait()
        answer = self._answers.pop(0) if self._answers else accepted
        if isinstance(answer, Exception):
            raise answer
        return answer(request)


class Leader:
    def __init__(self, controller: Controller) -> None:
        self.proposals = IsrProposals(1, controller, lambda: 100, lambda _: ID, lambda _: EPOCHS)
        self.results: dict[int, list[IsrResult]] = {}

    def submit(self, number: int, isr: list[int], partition_epoch: int = 0) -> None:
        self.proposals.submit(tp(number), isr, 3, partition_epoch, lambda result: self.results.setdefault(number, []).append(result))

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():
                await asyncio.sleep(0)


async def test_a_proposal_is_sent_with_all_epochs_and_its_result_told() -> None:
    controller = Controller()
    leader = Leader(controller)
    leader.submit(0, [1, 2])
    await leader.until(lambda: 0 in leader.results)
    (request,) = controller.asked
    assert (request.broker_id, request.broker_epoch) == (1, 100)
    (partition,) = request.topics[0].partitions
    assert [(state.broker_id, state.broker_epoch) for state in partition.new_isr_with_epochs] == [(1, 100), (2, 200)]
    (result,) = leader.results[0]
    assert (result.error, result.isr, result.leader_epoch, result.partition_epoch) == (0, [1, 2], 3, 1)


async def test_what_comes_while_one_is_under_way_goes_together_after_it() -> None:
    controller = Controller()
    leader = Leader(controller)
    controller.let.clear()
    leader.submit(0, [1])
    await leader.until(lambda: len(controller.asked) == 1)
    leader.submit(1, [1])
    leader.submit(2, [1])
    controller.let.set()
    await leader.until(lambda: len(leader.results) == 3)
    assert [[partition.partition_index for partition in request.topics[0].partitions] for request in controller.asked] == [[0], [1, 2]]


async def test_very_many_go_in_several_requests_and_all_are_told() -> None:
    controller = Controller(Disconnected("gone"))
    leader = Leader(controller)
    for number in range(2 * PARTITIONS_AT_ONCE + 1):
        leader.submit(number, [1, 2])
    await leader.until(lambda: len(leader.results) == 2 * PARTITIONS_AT_ONCE + 1)
    assert [len(request.topics[0].partitions) for request in controller.asked] == [*3 * [PARTITIONS_AT_ONCE], 1]


async def test_a_controller_that_does_not_answer_or_is_none_is_asked_again() -> None:
    def none(_: AlterPartitionRequest) -> told.AlterPartitionResponse:
        return told.AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)

    controller = Controller(Disconnected("gone"), none)
    leader = Leader(controller)
    leader.submit(0, [1])
    await leader.until(lambda: 0 in leader.results)
    assert len(controller.asked) == 3


async def test_while_it_is_asked_again_a_newer_proposal_takes_the_place_of_the_older() -> None:
    controller = Controller(Disconnected("gone"))
    leader = Leader(controller)
    controller.let.clear()
    leader.submit(0, [1])
    await leader.until(lambda: len(controller.asked) == 1)
    leader.submit(0, [1, 2], partition_epoch=5)
    controller.let.set()
    await leader.until(lambda: 0 in leader.results)
    assert [result.partition_epoch for result in leader.results[0]] == [6]


async def test_an_error_of_a_partition_is_told_to_it() -> None:
    controller = Controller(lambda request: accepted(request, ErrorCode.FENCED_LEADER_EPOCH))
    leader = Leader(controller)
    leader.submit(0, [1])
    await leader.until(lambda: 0 in leader.results)
    assert leader.results[0][0].error == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_partition_whose_disk_fails_at_its_result_does_not_keep_the_others_from_theirs() -> None:
    leader = Leader(Controller())

    def fail(result: IsrResult) -> None:
        raise OutOfDescriptors("Too many open files in system")

    leader.proposals.submit(tp(0), [1], 3, 0, fail)
    leader.submit(1, [1])
    await leader.until(lambda: 1 in leader.results)
    leader.submit(2, [1])
    await leader.until(lambda: 2 in leader.results)
    await leader.proposals.close()


async def test_after_its_end_nothing_is_sent() -> None:
    controller = Controller()
    leader = Leader(controller)
    await leader.proposals.close()
    leader.submit(0, [1])
    assert controller.asked == []
