"""The part of the metadata store that a conversion changes: topics, their replicas and leaders, some settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.layout.errors import NotConvertible
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.tree import GetData
from barnabas.metadata.znodes import cluster, configs
from barnabas.metadata.znodes.topics import PartitionState, TopicAssignment, decode_partition_state, decode_topic


@dataclass(frozen=True)
class TopicImage:
    name: str
    assignment: TopicAssignment
    states: Mapping[int, PartitionState]  # without partitions that no controller has handled yet
    config: Mapping[str, str] = field(default_factory=dict)
    is_being_deleted: bool = False


@dataclass(frozen=True)
class ClusterImage:
    cluster_id: str
    topics: Sequence[TopicImage]
    broker_configs: Mapping[str, bytes] = field(default_factory=dict)  # by broker id, without `<default>`
    has_reassignments: bool = False


async def read_image(tree: TreeClient) -> ClusterImage:
    """Raises NotConvertible for a store that no broker has used."""
    cluster_id = await tree.get(paths.CLUSTER_ID)
    if cluster_id is None:
        raise NotConvertible("the metadata store knows no cluster: nothing was ever kept with it")
    being_deleted = set(await _children(tree, paths.DELETE_TOPICS))
    topics = [await _topic(tree, name, name in being_deleted) for name in await _children(tree, paths.TOPICS)]
    brokers = [name for name in await _children(tree, paths.config_type("brokers")) if name != configs.DEFAULT_ENTITY]
    return ClusterImage(
        cluster.decode_cluster_id(cluster_id.data),
        topics,
        {name: data for name in brokers if (data := await _data(tree, paths.config_entity(f"brokers/{name}"))) is not None},
        await tree.exists(paths.REASSIGN_PARTITIONS) is not None,
    )


async def _topic(tree: TreeClient, name: str, is_being_deleted: bool) -> TopicImage:
    assignment = decode_topic(name, await _data(tree, paths.topic(name)))
    numbers = sorted(assignment.partitions)
    responses = await tree.handle([GetData(paths.topic_partition_state(name, number)) for number in numbers])
    states = {
        number: decode_partition_state(name, number, response.value.data)
        for number, response in zip(numbers, responses, strict=True)
        if response.error is None
    }
    config = configs.decode_config(f"topics/{name}", await _data(tree, paths.config_entity(f"topics/{name}")))
    return TopicImage(name, assignment, states, config, is_being_deleted)


async def _data(tree: TreeClient, path: str) -> bytes | None:
    node = await tree.get(path)
    return None if node is None else node.data


async def _children(tree: TreeClient, path: str) -> list[str]:
    children = await tree.children(path)
    return [] if children is None else children.names
