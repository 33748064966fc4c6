"""Producers of a partition: the producer states that its leader keeps, with sequence numbers and open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.client.admin.call import ApiResult, Call, LookupResult
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import leaders
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import TopicAuthorization, error_for
from barnabas.errors import InvalidTopic, KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_producers_response import DescribeProducersResponse, PartitionResponse
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ProducerState:
    """`coordinator_epoch` is None for a producer without transactions, `current_transaction_start_offset` for one without an open
    transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class ProducerCalls:
    """Describes the producers of partitions."""

    _calls: Calls

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, list[ProducerState]]:
        """The active producers of partitions, from the leaders or from `broker_id`."""
        call = self._calls.begin("describe_producers", timeout_ms)

        async def there(call: Call, keys: Sequence[TopicPartition]) -> LookupResult[TopicPartition]:
            assert broker_id is not None
            await self._calls.locate_brokers(call, [broker_id])
            return LookupResult(dict.fromkeys(keys, broker_id))

        async def request_from_node(
            call: Call, node_id: int, keys: Sequence[TopicPartition]
        ) -> ApiResult[TopicPartition, list[ProducerState]]:
            topics: dict[str, list[int]] = {}
            for partition in keys:
                topics.setdefault(partition.topic, []).append(partition.partition)
            request = DescribeProducersRequest([TopicRequest(name, numbers) for name, numbers in topics.items()])
            response: DescribeProducersResponse = await self._calls.send(call, node_id, request)
            return _read(response, broker_id)

        return await self._calls.request_by_node(call, partitions, leaders(self._calls) if broker_id is None else there, request_from_node)


def _read(response: DescribeProducersResponse, broker_id: int | None) -> ApiResult[TopicPartition, list[ProducerState]]:
    answer: ApiResult[TopicPartition, list[ProducerState]] = ApiResult()
    for topic in response.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if not row.error_code:
                answer.done[partition] = _states(row)
            elif row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and broker_id is None:
                answer.moved.add(partition)
            elif row.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                answer.failed[partition] = _error(partition, row, broker_id)
    return answer


def _error(partition: TopicPartition, row: PartitionResponse, broker_id: int | None) -> KafkaError:
    start = f"Failed to describe active producers for partition {partition}"
    if row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return error_for(row.error_code, f"{start} on brokerId {broker_id}")
    if row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        message = row.error_message or ErrorCode.INVALID_TOPIC_EXCEPTION.message
        return InvalidTopic(f"Failed to fetch metadata for partition {partition} due to invalid topic error: {message}")
    if row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return TopicAuthorization(f"{start} due to authorization failure on topic `{partition.topic}`", [partition.topic])
    return error_for(row.error_code, f"{start} due to unexpected error")


def _states(row: PartitionResponse) -> list[ProducerState]:
    return [
        ProducerState(
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_timestamp,
            None if producer.coordinator_epoch < 0 else producer.coordinator_epoch,
            None if producer.current_txn_start_offset < 0 else producer.current_txn_start_offset,
        )
        for producer in row.active_producers
    ]
