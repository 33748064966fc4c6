"""CreatePartitions: adds partitions to existing topics.

Versions 0 to 3.
Behaviour
- only the active controller serves it. It responds when the new partitions have leaders, or after timeout_ms.
- without an assignment, new replicas are placed round robin, starting at the broker of the first partition.
- with validate_only everything is checked and nothing is added.
Authorization: ALTER on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Version notes
- 3: a client above controller_mutation_rate gets THROTTLING_QUOTA_EXCEEDED; earlier versions wait instead.
Errors, of a topic
- NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
  REASSIGNMENT_IN_PROGRESS, INVALID_TOPIC_EXCEPTION (it is being deleted), INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT,
  TOPIC_AUTHORIZATION_FAILED, THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.mutations import Mutations
from barnabas.broker.requests.reply import Reply
from barnabas.errors import InvalidRequest, KafkaError, NotController
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest

STRICT_QUOTA_VERSION: Final = 3


def handle(broker: Broker, request: Request[CreatePartitionsRequest]) -> Reply[CreatePartitionsResponse]:
    return Reply.awaiting(request, _create(broker, request))


async def _create(broker: Broker, request: Request[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    message = request.message
    counts = Counter(topic.name for topic in message.topics)
    names = [name for name, count in counts.items() if count == 1]
    allowed = broker.access.allowed(request, AclOperation.ALTER, ResourceType.TOPIC, names)
    unique_topics = [topic for topic in message.topics if topic.name in allowed]
    outcomes: dict[str, KafkaError | None]
    mutations = Mutations(broker, request, STRICT_QUOTA_VERSION)
    try:
        outcomes = await broker.admin.create_partitions(
            unique_topics, message.timeout_ms, message.validate_only, request.wait, mutations.record
        )
    except NotController as error:
        outcomes = {topic.name: error for topic in unique_topics}
    duplicate_error = InvalidRequest("Duplicate topic name.")
    refused = [_result(name, duplicate_error) for name, count in counts.items() if count > 1]
    denied = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refused += [CreatePartitionsTopicResult(name, denied, None) for name in names if name not in allowed]
    return mutations.throttled(CreatePartitionsResponse(0, refused + [_result(name, error) for name, error in outcomes.items()]))


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, error.code, str(error) or None)
