"""cordoned.log.dirs (KIP-1066) on three brokers with two log directories each."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    NewPartitionReassignment,
    NewPartitions,
    NewTopic,
)
from barnabas.client.admin.cluster.log_dirs import TopicPartitionReplica
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import until

CORDONED = 1


@pytest.fixture
def three(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> Generator[Cluster, None, None]:
    cluster = Cluster(tmp_path, next_chroot(ensemble), {"default.replication.factor": "2"})
    for broker in cluster.brokers.values():
        broker.change({"log.dirs": ",".join(dirs_of(broker))})
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def dirs_of(broker: BrokerProcess) -> list[str]:
    return [str(broker.data / "first"), str(broker.data / "second")]


def cordon(admin: Admin, value: str) -> None:
    broker = ConfigResource(ConfigResourceType.BROKER, str(CORDONED))
    admin.incremental_alter_configs({broker: [AlterConfigOp("cordoned.log.dirs", value)]}).all()


def refusal(call: object) -> str:
    """The name of the error of a result with one outcome."""
    with pytest.raises(KafkaError) as refused:
        call()  # type: ignore[operator]
    return type(refused.value).__name__


def plan_of_a_drain(three: Cluster, capsys: pytest.CaptureFixture[str]) -> str:
    """What `balance --plan` and `drain 2 --plan` print."""
    for command in (["balance"], ["drain", "2"]):
        cli.main([*command, "--plan", "--sample-seconds", "0", "--bootstrap-server", three.bootstrap])
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_a_cordoned_broker_gets_no_replicas_and_a_cordoned_directory_no_logs(three: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    own = dirs_of(three.brokers[CORDONED])
    with Admin(bootstrap_servers=three.bootstrap) as admin:
        admin.create_topics([NewTopic("before", replicas_assignments={0: [1, 2]})]).all()
        cordon(admin, "*")
        until(lambda: is_refused(admin), "the controller knows the cordon")
        admin.create_topics([NewTopic("pair", 6, 2)]).all()
        replicas = {node.id for info in admin.describe_topics(["pair"]).all()["pair"].partitions for node in info.replicas}
        assert replicas == {2, 3}
        assert refusal(admin.create_topics([NewTopic("there", replicas_assignments={0: [1, 2]})]).all) == "InvalidReplicaAssignment"
        assert refusal(admin.create_partitions({"before": NewPartitions(2, [[1, 2]])}).all) == "InvalidReplicaAssignment"
        move = {TopicPartition("pair", 0): NewPartitionReassignment([1, 2])}
        assert refusal(admin.alter_partition_reassignments(move).all) == "InvalidReplicaAssignment"
        planned = plan_of_a_drain(three, capsys)
        assert "Cordoned, get no replicas: 1." in planned and "without broker 2, 1 broker without a cordon cannot keep" in planned
        kept = {TopicPartition("before", 0): NewPartitionReassignment([1, 3])}  # it has the replica: nothing new
        admin.alter_partition_reassignments(kept).all()

        cordon(admin, own[0])
        until(lambda: not is_refused(admin), "the controller knows that a directory is open")
        admin.create_topics([NewTopic(f"one-{number}", replicas_assignments={0: [1]}) for number in range(4)]).all()
        until(lambda: all(Path(own[1], f"one-{number}-0").is_dir() for number in range(4)), "logs in the open directory")
        replica = TopicPartitionReplica("one-0", 0, CORDONED)
        assert refusal(admin.alter_replica_log_dirs({replica: own[0]}).all) == "InvalidReplicaAssignment"
        assert refusal(lambda: cordon(admin, "/nowhere")) == "InvalidRequest"
        cordon(admin, "")
        until(lambda: is_moved(admin, replica, own[0]), "the replica may be moved again")
    assert three.tracebacks() == []


def is_refused(admin: Admin) -> bool:
    """Whether three brokers can be had for a topic that is not made."""
    try:
        admin.create_topics([NewTopic("probe", 1, 3)], validate_only=True).all()
    except KafkaError as error:
        assert type(error).__name__ == "InvalidReplicationFactor"
        return True
    return False


def is_moved(admin: Admin, replica: TopicPartitionReplica, path: str) -> bool:
    try:
        admin.alter_replica_log_dirs({replica: path}).all()
    except KafkaError:
        return False
    return True
