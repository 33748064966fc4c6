"""Records: those before an offset are deleted, which moves the beginning of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.call import Answer, Call
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
    """The first offset that is left."""

    low_watermark: int


class RecordCalls:
    """Deletes records at the partitions' leaders."""

    _calls: Calls

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, RecordsToDelete], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, DeletedRecords]:
        """Deletes all records before an offset of each partition; done when all replicas that are alive have moved their beginning."""
        call = self._calls.begin("delete_records", timeout_ms)
        total_ms = call.remaining_ms()

        async def ask(call: Call, node_id: int, partitions: Sequence[TopicPartition]) -> Answer[TopicPartition, DeletedRecords]:
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for partition in partitions:
                wanted = DeleteRecordsPartition(partition.partition, records_to_delete[partition].offset)
                topics.setdefault(partition.topic, []).append(wanted)
            request = DeleteRecordsRequest([DeleteRecordsTopic(name, held) for name, held in topics.items()], total_ms)
            response: DeleteRecordsResponse = await self._calls.send(call, node_id, request)
            return _read(response)

        return await self._calls.ask_each(call, records_to_delete, leaders(self._calls), ask)


def _read(response: DeleteRecordsResponse) -> Answer[TopicPartition, DeletedRecords]:
    answer: Answer[TopicPartition, DeletedRecords] = Answer()
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
