"""Two of our brokers and one of Apache Kafka 3.9 in one cluster: each kind follows the other, obeys its controller and succeeds it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.metadata.client import TreeClient
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.apache_kafka import PROTOCOL, ApacheKafka
from tests.integration.cluster.asking import all_in_sync
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import consumed, segment_bytes
from tests.integration.transactions.wire import Connection

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]  # three brokers and Java on a machine that may be busy

OURS = (1, 2)
KAFKA = 3
COUNT = 50
ALL = {1, 2, 3}
METADATA_VERSION = 8
OFFSET_COMMIT_VERSION = 8


@pytest.fixture
def mixed(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> Generator[Cluster, None, None]:
    address = f"{ensemble.address}/mixed"
    cluster = Cluster(tmp_path, address, PROTOCOL, brokers=2)
    cluster.start()
    apache = ApacheKafka(KAFKA, tmp_path, address, {})
    cluster.brokers[KAFKA] = apache
    try:
        apache.start()
        apache.wait_ready()
        yield cluster
    finally:
        cluster.end()


class Story:
    """Topics with a partition that ours lead first and one that Kafka's does, and records with the acknowledgement of all."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.described = Description(cluster.bootstrap)
        self._written: dict[tuple[str, int], list[bytes]] = {}

    def _admin(self) -> AdminClient:
        """A new one: librdkafka asks the broker that it last knew to be the controller, whoever is."""
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap})

    def create(self, topic: str, assignment: Sequence[Sequence[int]] = ((1, 2, 3), (3, 1, 2))) -> None:
        new = NewTopic(topic, len(assignment), replica_assignment=[list(replicas) for replicas in assignment])
        admin = self._admin()
        admin.create_topics([new], request_timeout=60)[topic].result(timeout=60)
        for number in range(len(assignment)):
            self._written[topic, number] = []
        self.wait_in_sync(topic)

    def delete(self, topic: str) -> None:
        admin = self._admin()
        admin.delete_topics([topic], request_timeout=60)[topic].result(timeout=60)
        for key in [key for key in self._written if key[0] == topic]:
            del self._written[key]

    def wait_in_sync(self, *topics: str) -> None:
        for topic in topics:
            for number in (0, 1):
                until(partial(self._is_in_sync, topic, number), f"{topic}-{number} is in sync", 120)

    def _is_in_sync(self, topic: str, number: int) -> bool:
        return self.described.isr(topic, number) == ALL

    def write(self, *topics: str) -> None:
        """In transactions, whose coordinators are on all brokers."""
        for topic in topics:
            producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "transactional.id": topic, "acks": "all"})
            producer.init_transactions(60)
            producer.begin_transaction()
            for number in (0, 1):
                for _ in range(COUNT):
                    value = f"value-{len(self._written[topic, number])}".encode()
                    producer.produce(topic, value, partition=number)
                    self._written[topic, number].append(value)
            producer.commit_transaction(60)

    def check(self) -> None:
        """Every record is there once and in order, and the files of all brokers are the same."""
        for (topic, number), values in self._written.items():
            assert [value for _, value in consumed(self.cluster.bootstrap, topic, len(values), number)] == values
            until(partial(self._have_the_same, topic, number), f"the same in all files of {topic}-{number}")

    def _have_the_same(self, topic: str, number: int) -> bool:
        return len({segment_bytes(broker.data, topic, number) for broker in self.cluster.brokers.values()}) == 1

    def start(self, *brokers: int) -> None:
        for number in brokers:
            self.cluster.brokers[number].start()
        for number in brokers:
            self.cluster.brokers[number].wait_ready()


def test_both_kinds_lead_follow_and_control_each_other(mixed: Cluster, ensemble: zookeeper.ZooKeeper) -> None:
    story = Story(mixed)
    described = story.described
    # Kafka's broker says that it has started before the controller has told it who that is; librdkafka does not ask it again for minutes.
    until(lambda: all_in_sync(mixed.brokers.values()), "every broker knows the others and the controller")
    until(lambda: described.controller() in OURS, "ours, who were first, control")
    story.create("ours")
    until(lambda: (described.leader("ours", 0), described.leader("ours", 1)) == (1, KAFKA), "a leader of each kind")
    story.write("ours")
    story.check()
    check_what_is_told_of_a_new_topic(mixed, described.controller())
    check_commits_that_are_too_large(mixed, described)

    hand_over(mixed, described, *OURS)
    until(lambda: Description(mixed.brokers[KAFKA].address).controller() == KAFKA, "Kafka's broker controls what ours have written")
    story.start(*OURS)
    story.wait_in_sync("ours")
    check_what_is_told_of_a_new_topic(mixed, KAFKA)
    check_small_segments(mixed)
    story.create("kafkas")
    story.create("gone")
    story.write("ours", "kafkas", "gone")
    story.check()
    check_nodes_have_the_same_shape(f"{ensemble.address}/mixed")

    mixed.brokers[KAFKA].kill()
    awake = Description(",".join(mixed.brokers[number].address for number in OURS))
    until(lambda: awake.controller() in OURS, "ours control what Kafka's broker has written")
    until(lambda: awake.leader("kafkas", 1) in OURS, "ours lead")
    story.start(KAFKA)
    story.wait_in_sync("ours", "kafkas", "gone")
    story.delete("gone")
    story.create("last")
    story.write("ours", "kafkas", "last")
    until(lambda: not any(list(broker.data.glob("gone-[01]")) for broker in mixed.brokers.values()), "no files of a deleted topic")
    story.check()

    mixed.brokers[KAFKA].stop()
    until(lambda: awake.leader("last", 1) in OURS, "ours lead what Kafka's broker has handed over")
    assert mixed.tracebacks() == []


