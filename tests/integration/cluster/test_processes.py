"""`--processes` on ZooKeeper, with several log directories: their logs are adopted and drained, and not converted."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

from tests.integration.cluster.conftest import next_chroot
from tests.machine import DEADLINE_S, Machine, Records
from tests.zookeeper import ZooKeeper


def test_the_broker_of_a_machine_becomes_two_processes_and_one_again(ensemble: ZooKeeper, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"zookeeper.connect={next_chroot(ensemble)}\nbroker.id=41\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/a,{tmp_path}/b\n"
        "metrics.listener=http://127.0.0.1:0\n"
        "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    )
    machine = Machine(tmp_path, "server", str(properties), "--log-level", "warning")
    records = Records()
    try:
        machine.start()
        records.create(machine)
        records.write(records.producer(machine))
        assert machine.stop() == 0
        machine.start("--processes", "2")
        assert machine.nodes == [41, 42]
        assert health(machine) == {"status": "good", "problems": [], "brokers": {"41": "", "42": ""}}
        records.check(machine)
        later = Records("later")
        later.create(machine)  # on both brokers
        later.write(later.producer(machine))
        assert machine.stop() == 0
        machine.start("--processes", "1")
        assert machine.nodes == [41]
        for topic in (records, later):
            topic.write(topic.producer(machine))
            topic.check(machine)
        assert machine.stop() == 0
        assert not (tmp_path / "a" / "broker-2").exists()
    finally:
        machine.close()


def health(machine: Machine) -> object:
    """Of all brokers of the last start together, at the first address of the banner."""
    address = re.findall(r"metrics at (http://[^/]*)/metrics", machine.log.read_text())[-1]
    with urllib.request.urlopen(f"{address}/health/ready", timeout=DEADLINE_S) as response:
        return json.load(response)
