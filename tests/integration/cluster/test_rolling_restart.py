"""`barnabas restart --rolling` on three broker processes under load: clients see no error, and each broker is waited for."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.client import Admin
from barnabas.client.admin import FeatureUpdate, UpgradeType
from tests.cluster import Cluster
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.group_reader import GroupReader
from tests.integration.cluster.records import DELIVERY_S, Acknowledged, JavaAcknowledged, Written, consumed, in_files

TOPIC, JAVA = "t", "java"
PARTITIONS = 3
RESTART_S = 300


@contextmanager
def started_again(cluster: Cluster) -> Generator[dict[int, list[float]], None, None]:
    """As systemd does: a broker that has ended is started again. The times of the ends, by broker."""
    ends: dict[int, list[float]] = {number: [] for number in cluster.brokers}
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            for broker in cluster.brokers.values():
                if not broker.is_running:
                    ends[broker.id].append(time.monotonic())
                    assert broker.code == 0
                    broker.start()
                    (broker.data.parent / f"pid-{broker.id}").write_text(str(broker.pid))

    for broker in cluster.brokers.values():
        (broker.data.parent / f"pid-{broker.id}").write_text(str(broker.pid))
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield ends
    finally:
        stop.set()
        thread.join()


def restart(
    cluster: Cluster, directory: Path, *arguments: str, command: str = "kill -TERM $(cat {directory}/pid-{{id}})"
) -> tuple[int, str]:
    words = ["restart", "--rolling", "--bootstrap-server", cluster.bootstrap, "--command", command.format(directory=directory), *arguments]
    ran = subprocess.run([sys.executable, "-m", "barnabas", *words], capture_output=True, text=True, timeout=RESTART_S, check=False)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.java
@pytest.mark.timeout(600)
def test_clients_see_no_error_while_all_brokers_restart_to_another_level(three: Cluster, tmp_path: Path) -> None:
    """First to the level of 3.6, then to that of 3.9: each time brokers of two levels run side by side. The level of a feature stays."""
    described = Description(three.bootstrap)
    for topic in (TOPIC, JAVA):
        described.create(topic, PARTITIONS, min_insync_replicas="2")
    until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync")
    java = JavaAcknowledged(three.bootstrap, JAVA, PARTITIONS)
    librdkafka = [Acknowledged(three.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
    written: list[Written] = [*librdkafka, *java.written]
    reader = GroupReader(three.bootstrap, TOPIC, PARTITIONS)
    for producer in librdkafka:
        producer.start()
    java.start()
    reader.start()
    for each in written:
        each.wait_for_more(50)
    reader.wait_for_more(50)

    with Admin({"bootstrap.servers": three.bootstrap}) as admin:
        admin.update_features({"transaction.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}).all()
    for broker in three.brokers.values():
        broker.change({"inter.broker.protocol.version": "3.6"})
    with started_again(three) as ends:
        controller = described.controller()
        code, said = restart(three, tmp_path)
        assert code == 0, said
        check_output(said, controller)
        for broker in three.brokers.values():
            broker.change({"inter.broker.protocol.version": "3.9"})
        code, said = restart(three, tmp_path)
        assert code == 0, said
    assert [len(times) for times in ends.values()] == [2, 2, 2]
    until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync again")
    with Admin({"bootstrap.servers": three.bootstrap}) as admin:
        features = [admin.describe_features(node_id=number).finalized_features for number in three.brokers]
    assert [levels["transaction.version"].max_version_level for levels in features] == [1, 1, 1]

    for each in written:
        each.wait_for_more(50, DELIVERY_S + 60)  # a record that is not acknowledged by then has failed
    for producer in librdkafka:
        producer.stop()
    java.stop()
    until(lambda: all(len(set(reader.read[each.partition])) == len(each.values) for each in librdkafka), "everything is read")
    reader.stop()
    assert reader.errors == []
    for each in written:
        assert each.failures == []
        wanted = sorted(each.values)
        assert [value for _, value in wanted] == [f"value-{number}".encode() for number in range(len(wanted))]
        assert consumed(three.bootstrap, each.topic, len(wanted), each.partition) == wanted
        for broker in three.brokers.values():
            until(
                lambda broker=broker, each=each, wanted=wanted: in_files(broker.data, each.topic, each.partition) == wanted,  # type: ignore[misc]
                "the same in all files",
            )
    assert three.tracebacks() == []


def check_output(said: str, controller: int) -> None:
    """One broker after the other, the controller last, and each in sync before the next."""
    events = re.findall(r"Restarting broker (\d)|Broker (\d) is back and all replicas are in sync", said)
    assert [before or after for before, after in events[:2]] == [events[0][0]] * 2
    order = [int(before) for before, _ in events if before]
    assert order == [*sorted({1, 2, 3} - {controller}), controller]
    assert [bool(before) for before, _ in events] == [True, False] * 3


def test_a_restart_that_goes_wrong_ends_with_one_line_and_says_how_to_go_on(three: Cluster, tmp_path: Path) -> None:
    described = Description(three.bootstrap)
    described.create(TOPIC, 1)
    until(lambda: asking.all_in_sync(three.brokers.values()), "all in sync")
    first, second = sorted({1, 2, 3} - {described.controller()})
    code, said = restart(three, tmp_path, "--brokers", f"{second},{first}", command="test {{id}} = 7")
    assert (code, said.splitlines()[-1]) == (
        1,
        f"The command for broker {first} failed with exit code 1: test {first} = 7. Restarted: none. Go on with --brokers {first},{second}",
    )
    code, said = restart(three, tmp_path, "--brokers", "2", "--timeout", "3", command="true")
    assert code == 1
    assert said.splitlines()[-1] == (
        "Broker 2 did not end within 3 s, although its command succeeded: check the command. Restarted: none. Go on with --brokers 2"
    )
    assert all(broker.is_running for broker in three.brokers.values())
    three.brokers[3].stop()
    until(lambda: asking.isr(three.brokers[1], TOPIC) == {1, 2}, "a replica is missing")
    code, said = restart(three, tmp_path)
    assert code == 1
    assert said.splitlines()[-1] == ("not all replicas are in sync: t-0. Wait for them, or start their brokers; nothing was restarted")
