"""Descriptions of topics: partitions, leaders, replicas. DescribeTopicPartitions returns them in pages; older brokers support only
Metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.cluster.cluster import ClusterDescription, fetch_cluster
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.cluster import Node
from barnabas.client.errors import error_for
from barnabas.errors import KafkaError, UnknownTopicId, UnknownTopicOrPartition
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_topic_partitions_request import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from barnabas.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from barnabas.security.operations import AclOperation, authorized_operations
from barnabas.uuid import Uuid

Topic = TypeVar("Topic", bound=str | Uuid)


@dataclass(frozen=True, slots=True)
class TopicPartitionInfo:
    """A partition. `leader` is None while there is none; `elr` and `last_known_elr` are None if the broker does not return them."""

    partition: int
    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    elr: tuple[Node, ...] | None = None
    last_known_elr: tuple[Node, ...] | None = None
    offline_replicas: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`partitions` are sorted by number; `authorized_operations` is None unless it was requested."""

    name: str
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    authorized_operations: frozenset[AclOperation] | None
    topic_id: Uuid


class TopicDescriptions:
    """Describes topics with DescribeTopicPartitions, and with Metadata where a broker does not support it."""

    _calls: Calls

    async def _describe(
        self, topics: Sequence[Topic], refused: Mapping[Topic, KafkaError], with_operations: bool, limit: int, timeout_ms: int | None
    ) -> Outcomes[Topic, TopicDescription]:
        pending = [topic for topic in topics if topic not in refused]
        call = self._calls.begin("describe_topics", timeout_ms)
        total: ApiResult[Topic, TopicDescription] = ApiResult(failed=dict(refused))
        names: list[str] = [topic for topic in pending if isinstance(topic, str)]
        try:
            pages = await self._paged(call, names, with_operations, limit) if names else ApiResult[str, TopicDescription]()
            total.done.update((topic, pages.done[topic]) for topic in pending if isinstance(topic, str) and topic in pages.done)
            total.failed.update((topic, pages.failed[topic]) for topic in pending if isinstance(topic, str) and topic in pages.failed)
            pending = [topic for topic in pending if not isinstance(topic, str)]
        except UnsupportedVersion:
            pass
        except KafkaError as error:
            total.failed.update(failed(pending, error))
            pending = []
        if pending:

            def read(response: MetadataResponse) -> ApiResult[Topic, TopicDescription]:
                return _read(response, pending)

            answer = await self._calls.request_keys(
                call, pending, self._calls.any_node, lambda _, keys: _metadata(keys, with_operations), read
            )
            total.done.update(answer.successes)
            total.failed.update(answer.errors)
        return Outcomes(topics, total.done, total.failed)

    async def _paged(self, call: Call, names: list[str], with_operations: bool, limit: int) -> ApiResult[str, TopicDescription]:
        cluster = await fetch_cluster(self._calls, call, self._calls.any_node)
        answer: ApiResult[str, TopicDescription] = ApiResult()
        pages: dict[str, list[DescribeTopicPartitionsResponseTopic]] = {}
        pending = sorted(names)
        cursor: Cursor | None = None
        while pending:
            response = await self._page(call, pending, limit, cursor)
            for topic in response.topics:
                name = topic.name or ""
                if topic.error_code:
                    answer.failed[name] = error_for(topic.error_code)
                else:
                    pages.setdefault(name, []).append(topic)
            following = response.next_cursor
            finished = [name for name in pages if following is None or name != following.topic_name]
            answer.done.update((name, _joined(pages.pop(name), cluster, with_operations)) for name in finished)
            pending = [name for name in pending if name not in answer.done and name not in answer.failed]
            if following is None:
                missing = UnknownTopicOrPartition("The response did not contain a result for the topic")
                answer.failed.update((name, missing) for name in pending)
                break
            cursor = None if following.topic_name in answer.failed else Cursor(following.topic_name, following.partition_index)
        return answer

    async def _page(self, call: Call, names: list[str], limit: int, cursor: Cursor | None) -> DescribeTopicPartitionsResponse:
        def build(_: int) -> Message:
            return DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)

        def read(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
            return response

        return await self._calls.request(call, self._calls.any_node, build, read)


def _joined(pages: list[DescribeTopicPartitionsResponseTopic], cluster: ClusterDescription, with_operations: bool) -> TopicDescription:
    first = pages[0]

    def nodes(ids: list[int]) -> tuple[Node, ...]:
        return tuple(cluster.node(node_id) for node_id in ids)

    partitions = tuple(
        TopicPartitionInfo(
            info.partition_index,
            None if info.leader_id < 0 else cluster.node(info.leader_id),
            nodes(info.replica_nodes),
            nodes(info.isr_nodes),
            None if info.eligible_leader_replicas is None else nodes(info.eligible_leader_replicas),
            None if info.last_known_elr is None else nodes(info.last_known_elr),
            nodes(info.offline_replicas),
        )
        for page in pages
        for info in page.partitions
    )
    allowed = authorized_operations(first.topic_authorized_operations) if with_operations else None
    return TopicDescription(first.name or "", first.is_internal, _sorted(partitions), allowed, first.topic_id)


def _metadata(topics: Iterable[str | Uuid], with_operations: bool) -> MetadataRequest:
    requested = [MetadataRequestTopic(name=topic) if isinstance(topic, str) else MetadataRequestTopic(topic, None) for topic in topics]
    return MetadataRequest(requested, allow_auto_topic_creation=False, include_topic_authorized_operations=with_operations)


def _read(response: MetadataResponse, topics: Sequence[Topic]) -> ApiResult[Topic, TopicDescription]:
    answer: ApiResult[Topic, TopicDescription] = ApiResult()
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
    for topic in topics:
        described = next((row for row in response.topics if (row.name if isinstance(topic, str) else row.topic_id) == topic), None)
        if described is None or (described.name is None and described.error_code in (UnknownTopicId.code, 0)):
            absent = f"Topic {topic} not found." if isinstance(topic, str) else f"TopicId {topic} not found."
            answer.failed[topic] = UnknownTopicOrPartition(absent) if isinstance(topic, str) else UnknownTopicId(absent)
        elif described.error_code:
            answer.failed[topic] = error_for(described.error_code)
        else:
            answer.done[topic] = _described(described, nodes)
    return answer


def _described(topic: MetadataResponseTopic, nodes: Mapping[int, Node]) -> TopicDescription:
    def known(ids: list[int]) -> tuple[Node, ...]:
        return tuple(nodes.get(node_id, Node(node_id, "", -1)) for node_id in ids)

    partitions = tuple(
        TopicPartitionInfo(
            info.partition_index,
            None if info.leader_id < 0 else nodes.get(info.leader_id),
            known(info.replica_nodes),
            known(info.isr_nodes),
            offline_replicas=known(info.offline_replicas),
        )
        for info in topic.partitions
    )
    allowed = authorized_operations(topic.topic_authorized_operations)
    return TopicDescription(topic.name or "", topic.is_internal, _sorted(partitions), allowed, topic.topic_id)


def _sorted(partitions: Iterable[TopicPartitionInfo]) -> tuple[TopicPartitionInfo, ...]:
    return tuple(sorted(partitions, key=lambda info: info.partition))
