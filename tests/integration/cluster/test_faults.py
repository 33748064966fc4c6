"""Faults that take more than a signal, on three brokers with a machine each: a full disk, a follower that is too slow, a leader and a
controller that do not know that they are not any more, a clock that jumps. What was acknowledged is there at the end, in all replicas.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.uuid import Uuid
from tests import cluster, zookeeper
from tests.cluster import BrokerProcess, machine
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import Acknowledged, in_files, segment_bytes
from tests.integration.transactions.wire import Connection
from tests.links import Links, between

MACHINES = [machine(1), machine(2), machine(3), zookeeper.MACHINE]
SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "1000",  # who is slow keeps its session
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",  # leaders move where a test says so
}
SMALL_DISK = "64m"
WITH_SMALL_DISK = 3  # the broker
SLOW_TURNS = 2
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
JUMPS_H = (3, -3, 0)
HOUR_MS = 3_600_000

_numbers = itertools.count()


@dataclass
class Machines:
    three: cluster.Cluster
    links: Links

    @property
    def brokers(self) -> dict[int, BrokerProcess]:
        return self.three.brokers

    def other(self, *numbers: int) -> BrokerProcess:
        """One that is none of these."""
        return next(broker for broker in self.brokers.values() if broker.id not in numbers)

    def recover(self) -> None:
        """From whatever a test has left behind."""
        self.links.mend_all()
        for broker in self.brokers.values():
            if broker.is_running:
                broker.signal(signal.SIGCONT)
        self.until_in_sync()

    def until_in_sync(self) -> None:
        until(lambda: asking.all_in_sync(self.brokers.values()), "all in sync", 120)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Generator[Machines, None, None]:
    directory = tmp_path_factory.mktemp("machines")
    (directory / "zookeeper").mkdir()
    with (
        between(MACHINES) as links,
        small_disk(directory / f"broker-{WITH_SMALL_DISK}"),
        zookeeper.running(directory / "zookeeper", links=links) as ensemble,
        cluster.running(directory, ensemble.address, SETTINGS, links) as three,
    ):
        yield Machines(three, links)


@pytest.fixture
def written(machines: Machines) -> Generator[Acknowledged, None, None]:
    """Records are written before the fault and while it lasts; afterwards all that was acknowledged must be there, and nothing else."""
    machines.until_in_sync()
    topic = f"t-{next(_numbers)}"
    Description(machines.three.bootstrap).create(topic, min_insync_replicas="2", message_timestamp_type="LogAppendTime")
    machines.until_in_sync()
    written = Acknowledged(machines.three.bootstrap, topic)
    written.start()
    written.wait_for_more(100)
    yield written
    machines.recover()
    written.wait_for_more(100)
    written.stop()
    assert written.failures == []
    until(lambda: len({segment_bytes(broker.data, topic) for broker in machines.brokers.values()}) == 1, "the same in all files")
    expected = sorted(written.values)
    assert in_files(machines.brokers[1].data, topic) == expected
    assert [value for _, value in expected] == [f"value-{number}".encode() for number in range(len(expected))]
    assert machines.three.tracebacks() == []


def test_a_broker_whose_disk_is_full_ends_and_is_back_when_there_is_room(machines: Machines, written: Acknowledged) -> None:
    full = machines.brokers[WITH_SMALL_DISK]
    ballast = full.data / "ballast"
    with pytest.raises(OSError, match="No space left"), open(ballast, "wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 12))
    until(lambda: not full.is_running, "its end")
    assert full.code == ExitCode.LOG_DIRS_FAILED
    written.wait_for_more(100)
    ballast.unlink()
    full.start()
    full.wait_ready()


def test_a_slow_follower_leaves_the_replicas_in_sync_and_comes_back(machines: Machines, written: Acknowledged) -> None:
    leader = machines.brokers[leader_of(machines, written)]
    follower = machines.other(leader.id, asking.metadata(leader).controller_id)
    for _ in range(SLOW_TURNS):
        follower.signal(signal.SIGSTOP)
        until(lambda: follower.id not in asking.isr(leader, written.topic), "out of sync")
        written.wait_for_more(50)
        follower.signal(signal.SIGCONT)
        until(lambda: follower.id in asking.isr(leader, written.topic), "in sync again")


def test_a_leader_that_is_cut_off_acknowledges_nothing_when_there_is_another(machines: Machines, written: Acknowledged) -> None:
    zombie = machines.brokers[leader_of(machines, written)]
    awake = machines.other(zombie.id)
    for other in MACHINES:
        if other != machine(zombie.id):
            machines.links.cut_both_ways(machine(zombie.id), other)
    until(lambda: asking.leaders(awake)[(written.topic, 0)] not in (zombie.id, -1), "another leader")
    assert asking.leaders(zombie)[(written.topic, 0)] == zombie.id
    assert produce(zombie, written.topic, acks=-1) == ErrorCode.REQUEST_TIMED_OUT
    assert produce(zombie, written.topic, acks=1) == ErrorCode.NONE  # who asks for no more gets no more: it is gone in the end
    machines.links.mend_all()


def test_a_leader_that_slept_through_its_session_acknowledges_nothing_when_it_wakes(machines: Machines, written: Acknowledged) -> None:
    zombie = machines.brokers[leader_of(machines, written)]
    awake = machines.other(zombie.id)
    connection = Connection(zombie.address)
    zombie.signal(signal.SIGSTOP)
    connection.send(production(written.topic, acks=-1), 9)
    until(lambda: asking.leaders(awake)[(written.topic, 0)] not in (zombie.id, -1), "another leader")
    zombie.signal(signal.SIGCONT)
    answer = connection.receive(production(written.topic, acks=-1), 9)
    assert answer.responses[0].partition_responses[0].error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
    connection.close()


def test_what_a_deposed_controller_still_orders_is_refused(machines: Machines, written: Acknowledged) -> None:
    zombie = machines.brokers[asking.metadata(machines.brokers[1]).controller_id]
    unreached = machines.other(zombie.id)
    machines.links.cut(machine(zombie.id), machine(unreached.id))
    Description(zombie.address).create(f"ordered-{next(_numbers)}")  # the third broker's part of it is on its way, and lost on it
    machines.links.cut_both_ways(machine(zombie.id), zookeeper.MACHINE)
    until(lambda: asking.metadata(unreached).controller_id not in (zombie.id, -1), "another controller")
    assert asking.metadata(zombie).controller_id == zombie.id
    machines.links.mend(machine(zombie.id), machine(unreached.id))
    refusal = f"Ignoring LeaderAndIsr request from controller {zombie.id} with correlation id"
    until(lambda: refusal in unreached.said(), "the order of the deposed one is refused")
    written.wait_for_more(100)
    machines.links.mend_all()


def test_a_clock_that_jumps_is_not_noticed(machines: Machines, written: Acknowledged, tmp_path: Path) -> None:
    """What waits, waits by the steady clock: nobody is late, no session ends, nothing is elected."""
    library = next(Path("/").glob(FAKETIME.lstrip("/")), None)
    if library is None:
        pytest.skip("a clock is made to jump by libfaketime: apt-get install libfaketime")
    clock = tmp_path / "clock"
    set_clock(clock, 0)
    broker = machines.brokers[leader_of(machines, written)]
    broker.environment = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    try:
        restart(broker)
        machines.until_in_sync()
        Description(machines.three.bootstrap).elect_preferred(written.topic)
        until(lambda: leader_of(machines, written) == broker.id, "its leadership again")
        epochs, said = asking.epochs(broker), broker.said()
        for hours in JUMPS_H:
            set_clock(clock, hours)
            until(lambda hours=hours: round(last_written_ms_ago(broker, written.topic) / HOUR_MS) == -hours, "the jump")  # type: ignore[misc]
            written.wait_for_more(100)
        assert asking.epochs(broker) == epochs
        assert "expired" not in broker.said().removeprefix(said)
    finally:
        broker.environment = {}
        set_clock(clock, 0)


@contextmanager
def small_disk(directory: Path) -> Generator[None, None, None]:
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(directory)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def set_clock(clock: Path, hours: int) -> None:
    replaced = clock.with_suffix(".next")
    replaced.write_text(f"{hours:+}h")
    replaced.rename(clock)


def last_written_ms_ago(broker: BrokerProcess, topic: str) -> float:
    """By the clock of the leader, which stamps what is written."""
    *_, last = read_batches(segment_bytes(broker.data, topic))
    return time.time() * 1000 - int(last.max_timestamp)


def restart(broker: BrokerProcess) -> None:
    assert broker.stop() == ExitCode.STOPPED
    broker.start()
    broker.wait_ready()


def leader_of(machines: Machines, written: Acknowledged) -> int:
    return asking.leaders(machines.brokers[1])[(written.topic, written.partition)]


def produce(broker: BrokerProcess, topic: str, acks: int) -> int:
    connection = Connection(broker.address)
    try:
        answer = connection.ask(production(topic, acks), 9)
    finally:
        connection.close()
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def production(topic: str, acks: int) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(int(time.time() * 1000), None, b"from outside")
    return ProduceRequest(None, acks, 1500, [TopicProduceData(topic, Uuid.ZERO, [PartitionProduceData(0, Records(builder.build()))])])
