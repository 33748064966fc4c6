"""CreateTopics: creates topics, by number of partitions and replicas or with an assignment, and with configs.

Versions 0 to 7.
Behaviour
- only the active controller serves it. A client that sent it to another broker finds the controller and sends it again.
- each topic has its own result: an error of one topic does not affect the others.
- the controller responds when every partition has a leader, or after timeout_ms. A topic that is not ready by then is still created.
- with validate_only everything is checked and nothing is created.
- -1 partitions or replicas: num.partitions, default.replication.factor. A topic named twice is not created.
Authorization
- CREATE on the cluster or on the topic; a denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
- DESCRIBE_CONFIGS on the topic, without which the response has no partitions, replicas and configs of it, but topic_config_error_code.
Version notes
- 1: validate_only and error messages. 5: the partitions, replicas and all configs of the new topic, with their sources. 6: a client above
  controller_mutation_rate gets THROTTLING_QUOTA_EXCEEDED; earlier versions wait instead. 7: topic ids.
Errors, of a topic
- NOT_CONTROLLER, TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
  INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED, THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from barnabas.broker.config import describe_topic
from barnabas.broker.handlers.mutations import Mutations
from barnabas.broker.requests.reply import Reply
from barnabas.errors import InvalidRequest, NotController
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.broker import Broker
    from barnabas.broker.config import DynamicBrokerConfig
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.admin_manager import TopicCreation
    from barnabas.errors import KafkaError
    from barnabas.protocol.messages.create_topics_request import CreateTopicsRequest

CONFIGS_VERSION: Final = 5
STRICT_QUOTA_VERSION: Final = 6


def handle(broker: Broker, request: Request[CreateTopicsRequest]) -> Reply[CreateTopicsResponse]:
    return Reply.awaiting(request, _create(broker, request))


async def _create(broker: Broker, request: Request[CreateTopicsRequest]) -> CreateTopicsResponse:
    message = request.message
    counts = Counter(topic.name for topic in message.topics)
    names = [name for name, count in counts.items() if count == 1]
    creatable = _creatable(broker, request, names)
    mutations = Mutations(broker, request, STRICT_QUOTA_VERSION)
    try:
        creations = await broker.admin.create_topics(
            [topic for topic in message.topics if topic.name in creatable],
            message.timeout_ms,
            message.validate_only,
            request.wait,
            mutations.record,
        )
    except NotController as error:
        return CreateTopicsResponse(0, [_refused(topic.name, error) for topic in message.topics])
    describe = _Descriptions(broker.config) if request.version >= CONFIGS_VERSION else None
    described = broker.access.allowed(request, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, names, logs_denied=False)
    results = [_result(creation, describe) if creation.name in described else _undescribed(creation) for creation in creations]
    duplicate_error = InvalidRequest("Duplicate topic name.")
    results += [_refused(name, duplicate_error) for name, count in counts.items() if count > 1]
    return mutations.throttled(CreateTopicsResponse(0, results + [_denied(name) for name in names if name not in creatable]))


def _creatable(broker: Broker, request: Request[CreateTopicsRequest], names: list[str]) -> set[str]:
    if broker.access.allows_on_cluster(request, AclOperation.CREATE, logs_denied=False):
        return set(names)
    return broker.access.allowed(request, AclOperation.CREATE, ResourceType.TOPIC, names)


def _result(creation: TopicCreation, describe: _Descriptions | None) -> CreatableTopicResult:
    if creation.error is not None:
        return _refused(creation.name, creation.error)
    return CreatableTopicResult(
        name=creation.name,
        topic_id=creation.topic_id,
        error_message=None,
        num_partitions=len(creation.assignment),
        replication_factor=len(creation.assignment[0]),
        configs=[] if describe is None else describe.configs(creation.config),
    )


def _undescribed(creation: TopicCreation) -> CreatableTopicResult:
    """The result for a client that may not describe the configs of the topic."""
    if creation.error is not None:
        return _refused(creation.name, creation.error)
    return CreatableTopicResult(
        name=creation.name,
        topic_id=creation.topic_id,
        error_message=None,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _denied(name: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="Authorization failed.")


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error) or None)


class _Descriptions:
    """All configs of new topics, computed once for topics with equal configs: in a request with a thousand topics most are equal."""

    def __init__(self, config: DynamicBrokerConfig) -> None:
        self._config = config
        self._described: dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]] = {}

    def configs(self, config: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        key = frozenset(config.items())
        if key not in self._described:
            self._described[key] = [
                CreatableTopicConfigs(entry.name, entry.value, entry.read_only, int(entry.source), entry.sensitive)
                for entry in describe_topic(self._config, config)
            ]
        return self._described[key]
