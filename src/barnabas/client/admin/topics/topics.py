"""Topics: create, delete, list and describe them, and add partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls, check_controller
from barnabas.client.admin.cluster.config_entries import Config, ConfigEntry, ConfigSource
from barnabas.client.admin.keys import distinct
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.admin.topics.topic_descriptions import TopicDescription, TopicDescriptions
from barnabas.client.errors import ThrottlingQuotaExceeded, error_for
from barnabas.errors import InvalidTopic, KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse
from barnabas.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.delete_topics_response import DeleteTopicsResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.uuid import Uuid

NO_PARTITIONS: Final = -1
NO_REPLICATION_FACTOR: Final = -1
UNKNOWN: Final = -1

Topic = TypeVar("Topic", bound=str | Uuid)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create: with counts (None is the broker's default), or with the replicas of each partition."""

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    replicas_assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The total number of partitions that a topic will have, and optionally the replicas of each new partition."""

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None

    @classmethod
    def increase_to(cls, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None) -> NewPartitions:
        """The new total number of partitions, and optionally the broker ids of each new one's replicas, the preferred leader first."""
        return cls(total_count, new_assignments)


@dataclass(frozen=True, slots=True)
class TopicMetadataAndConfig:
    """A created topic. `error` says why the other fields are unknown: the caller may not see them, or the broker is too old to return
    them."""

    topic_id: Uuid = Uuid.ZERO
    num_partitions: int = UNKNOWN
    replication_factor: int = UNKNOWN
    config: Config | None = None
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic by name and id, and whether Kafka keeps it for itself."""

    name: str
    topic_id: Uuid
    is_internal: bool

    def __str__(self) -> str:
        return f"(name={self.name}, topicId={self.topic_id}, internal={str(self.is_internal).lower()})"


class TopicCalls(TopicDescriptions):
    """Creates, deletes, lists and describes topics."""

    _calls: Calls

    async def create_topics(
        self,
        new_topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, TopicMetadataAndConfig]:
        """Creates topics; each succeeds or fails on its own. With `validate_only` everything is validated and nothing is created."""
        topics: dict[str, NewTopic] = {}
        for topic in new_topics:
            topics.setdefault(topic.name, topic)

        def build(timeout: int, names: Sequence[str]) -> Message:
            return CreateTopicsRequest([_creatable(topics[name]) for name in names], timeout, validate_only)

        def read(response: CreateTopicsResponse) -> ApiResult[str, TopicMetadataAndConfig]:
            answer: ApiResult[str, TopicMetadataAndConfig] = ApiResult(throttle_time_ms=response.throttle_time_ms)
            for result in response.topics:
                check_controller(result.error_code, result.error_message)
                if result.error_code:
                    _refuse(answer, result.name, result.error_code, result.error_message, retry_on_quota_violation)
                else:
                    answer.done[result.name] = _created(result)
            return answer

        call = self._calls.begin("create_topics", timeout_ms)
        return await self._calls.request_keys(call, topics, self._calls.controller, build, read, unrepresentable(topics))

    async def delete_topics(
        self, topics: Iterable[Topic], *, retry_on_quota_violation: bool = True, timeout_ms: int | None = None
    ) -> Outcomes[Topic, None]:
        """Deletes topics, all given by name or all by id."""
        distinct_topics = distinct(topics)

        def build(timeout: int, keys: Sequence[Topic]) -> Message:
            states = [DeleteTopicState(key) if isinstance(key, str) else DeleteTopicState(None, key) for key in keys]
            return DeleteTopicsRequest(states, timeout_ms=timeout)

        def older(timeout: int, keys: Sequence[Topic]) -> Message | None:
            names: list[str] = [key for key in keys if isinstance(key, str)]
            if len(names) < len(keys):
                return None  # older brokers do not support topic ids
            return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout)

        by_key: dict[str | Uuid, Topic] = {topic: topic for topic in distinct_topics}

        def read(response: DeleteTopicsResponse) -> ApiResult[Topic, None]:
            answer: ApiResult[Topic, None] = ApiResult(throttle_time_ms=response.throttle_time_ms)
            for result in response.responses:
                check_controller(result.error_code, result.error_message)
                named: str | Uuid = result.name if result.name in by_key else result.topic_id
                key = by_key.get(named)
                if key is None:
                    continue
                if result.error_code:
                    _refuse(answer, key, result.error_code, result.error_message, retry_on_quota_violation)
                else:
                    answer.done[key] = None
            return answer

        call = self._calls.begin("delete_topics", timeout_ms)
        return await self._calls.request_keys(
            call, distinct_topics, self._calls.controller, build, read, unrepresentable(distinct_topics), older
        )

    async def list_topics(self, *, list_internal: bool = False, timeout_ms: int | None = None) -> dict[str, TopicListing]:
        """All topics that the caller may see, by name; internal topics (`__consumer_offsets`, …) only with `list_internal`."""

        def read(response: MetadataResponse) -> dict[str, TopicListing]:
            return {
                topic.name: TopicListing(topic.name, topic.topic_id, topic.is_internal)
                for topic in response.topics
                if topic.name is not None and not topic.error_code and (list_internal or not topic.is_internal)
            }

        call = self._calls.begin("list_topics", timeout_ms)
        return await self._calls.request_from_node(
            call, self._calls.any_node, lambda _: MetadataRequest(None, allow_auto_topic_creation=True), read
        )

    async def describe_topics(
        self,
        topics: Iterable[Topic],
        *,
        include_authorized_operations: bool = False,
        partition_size_limit_per_response: int = 2000,
        timeout_ms: int | None = None,
    ) -> Outcomes[Topic, TopicDescription]:
        """Partitions, leaders, replicas and in-sync replicas of topics, all given by name or all by id."""
        distinct_topics = distinct(topics)
        refused = unrepresentable(distinct_topics)
        return await self._describe(distinct_topics, refused, include_authorized_operations, partition_size_limit_per_response, timeout_ms)

    async def create_partitions(
        self,
        new_partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, None]:
        """Adds partitions to topics; a plain number is the total count. Existing records stay in their partitions."""

        def build(timeout: int, names: Sequence[str]) -> Message:
            return CreatePartitionsRequest([_partitions(name, new_partitions[name]) for name in names], timeout, validate_only)

        def read(response: CreatePartitionsResponse) -> ApiResult[str, None]:
            answer: ApiResult[str, None] = ApiResult(throttle_time_ms=response.throttle_time_ms)
            for result in response.results:
                check_controller(result.error_code, result.error_message)
                if result.error_code:
                    _refuse(answer, result.name, result.error_code, result.error_message, retry_on_quota_violation)
                else:
                    answer.done[result.name] = None
            return answer

        call = self._calls.begin("create_partitions", timeout_ms)
        return await self._calls.request_keys(call, new_partitions, self._calls.controller, build, read, unrepresentable(new_partitions))


def unrepresentable(topics: Iterable[Topic]) -> dict[Topic, KafkaError]:
    """Errors for topics that no request can name."""
    return {
        topic: InvalidTopic(f"The given topic {'name' if isinstance(topic, str) else 'id'} '{topic}' cannot be represented in a request.")
        for topic in topics
        if not topic or topic == Uuid.ZERO
    }


def _refuse(answer: ApiResult[Topic, V], topic: Topic, code: int, message: str | None, retry_on_quota_violation: bool) -> None:
    error = error_for(code, message)
    if isinstance(error, ThrottlingQuotaExceeded) and retry_on_quota_violation:
        answer.throttled[topic] = error
    else:
        answer.failed[topic] = error


V = TypeVar("V")


def _creatable(topic: NewTopic) -> CreatableTopic:
    assigned = topic.replicas_assignments
    return CreatableTopic(
        topic.name,
        NO_PARTITIONS if topic.num_partitions is None else topic.num_partitions,
        NO_REPLICATION_FACTOR if topic.replication_factor is None else topic.replication_factor,
        [CreatableReplicaAssignment(partition, list(brokers)) for partition, brokers in (assigned or {}).items()],
        [CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
    )


def _created(result: CreatableTopicResult) -> TopicMetadataAndConfig:
    if result.topic_config_error_code:
        return TopicMetadataAndConfig(result.topic_id, error=error_for(result.topic_config_error_code))
    if result.num_partitions == UNKNOWN or result.configs is None:
        return TopicMetadataAndConfig(error=UnsupportedVersion("Topic metadata and configs in CreateTopics response not supported"))
    config = Config(
        ConfigEntry(entry.name, entry.value, ConfigSource.for_id(entry.config_source), entry.is_sensitive, entry.read_only)
        for entry in result.configs
    )
    return TopicMetadataAndConfig(result.topic_id, result.num_partitions, result.replication_factor, config)


def _partitions(name: str, count: NewPartitions | int) -> CreatePartitionsTopic:
    new = NewPartitions(count) if isinstance(count, int) else count
    assignments = None if new.assignments is None else [CreatePartitionsAssignment(list(brokers)) for brokers in new.assignments]
    return CreatePartitionsTopic(name, new.total_count, assignments)
