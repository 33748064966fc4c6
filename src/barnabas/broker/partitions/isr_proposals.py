"""The in-sync replicas that this broker's partitions propose, on their way to the controller (`isr.IsrUpdates`): AlterPartition.

One request at a time, with what has come together meanwhile, up to a bound: the controller's broker takes no request of any size, and does
nothing else while it handles one. A controller that cannot be reached, or is none any more, is asked again
until it answers or the partition has something newer to say; of what it decides each partition hears for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple, Protocol, cast

from barnabas.broker.partitions.isr import IsrResult
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

VERSION: Final = 3
RETRY_S: Final = 0.05
PARTITIONS_AT_ONCE: Final = 1_000

_log = logging.getLogger(__name__)

OnDone = Callable[[IsrResult], None]


class Proposal(NamedTuple):
    partition: TopicPartition
    topic_id: Uuid
    isr: list[int]
    replica_epochs: dict[int, int]  # of the brokers, as the leader saw them fetch
    leader_epoch: int
    partition_epoch: int
    on_done: OnDone


class AskController(Protocol):
    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message: ...


class IsrProposals:
    """`topic_id_of` and `replica_epochs_of` tell what has to be said of a partition besides the set itself."""

    def __init__(
        self,
        broker_id: int,
        controller: AskController,
        broker_epoch: Callable[[], int],
        topic_id_of: Callable[[TopicPartition], Uuid | None],
        replica_epochs_of: Callable[[TopicPartition], dict[int, int]],
    ) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._topic_id_of = topic_id_of
        self._replica_epochs_of = replica_epochs_of
        self._unsent: dict[TopicPartition, Proposal] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def submit(self, partition: TopicPartition, isr: list[int], leader_epoch: int, partition_epoch: int, on_done: OnDone) -> None:
        """Takes the place of what the partition proposed before and was not sent: nobody waits for that any more."""
        topic_id = self._topic_id_of(partition)
        if self._is_closed or topic_id is None:
            return
        epochs = self._replica_epochs_of(partition)
        self._unsent[partition] = Proposal(partition, topic_id, isr, epochs, leader_epoch, partition_epoch, on_done)
        if self._task is None:
            self._task = asyncio.ensure_future(self._send_all())

    async def close(self) -> None:
        self._is_closed = True
        self._unsent.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                sent = list(islice(self._unsent.values(), PARTITIONS_AT_ONCE))
                for each in sent:
                    del self._unsent[each.partition]
                response = await self._ask(sent)
                if response is None:
                    for each in sent:
                        self._unsent.setdefault(each.partition, each)
                    await asyncio.sleep(RETRY_S)
                elif not self._tell(sent, response):
                    await asyncio.sleep(RETRY_S)
        finally:
            self._task = None
            if self._unsent and not self._is_closed:
                self._task = asyncio.ensure_future(self._send_all())

    async def _ask(self, sent: list[Proposal]) -> AlterPartitionResponse | None:
        """None where the whole has to be asked again."""
        request = AlterPartitionRequest(self._broker_id, self._broker_epoch(), _topics(sent))
        try:
            response = cast("AlterPartitionResponse", await self._controller.ask(request, VERSION))
        except KafkaError as error:
            _log.info("The controller did not take the in-sync replicas of %d partitions: %s", len(sent), error)
            return None
        if response.error_code != ErrorCode.NONE:
            _log.info("The controller refused the in-sync replicas of %d partitions: error %d", len(sent), response.error_code)
            return None
        return response

    def _tell(self, sent: list[Proposal], response: AlterPartitionResponse) -> bool:
        """Whether all was well; where it was not, the partition may propose the same again."""
        waiting = {(each.topic_id, each.partition.partition): each for each in sent}
        is_well = True
        for topic in response.topics:
            for answer in topic.partitions:
                proposal = waiting.pop((topic.topic_id, answer.partition_index), None)
                if proposal is not None:
                    is_well = is_well and answer.error_code == ErrorCode.NONE
                    proposal.on_done(IsrResult(answer.error_code, answer.isr, answer.leader_epoch, answer.partition_epoch))
        for proposal in waiting.values():
            is_well = False
            self._unsent.setdefault(proposal.partition, proposal)
        return is_well


def _topics(sent: list[Proposal]) -> list[TopicData]:
    topics: dict[Uuid, TopicData] = {}
    for each in sent:
        topic = topics.setdefault(each.topic_id, TopicData(each.partition.topic, each.topic_id, []))
        isr = [BrokerState(replica, each.replica_epochs.get(replica, -1)) for replica in each.isr]
        topic.partitions.append(
            PartitionData(each.partition.partition, each.leader_epoch, new_isr_with_epochs=isr, partition_epoch=each.partition_epoch)
        )
    return list(topics.values())
