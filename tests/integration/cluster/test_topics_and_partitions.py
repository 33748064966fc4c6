"""The work of an operator on topics and partitions, command by command, on three brokers: topics are made, described, altered and deleted,
leaders elected, replicas moved with a throttle, the replication factor changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import cluster
from tests.integration.cluster.describing import Description, until

MOVE_S = 180
VERIFY_AGAIN = "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."


class Operator:
    """Runs commands against a cluster."""

    def __init__(self, three: cluster.Cluster, directory: Path) -> None:
        self._bootstrap = three.bootstrap
        self._directory = directory

    def run(self, command: str, *, stdin: str = "") -> str:
        """What `barnabas COMMAND` prints, with its errors."""
        tool, *arguments = command.split()
        line = [sys.executable, "-m", "barnabas", tool, "--bootstrap-server", self._bootstrap, *arguments]
        ran = subprocess.run(line, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        return ran.stdout

    def file(self, name: str, content: object) -> Path:
        path = self._directory / name
        path.write_text(json.dumps(content))
        return path

    def plan(self, name: str, topic: str, *replicas: list[int]) -> Path:
        partitions = [{"topic": topic, "partition": number, "replicas": brokers} for number, brokers in enumerate(replicas)]
        return self.file(name, {"version": 1, "partitions": partitions})

    def replicas(self, topic: str) -> list[str]:
        """The replicas of each partition, as --describe prints them."""
        rows = self.run(f"topics --describe --topic {topic}").splitlines()[1:]
        return [row.split("Replicas: ")[1].split("\t")[0] for row in rows]


@pytest.fixture
def operator(three: cluster.Cluster, tmp_path: Path) -> Operator:
    return Operator(three, tmp_path)


@pytest.mark.timeout(600)
def test_topics_and_partitions_as_an_operator_changes_them(three: cluster.Cluster, operator: Operator) -> None:
    topics_are_made_altered_and_deleted(operator)
    leaders_are_elected(three, operator)
    throttles_are_set_by_hand(operator)
    replicas_move_with_a_throttle(operator)
    the_replication_factor_changes(operator)
    caught_up = [
        broker.said().count("replicas have caught up with the leader for partition topic-throttle-") for broker in three.brokers.values()
    ]
    assert sum(caught_up) >= 4
    assert three.tracebacks() == []


def topics_are_made_altered_and_deleted(operator: Operator) -> None:
    assert operator.run("topics --create --topic topic-create --partitions 4 --replication-factor 2") == "Created topic topic-create.\n"
    same = operator.run("topics --create --topic topic-create-same --replica-assignment 2:1,3:1,2:3,1:2")
    assert same == "Created topic topic-create-same.\n"
    assert operator.replicas("topic-create-same") == ["2,1", "3,1", "2,3", "1,2"]
    assert "Partition replica lists may not contain duplicate entries: 1" in operator.run(
        "topics --create --topic twice --replica-assignment 1:1"
    )
    assert "has different replication factor" in operator.run("topics --create --topic uneven --replica-assignment 1:2,3")
    configured = operator.run(
        "topics --create --topic topic-config --replication-factor 1 --partitions 1 --config cleanup.policy=compact "
        "--config max.message.bytes=10000"
    )
    assert configured == "Created topic topic-config.\n"
    header = operator.run("topics --describe --topic topic-config").splitlines()[0]
    assert "PartitionCount: 1\tReplicationFactor: 1\tConfigs: cleanup.policy=compact,max.message.bytes=10000" in header
    exists = operator.run("topics --create --topic topic-create --partitions 4 --replication-factor 2")
    assert "Topic 'topic-create' already exists." in exists
    assert operator.run("topics --create --topic topic-create --partitions 4 --replication-factor 2 --if-not-exists") == ""
    collision = operator.run("topics --create --topic topic.1_2 --partitions 1 --replication-factor 1")
    assert collision.startswith(
        "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide."
    )
    assert "collides with existing topic" in operator.run("topics --create --topic topic_1.2 --partitions 1 --replication-factor 1")
    assert operator.run("topics --list").splitlines() == ["topic-config", "topic-create", "topic-create-same", "topic.1_2"]
    assert len(operator.run("topics --describe --topics-with-overrides").splitlines()) == 1
    assert operator.run("topics --describe --under-replicated-partitions") == ""
    assert operator.run("topics --describe --unavailable-partitions") == ""
    assert operator.run("topics --alter --topic topic-config --partitions 3") == ""
    assert len(operator.replicas("topic-config")) == 3
    assert "currently has 3 partition(s); 1 would not be an increase." in operator.run("topics --alter --topic topic-config --partitions 1")
    assert "does not exist as expected" in operator.run("topics --alter --topic topic-unknown --partitions 4")
    assert operator.run("topics --alter --topic topic-unknown --partitions 4 --if-exists") == ""
    topic = "--entity-type topics --entity-name topic-config"
    completed = "Completed updating config for topic topic-config.\n"
    assert operator.run(f"configs --alter {topic} --add-config max.message.bytes=20000") == completed
    assert "max.message.bytes=20000" in operator.run(f"configs --describe {topic}")
    assert operator.run(f"configs --alter {topic} --delete-config max.message.bytes,cleanup.policy") == completed
    assert operator.run(f"configs --describe {topic}") == "Dynamic configs for topic topic-config are:\n"
    assert operator.run("topics --delete --topic topic-create") == ""
    assert "does not exist as expected" in operator.run("topics --delete --topic topic-unknown")
    assert operator.run("topics --delete --topic topic-unknown --if-exists") == ""
    assert "topic-create" not in operator.run("topics --list").splitlines()


def leaders_are_elected(three: cluster.Cluster, operator: Operator) -> None:
    operator.run("topics --create --topic topic-throttle --replica-assignment 1:2,2:3,3:1 --config max.message.bytes=2000000")
    operator.run("producer-perf-test --topic topic-throttle --num-records 3000 --record-size 10000 --throughput -1")
    three.brokers[2].stop()
    described = Description(three.brokers[1].address)
    until(lambda: described.leader("topic-throttle", 1) == 3, "another leader than the broker that is gone")
    three.brokers[2].start()
    three.brokers[2].wait_ready()
    until(lambda: described.isr("topic-throttle", 1) == {2, 3}, "the broker is in sync again")
    operator.run("leader-election --election-type preferred --topic topic-throttle --partition 1")
    until(lambda: described.leader("topic-throttle", 1) == 2, "the preferred replica leads")


def throttles_are_set_by_hand(operator: Operator) -> None:
    """A rate of one broker, and the replicas of a topic."""
    replicas = {"leader": "0:1,1:2,2:3", "follower": "0:2,1:3,2:1"}
    lists = ",".join(f"{side}.replication.throttled.replicas=[{pairs}]" for side, pairs in replicas.items())
    rates = ",".join(f"{side}.replication.throttled.rate=1024" for side in replicas)
    topic, broker = "--entity-type topics --entity-name topic-throttle", "--entity-type brokers --entity-name 2"
    assert operator.run(f"configs --alter {topic} --add-config {lists}") == "Completed updating config for topic topic-throttle.\n"
    assert operator.run(f"configs --alter {broker} --add-config {rates}") == "Completed updating config for broker 2.\n"
    shown = {topic: replicas, broker: dict.fromkeys(replicas, "1024")}
    for entity, values in shown.items():
        described = operator.run(f"configs --describe {entity}")
        for side, value in values.items():
            assert f"  {side}.replication.throttled.{'replicas' if entity == topic else 'rate'}={value} " in described
        removed = ",".join(f"{side}.replication.throttled.{'replicas' if entity == topic else 'rate'}" for side in values)
        assert operator.run(f"configs --alter {entity} --delete-config {removed}").startswith("Completed updating config for ")
        assert "throttled" not in operator.run(f"configs --describe {entity}")


def replicas_move_with_a_throttle(operator: Operator) -> None:
    topics = operator.file("topics.json", {"version": 1, "topics": [{"topic": "topic-throttle"}]})
    proposed = operator.run(f"reassign-partitions --generate --topics-to-move-json-file {topics} --broker-list 1,3")
    assert proposed.startswith('Current partition replica assignment\n{"version":1,"partitions":[{"topic":"topic-throttle","partition":0,')
    assert "\n\nProposed partition reassignment configuration\n" in proposed

    plan = operator.plan("plan.json", "topic-throttle", [1, 3], [2, 1], [3, 1])
    execute = f"reassign-partitions --execute --reassignment-json-file {plan}"
    verify = f"reassign-partitions --verify --reassignment-json-file {plan}"
    begun = operator.run(f"{execute} --throttle 1024")
    assert "Save this to use as the --reassignment-json-file option during rollback" in begun
    assert f"{VERIFY_AGAIN}\nThe inter-broker throttle limit was set to 1024 B/s" in begun
    assert "Successfully started partition reassignments for topic-throttle-0,topic-throttle-1,topic-throttle-2" in begun
    assert "Reassignment of partition topic-throttle-0 is still in progress." in operator.run(verify)
    limits = operator.run("configs --describe --entity-type topics --entity-name topic-throttle")
    assert "leader.replication.throttled.replicas=0:1,0:2,1:2,1:3,2:1,2:3 " in limits
    assert "follower.replication.throttled.replicas=0:3,1:1 " in limits
    rates = operator.run("configs --describe --entity-type brokers --entity-name 3")
    assert "leader.replication.throttled.rate=1024 " in rates
    assert "follower.replication.throttled.rate=1024 " in rates
    assert "Current partition reassignments:" in operator.run("reassign-partitions --list")

    assert "The inter-broker throttle limit was set to 100000000 B/s" in operator.run(f"{execute} --additional --throttle 100000000")
    until(lambda: "No partition reassignments found." in operator.run("reassign-partitions --list"), "the replicas have moved", MOVE_S)
    done = operator.run(verify)
    assert [f"Reassignment of partition topic-throttle-{number} is completed." in done for number in range(3)] == [True] * 3
    assert "Clearing broker-level throttles on brokers 1,2,3\nClearing topic-level throttles on topic topic-throttle" in done
    assert "throttled" not in operator.run("configs --describe --entity-type topics --entity-name topic-throttle")
    assert "throttled" not in operator.run("configs --describe --entity-type brokers --entity-name 3")
    assert operator.replicas("topic-throttle") == ["1,3", "2,1", "3,1"]


def the_replication_factor_changes(operator: Operator) -> None:
    for name, replicas in (("three", [[1, 2, 3], [2, 3, 1], [3, 1, 2]]), ("one", [[1], [2], [3]])):
        other = operator.plan(f"{name}.json", "topic-throttle", *replicas)
        operator.run(f"reassign-partitions --execute --reassignment-json-file {other}")
        wanted = [",".join(map(str, brokers)) for brokers in replicas]
        until(lambda wanted=wanted: operator.replicas("topic-throttle") == wanted, f"{name} replicas", MOVE_S)  # type: ignore[misc]
