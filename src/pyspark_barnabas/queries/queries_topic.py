"""The topic `__barnabas_queries` on a cluster: creates it where that is allowed, and appends records to its partition 0.

It uses a client that a task has anyway. All functions run on that client's loop, and raise KafkaError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.records.columns.columns import encode
from pyspark_barnabas.subscription import QUERIES_TOPIC as TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_barnabas.connections import Client
    from pyspark_barnabas.queries.query_record import Record

# Compaction keeps one record of each key, and retention removes the keys of queries that have not run for a week.
SETTINGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(7 * 24 * 60 * 60 * 1000),
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}
TIMEOUT_MS: Final = 5_000
VERSION_MAX_BY_NAME: Final = 12  # of Produce: later versions have topic ids only
_BATCH_SIZE_MAX: Final = 500_000
_LEADER_ACKS: Final = 1
_BROKERS_DEFAULT: Final = -1


async def leader_id(client: Client) -> int:
    """The leader of partition 0. A topic that does not exist is created, and LeaderNotAvailable is raised."""
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    response = await client.network.send_to_any(request)
    assert isinstance(response, MetadataResponse)
    topic = response.topics[0]
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        await _create(client, response.controller_id)
        raise error_for(ErrorCode.LEADER_NOT_AVAILABLE)
    code = topic.error_code or topic.partitions[0].error_code
    if code:
        raise error_for(code)
    leader: int = topic.partitions[0].leader_id
    await _known(client, leader)
    return leader


async def append(client: Client, leader: int, records: Sequence[Record], now_ms: int) -> None:
    """Appends the records, acknowledged by the leader alone: losing one in a failover does not matter."""
    keys = pa.array([key.encode() for key, _ in records], pa.binary())
    values = pa.array([value for _, value in records], pa.binary())
    for data in encode(keys, values, now_ms=now_ms, batch_size=_BATCH_SIZE_MAX):
        topic = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, Records(data))])
        request = ProduceRequest(None, _LEADER_ACKS, TIMEOUT_MS, [topic])
        response = await client.network.send(leader, request, max_version=VERSION_MAX_BY_NAME)
        assert isinstance(response, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message)


async def _create(client: Client, controller: int) -> None:
    settings = [CreatableTopicConfig(name, value) for name, value in SETTINGS.items()]
    topic = CreatableTopic(TOPIC, 1, _BROKERS_DEFAULT, configs=settings)
    await _known(client, controller)
    response = await client.network.send(controller, CreateTopicsRequest([topic], TIMEOUT_MS))
    assert isinstance(response, CreateTopicsResponse)
    answer = response.topics[0]
    if answer.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise error_for(answer.error_code, answer.error_message)


async def _known(client: Client, node: int) -> None:
    """Waits until the client's metadata has the address of a broker."""
    metadata = client.metadata
    if metadata.cluster.node_by_id(node) is None:
        await metadata.wait_for_update(metadata.request_update(False), TIMEOUT_MS)
