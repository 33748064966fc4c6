"""What operators ask of three brokers: leaders at once from outside the ISR, leaders away from a broker; and requests that make no sense,
each of which ends with one line that names the fix and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.client import Admin, Consumer, NewTopic
from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from barnabas.topic_partition import TopicPartition
from tests.cluster import Cluster
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until

T, ALONE = "t", "alone"


def create(three: Cluster, **topics: dict[int, list[int]]) -> None:
    with Admin({"bootstrap.servers": three.bootstrap}) as admin:
        admin.create_topics([NewTopic(name, replicas_assignments=replicas) for name, replicas in topics.items()]).all()


def led(three: Cluster, via: int) -> dict[str, int]:
    return {f"{topic}-{number}": leader for (topic, number), leader in asking.leaders(three.brokers[via]).items()}


def test_a_topic_that_allows_it_gets_a_leader_from_outside_the_isr_at_once(three: Cluster) -> None:
    create(three, t={0: [1, 2]}, other={0: [1, 2]})
    until(lambda: asking.isr(three.brokers[3], T) == {1, 2}, "both in sync")
    three.brokers[2].kill()
    until(lambda: asking.isr(three.brokers[3], T) == {1}, "one is left in sync")
    three.brokers[1].kill()
    three.brokers[2].start()
    three.brokers[2].wait_ready()
    offline = {"t-0": -1, "other-0": -1}
    until(lambda: {name: led(three, 3).get(name) for name in offline} == offline, "nobody leads")
    with Admin({"bootstrap.servers": three.brokers[3].address}) as admin:
        admin.incremental_alter_configs(
            {ConfigResource(ConfigResourceType.TOPIC, T): [AlterConfigOp("unclean.leader.election.enable", "true")]}
        ).all()
    until(lambda: led(three, 3).get("t-0") == 2, "the replica that is alive leads")
    assert led(three, 3)["other-0"] == -1


def test_an_admin_moves_the_leaders_of_a_broker_away(three: Cluster) -> None:
    stays = Description(three.bootstrap).controller()  # another controller would not know which broker is shut down
    shut, dies = sorted(set(three.brokers) - {stays})
    create(three, t={0: [stays, shut, dies], 1: [shut, dies, stays], 2: [dies, stays, shut]}, alone={0: [shut]})
    until(lambda: led(three, stays) == {"t-0": stays, "t-1": shut, "t-2": dies, "alone-0": shut}, "all lead")
    with Admin({"bootstrap.servers": three.bootstrap}) as admin:
        assert admin.controlled_shutdown(shut) == []
        until(lambda: led(three, stays) == {"t-0": stays, "t-1": dies, "t-2": dies, "alone-0": shut}, "other leaders where there can be")
        assert three.brokers[shut].is_running
        three.brokers[dies].kill()
        until(lambda: led(three, stays) == {"t-0": stays, "t-1": stays, "t-2": stays, "alone-0": shut}, "the last broker leads")
        until(lambda: asking.isr(three.brokers[stays], T) == {stays}, "neither the broker that was shut down nor the killed one is in sync")
        assert admin.controlled_shutdown(stays) == [TopicPartition(T, number) for number in range(3)]
    assert three.tracebacks() == []


@pytest.mark.timeout(300)
def test_what_makes_no_sense_ends_with_one_line_and_changes_nothing(
    three: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create(three, t={0: [1, 2, 3], 1: [2, 3, 1]}, alone={0: [2]})
    until(lambda: asking.isr(three.brokers[1], T) == {1, 2, 3}, "all in sync")
    before = replicas(three)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": ALONE, "partition": 0, "replicas": [3]}]}))

    def refused(*words: str) -> str:
        """The last line of a command that fails; it says nothing else on stderr but what it measures."""
        capsys.readouterr()
        code = cli.main([words[0], "--bootstrap-server", three.bootstrap, *words[1:]])
        printed = capsys.readouterr()
        assert code != 0, printed
        lines = [line for line in (printed.out + printed.err).splitlines() if not line.startswith("Measuring")]
        assert "Traceback" not in printed.err
        return lines[-1]

    moved = ("reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    for words in (("balance", "--apply"), ("drain", "2"), moved):
        line = refused(*words, "--throttle", "0")
        assert line.startswith("--throttle takes bytes a second, at least 1024, not 0"), line
    assert refused("drain", "9") == "there is no broker 9; the brokers are 1, 2, 3"
    assert refused("drain", "2", "--sample-seconds", "0") == (
        "without broker 2, 2 brokers cannot keep the 3 replicas of t: start another broker, or lower their replication factor with "
        "reassign-partitions; nothing was changed"
    )
    assert refused("restart", "--rolling", "--command", "true", "--brokers", "9") == (
        "there is no broker 9 (--brokers); the brokers are 1, 2, 3"
    )

    consumer = Consumer({"bootstrap.servers": three.bootstrap, "group.id": "new", "group.protocol": "consumer"})
    consumer.subscribe([T])
    consumer.poll(10)
    assert refused("features", "downgrade", "--feature", "group.version=0") == "1 out of 1 operation(s) failed."
    capsys.readouterr()
    assert cli.main(["features", "--bootstrap-server", three.bootstrap, "describe"]) == 0
    assert "Feature: group.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\tFinalizedVersionLevel: 1\t" in capsys.readouterr().out
    consumer.close()

    three.brokers[3].kill()
    until(lambda: asking.isr(three.brokers[1], T) == {1, 2}, "the broker is gone")
    line = refused("balance", "--apply", "--sample-seconds", "0")
    assert line.startswith("broker 3 is not alive and has replicas, such as that of ")
    assert line.endswith(": start it, or give its replicas to others with `barnabas drain 3`; nothing was changed")
    assert "Unknown broker id 3" in refused(*moved)
    line = refused("restart", "--rolling", "--command", "true")
    assert line.startswith("not all replicas are in sync: ")
    assert line.endswith(". Wait for them, or start their brokers; nothing was restarted")
    assert replicas(three) == before
    with Admin({"bootstrap.servers": three.brokers[1].address}) as admin:
        assert admin.list_partition_reassignments() == {}
        config = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, ALONE)]).all()
        assert all("throttled" not in entry.name or not entry.value for one in config.values() for entry in one.values())


def replicas(three: Cluster) -> dict[str, list[int]]:
    topics = asking.metadata(three.brokers[1]).topics
    return {
        f"{one.name}-{partition.partition_index}": partition.replica_nodes
        for one in topics
        if one.name in (T, ALONE)
        for partition in one.partitions
    }