def check_what_is_told_of_a_new_topic(mixed: Cluster, controller: int) -> None:
    """Brokers of both kinds, whoever controls: a topic that nobody has created will soon be there."""
    for number, broker in mixed.brokers.items():
        request = MetadataRequest([MetadataRequestTopic(name=f"asked-of-{number}-under-{controller}")])
        with closing(Connection(broker.address)) as connection:
            answer = connection.ask(request, METADATA_VERSION)
        assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE, (number, controller)


def check_commits_that_are_too_large(mixed: Cluster, described: Description) -> None:
    """By a coordinator of either kind: the metadata of 300 offsets does not fit into a batch of a megabyte."""
    described.create("many", 300, replicas=1)
    partitions = [OffsetCommitRequestPartition(number, 1, committed_metadata="x" * 4_000) for number in range(300)]
    groups: dict[int, str] = {}

    def are_found() -> bool:
        groups.update({described.coordinator(name): name for name in map("group-{}".format, range(20))})
        return {OURS[0], KAFKA} <= groups.keys()

    until(are_found, "groups with coordinators of both kinds")
    for owner in (OURS[0], KAFKA):
        request = OffsetCommitRequest(groups[owner], topics=[OffsetCommitRequestTopic("many", partitions=partitions)])
        with closing(Connection(mixed.brokers[owner].address)) as connection:
            until(partial(is_too_large, connection, request), f"{owner} refuses the offsets")


def is_too_large(connection: Connection, request: OffsetCommitRequest) -> bool:
    answer = connection.ask(request, OFFSET_COMMIT_VERSION)
    codes = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    return codes == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}


def check_small_segments(mixed: Cluster) -> None:
    """Smaller than Kafka 4 takes them, set by Kafka 3.9's controller: they end at the same offsets on all brokers."""
    Description(mixed.bootstrap).create("small", segment_bytes="100000")
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "acks": "all", "linger.ms": "0"})
    for _ in range(50):
        producer.produce("small", b"x" * 10_000, partition=0)
        producer.flush(60)

    def segments() -> set[tuple[str, ...]]:
        return {tuple(sorted(path.name for path in (broker.data / "small-0").glob("*.log"))) for broker in mixed.brokers.values()}

    until(lambda: len(segments()) == 1 and all(len(names) > 5 for names in segments()), "the same segments everywhere")


def hand_over(mixed: Cluster, described: Description, *brokers: int) -> None:
    """They stop one after the other, the controller last; others lead before they do."""
    for number in sorted(brokers, key=lambda broker: broker == described.controller()):
        stopped: BrokerProcess = mixed.brokers[number]
        assert stopped.stop() == 0
        assert "Controlled shutdown request returned successfully" in stopped.said()


def check_nodes_have_the_same_shape(address: str) -> None:
    """What a broker of ours says of itself, and what our controller has written of topics, beside Kafka's: the same keys in order."""
    pairs = [("/brokers/ids/1", f"/brokers/ids/{KAFKA}")]
    pairs += [(f"/{znode}/topics/ours", f"/{znode}/topics/kafkas") for znode in ("brokers", "config")]
    pairs.append(("/brokers/topics/ours/partitions/0/state", "/brokers/topics/kafkas/partitions/1/state"))
    read = asyncio.run(nodes(address, [path for pair in pairs for path in pair]))
    for ours, kafkas in pairs:
        assert shape(json.loads(read[ours])) == shape(json.loads(read[kafkas])), ours


async def nodes(address: str, paths: Sequence[str]) -> dict[str, bytes]:
    tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
    await tree.connect()
    try:
        contents = {path: await tree.get(path) for path in paths}
    finally:
        await tree.close()
    return {path: node.data or b"" for path, node in contents.items() if node is not None}


def shape(value: object) -> object:
    """Types for values; which features there are is each broker's own affair."""
    if isinstance(value, dict):
        return [(key, "features" if key == "features" else shape(each)) for key, each in value.items()]
    return [shape(element) for element in value] if isinstance(value, list) else type(value).__name__
