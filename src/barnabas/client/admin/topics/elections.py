"""Leader elections of partitions: preferred or unclean."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from barnabas.client.admin.calls import Calls
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import error_for
from barnabas.errors import KafkaError
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.elect_leaders_response import ElectLeadersResponse
from barnabas.topic_partition import TopicPartition


class ElectionType(IntEnum):
    """UNCLEAN may lose records: it can elect a replica that is not in sync."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionCalls:
    """Requests elections from the controller."""

    _calls: Calls

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Elects leaders of the given partitions or of all partitions. A given partition that already has the right leader has the error
        ElectionNotNeeded; without `partitions`, such partitions are left out. Raises an error that concerns the request as a whole."""
        distinct_partitions = None if partitions is None else list(dict.fromkeys(partitions))
        topics: list[TopicPartitions] | None = None
        if distinct_partitions is not None:
            by_topic: dict[str, list[int]] = {}
            for partition in distinct_partitions:
                by_topic.setdefault(partition.topic, []).append(partition.partition)
            topics = [TopicPartitions(name, numbers) for name, numbers in by_topic.items()]

        def read(response: ElectLeadersResponse) -> Outcomes[TopicPartition, None]:
            if response.error_code:
                raise error_for(response.error_code)
            elected: dict[TopicPartition, None] = {}
            errors: dict[TopicPartition, KafkaError] = {}
            for topic in response.replica_election_results:
                for result in topic.partition_result:
                    partition = TopicPartition(topic.topic, result.partition_id)
                    if result.error_code:
                        errors[partition] = error_for(result.error_code, result.error_message)
                    else:
                        elected[partition] = None
            return Outcomes([*elected, *errors], elected, errors)

        call = self._calls.begin("elect_leaders", timeout_ms)
        return await self._calls.request_from_node(
            call, self._calls.controller, lambda timeout: ElectLeadersRequest(election_type, topics, timeout), read
        )
