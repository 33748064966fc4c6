"""A fourth broker joins, gets its share of the replicas, and another broker is drained and stopped: each by one command, under load, and
every record is checked.

    python -m tests.integration.cluster.fourth_broker --megabytes 2000      with more to move than in the test
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from barnabas.client import Admin, NewTopic, Producer
from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.group_reader import GroupReader
from tests.integration.cluster.records import Acknowledged, consumed, in_files

TOPIC, BULK = "t", "bulk"
PARTITIONS, BULK_PARTITIONS = 4, 12
RECORD_BYTES = 10_000
COMMAND_S = 600
PAUSE_S = 0.02  # of a producer after each record
SLOW_RATE = 200_000  # bytes a second: more than producers write, and so little that moves do not end before they are interrupted
DRAINED = 2
# Heeds ^C also where the shell that began the tests has its background jobs ignore it.
BARNABAS = """
import signal, sys
from barnabas import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(cli.main(sys.argv[1:]))
"""


class Command:
    """`barnabas ...` as a process of its own."""

    def __init__(self, bootstrap: str, *words: str) -> None:
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", BARNABAS, *words, "--bootstrap-server", bootstrap],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return "".join(self.said)

    def end(self) -> int:
        code = self._process.wait(COMMAND_S)
        self._thread.join()
        return code

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.said.extend(lines)


def run(bootstrap: str, *words: str) -> str:
    """What a command prints that must succeed."""
    began = time.monotonic()
    command = Command(bootstrap, *words)
    assert command.end() == 0, command.text
    print(f"barnabas {' '.join(words)}: {time.monotonic() - began:.0f} s", flush=True)
    return command.text


def fill(bootstrap: str, megabytes: int) -> int:
    """Returns the number of records."""
    count = megabytes * 1_000_000 // RECORD_BYTES
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic(BULK, BULK_PARTITIONS, 2)]).all()
    with Producer({"bootstrap.servers": bootstrap, "acks": "all"}) as producer:
        for number in range(count):
            producer.send(BULK, f"{number}".encode().ljust(RECORD_BYTES, b"."), partition=number % BULK_PARTITIONS)
        producer.flush()
    return count


def replicas_of(broker: BrokerProcess) -> dict[int, int]:
    """By broker the number of replicas in the cluster, as one broker knows it."""
    counts: dict[int, int] = {}
    for topic in asking.metadata(broker).topics:
        for partition in topic.partitions:
            for replica in partition.replica_nodes:
                counts[replica] = counts.get(replica, 0) + 1
    return counts


def proof(cluster: Cluster, fourth: BrokerProcess, megabytes: int, rate: int) -> None:
    """With three brokers that run."""
    bulk = fill(cluster.bootstrap, megabytes)
    Description(cluster.bootstrap).create(TOPIC, PARTITIONS, 3, min_insync_replicas="2")
    written = [Acknowledged(cluster.bootstrap, TOPIC, number, PAUSE_S) for number in range(PARTITIONS)]
    reader = GroupReader(cluster.bootstrap, TOPIC, PARTITIONS)
    for each in written:
        each.start()
    reader.start()
    for each in written:
        each.wait_for_more(100)
    reader.wait_for_more(100)

    fourth.start()
    fourth.wait_ready()
    cluster.brokers[fourth.id] = fourth
    bootstrap = ",".join(broker.address for broker in cluster.brokers.values() if broker.id != DRAINED)
    until(lambda: all(len(asking.metadata(broker).brokers) == 4 for broker in cluster.brokers.values()), "the fourth broker is known")

    balance(cluster, bootstrap, rate)
    balanced = replicas_of(fourth)
    mean = sum(balanced.values()) / 4
    assert all(0.7 * mean <= balanced.get(number, 0) <= 1.3 * mean for number in cluster.brokers), balanced

    assert f"Broker {DRAINED} has no replicas: it can be stopped." in run(bootstrap, "drain", str(DRAINED), "--sample-seconds", "2")
    until(lambda: DRAINED not in replicas_of(fourth), "the broker has no replicas")
    until(lambda: leftovers(cluster.brokers[DRAINED]) == [], "nor files of them")
    assert cluster.brokers[DRAINED].stop() == 0
    run(bootstrap, "cluster", "unregister", "--id", str(DRAINED))

    for each in written:
        each.wait_for_more(100)
    for each in written:
        each.stop()
    until(lambda: all(len(set(reader.read[each.partition])) == len(each.values) for each in written), "everything is read")
    reader.stop()
    check(cluster, written, reader, bulk, bootstrap)


def balance(cluster: Cluster, bootstrap: str, rate: int) -> None:
    """Begun with a throttle that holds the moves up, interrupted, and continued by the same command."""
    words = ("balance", "--apply", "--sample-seconds", "2", "--throttle", str(SLOW_RATE))
    first = Command(bootstrap, *words)
    until(lambda: any("%" in line for line in first.said), "the moves have begun")
    assert first.interrupt() == 130, first.text
    assert "The moves that have begun go on in the cluster, with their throttle." in first.text, first.text
    began = time.monotonic()
    again = Command(bootstrap, *words)
    until(lambda: any("Continuing " in line for line in again.said), "the moves are continued")
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        rates = [AlterConfigOp(f"{side}.replication.throttled.rate", str(rate)) for side in ("leader", "follower")]
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.BROKER, str(number)): rates for number in cluster.brokers}).all()
    assert again.end() == 0, again.text
    assert "Removed the throttles of all brokers" in again.text, again.text
    print(f"barnabas {' '.join(words)}, continued: {time.monotonic() - began:.0f} s", flush=True)


def leftovers(broker: BrokerProcess) -> list[str]:
    return sorted(path.name for topic in (TOPIC, BULK) for path in broker.data.glob(f"{topic}-*") if not path.name.endswith("-delete"))


def check(cluster: Cluster, written: list[Acknowledged], reader: GroupReader, bulk: int, bootstrap: str) -> None:
    """Each record once and in order, for a consumer, for the group, and in the files of every replica; no client had an error."""
    left = {broker.id: broker for broker in cluster.brokers.values() if broker.id != DRAINED}
    homes = {
        (topic.name, partition.partition_index): partition.replica_nodes
        for topic in asking.metadata(left[4]).topics
        for partition in topic.partitions
    }
    assert reader.errors == []
    for each in written:
        assert each.failures == []
        wanted = sorted(each.values)
        assert [value for _, value in wanted] == [f"value-{number}".encode() for number in range(len(wanted))]
        assert sorted(set(reader.read[each.partition])) == wanted
        assert consumed(bootstrap, TOPIC, len(wanted), each.partition) == wanted
        for home in homes[TOPIC, each.partition]:
            until(lambda home=home, each=each, wanted=wanted: in_files(left[home].data, TOPIC, each.partition) == wanted, "in its files")  # type: ignore[misc]
    for number in range(BULK_PARTITIONS):
        numbers = list(range(number, bulk, BULK_PARTITIONS))
        assert len(homes[BULK, number]) == 2
        for home in homes[BULK, number]:
            assert [int(value.rstrip(b".")) for _, value in in_files(left[home].data, BULK, number)] == numbers, (
                f"{BULK}-{number} on {home}"
            )
    assert cluster.tracebacks() == []
    records = sum(len(each.values) for each in written)
    print(f"{records} records written meanwhile and {bulk} moved: once, in order, on every replica; no error seen by a client", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("fourth_broker", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000, help="in the topic that is moved; default: %(default)s")
    parser.add_argument("--rate", type=int, default=50_000_000, help="the throttle, in bytes a second; default: %(default)s")
    given = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="fourth-broker-"))
    (directory / "zookeeper").mkdir()
    with zookeeper.running(directory / "zookeeper") as ensemble:
        cluster = Cluster(directory, ensemble.address)
        try:
            cluster.start()
            print(f"logs in {directory}", flush=True)
            proof(cluster, BrokerProcess(4, directory, ensemble.address, {}), given.megabytes, given.rate)
        finally:
            cluster.end()
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
