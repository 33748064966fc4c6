"""ElectLeaders: moves leadership back to the preferred replicas, or finds leaders where there are none, data lost or not.

Versions 0 to 2.
Behaviour
- only the active controller answers it; answered when this broker's metadata shows the new leaders, or after timeout_ms.
- without a list of partitions all are elected that need it, and those that do not are left out of the answer; their topics are not.
- the answer follows the request, doubles included; to an empty list it is empty, whatever else is wrong.
Version notes
- 0: preferred leaders only, and no error of the whole. 1: election types.
Errors, of the whole and of each partition
- NOT_CONTROLLER, INVALID_REQUEST (an election type that does not exist), REQUEST_TIMED_OUT (timeout_ms is not positive).
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION (it is being deleted), ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
  ELIGIBLE_LEADERS_NOT_AVAILABLE, REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import ElectionNotNeeded, InvalidRequest, KafkaError
from barnabas.protocol.messages.elect_leaders_request import TopicPartitions
from barnabas.protocol.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest

STRATEGIES: Final = {0: ElectionStrategy.PREFERRED, 1: ElectionStrategy.OFFLINE_UNCLEAN}
ERROR_OF_THE_WHOLE_VERSION: Final = 1


async def handle(broker: Broker, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    message = request.message
    if message.topic_partitions == []:
        return ElectLeadersResponse()
    try:
        if (strategy := STRATEGIES.get(message.election_type)) is None:
            raise InvalidRequest(f"Unknown election type {message.election_type}")
        cache = broker.metadata_cache
        topics = message.topic_partitions
        if topics is None:
            topics = [TopicPartitions(topic, cache.partitions(topic)) for topic in cache.topics()]
        partitions = [TopicPartition(each.topic, number) for each in topics for number in each.partitions]
        outcomes = await broker.admin.elect_leaders(partitions, strategy, message.timeout_ms, request.wait)
    except KafkaError as error:
        return _refused(message, error, request.version)
    if message.topic_partitions is None:
        outcomes = {each: error for each, error in outcomes.items() if not isinstance(error, ElectionNotNeeded)}
    return ElectLeadersResponse(0, 0, [_topic_result(each, outcomes) for each in topics])


def _topic_result(topic: TopicPartitions, outcomes: Mapping[TopicPartition, KafkaError | None]) -> ReplicaElectionResult:
    found = [(number, partition) for number in topic.partitions if (partition := TopicPartition(topic.topic, number)) in outcomes]
    return ReplicaElectionResult(topic.topic, [_result(number, outcomes[partition]) for number, partition in found])


def _refused(message: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    topics = [
        ReplicaElectionResult(topic.topic, [_result(number, error) for number in topic.partitions])
        for topic in message.topic_partitions or ()
    ]
    return ElectLeadersResponse(0, error.code if version >= ERROR_OF_THE_WHOLE_VERSION else 0, topics)


def _result(number: int, error: KafkaError | None) -> PartitionResult:
    return PartitionResult(number, 0, None) if error is None else PartitionResult(number, error.code, str(error) or None)
