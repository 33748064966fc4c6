"""Data directories of one broker and of several, on a simulated disk, with a metadata store that is a file on it too."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.layout.cluster_image import ClusterImage, read_image
from barnabas.layout.converter import ConversionProgress, Converter
from barnabas.layout.journal import ConversionJournal
from barnabas.layout.layout import Layout, within
from barnabas.layout.layout_file import LayoutFile, find_layout
from barnabas.layout.plan import ConversionPlan
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import STORE_NAME
from barnabas.metadata.local import LocalTree
from barnabas.metadata.znodes import cluster, configs
from barnabas.metadata.znodes.topics import (
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.directory.checkpoints import CLEANER_OFFSET_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT, OffsetCheckpoint
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.directory.meta_properties import MetaProperties, MetaPropertiesFile
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.storage.logs import NOW, append_many, config, values

DATA = "/data"
CLUSTER = "a-cluster"
EPOCH = 7  # of every leader before the conversion
CONTROLLER_EPOCH = 4


@dataclass
class Partition:
    """`counts` are the records that each replica has; the first broker leads unless it is said otherwise."""

    counts: Mapping[int, int]
    isr: Sequence[int] | None = None
    leader: int | None = None
    high_watermarks: Mapping[int, int] = field(default_factory=dict)

    @property
    def replicas(self) -> tuple[int, ...]:
        return tuple(self.counts)

    @property
    def state(self) -> PartitionState:
        leader = self.leader if self.leader is not None else self.replicas[0]
        return PartitionState(leader, EPOCH, tuple(self.isr if self.isr is not None else self.replicas), CONTROLLER_EPOCH)


Topics = Mapping[str, Sequence[Partition]]


class FileStore:
    """The znodes as one JSON file, replaced as a whole: a step of the disk like any other."""

    def __init__(self, files: AnyFiles) -> None:
        self.files = files
        self.path = f"{DATA}/{STORE_NAME}"

    def znodes(self) -> dict[str, str]:
        document: dict[str, str] = json.loads(self.files.read_bytes(self.path))
        return document

    def write(self, znodes: Sequence[tuple[str, bytes]]) -> None:
        known = self.znodes() if self.files.exists(self.path) else {}
        self.files.write_atomically(self.path, json.dumps(known | {path: data.decode() for path, data in znodes}).encode())

    def image(self) -> ClusterImage:
        async def read() -> ClusterImage:
            tree = TreeClient(LocalTree(lambda: 0), lambda: None)
            await tree.connect()
            for path, text in self.znodes().items():
                await tree.set_or_create(path, text.encode())
            return await read_image(tree)

        return asyncio.run(read())

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        assignment = decode_topic(topic, self.znodes()[paths.topic(topic)].encode())
        return {number: partition.replicas for number, partition in assignment.partitions.items()}

    def state(self, topic: str, partition: int) -> PartitionState:
        return decode_partition_state(topic, partition, self.znodes()[paths.topic_partition_state(topic, partition)].encode())

    def topic_config(self, topic: str) -> dict[str, str]:
        return configs.decode_config(f"topics/{topic}", self.znodes()[paths.config_entity(f"topics/{topic}")].encode())


def topic_id(name: str) -> Uuid:
    return Uuid.random(random.Random(name))


def make(brokers: int, topics: Topics, node: int = 1, settings: Mapping[str, Mapping[str, str]] | None = None) -> SimulatedFiles:
    """As brokers leave it that were stopped cleanly. `node` is the id of a single broker."""
    files, layout = SimulatedFiles(), Layout(brokers)
    LogDir(files, DATA).release()
    if not layout.is_single:
        LayoutFile(files, DATA).write(layout)
    for number in layout.nodes if not layout.is_single else [node]:
        _make_node(files, within(DATA, layout.node_dir(number)), number, topics)
    znodes = [(paths.CLUSTER_ID, cluster.encode_cluster_id(CLUSTER)), (paths.CONTROLLER_EPOCH, b"4")]
    for name, partitions in topics.items():
        assigned = {number: ReplicaAssignment(partition.replicas) for number, partition in enumerate(partitions)}
        znodes.append((paths.topic(name), encode_topic(TopicAssignment(assigned, topic_id(name)))))
        znodes.append((paths.config_entity(f"topics/{name}"), configs.encode_config((settings or {}).get(name, {}))))
        znodes += [
            (paths.topic_partition_state(name, number), encode_partition_state(partition.state))
            for number, partition in enumerate(partitions)
        ]
    FileStore(files).write(znodes)
    files.sync_dir(DATA)
    return files


def _make_node(files: SimulatedFiles, directory: str, node: int, topics: Topics) -> None:
    manager = LogManager(files, [directory], config(), LogManagerConfig(num_recovery_threads_per_data_dir=1))
    manager.load(NOW)
    high_watermarks: dict[TopicPartition, int] = {}
    for name, partitions in topics.items():
        for number, each in enumerate(partitions):
            if node in each.counts:
                partition = TopicPartition(name, number)
                log = manager.get_or_create(partition, NOW, topic_id=topic_id(name))
                append_many(log, each.counts[node])
                high_watermarks[partition] = each.high_watermarks.get(node, each.counts[node])
    manager.shutdown(NOW)
    MetaPropertiesFile(files, directory).write(MetaProperties(0, CLUSTER, node, Uuid.random(random.Random(node))), NOW)
    OffsetCheckpoint(files, f"{directory}/{REPLICATION_OFFSET_CHECKPOINT}").write(high_watermarks)
    OffsetCheckpoint(files, f"{directory}/{CLEANER_OFFSET_CHECKPOINT}").write(dict.fromkeys(high_watermarks, 1))


def convert(files: AnyFiles, brokers: int, *, dry_run: bool = False) -> list[ConversionPlan | ConversionJournal]:
    """What was planned, and what was finished that an earlier run had begun."""
    calls: list[ConversionPlan | ConversionJournal] = []
    converter = Converter(files, DATA, FileStore(files), random.Random(1), NOW)
    converter.convert(Layout(brokers), ConversionProgress(calls.append, calls.append), dry_run=dry_run)
    return calls


def records(files: SimulatedFiles) -> dict[str, dict[int, int]]:
    """How many records each broker has of each partition, after a start of all of them. Records are numbered, which is checked."""
    copy = files.process_crash()
    layout = find_layout(copy, DATA)
    assert layout is not None
    assignments: dict[str, dict[int, int]] = {}
    for node in layout.nodes:
        manager = LogManager(copy, [within(DATA, layout.node_dir(node))], config(), LogManagerConfig(num_recovery_threads_per_data_dir=1))
        manager.load(NOW)
        meta = MetaPropertiesFile(copy, within(DATA, layout.node_dir(node))).read()
        assert meta is not None and (meta.cluster_id, meta.node_id) == (CLUSTER, node)
        for log in manager.logs:
            assert log.topic_id == topic_id(log.partition.topic)
            assignments.setdefault(str(log.partition), {})[node] = len(values(log))
        manager.shutdown(NOW)
    return assignments


def tree_of(files: AnyFiles, path: str = DATA) -> list[str]:
    """Every file and directory, by its path."""
    paths_below = []
    for entry in files.list_dir(path):
        paths_below.append(f"{path}/{entry.name}")
        if entry.is_dir:
            paths_below += tree_of(files, f"{path}/{entry.name}")
    return sorted(paths_below)
