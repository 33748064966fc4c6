"""ElectLeaders: elects the preferred replicas, or elects leaders for partitions without one, even if that loses data.

Versions 0 to 2.
Behaviour
- only the active controller serves it. It responds when its metadata cache has the new leaders, or after timeout_ms.
- without a list of partitions, all that need an election get one. The response leaves out the other partitions, but not their topics.
- results are in the order of the request, repeated partitions included. An empty list gets an empty response, whatever else is wrong
  but the authorization.
Authorization: ALTER on the cluster.
Version notes
- 0: preferred leaders only, and no error of the whole. 1: election types.
Errors, of the whole and of each partition
- CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, INVALID_REQUEST (an election type that does not exist), REQUEST_TIMED_OUT (timeout_ms is
  not positive).
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION (it is being deleted), ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
  ELIGIBLE_LEADERS_NOT_AVAILABLE, REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import ElectionNotNeeded, InvalidRequest, KafkaError
from barnabas.protocol.messages.elect_leaders_request import TopicPartitions
from barnabas.protocol.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest

STRATEGIES: Final = {0: ElectionStrategy.PREFERRED, 1: ElectionStrategy.OFFLINE_UNCLEAN}
ERROR_OF_THE_WHOLE_VERSION: Final = 1


def handle(broker: Broker, request: Request[ElectLeadersRequest]) -> Reply[ElectLeadersResponse]:
    return Reply.awaiting(request, _elect(broker, request))


async def _elect(broker: Broker, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    message = request.message
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
        if message.topic_partitions == []:
            return ElectLeadersResponse()
        if (strategy := STRATEGIES.get(message.election_type)) is None:
            raise InvalidRequest(f"Unknown election type {message.election_type}")
        cache = broker.metadata_cache
        topics = message.topic_partitions
        if topics is None:
            topics = [TopicPartitions(name, cache.partitions(name)) for name in cache.topics()]
        partitions = [TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]
        outcomes = await broker.admin.elect_leaders(partitions, strategy, message.timeout_ms, request.wait)
    except KafkaError as error:
        return _refused(message, error, request.version)
    if message.topic_partitions is None:
        outcomes = {partition: error for partition, error in outcomes.items() if not isinstance(error, ElectionNotNeeded)}
    return ElectLeadersResponse(0, 0, [_topic_result(topic, outcomes) for topic in topics])


def _topic_result(topic: TopicPartitions, outcomes: Mapping[TopicPartition, KafkaError | None]) -> ReplicaElectionResult:
    partitions = [(number, partition) for number in topic.partitions if (partition := TopicPartition(topic.topic, number)) in outcomes]
    return ReplicaElectionResult(topic.topic, [_result(number, outcomes[partition]) for number, partition in partitions])


def _refused(message: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    topics = [
        ReplicaElectionResult(topic.topic, [_result(number, error) for number in topic.partitions])
        for topic in message.topic_partitions or ()
    ]
    return ElectLeadersResponse(0, error.code if version >= ERROR_OF_THE_WHOLE_VERSION else 0, topics)


def _result(number: int, error: KafkaError | None) -> PartitionResult:
    return PartitionResult(number, 0, None) if error is None else PartitionResult(number, error.code, str(error) or None)
