"""Adopts log directories of Apache Kafka: writes a metadata store that describes their topics. The logs themselves are not changed.

The second half of `barnabas adopt`. `plan` decides from an inventory alone; `write_store` writes the plan into a new store, or adds the
missing topics to an existing one. The cluster id is written last: a broker does not start with a store without it, so never with an
incomplete one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from barnabas.broker.adoption.inventory import KafkaInventory, NotAdoptable
from barnabas.broker.adoption.kraft_metadata import BROKER_RESOURCE, TOPIC_RESOURCE
from barnabas.broker.config import BROKER_CONFIGS
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.tree import Create, Operation
from barnabas.metadata.znodes import cluster, configs, topics
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

DEFAULT_NODE_ID: Final = 0
_CONTROLLER_EPOCH: Final = 0  # before the first controller

# Kafka's configs of its internal topics. In ZooKeeper mode the log directories do not contain them.
_INTERNAL_CONFIGS: Final[Mapping[str, Mapping[str, str]]] = {
    "__consumer_offsets": {"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": "104857600"},
    "__transaction_state": {
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
}
_RETENTION_DEFAULTS: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


@dataclass(frozen=True)
class AdoptedTopic:
    name: str
    topic_id: Uuid
    has_new_id: bool
    leader_epochs: Mapping[int, int | None]  # by partition; None if the partition is missing and begins empty
    configs: Mapping[str, str]


@dataclass(frozen=True)
class Adoption:
    cluster_id: str
    node_id: int
    topics: Sequence[AdoptedTopic]
    broker_configs: Mapping[str, Mapping[str, str]]  # by node id, or `<default>`
    next_producer_id: int
    missing: Sequence[TopicPartition]
    remarks: Sequence[str]  # for the user, one line each


def plan(inventory: KafkaInventory, random: Random, *, broker_retention: bool = False, create_missing: bool = False) -> Adoption:
    """Raises NotAdoptable. Without `broker_retention`, topics without their own retention are kept for ever."""
    meta = inventory.meta
    node_id = meta.node_id if meta.node_id is not None else DEFAULT_NODE_ID
    broker_configs, remarks = _broker_configs(inventory, node_id)
    keeps = not broker_retention and not any(name in settings for settings in broker_configs.values() for name in _RETENTION_DEFAULTS)
    epochs_by_topic: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for partition in inventory.partitions:
        epochs_by_topic[partition.topic][partition.partition] = _leader_epoch(inventory, partition)
    for name in _expected(inventory, node_id):
        epochs_by_topic.setdefault(name, {})  # also if none of its partitions is in these directories
    adopted: list[AdoptedTopic] = []
    for name in sorted(epochs_by_topic):
        topic_id = _topic_id(inventory, name)
        if inventory.kraft is not None and topic_id is not None and topic_id not in inventory.kraft.topics:
            remarks.append(f"{name} ({topic_id}) is left out: the cluster has deleted this topic; remove its directories")
            continue
        settings = _topic_configs(inventory, name)
        if keeps and _would_expire(settings):
            settings["retention.ms"] = "-1"
        count = _partition_count(inventory, name, epochs_by_topic[name])
        epochs: dict[int, int | None] = {number: epochs_by_topic[name].get(number) for number in range(count)}
        adopted.append(AdoptedTopic(name, topic_id or Uuid.random(random), topic_id is None, epochs, settings))
    missing = [TopicPartition(topic.name, number) for topic in adopted for number, epoch in topic.leader_epochs.items() if epoch is None]
    remarks += _remarks(inventory, node_id, adopted, keeps)
    if missing and create_missing:
        remarks.append(f"begin empty, since they are not here: {_listed(missing)}")
    cluster_id = meta.cluster_id if meta.cluster_id is not None else str(Uuid.random(random))
    return Adoption(cluster_id, node_id, adopted, broker_configs, inventory.next_producer_id, missing, remarks)


def require_complete(adoption: Adoption) -> None:
    """Raises NotAdoptable if partitions of a topic are missing: they may be in a log directory that was not named."""
    if adoption.missing:
        raise NotAdoptable(
            f"these partitions are not here: {_listed(adoption.missing)}; "
            "name all log.dirs of the node, or say --create-missing to begin them empty"
        )


def _topic_id(inventory: KafkaInventory, name: str) -> Uuid | None:
    """The topic id in the partition directories, else in the KRaft metadata. None for a topic without an id (before Kafka 2.8)."""
    topic_ids = {
        partition_dir.topic_id
        for partition, partition_dir in inventory.partitions.items()
        if partition.topic == name and partition_dir.topic_id is not None
    }
    if len(topic_ids) > 1:
        listed = ", ".join(sorted(map(str, topic_ids)))
        raise NotAdoptable(f"the directories of {name} are of different topics of that name ({listed}): move the old ones away")
    if topic_ids:
        return topic_ids.pop()
    kraft_topic = inventory.kraft.topic_named(name) if inventory.kraft is not None else None
    return kraft_topic.topic_id if kraft_topic is not None else None


def _leader_epoch(inventory: KafkaInventory, partition: TopicPartition) -> int:
    """A leader epoch that is not lower than any that clients or the log may have seen."""
    kraft_topic = inventory.kraft.topic_named(partition.topic) if inventory.kraft is not None else None
    kraft_partition = kraft_topic.partitions.get(partition.partition) if kraft_topic is not None else None
    kraft_epoch = kraft_partition.leader_epoch if kraft_partition is not None else 0
    return max(0, inventory.partitions[partition].leader_epoch, kraft_epoch)


def _partition_count(inventory: KafkaInventory, name: str, epochs: Mapping[int, int]) -> int:
    kraft_topic = inventory.kraft.topic_named(name) if inventory.kraft is not None else None
    return max(max(epochs, default=0), max(kraft_topic.partitions, default=0) if kraft_topic is not None else 0) + 1


def _expected(inventory: KafkaInventory, node_id: int) -> list[str]:
    """The topics of which this node has a replica, according to the KRaft metadata."""
    kraft_topics = inventory.kraft.topics.values() if inventory.kraft is not None else ()
    return [topic.name for topic in kraft_topics if any(node_id in partition.replicas for partition in topic.partitions.values())]


def _topic_configs(inventory: KafkaInventory, name: str) -> dict[str, str]:
    if inventory.kraft is not None:
        return dict(inventory.kraft.configs.get((TOPIC_RESOURCE, name), {}))
    if name in _INTERNAL_CONFIGS:
        return dict(_INTERNAL_CONFIGS[name])
    return {"cleanup.policy": "compact"} if name in inventory.compacted else {}


def _would_expire(settings: Mapping[str, str]) -> bool:
    return "retention.ms" not in settings and "delete" in settings.get("cleanup.policy", "delete")


def _broker_configs(inventory: KafkaInventory, node_id: int) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The cluster-wide configs and those of this broker. Secrets are left out: the metadata store would need a key to encrypt them."""
    taken: dict[str, dict[str, str]] = {}
    left: list[str] = []
    for (resource, name), settings in inventory.kraft.configs.items() if inventory.kraft is not None else ():
        if resource == TOPIC_RESOURCE:
            continue
        if resource != BROKER_RESOURCE or name not in ("", str(node_id)):
            left.append(f"the settings of {name or 'a default'} (resource type {resource})")
            continue
        open_ones = {key: value for key, value in settings.items() if key in BROKER_CONFIGS and not BROKER_CONFIGS[key].sensitive}
        left += sorted(settings.keys() - open_ones.keys())
        if open_ones:
            taken[name or configs.DEFAULT_ENTITY] = open_ones
    return taken, [f"not taken over, set it again: {setting}" for setting in left]


