"""Three brokers with two disks each, one of which fails under load: a file system that starts to return EIO."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from barnabas import cli
from barnabas.tools.command_line.exit_codes import ExitCode
from tests import kafka, zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.disks import Disk, disks
from tests.integration.cluster import asking
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.group_reader import GroupReader
from tests.integration.cluster.records import Acknowledged, consumed, in_files, segment_bytes

PARTITIONS = 4
TOPIC = "t"
VICTIM = 1
# Leaders change by the disk alone, also on a machine that lets a process wait for seconds.
SETTINGS = {"auto.leader.rebalance.enable": "false", "zookeeper.session.timeout.ms": "10000"}
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@pytest.fixture
def two(tmp_path: Path) -> Generator[list[Disk], None, None]:
    """The two disks of the broker that loses one."""
    with disks(tmp_path / "disks", ["first", "second"]) as made:
        yield list(made.values())


def with_two_dirs(ensemble: zookeeper.ZooKeeper, directory: Path, two: list[Disk]) -> Cluster:
    """Three brokers with two log directories each; those of the first broker are disks."""
    three = Cluster(directory, next_chroot(ensemble), SETTINGS)
    for broker in three.brokers.values():
        paths = [disk.path / "data" for disk in two] if broker.id == VICTIM else [broker.data / "first", broker.data / "second"]
        broker.change({"log.dirs": ",".join(map(str, paths))})
    return three


def dirs_of(broker: BrokerProcess) -> list[Path]:
    return [Path(path) for path in broker.setting("log.dirs").split(",")]


def dir_of(broker: BrokerProcess, partition: int) -> Path:
    """The log directory in which the broker has the replica."""
    return next(path for path in dirs_of(broker) if (path / f"{TOPIC}-{partition}").is_dir())


def led_by(three: Cluster, number: int) -> list[int]:
    alive = next(broker for broker in three.brokers.values() if broker.id != number)
    return [partition for (topic, partition), leader in asking.leaders(alive).items() if topic == TOPIC and leader == number]


def offline(three: Cluster) -> dict[int, list[int]]:
    """By partition the replicas that another broker names offline."""
    answer = asking.metadata(three.brokers[2])
    return {
        partition.partition_index: partition.offline_replicas
        for topic in answer.topics
        if topic.name == TOPIC
        for partition in topic.partitions
    }


@pytest.mark.java
@pytest.mark.timeout(600)
def test_a_disk_that_fails_under_load_costs_no_record_and_comes_back_at_the_restart(
    ensemble: zookeeper.ZooKeeper, tmp_path: Path, two: list[Disk], capsys: pytest.CaptureFixture[str]
) -> None:
    three = with_two_dirs(ensemble, tmp_path, two)
    try:
        three.start()
        victim = three.brokers[VICTIM]
        described = Description(three.bootstrap)
        described.create(TOPIC, PARTITIONS, min_insync_replicas="2")
        until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync")
        written = [Acknowledged(three.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
        reader = GroupReader(three.bootstrap, TOPIC, PARTITIONS)
        for each in written:
            each.start()
        reader.start()
        for each in written:
            each.wait_for_more(200)
        until(lambda: reader.count() > 0, "a reader's first records")

        until(lambda: leads_some(described, three), "the broker leads a partition")
        lost, kept = self_led_first(three, two)
        on_lost = [number for number in range(PARTITIONS) if dir_of(victim, number).is_relative_to(lost.path)]
        lost.fail()
        until(lambda: offline(three) == {n: [VICTIM] if n in on_lost else [] for n in range(PARTITIONS)}, "the replicas are offline")
        until(lambda: not set(led_by(three, VICTIM)) & set(on_lost), "other leaders")
        for each in written:
            each.wait_for_more(200)
        before = reader.count()
        until(lambda: reader.count() > before + 200, "the reader goes on")
        check_tools(three, lost, kept, on_lost, capsys)
        assert victim.is_running
        described.create("made-meanwhile", 2)  # on the directory that is left
        until(lambda: all((kept.path / "data" / f"made-meanwhile-{n}").is_dir() for n in range(2)), "logs of the new topic")

        restart(victim)
        until(lambda: offline(three) == {n: [VICTIM] if n in on_lost else [] for n in range(PARTITIONS)}, "offline after a restart too")
        restart(victim, lost)
        until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync again", 120)
        for each in written:
            each.wait_for_more(100)
        for each in written:
            each.stop()
        until(lambda: reader.count() >= sum(len(each.values) for each in written), "everything is read")
        reader.stop()
        check_records(three, written, reader)
        assert three.tracebacks() == []
    finally:
        three.end()


def restart(broker: BrokerProcess, lost: Disk | None = None) -> None:
    """With its failed disk, or with the disk repaired."""
    assert broker.stop() == 0
    if lost is not None:
        lost.repair()
    broker.start()
    broker.wait_ready()


def leads_some(described: Description, three: Cluster) -> bool:
    """Whether the broker leads a partition; it is made to, if a session that expired on a busy machine has cost it its leaders."""
    if led_by(three, VICTIM):
        return True
    for number in range(PARTITIONS):
        with suppress(KafkaException):
            described.elect_preferred(TOPIC, number)
    return False


def self_led_first(three: Cluster, two: list[Disk]) -> tuple[Disk, Disk]:
    """The disk on which the broker leads a partition, and the other."""
    victim = three.brokers[VICTIM]
    home = dir_of(victim, led_by(three, VICTIM)[0])
    return (two[0], two[1]) if home.is_relative_to(two[0].path) else (two[1], two[0])


def check_tools(three: Cluster, lost: Disk, kept: Disk, on_lost: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    bootstrap = ["--bootstrap-server", three.brokers[2].address]
    describe = [*bootstrap, "--describe", "--broker-list", str(VICTIM), "--topic-list", TOPIC]
    assert cli.main(["kafka-log-dirs", *describe]) == 0
    ours, kafkas = errors_in(capsys.readouterr().out), errors_in(kafka.run(LOG_DIRS, describe).out)
    assert ours == kafkas == {str(lost.path / "data"): True, str(kept.path / "data"): False}
    cli.main(["status", *bootstrap, "--json"])
    problems = [problem["text"] for problem in json.loads(capsys.readouterr().out)["problems"]]
    assert any(str(lost.path / "data") in text and "is offline" in text for text in problems), problems
    cli.main(["kafka-topics", *bootstrap, "--describe", "--under-replicated-partitions", "--topic", TOPIC])
    lines = [line for line in capsys.readouterr().out.splitlines() if "Partition: " in line]
    assert {int(line.split("Partition: ")[1].split()[0]) for line in lines} >= set(on_lost)


def errors_in(output: str) -> dict[str, bool]:
    """By log directory whether the tool shows KAFKA_STORAGE_ERROR for it."""
    (broker,) = json.loads(output.splitlines()[-1])["brokers"]
    return {log_dir["logDir"]: "KafkaStorageException" in (log_dir["error"] or "") for log_dir in broker["logDirs"]}


def check_records(three: Cluster, written: list[Acknowledged], reader: GroupReader) -> None:
    """Each acknowledged record once and in order, for a consumer, for the group's reader, and in the files of every broker."""
    for each in written:
        assert each.failures == []
        wanted = sorted(each.values)
        assert [value for _, value in wanted] == [f"value-{number}".encode() for number in range(len(wanted))]

        def copies(number: int = each.partition) -> list[bytes]:
            return [segment_bytes(dir_of(broker, number), TOPIC, number) for broker in three.brokers.values()]

        until(lambda copies=copies: len(set(copies())) == 1, "the same in all files")  # type: ignore[misc]
        for broker in three.brokers.values():
            assert in_files(dir_of(broker, each.partition), TOPIC, each.partition) == wanted
        assert consumed(three.bootstrap, TOPIC, len(wanted), each.partition) == wanted
        assert sorted(set(reader.read[each.partition])) == wanted


def test_the_last_disk_that_fails_stops_the_broker(ensemble: zookeeper.ZooKeeper, tmp_path: Path, two: list[Disk]) -> None:
    three = with_two_dirs(ensemble, tmp_path, two)
    try:
        three.start()
        described = Description(three.bootstrap)
        described.create(TOPIC, PARTITIONS, min_insync_replicas="2")
        written = [Acknowledged(three.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
        for each in written:
            each.start()
        for each in written:
            each.wait_for_more(50)
        for disk in two:
            disk.fail()
        assert three.brokers[VICTIM].wait() == ExitCode.LOG_DIRS_FAILED
        assert "All log directories have failed" in three.brokers[VICTIM].said()
        for each in written:
            each.wait_for_more(50)
        for each in written:
            each.stop()
            assert each.failures == []
            assert consumed(three.bootstrap, TOPIC, len(each.values), each.partition) == sorted(each.values)
        assert three.tracebacks() == []
    finally:
        three.end()
