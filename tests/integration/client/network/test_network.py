"""The network of the clients against both brokers: versions, metadata, coordinators, and many requests at once."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.cluster import COORDINATOR_IDS
from barnabas.client.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, error_for
from barnabas.client.network.network_client import TRANSACTION_COORDINATOR, NetworkClient
from barnabas.protocol import api_keys
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.protocol.registry import APIS
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.broker import TopicMaker
from tests.client_network import network, on_loop


async def known(client: NetworkClient) -> None:
    if client.metadata.cluster.is_bootstrap:
        await client.metadata.wait_for_update(client.metadata.update_version, 10_000)


def test_learns_the_cluster_from_its_bootstrap_address(bootstrap: str) -> None:
    async def run() -> None:
        async with network(bootstrap) as client:
            response = await client.send_to_any(DescribeClusterRequest())
            assert isinstance(response, DescribeClusterResponse)
            await known(client)
            cluster = client.metadata.cluster
            assert cluster.cluster_id == response.cluster_id
            assert [(node.id, node.host, node.port) for node in cluster.nodes] == [
                (row.broker_id, row.host, row.port) for row in response.brokers
            ]
            assert cluster.controller is not None

    on_loop(run)


def test_a_topic_with_its_id_leaders_and_epochs(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("network", partitions=3)

    async def run() -> None:
        async with network(bootstrap) as client:
            client.metadata.set_topics([topic])
            while client.metadata.cluster.partition_count(topic) is None:
                await client.metadata.wait_for_update(client.metadata.update_version, 10_000)
            cluster = client.metadata.cluster
            assert [info.partition for info in cluster.available_partitions_for_topic(topic)] == [0, 1, 2]
            assert cluster.topic_id(topic) != Uuid.ZERO and cluster.topic_name(cluster.topic_id(topic)) == topic
            assert client.metadata.current_leader(TopicPartition(topic, 1)).epoch == 0
            leader = cluster.leader_for(TopicPartition(topic, 1))
            assert leader is not None
            partition = ListOffsetsPartition(partition_index=1, current_leader_epoch=0, timestamp=-1)
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic, [partition])])
            while True:
                response = await client.send(leader.id, request)
                assert isinstance(response, ListOffsetsResponse)
                row = response.topics[0].partitions[0]
                if row.error_code == 0 or not error_for(row.error_code).retriable:
                    break
            assert (row.error_code, row.offset) == (0, 0)

    on_loop(run)


def test_unknown_topics_are_not_made_where_that_is_not_wanted(bootstrap: str) -> None:
    async def run() -> None:
        async with network(bootstrap) as client:
            client.metadata.allow_auto_topic_creation = False
            client.metadata.set_topics(["nobody-made-this"])
            for _ in range(3):
                await client.metadata.wait_for_update(client.metadata.request_update(), 10_000)
            assert client.metadata.cluster.topics == frozenset()
            assert client.metadata.update_requested, "it may come to be"

    on_loop(run)


def test_versions_are_those_that_the_broker_offers(bootstrap: str) -> None:
    async def run() -> None:
        async with network(bootstrap) as client:
            await known(client)
            node_id = await client.any_ready(client.clock.monotonic_ms() + 10_000)
            response = await client.send(node_id, ApiVersionsRequest("a-test", "1"))
            assert isinstance(response, ApiVersionsResponse)
            for row in response.api_keys:
                expected = min(row.max_version, APIS[row.api_key].stable_version)
                assert client.version_of(node_id, row.api_key) == expected, APIS[row.api_key].name
            assert client.version_of(node_id, api_keys.VOTE) is None
            features = client.newest_features()
            assert features is not None and features.finalized["transaction.version"] == 2

    on_loop(run)


@pytest.mark.parametrize("key_type", [0, TRANSACTION_COORDINATOR])
def test_a_coordinator_and_its_own_connection(bootstrap: str, key_type: int) -> None:
    async def run() -> None:
        async with network(bootstrap) as client:
            while True:
                try:
                    node = await client.find_coordinator("a-group", key_type, own_connection=True)
                    break
                except (CoordinatorNotAvailable, CoordinatorLoadInProgress):
                    await client.wait_for_change(100)
            broker_id = COORDINATOR_IDS - node.id
            await known(client)
            assert client.metadata.cluster.node_by_id(broker_id) is not None
            assert isinstance(await client.send(node.id, DescribeClusterRequest()), DescribeClusterResponse)
            assert (await client.find_coordinator("a-group", key_type)).id == broker_id

    on_loop(run)


def test_many_requests_at_once_on_one_connection(bootstrap: str) -> None:
    async def run() -> None:
        async with network(bootstrap) as client:
            await known(client)
            node_id = client.metadata.cluster.nodes[0].id
            answers = await asyncio.gather(*(client.send(node_id, DescribeClusterRequest()) for _ in range(300)))
            assert {type(answer) for answer in answers} == {DescribeClusterResponse}
            assert client.in_flight_count() == 0

    on_loop(run)
