"""Deletion of the records before an offset, which advances the log start offset of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import leaders
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import error_for, refreshes_metadata
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_records_response import DeleteRecordsResponse
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class RecordsToDelete:
    """All records before an offset; -1 is the high watermark."""

    offset: int

    @classmethod
    def before_offset(cls, offset: int) -> RecordsToDelete:
        """Deletes the records below this offset; -1 means all up to the high watermark."""
        return cls(offset)


@dataclass(frozen=True, slots=True)
class DeletedRecords:
    """The first offset that remains."""

    low_watermark: int


class RecordCalls:
    """Deletes records at the leaders of partitions."""

    _calls: Calls

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, RecordsToDelete], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, DeletedRecords]:
        """Deletes all records before an offset of each partition. Completes when all live replicas have advanced their log start offset."""
        call = self._calls.begin("delete_records", timeout_ms)
        total_ms = call.remaining_ms()

        async def request_from_node(
            call: Call, node_id: int, partitions: Sequence[TopicPartition]
        ) -> ApiResult[TopicPartition, DeletedRecords]:
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for partition in partitions:
                deletion = DeleteRecordsPartition(partition.partition, records_to_delete[partition].offset)
                topics.setdefault(partition.topic, []).append(deletion)
            request = DeleteRecordsRequest([DeleteRecordsTopic(name, rows) for name, rows in topics.items()], total_ms)
            response: DeleteRecordsResponse = await self._calls.send(call, node_id, request)
            return _read(response)

        return await self._calls.request_by_node(call, records_to_delete, leaders(self._calls), request_from_node)


def _read(response: DeleteRecordsResponse) -> ApiResult[TopicPartition, DeletedRecords]:
    answer: ApiResult[TopicPartition, DeletedRecords] = ApiResult()
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            if not result.error_code:
                answer.done[partition] = DeletedRecords(result.low_watermark)
                continue
            error = error_for(result.error_code)
            if refreshes_metadata(error):
                answer.moved.add(partition)
            elif not error.retriable:
                answer.failed[partition] = error
    return answer
