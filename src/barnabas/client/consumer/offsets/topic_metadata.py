"""Metadata of topics that the application names in partitions_for and list_topics, apart from the subscribed topics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import Node, PartitionInfo
from barnabas.client.errors import InvalidTopic, TopicAuthorization, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic

if TYPE_CHECKING:
    from barnabas.client.network.network_client import NetworkClient

_TRY_AGAIN: Final = frozenset({ErrorCode.LEADER_NOT_AVAILABLE})


async def topic_metadata(
    network: NetworkClient,
    topics: Iterable[str] | None,
    *,
    allow_auto_create: bool,
    deadline_ms: int,
    clock: Clock,
    retry_backoff_ms: int,
) -> dict[str, list[PartitionInfo]]:
    """The partitions of the given topics, or of all topics. A topic that does not exist is left out; an invalid or unauthorized topic
    raises."""
    named = None if topics is None else [MetadataRequestTopic(name=topic) for topic in topics]
    while True:
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise network.timeout("Timeout expired while fetching topic metadata")
        try:
            response = await network.send_to_any(
                MetadataRequest(named, allow_auto_create and named is not None), timeout_ms=min(left_ms, network.request_timeout_ms)
            )
            assert isinstance(response, MetadataResponse)
            partitions = _read(response)
        except KafkaError as error:
            if not error.retriable:
                raise
            partitions = None
        if partitions is not None:
            return partitions
        await asyncio.sleep(min(max(0, deadline_ms - clock.monotonic_ms()), retry_backoff_ms) / 1000)


def _read(response: MetadataResponse) -> dict[str, list[PartitionInfo]] | None:
    """The topics of a response; None if the request must be retried."""
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
    partitions: dict[str, list[PartitionInfo]] = {}
    unauthorized: set[str] = set()
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code == ErrorCode.NONE:
            partitions[name] = _partitions(topic, name, nodes)
        elif topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            unauthorized.add(name)
        elif topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise InvalidTopic(f"Topic '{name}' is invalid")
        elif topic.error_code in _TRY_AGAIN:
            return None
        elif topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error_for(topic.error_code, f"Unexpected error fetching metadata for topic {name}")
    if unauthorized:
        raise TopicAuthorization(unauthorized_topics=unauthorized)
    return partitions


def _partitions(topic: MetadataResponseTopic, name: str, nodes: dict[int, Node]) -> list[PartitionInfo]:
    def known(ids: Iterable[int]) -> tuple[Node, ...]:
        return tuple(nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)

    return [
        PartitionInfo(
            name,
            row.partition_index,
            nodes.get(row.leader_id),
            known(row.replica_nodes),
            known(row.isr_nodes),
            known(row.offline_replicas),
            row.leader_epoch,
        )
        for row in sorted(topic.partitions, key=lambda row: row.partition_index)
    ]