def _remarks(inventory: KafkaInventory, node_id: int, adopted: Sequence[AdoptedTopic], keeps: bool) -> list[str]:
    remarks = [f"{path} is passed over" for path in inventory.passed_over]
    if not inventory.is_clean:
        remarks.append("it was not shut down cleanly: the first start will check the logs, and take longer")
    if inventory.kraft is None:
        remarks.append("the settings of topics are not in these directories: set them again with kafka-configs, once the broker runs")
    else:
        remarks += [f"not taken over: {count} {what}" for what, count in sorted(inventory.kraft.left_behind.items()) if count > 0]
    kept = [topic.name for topic in adopted if topic.configs.get("retention.ms") == "-1"] if keeps else []
    if kept:
        remarks.append(
            f"retention.ms=-1 is set on {len(kept)} topics, so that nothing is deleted for its age (not with --broker-retention)"
        )
    strict = [topic.name for topic in adopted if topic.configs.get("min.insync.replicas", "1") != "1"]
    if strict:
        remarks.append(f"min.insync.replicas is more than this one node can give: lower it on {', '.join(strict)}")
    kraft_topics = inventory.kraft.topics.values() if inventory.kraft is not None else ()
    replicated = sorted(
        topic.name for topic in kraft_topics if any({*partition.replicas} - {node_id} for partition in topic.partitions.values())
    )
    if replicated:
        remarks.append(f"other nodes held replicas of {', '.join(replicated)}: what they had and this one has not is not here")
    return remarks


