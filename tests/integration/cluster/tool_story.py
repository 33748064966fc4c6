"""A story of three brokers, told by Apache Kafka's own tools: topics are made, brokers go and come back, leaders are elected, replicas
move. It is the same for three brokers of ours and for three of Apache Kafka.

    python -m tests.integration.cluster.tool_story      tells it with Apache Kafka and keeps what its tools said, for the tests to compare
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.messages.metadata_request import MetadataRequest
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.apache_kafka import ApacheKafka
from tests.integration.cluster.describing import until
from tests.integration.tools.commands import CONFIGS, ELECTIONS, OFFSETS, PRODUCER, REASSIGNMENTS, TOOLS, TOPICS, command
from tests.integration.tools.runner import Target, run_one, tools
from tests.integration.transactions.wire import Connection

KEPT = Path(__file__).parents[2] / "data" / "kafka-cluster-tools-3.9.1.json"
# Leaders change when the story says so. A broker that stops is to the others one that was killed, only that they know at once.
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "zookeeper.session.timeout.ms": "30000",
}
TICK_MS = 2000
KEYED = "--sync --reader-property parse.key=true --reader-property key.separator=:"  # so that each record finds its partition
LOG_DIRS = f"{TOOLS}.LogDirsCommand"
METADATA_VERSION = 9
ALL = ("all-0", "all-1", "all-2")
WAIT_S = 120
SLOW_RECORDS = 600  # of 10 kB: more than a follower fetches at once, so that a throttle holds the rest up
PLENTY = 1_000_000_000  # bytes a second: a limit that limits nothing here
VERSION_DEPENDENT = re.compile(r"\s*Elr:.*$", re.MULTILINE)  # eligible leaders, which only brokers of a Raft quorum know of


class Story:
    def __init__(self, cluster: Cluster, directory: Path, jvm: subprocess.Popen[str]) -> None:
        self.said: dict[str, str] = {}
        self._cluster = cluster
        self._directory = directory
        self._jvm = jvm

    def tell(self) -> None:
        self._topics()
        self._one_broker_is_gone()
        self._two_brokers_are_gone()
        self._all_are_back()
        self._configs()
        self._replicas_move()

    def _topics(self) -> None:
        create = "--create --replica-assignment"
        self._run("three replicas are made", TOPICS, f"{create} 1:2:3,2:3:1,3:1:2 --topic all --config min.insync.replicas=2")
        self._run("two replicas are made", TOPICS, f"{create} 1:2,3:2 --topic pair --config min.insync.replicas=2")
        self._run("single replicas are made", TOPICS, f"{create} 3,1 --topic alone")
        self._run("the same broker twice", TOPICS, f"{create} 1:1 --topic twice")
        self._wait(leaders={"alone-0": 3, "alone-1": 1, "pair-0": 1, "pair-1": 3}, isr=of_all(1, 2, 3))
        self._from_each_broker("all topics, as described", TOPICS, "--describe")
        for number in (2, 3):
            self._run(
                f"records are written, through broker {number}",
                PRODUCER,
                f"--topic pair {KEYED}",
                stdin="a:one\nb:two\nc:three\n",
                via=number,
            )
        self._run("a topic's end", OFFSETS, "--topic pair")

    def _one_broker_is_gone(self) -> None:
        self._cluster.brokers[3].stop()
        self._wait(leaders={"alone-0": -1}, isr={**of_all(1, 2), "pair-1": {2}})
        self._described("with one broker gone")
        elect = "--election-type preferred --topic all --partition"
        self._run("one is gone: its partition is to lead again", ELECTIONS, f"{elect} 2")
        self._run("one is gone: a partition whose first leads", ELECTIONS, f"{elect} 0")
        self._run("one is gone: unclean, with nobody left", ELECTIONS, "--election-type unclean --topic alone --partition 0")
        self._run("one is gone: unclean, with a leader", ELECTIONS, "--election-type unclean --topic all --partition 2")

    def _two_brokers_are_gone(self) -> None:
        self._cluster.brokers[2].stop()
        self._wait(leaders={"pair-1": -1}, isr=of_all(1))
        self._cluster.brokers[3].start()
        self._cluster.brokers[3].wait_ready()
        self._wait(leaders={"alone-0": 3, "pair-1": -1}, isr=of_all(1, 3))
        self._described("with another broker gone")
        self._run("the replica that is left is not in sync", ELECTIONS, "--election-type preferred --topic pair --partition 1")
        self._run("it is to lead nevertheless", ELECTIONS, "--election-type unclean --topic pair --partition 1")
        self._wait(leaders={"pair-1": 3})
        self._run("it leads nevertheless", TOPICS, "--describe --topic pair")

    def _all_are_back(self) -> None:
        self._cluster.brokers[2].start()
        self._cluster.brokers[2].wait_ready()
        self._wait(isr={**of_all(1, 2, 3), "pair-0": {1, 2}, "pair-1": {2, 3}})
        self._described("with all brokers back")
        self._run("the first of each leads again", ELECTIONS, "--election-type preferred --all-topic-partitions")
        self._wait(leaders={"all-0": 1, "all-1": 2, "all-2": 3, "pair-0": 1, "pair-1": 3})
        self._run("the first of each leads already", ELECTIONS, "--election-type preferred --all-topic-partitions")
        self._from_each_broker("leaders, once elected", TOPICS, "--describe --topic all")

    def _configs(self) -> None:
        alter = "--alter --entity-type brokers"
        describe = "--describe --entity-type brokers"
        self._run(
            "a broker's config is altered through another", CONFIGS, f"{alter} --entity-name 2 --add-config log.cleaner.threads=2", via=1
        )
        self._run("a config of all brokers is altered", CONFIGS, f"{alter} --entity-default --add-config log.retention.ms=7000000", via=3)
        topic = "--entity-type topics --entity-name all"
        self._run("a topic's config is altered", CONFIGS, f"--alter {topic} --add-config retention.ms=5000000", via=2)
        for number in self._cluster.brokers:
            self._wait_for_word("log.cleaner.threads=2 ", CONFIGS, f"{describe} --entity-name 2", via=number)
            self._wait_for_word("7000000", CONFIGS, f"{describe} --entity-default", via=number)
            self._wait_for_word("5000000", CONFIGS, f"--describe {topic}", via=number)
        self._from_each_broker("a broker's configs", CONFIGS, f"{describe} --entity-name 2")
        self._from_each_broker("configs of all brokers", CONFIGS, f"{describe} --entity-default")
        self._from_each_broker("a topic's configs", CONFIGS, f"--describe {topic}")
        self._run("configs of a broker that is not there", CONFIGS, f"{describe} --entity-name 9")

    def _replicas_move(self) -> None:
        self._run("a topic that is to move is made", TOPICS, "--create --replica-assignment 1:2,2:1 --topic moving")
        self._wait(leaders={"moving-0": 1, "moving-1": 2})
        self._run("it is given records", PRODUCER, f"--topic moving {KEYED}", stdin="".join(f"{number}:{number}\n" for number in range(20)))
        self._run("its end, before", OFFSETS, "--topic moving")
        file = "--reassignment-json-file {directory}/file"
        topics = '{"version": 1, "topics": [{"topic": "moving"}]}'
        generate = "--generate --topics-to-move-json-file {directory}/file --broker-list"
        self._run("a plan for two brokers", REASSIGNMENTS, f"{generate} 2,3", file=topics)
        self._run("a plan for a broker that is not there", REASSIGNMENTS, f"{generate} 8,9", file=topics)
        there = plan([3, 2], [2, 3])
        self._run("the plan is carried out", REASSIGNMENTS, f"--execute {file} --throttle {PLENTY}", file=there)
        self._wait_for_word("No partition reassignments found.", REASSIGNMENTS, "--list")
        self._run("the limits of the move: of a broker", CONFIGS, "--describe --entity-type brokers --entity-name 3")
        self._run("the limits of the move: of the topic", CONFIGS, "--describe --entity-type topics --entity-name moving")
        self._run("the plan is looked after", REASSIGNMENTS, f"--verify {file}", file=there)
        for number in self._cluster.brokers:
            arguments = f"--describe --entity-type brokers --entity-name {number}"
            self._wait_for_word("throttled", CONFIGS, arguments, is_there=False)
        self._run("no limits of the topic are left", CONFIGS, "--describe --entity-type topics --entity-name moving")
        self._wait(leaders={"moving-0": 3, "moving-1": 2}, isr={"moving-0": {2, 3}, "moving-1": {2, 3}})
        self._from_each_broker("the topic, moved", TOPICS, "--describe --topic moving")
        self._run("its end, after", OFFSETS, "--topic moving")
        until(lambda: not list(self._cluster.brokers[1].data.glob("moving-[01]")), "broker 1 has given its replicas up")
        self._from_each_broker("its files", LOG_DIRS, "--describe --topic-list moving")
        self._run("files on one broker", LOG_DIRS, "--describe --topic-list moving --broker-list 3", via=1)
        self._run("a plan with a broker that is not there", REASSIGNMENTS, f"--execute {file}", file=plan([3, 9], [2, 3]))
        self._run("a plan with a broker twice", REASSIGNMENTS, f"--execute {file}", file=plan([3, 3], [2, 3]))
        self._replicas_move_slowly()
        self._cluster.brokers[1].stop()
        self._wait(isr=of_all(2, 3))
        self._run("a move to a broker that is gone", REASSIGNMENTS, f"--execute {file}", file=plan([1, 2], [2, 3]))
        self._cluster.brokers[1].start()
        self._cluster.brokers[1].wait_ready()
        self._wait(isr=of_all(1, 2, 3))
        self._run("topics are deleted", TOPICS, "--delete --topic all|moving", via=3)
        self._wait(leaders=dict.fromkeys((*ALL, "moving-0", "moving-1")))
        self._from_each_broker("topics that are left", TOPICS, "--list")

    def _replicas_move_slowly(self) -> None:
        """With a throttle that holds the copies up: the reassignment is listed and verified while it runs, given another throttle, and
        cancelled; then it is begun again and let go."""
        self._run("a topic that is to move slowly is made", TOPICS, "--create --replica-assignment 1:2,2:1 --topic slow")
        self._wait(leaders={"slow-0": 1, "slow-1": 2}, isr={"slow-0": {1, 2}, "slow-1": {1, 2}})
        load = f"--topic slow --num-records {SLOW_RECORDS} --record-size 10000 --throughput -1"
        self._tool(f"{TOOLS}.ProducerPerformance", load)
        file = "--reassignment-json-file {directory}/file"
        away = plan([1, 3], [2, 3], topic="slow")
        throttles = "--describe --entity-type {0} --entity-name {1}"
        self._run("a slow move is begun", REASSIGNMENTS, f"--execute {file} --throttle 1024", file=away)
        self._run("a slow move is listed", REASSIGNMENTS, "--list")
        self._run("a slow move is verified", REASSIGNMENTS, f"--verify {file}", file=away)
        self._run("the limits of a slow move: of the topic", CONFIGS, throttles.format("topics", "slow"))
        for number in self._cluster.brokers:
            self._run(f"the limits of a slow move: of broker {number}", CONFIGS, throttles.format("brokers", number))
        self._run("a slow move is begun twice", REASSIGNMENTS, f"--execute {file} --throttle 2048", file=away)
        self._run("a slow move gets another limit", REASSIGNMENTS, f"--execute {file} --additional --throttle 2048", file=away)
        self._wait_for_word("=2048 ", CONFIGS, throttles.format("brokers", 3))
        self._run("another limit of a slow move", CONFIGS, throttles.format("brokers", 3))
        self._run("a slow move is cancelled, its limits are kept", REASSIGNMENTS, f"--cancel {file} --preserve-throttles", file=away)
        self._wait_for_word("No partition reassignments found.", REASSIGNMENTS, "--list")
        self._run("the limits that were kept", CONFIGS, throttles.format("topics", "slow"))
        self._run("a slow move is cancelled again", REASSIGNMENTS, f"--cancel {file}", file=away)
        self._wait_for_word("throttled", CONFIGS, throttles.format("topics", "slow"), is_there=False)
        self._run("no limits are left of a cancelled move", CONFIGS, throttles.format("topics", "slow"))
        self._wait(isr={"slow-0": {1, 2}, "slow-1": {1, 2}})
        self._from_each_broker("a topic whose move was cancelled", TOPICS, "--describe --topic slow")
        self._run("a slow move is begun again", REASSIGNMENTS, f"--execute {file} --throttle 1024", file=away)
        self._run("a slow move is let go", REASSIGNMENTS, f"--execute {file} --additional --throttle {PLENTY}", file=away)
        self._wait_for_word("No partition reassignments found.", REASSIGNMENTS, "--list")
        self._run("a move that was let go is verified", REASSIGNMENTS, f"--verify {file}", file=away)
        self._wait(isr={"slow-0": {1, 3}, "slow-1": {2, 3}})
        self._from_each_broker("a topic that was let go", TOPICS, "--describe --topic slow")
        self._run("a topic that moved slowly is deleted", TOPICS, "--delete --topic slow")
        self._wait(leaders=dict.fromkeys(("slow-0", "slow-1")))

    def _described(self, when: str) -> None:
        for kind in ("under-replicated", "unavailable", "at-min-isr", "under-min-isr"):
            self._from_each_broker(f"{when}: {kind}", TOPICS, f"--describe --{kind}-partitions")
        self._from_each_broker(f"{when}: all", TOPICS, "--describe")

    def _from_each_broker(self, name: str, main_class: str, arguments: str) -> None:
        """The same from every broker that runs."""
        answers = {self._tool(main_class, arguments, via=number) for number in self._running()}
        self.said[name] = "\nBUT ANOTHER BROKER SAYS\n".join(sorted(answers))

    def _run(self, name: str, main_class: str, arguments: str, *, stdin: str = "", file: str = "", via: int = 0) -> None:
        assert name not in self.said
        self.said[name] = self._tool(main_class, arguments, stdin=stdin, file=file, via=via)

    def _tool(self, main_class: str, arguments: str, *, stdin: str = "", file: str = "", via: int = 0) -> str:
        """Through any of the brokers, or one of them."""
        running = self._running()
        bootstrap = self._cluster.brokers[via].address if via else ",".join(broker.address for broker in running.values())
        target = Target(bootstrap, 1, self._directory)
        said = run_one(self._jvm, command("", main_class, arguments, stdin=stdin, file=file), target)
        for number, broker in self._cluster.brokers.items():
            said = said.replace(str(broker.data), f"DATA-{number}").replace(broker.address, f"BROKER-{number}")
        return settled(said)

    def _running(self) -> Mapping[int, BrokerProcess]:
        return {number: broker for number, broker in self._cluster.brokers.items() if broker.is_running}

    def _wait(self, leaders: Mapping[str, int | None] | None = None, isr: Mapping[str, set[int]] | None = None) -> None:
        """Until every broker that runs says so of these partitions; None stands for one that is not there."""

        def all_know() -> bool:
            return all(
                all(known.get(name, NOWHERE).leader == leader for name, leader in (leaders or {}).items())
                and all(known.get(name, NOWHERE).isr == expected_isr for name, expected_isr in (isr or {}).items())
                for known in map(known_to, self._running().values())
            )

        until(all_know, f"leaders {leaders}, in sync {isr}, after {list(self.said)[-1]!r}", WAIT_S)

    def _wait_for_word(self, word: str, main_class: str, arguments: str, *, via: int = 0, is_there: bool = True) -> None:
        what = f"{word} {'' if is_there else 'not '}said by {main_class} {arguments}"
        until(lambda: (word in self._tool(main_class, arguments, via=via)) == is_there, what, WAIT_S)


class Known(NamedTuple):
    leader: int | None
    isr: set[int] | None


NOWHERE = Known(None, None)


def known_to(broker: BrokerProcess) -> dict[str, Known]:
    """What just this broker knows of all partitions."""
    connection = Connection(broker.address)
    try:
        topics = connection.ask(MetadataRequest(None), METADATA_VERSION).topics
    finally:
        connection.close()
    return {
        f"{topic.name}-{partition.partition_index}": Known(partition.leader_id, set(partition.isr_nodes))
        for topic in topics
        for partition in topic.partitions
    }


def of_all(*brokers: int) -> dict[str, set[int]]:
    """The same in-sync replicas for each partition of the topic with three."""
    return {name: set(brokers) for name in ALL}


def plan(*replicas: list[int], topic: str = "moving") -> str:
    partitions = [{"topic": topic, "partition": number, "replicas": replica} for number, replica in enumerate(replicas)]
    return json.dumps({"version": 1, "partitions": partitions})


def settled(said: str) -> str:
    """Without what differs from run to run (the order of sets, a plan that is made by chance) and from version to version (the wording of
    errors: ours is that of Kafka 4.2, which has no ZooKeeper)."""
    said = VERSION_DEPENDENT.sub("", said)
    said = re.sub(r"(errors\.\w+Exception): .*", r"\1", said)
    said = re.sub(r"(for partitions?:? )(\w+-\d(?:, \w+-\d)+)", lambda match: match[1] + ", ".join(sorted(match[2].split(", "))), said)
    return re.sub(r"(?s)(Proposed partition reassignment configuration\n).*", r"\1A PLAN", said)


def told(cluster: Cluster, directory: Path) -> dict[str, str]:
    with tools() as jvm:
        story = Story(cluster, directory, jvm)
        story.tell()
    return story.said


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "zookeeper").mkdir()
        with zookeeper.running(directory / "zookeeper", TICK_MS) as ensemble:
            cluster = Cluster(directory, ensemble.address, SETTINGS)
            cluster.brokers = {number: ApacheKafka(number, directory, ensemble.address, SETTINGS) for number in cluster.brokers}
            try:
                cluster.start()
                KEPT.write_text(json.dumps(told(cluster, directory), indent=1) + "\n")
            finally:
                cluster.end()


if __name__ == "__main__":
    main()
