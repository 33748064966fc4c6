"""What a topic looks like: partitions, leaders, replicas. DescribeTopicPartitions tells it in pages; older brokers know only Metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.client.admin.access.operations import AclOperation, authorized_operations
from barnabas.client.admin.call import Answer, Call
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
from barnabas.uuid import Uuid

Topic = TypeVar("Topic", bound=str | Uuid)


@dataclass(frozen=True, slots=True)
class TopicPartitionInfo:
    """A partition. `leader` is None while there is none; `elr` and `last_known_elr` are None where the broker does not tell them."""

    partition: int
    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    elr: tuple[Node, ...] | None = None
    last_known_elr: tuple[Node, ...] | None = None
    offline_replicas: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`partitions` are in the order of their numbers; `authorized_operations` is None unless asked for."""

    name: str
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    authorized_operations: frozenset[AclOperation] | None
    topic_id: Uuid


class TopicDescriptions:
    """Both ways of asking; which one a broker knows is found out by asking."""

    _calls: Calls

    async def _describe(
        self, wanted: Sequence[Topic], refused: Mapping[Topic, KafkaError], with_operations: bool, limit: int, timeout_ms: int | None
    ) -> Outcomes[Topic, TopicDescription]:
        pending = [topic for topic in wanted if topic not in refused]
        call = self._calls.begin("describe_topics", timeout_ms)
        total: Answer[Topic, TopicDescription] = Answer(failed=dict(refused))
        names: list[str] = [topic for topic in pending if isinstance(topic, str)]
        try:
            pages = await self._paged(call, names, with_operations, limit) if names else Answer[str, TopicDescription]()
            total.done.update((topic, pages.done[topic]) for topic in pending if isinstance(topic, str) and topic in pages.done)
            total.failed.update((topic, pages.failed[topic]) for topic in pending if isinstance(topic, str) and topic in pages.failed)
            pending = [topic for topic in pending if not isinstance(topic, str)]
        except UnsupportedVersion:
            pass
        except KafkaError as error:
            total.failed.update(failed(pending, error))
            pending = []
        if pending:

            def read(response: MetadataResponse) -> Answer[Topic, TopicDescription]:
                return _read(response, pending)

            answer = await self._calls.ask_about(
                call, pending, self._calls.any_node, lambda _, keys: _metadata(keys, with_operations), read
            )
            total.done.update(answer.successes)
            total.failed.update(answer.errors)
        return Outcomes(wanted, total.done, total.failed)

    async def _paged(self, call: Call, names: list[str], with_operations: bool, limit: int) -> Answer[str, TopicDescription]:
        cluster = await fetch_cluster(self._calls, call, self._calls.any_node)
        answer: Answer[str, TopicDescription] = Answer()
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

        return await self._calls.ask(call, self._calls.any_node, build, read)


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
    wanted = [MetadataRequestTopic(name=topic) if isinstance(topic, str) else MetadataRequestTopic(topic, None) for topic in topics]
    return MetadataRequest(wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=with_operations)


def _read(response: MetadataResponse, wanted: Sequence[Topic]) -> Answer[Topic, TopicDescription]:
    answer: Answer[Topic, TopicDescription] = Answer()
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
    for topic in wanted:
        found = next((told for told in response.topics if (told.name if isinstance(topic, str) else told.topic_id) == topic), None)
        if found is None or (found.name is None and found.error_code in (UnknownTopicId.code, 0)):
            absent = f"Topic {topic} not found." if isinstance(topic, str) else f"TopicId {topic} not found."
            answer.failed[topic] = UnknownTopicOrPartition(absent) if isinstance(topic, str) else UnknownTopicId(absent)
        elif found.error_code:
            answer.failed[topic] = error_for(found.error_code)
        else:
            answer.done[topic] = _described(found, nodes)
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