def _listed(partitions: Sequence[TopicPartition], most: int = 20) -> str:
    shown = ", ".join(str(partition) for partition in partitions[:most])
    return shown if len(partitions) <= most else f"{shown} and {len(partitions) - most} more"


# -- writing


async def write_store(adoption: Adoption, path: str, now_ms: Callable[[], int]) -> list[str]:
    """Creates the store, or adds to it. Returns the names of the topics that it added. Raises NotAdoptable, StoreUnusable."""
    tree = open_embedded(path, now_ms)
    client = TreeClient(tree, lambda: None)
    try:
        await client.connect()
        await _refuse_other_cluster(client, adoption, path)
        await client.ensure_all(paths.PERSISTENT_PATHS)
        for entity, settings in adoption.broker_configs.items():
            if await client.get(paths.config_entity(f"brokers/{entity}")) is None:
                await client.create_recursive(paths.config_entity(f"brokers/{entity}"), configs.encode_config(settings))
        await _reserve_producer_ids(client, adoption)
        added = [topic for topic in adoption.topics if await _is_new(client, topic, path)]
        for topic in added:
            await client.multi(_operations(topic, adoption.node_id))
        await client.set_or_create(paths.CLUSTER_ID, cluster.encode_cluster_id(adoption.cluster_id))
        return [topic.name for topic in added]
    finally:
        await client.close()
        await tree.close()


async def _refuse_other_cluster(client: TreeClient, adoption: Adoption, path: str) -> None:
    node = await client.get(paths.CLUSTER_ID)
    if node is not None and (stored_id := cluster.decode_cluster_id(node.data)) != adoption.cluster_id:
        raise NotAdoptable(f"{path} is of cluster {stored_id}, the directory of cluster {adoption.cluster_id}: move {path} away")


async def _is_new(client: TreeClient, topic: AdoptedTopic, path: str) -> bool:
    node = await client.get(paths.topic(topic.name))
    if node is None:
        return True
    stored_id = topics.decode_topic(topic.name, node.data).topic_id
    if stored_id is not None and not topic.has_new_id and stored_id != topic.topic_id:
        raise NotAdoptable(
            f"{path} has another topic {topic.name} (id {stored_id}, here {topic.topic_id}): delete that topic, or move these "
            "directories away"
        )
    return False


async def _reserve_producer_ids(client: TreeClient, adoption: Adoption) -> None:
    """Writes a producer id block that covers the ids in use, so that the next block begins above them."""
    if adoption.next_producer_id == 0:
        return
    node = await client.get(paths.PRODUCER_ID_BLOCK)
    if node is not None and node.data and cluster.decode_producer_id_block(node.data).last >= adoption.next_producer_id - 1:
        return
    size = cluster.PRODUCER_ID_BLOCK_SIZE
    end = -(-adoption.next_producer_id // size) * size
    block = cluster.ProducerIdBlock(adoption.node_id, end - size, end - 1)
    await client.set_or_create(paths.PRODUCER_ID_BLOCK, cluster.encode_producer_id_block(block))


def _operations(topic: AdoptedTopic, node_id: int) -> list[Operation]:
    """The writes that create a topic, in one transaction. A missing partition gets no state: the controller elects its leader, as for any
    new partition."""
    replicas = topics.ReplicaAssignment((node_id,))
    assignment = topics.TopicAssignment(dict.fromkeys(topic.leader_epochs, replicas), topic.topic_id)
    operations: list[Operation] = [Create(paths.config_entity(f"topics/{topic.name}"), configs.encode_config(topic.configs))]
    operations.append(Create(paths.topic(topic.name), topics.encode_topic(assignment)))
    operations.append(Create(paths.topic_partitions(topic.name)))
    for number, epoch in topic.leader_epochs.items():
        if epoch is not None:
            state = topics.PartitionState(node_id, epoch, (node_id,), _CONTROLLER_EPOCH)
            operations.append(Create(paths.topic_partition(topic.name, number)))
            operations.append(Create(paths.topic_partition_state(topic.name, number), topics.encode_partition_state(state)))
    return operations
