"""Sends record batches to the leaders of their partitions, on the worker's client, while the task encodes the next ones.

Each partition has one batch in flight, so that order and sequence numbers hold across retries; partitions are sent in parallel. A batch is
retried until it is written or delivery.timeout.ms has passed, also while leaders change or brokers are down. The task waits if too much is
unsent. No batch is dropped without an error.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.client.cluster import Node
from barnabas.client.errors import KafkaError, RecordTooLarge, Timeout, error_for, refreshes_metadata
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from pyspark_barnabas.errors import UnknownTopicError
from pyspark_barnabas.write.encode import Encoded, ProducerFields
from pyspark_barnabas.write.split import split

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client

_log: Final = logging.getLogger(__name__)

UNSENT_BYTES_MAX: Final = 32 * 1024 * 1024  # the producer's buffer.memory
TOPIC_IDS_VERSION: Final = 13  # the first version of Produce with topic ids only
INIT_PRODUCER_ID_VERSION_MAX: Final = 5  # the next one is for two-phase commit
_INT_MAX: Final = 2**31 - 1
_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_NEW_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class TaskSender:
    """Used by one task: `put` batches, `flush`, `close`. `before_first` is awaited before the first batch of a partition.

    `version_max` is the highest version of Produce that may be used; a transaction of the first protocol needs an older one.
    """

    def __init__(
        self,
        client: Client,
        *,
        transactional_id: str | None = None,
        version_max: int | None = None,
        before_first: Callable[[TopicPartition], Awaitable[None]] | None = None,
    ) -> None:
        config = client.config
        self._client = client
        self._network = client.network
        self._metadata = client.metadata
        self._clock = client.clock
        self._transactional_id = transactional_id
        self._version_max = version_max
        self._before_first = before_first
        self._acks = int(config["acks"])
        self._delivery_timeout_ms: int = config["delivery.timeout.ms"]
        self._request_timeout_ms: int = config["request.timeout.ms"]
        self._retries: int = config["retries"]
        self._backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._unsent_max: int = config["buffer.memory"] if config.is_given("buffer.memory") else UNSENT_BYTES_MAX
        # Between the task's thread and the loop's.
        self._changed = threading.Condition()
        self._unsent = 0
        self._failure: BaseException | None = None
        # The loop's own.
        self._queues: dict[TopicPartition, deque[Encoded]] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._begun: set[TopicPartition] = set()

    # The task's side

    def put(self, batch: Encoded) -> None:
        """Queues a batch; waits while too much is unsent. Raises the error of an earlier batch."""
        with self._changed:
            self._changed.wait_for(lambda: self._unsent < self._unsent_max or self._failure is not None)
            self._raise_failure()
            self._unsent += len(batch.data)
        self._client.call_soon(self._enqueue, batch)

    def flush(self) -> None:
        """Waits until every batch is written; raises the first error."""
        with self._changed:
            self._changed.wait_for(lambda: self._unsent == 0 or self._failure is not None)
            self._raise_failure()

    def close(self) -> None:
        """Drops the batches that are still unsent."""
        self._client.run(self._stop())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # The loop's side

    def _enqueue(self, batch: Encoded) -> None:
        queue = self._queues.setdefault(batch.partition, deque())
        queue.append(batch)
        if batch.partition not in self._tasks and self._failure is None:
            self._tasks[batch.partition] = asyncio.get_running_loop().create_task(self._drain(batch.partition, queue))

    async def _drain(self, partition: TopicPartition, queue: deque[Encoded]) -> None:
        try:
            while queue:
                await self._deliver(queue[0])
                self._written(queue.popleft())
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fail(error)
        finally:
            self._tasks.pop(partition, None)

    def _written(self, batch: Encoded) -> None:
        with self._changed:
            self._unsent -= len(batch.data)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    async def _stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, batch: Encoded) -> None:
        """Sends a batch until it is written."""
        deadline_ms = self._clock.monotonic_ms() + self._delivery_timeout_ms
        parts = deque([batch])
        attempts = 0
        while parts:
            try:
                await self._begin(batch.partition)
                answer = await self._produce(parts[0], deadline_ms)
            except KafkaError as error:
                if not error.retriable:
                    raise
                failure = error
            else:
                if answer.error_code in _WRITTEN:
                    parts.popleft()
                    attempts = 0
                    continue
                failure = error_for(answer.error_code, answer.error_message)
                if answer.error_code == ErrorCode.MESSAGE_TOO_LARGE and parts[0].count > 1:
                    _log.warning("The batch of %d records for %s is too large: it is split", parts[0].count, batch.partition)
                    parts.extendleft(reversed(split(parts.popleft())))
                    continue
                if not failure.retriable:
                    raise _explained(batch.partition, failure)
            if refreshes_metadata(failure):
                self._metadata.request_update(False)
            attempts += 1
            await self._wait(batch.partition, failure, attempts, deadline_ms)

    async def _begin(self, partition: TopicPartition) -> None:
        if self._before_first is not None and partition not in self._begun:
            await self._before_first(partition)
            self._begun.add(partition)

    async def _produce(self, batch: Encoded, deadline_ms: int) -> PartitionProduceResponse:
        leader = await self._leader(batch.partition, deadline_ms)
        topic = batch.partition.topic
        topic_id = self._metadata.cluster.topic_id(topic)
        version_max = self._version_max
        if topic_id == Uuid.ZERO:
            version_max = min(version_max or TOPIC_IDS_VERSION - 1, TOPIC_IDS_VERSION - 1)
        data = TopicProduceData(topic, topic_id, [PartitionProduceData(batch.partition.partition, Records(batch.data))])
        request = ProduceRequest(self._transactional_id, self._acks, self._request_timeout_ms, [data])
        response = await self._network.send(leader.id, request, max_version=version_max)
        if self._acks == 0:
            return PartitionProduceResponse()
        assert isinstance(response, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        new_leader = answer.current_leader
        if new_leader is not None and answer.error_code in _NEW_LEADER and new_leader.leader_id != -1:
            nodes = [Node(end.node_id, end.host, end.port, end.rack) for end in response.node_endpoints]
            self._metadata.update_partition_leadership({batch.partition: (new_leader.leader_id, new_leader.leader_epoch)}, nodes)
        return answer

    async def _leader(self, partition: TopicPartition, deadline_ms: int) -> Node:
        leader = self._metadata.current_leader(partition).leader
        if leader is not None:
            return leader
        self._metadata.add(partition.topic)
        version = self._metadata.request_update(False)
        left_ms = max(min(deadline_ms - self._clock.monotonic_ms(), self._request_timeout_ms), 1)
        await self._metadata.wait_for_update(version, left_ms)
        self._metadata.raise_for_topic(partition.topic)
        leader = self._metadata.current_leader(partition).leader
        if leader is None:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        return leader

    async def _wait(self, partition: TopicPartition, failure: KafkaError, attempts: int, deadline_ms: int) -> None:
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0 or attempts > self._retries:
            raise Timeout(
                f"A batch for {partition} could not be delivered within kafka.delivery.timeout.ms = {self._delivery_timeout_ms} ms "
                f"({attempts} attempts); the last failure: {failure}"
            ) from failure
        await asyncio.sleep(min(self._backoff.backoff_ms(attempts - 1), left_ms) / 1000)


def _explained(partition: TopicPartition, failure: KafkaError) -> KafkaError:
    if failure.code == ErrorCode.MESSAGE_TOO_LARGE:
        return RecordTooLarge(
            f"A record for {partition} is larger than the topic allows: {failure}. Raise max.message.bytes of the topic, or write less."
        )
    return error_for(failure.code, f"Writing to {partition} failed: {failure}")


async def topology(client: Client, topic: str) -> tuple[int, list[int]]:
    """The number of partitions of a topic, and those with a leader. Waits up to max.block.ms for a topic that is being created."""
    metadata = client.metadata
    metadata.add(topic)
    limit_ms: int = client.config["max.block.ms"]
    deadline_ms = client.clock.monotonic_ms() + limit_ms
    while (count := metadata.cluster.partition_count(topic)) is None:
        metadata.raise_for_topic(topic)
        left_ms = deadline_ms - client.clock.monotonic_ms()
        if left_ms <= 0:
            raise UnknownTopicError(
                f"Topic {topic} not present in metadata after {limit_ms} ms. Create it, or set auto.create.topics.enable on the broker."
            )
        try:
            await metadata.wait_for_update(metadata.request_update(False), min(left_ms, 1000))
        except Timeout:
            continue
    return count, [info.partition for info in metadata.cluster.available_partitions_for_topic(topic)]


async def idempotent_producer(client: Client) -> ProducerFields:
    """A producer id for one task, so that retries are not written twice."""
    backoff = ExponentialBackoff(client.config["retry.backoff.ms"], client.config["retry.backoff.max.ms"])
    deadline_ms = client.clock.monotonic_ms() + client.config["max.block.ms"]
    attempts = 0
    while True:
        try:
            response = await client.network.send_to_any(InitProducerIdRequest(None, _INT_MAX), max_version=INIT_PRODUCER_ID_VERSION_MAX)
            assert isinstance(response, InitProducerIdResponse)
            if not response.error_code:
                return ProducerFields(response.producer_id, response.producer_epoch)
            failure = error_for(response.error_code)
        except KafkaError as error:
            failure = error
        if not failure.retriable or client.clock.monotonic_ms() >= deadline_ms:
            raise failure
        await asyncio.sleep(backoff.backoff_ms(attempts) / 1000)
        attempts += 1
