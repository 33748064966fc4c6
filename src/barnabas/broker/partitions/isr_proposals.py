"""Sends the ISR proposals of this broker's partitions to the controller with AlterPartition (`isr.IsrUpdates`).

One request is in flight at a time, with up to PARTITIONS_AT_ONCE of the proposals that were submitted since the last: the request size is
bounded, and the controller handles a request in one piece. If the controller cannot be reached, or has changed, the request is retried
until it succeeds or the partition has a newer proposal. Each partition gets its own result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple, cast

from barnabas.broker.controller_requests import ControllerRequests
from barnabas.broker.partitions.isr import IsrResult
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
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


class IsrProposals:
    """`topic_id_of` and `replica_epochs_of` return the values that a request needs besides the ISR."""

    def __init__(
        self,
        broker_id: int,
        controller: ControllerRequests,
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
        """Replaces a proposal of the partition that was not sent yet."""
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
                for proposal in sent:
                    del self._unsent[proposal.partition]
                response = await self._ask(sent)
                if response is None:
                    for proposal in sent:
                        self._unsent.setdefault(proposal.partition, proposal)
                    await asyncio.sleep(RETRY_S)
                elif not self._complete(sent, response):
                    await asyncio.sleep(RETRY_S)
        finally:
            self._task = None
            if self._unsent and not self._is_closed:
                self._task = asyncio.ensure_future(self._send_all())

    async def _ask(self, sent: list[Proposal]) -> AlterPartitionResponse | None:
        """The response; None if the whole request has to be retried."""
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

    def _complete(self, sent: list[Proposal], response: AlterPartitionResponse) -> bool:
        """Passes each result to its partition, which may propose the same again after an error. True if there was no error."""
        waiting = {(proposal.topic_id, proposal.partition.partition): proposal for proposal in sent}
        succeeded = True
        for topic in response.topics:
            for result in topic.partitions:
                answered = waiting.pop((topic.topic_id, result.partition_index), None)
                if answered is not None:
                    succeeded = succeeded and result.error_code == ErrorCode.NONE
                    self._deliver(answered, IsrResult(result.error_code, result.isr, result.leader_epoch, result.partition_epoch))
        for proposal in waiting.values():
            succeeded = False
            self._unsent.setdefault(proposal.partition, proposal)
        return succeeded

    def _deliver(self, proposal: Proposal, result: IsrResult) -> None:
        try:
            proposal.on_done(result)
        except KafkaError as error:
            # A new ISR may raise the high watermark, which reads the log. The next fetch of a follower tries that again.
            _log.warning("The in-sync replicas of %s are decided, but its log could not be read: %s", proposal.partition, error)


def _topics(sent: list[Proposal]) -> list[TopicData]:
    topics: dict[Uuid, TopicData] = {}
    for proposal in sent:
        (name, index), topic_id, leader_epoch = proposal.partition, proposal.topic_id, proposal.leader_epoch
        topic = topics.setdefault(topic_id, TopicData(name, topic_id, []))
        isr = [BrokerState(replica, proposal.replica_epochs.get(replica, -1)) for replica in proposal.isr]
        topic.partitions.append(PartitionData(index, leader_epoch, new_isr_with_epochs=isr, partition_epoch=proposal.partition_epoch))
    return list(topics.values())
