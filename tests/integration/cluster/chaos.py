"""Brokers killed in turn, stopped and put to sleep, controllers deposed, links cut, ZooKeeper restarted and gone for a minute, while
records are written with acks of all by librdkafka and by Kafka's Java producer: at the end every acknowledged record is there once, in
order, on every replica. `python -m tests.integration.cluster.chaos --faults 150` runs it by itself, and tells what it has seen.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from math import inf
from pathlib import Path
from random import Random

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from barnabas.tools.command_line.exit_codes import ExitCode
from tests import cluster, zookeeper
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import Acknowledged, JavaAcknowledged, Written, in_files, segment_bytes
from tests.links import Links, NotPermitted

LIBRDKAFKA, JAVA = "librdkafka", "java"  # the topics, each with a client of its own
PARTITIONS = 3
PAUSE_MS = 10  # of a writer after each record: to write much is not the point
RECOVERY_S = 180
SHARES = {"kill": 100, "depose": 20, "cut": 14, "stop": 5, "sleep": 5, "restart zookeeper": 5, "zookeeper gone": 1}  # of 150 faults
ZOOKEEPER_GONE_S = 60
SETTINGS = {
    "zookeeper.session.timeout.ms": "2500",
    "replica.lag.time.max.ms": "2500",
    "replica.socket.timeout.ms": "3000",  # a link that is cut is given up before it is mended, at times
    "controller.socket.timeout.ms": "3000",
}
MACHINES = [cluster.machine(1), cluster.machine(2), cluster.machine(3), zookeeper.MACHINE]


class Chaos:
    def __init__(self, three: cluster.Cluster, ensemble: zookeeper.ZooKeeper, links: Links | None, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.failovers: dict[str, list[float]] = {LIBRDKAFKA: [], JAVA: []}  # by topic, how long until the next acknowledged write
        self.elections: list[float] = []  # how long until no broker named the dead one as a leader any more
        self.slowest_answers: list[float] = []  # to Metadata, of brokers that were not harmed, while another was killed or deposed
        self._three = three
        self._ensemble = ensemble
        self._links = links
        self._random = Random(seed)
        self._turn = cycle(three.brokers.values())
        self._cuts = cycle(self._ways_to_cut())
        self._java = JavaAcknowledged(three.bootstrap, JAVA, PARTITIONS, PAUSE_MS)
        self._librdkafka = [Acknowledged(three.bootstrap, LIBRDKAFKA, number, PAUSE_MS / 1000) for number in range(PARTITIONS)]
        self._written: list[Written] = [*self._librdkafka, *self._java.written]
        self._answers = {broker.id: asking.Answers(broker) for broker in three.brokers.values()}

    def run(self, faults: Sequence[str], minutes: float = inf) -> None:
        """With a time to recover after each: what is not in sync again must not be the reason of a loss."""
        described = Description(self._three.bootstrap)
        for topic in (LIBRDKAFKA, JAVA):
            described.create(topic, PARTITIONS, min_insync_replicas="2", segment_bytes=str(1 << 20))
        self._until_in_sync()
        for producer in self._librdkafka:
            producer.start()
        self._java.start()
        for answers in self._answers.values():
            answers.start()
        try:
            self._go(faults, minutes)
        finally:
            for answers in self._answers.values():
                answers.stop()
            for producer in self._librdkafka:
                producer.end()
            self._java.end()
        self._check()

    def _go(self, faults: Sequence[str], minutes: float) -> None:
        self._wait_for_more()
        began = time.monotonic()
        for number, what in enumerate(faults, 1):
            started = time.monotonic()
            if started > began + 60 * minutes:
                break
            self.done[what] += 1
            line = self._fault(what)
            self._until_in_sync()
            self._wait_for_more()
            now = time.monotonic()
            print(f"{number}: {line}: {now - started:.1f} s; {tally(self.done)} in {now - began:.0f} s", flush=True)
        for producer in self._librdkafka:
            producer.stop()
        self._java.stop()

    def _fault(self, what: str) -> str:
        if what == "kill":
            return self._kill(next(self._turn))
        if what == "depose":
            return self._depose()
        if what == "cut":
            return self._cut()
        if what == "restart zookeeper":
            return self._without_zookeeper(0)
        if what == "zookeeper gone":
            return self._without_zookeeper(ZOOKEEPER_GONE_S)
        broker = self._three.brokers[self._random.choice(list(self._three.brokers))]
        if what == "stop":
            assert broker.stop() == 0
            self._start(broker)
        else:
            broker.signal(signal.SIGSTOP)
            self._pass(0.5, 2.0)
            broker.signal(signal.SIGCONT)
        return f"{what} {broker.id}"

    def _kill(self, broker: cluster.BrokerProcess) -> str:
        led = [partition for partition, leader in asking.leaders(broker).items() if leader == broker.id]
        was_controller = asking.metadata(broker).controller_id == broker.id
        broker.kill()
        at = time.monotonic()
        self._pass(0, 1.2)
        self._start(broker)
        self._until_in_sync()
        self._wait_for_more(1)
        for each in self._written:
            if (each.topic, each.partition) in led:
                self.failovers[each.topic].append(each.outage(at))
        if led:
            led_until = [answers.led_until.get(broker.id, at) for number, answers in self._answers.items() if number != broker.id]
            self.elections.append(max(0.0, max(led_until) - at))
        self._note_answers(at, broker.id)
        return f"kill {broker.id}, leader of {len(led)}{' and controller' if was_controller else ''}"

    def _depose(self) -> str:
        at = time.monotonic()
        asyncio.run(self._take_the_controller_away())
        self._until_in_sync()
        self._note_answers(at)
        return "depose"

    async def _take_the_controller_away(self) -> None:
        """Deletes /controller, and waits until there is one again."""
        tree = ZooKeeperTree(ZooKeeperOptions(parse(self._ensemble.address)))
        client = TreeClient(tree, lambda: None)
        await client.connect()
        before = await client.get(paths.CONTROLLER_EPOCH)
        await client.delete(paths.CONTROLLER)
        deadline = time.monotonic() + RECOVERY_S
        while await client.get(paths.CONTROLLER_EPOCH) == before:
            assert time.monotonic() < deadline, "nobody became the controller"
            await asyncio.sleep(0.02)
        await client.close()
        await tree.close()

    def _cut(self) -> str:
        assert self._links is not None
        ways = next(self._cuts)
        for source, target in ways:
            self._links.cut(source, target)
        self._pass(0.5, 2.0)
        self._links.mend_all()
        return "cut " + ", ".join(f"{source} to {target}" for source, target in ways)

    def _ways_to_cut(self) -> Iterator[list[tuple[str, str]]]:
        """Two brokers, a broker and ZooKeeper: one way and both; and a broker from all of them."""
        one, two, three, tree = MACHINES
        pairs = [(one, two), (two, three), (three, one), (one, tree), (two, tree), (three, tree)]
        self._random.shuffle(pairs)
        for a, b in pairs:
            yield [(a, b), (b, a)]
            yield [(a, b)] if self._random.random() < 0.5 else [(b, a)]
        alone = self._random.choice(MACHINES[:3])
        yield [way for other in MACHINES if other != alone for way in ((alone, other), (other, alone))]
        yield [(other, alone) for other in MACHINES if other != alone]

    def _without_zookeeper(self, seconds: float) -> str:
        self._ensemble.kill()
        self._wait_for_more()
        time.sleep(seconds)
        self._wait_for_more()
        self._ensemble.start()
        return f"zookeeper gone for {seconds:.0f} s" if seconds else "restart zookeeper"

    def _start(self, broker: cluster.BrokerProcess) -> None:
        """As a service manager does: again, where its session could not be kept while it was starting."""
        broker.start()
        while not broker.becomes_ready():
            assert broker.code == ExitCode.ZOOKEEPER_UNUSABLE, f"broker {broker.id} ended:\n{broker.said()[-3000:]}"
            self.done["start again"] += 1
            broker.start()

    def _pass(self, least: float, most: float) -> None:
        """So many sessions."""
        time.sleep(self._random.uniform(least, most) * int(SETTINGS["zookeeper.session.timeout.ms"]) / 1000)

    def _wait_for_more(self, count: int = 10) -> None:
        for each in self._written:
            each.wait_for_more(count, RECOVERY_S)

    def _until_in_sync(self) -> None:
        until(lambda: asking.all_in_sync(self._three.brokers.values()), "all in sync", RECOVERY_S)

    def _note_answers(self, since: float, dead: int = -1) -> None:
        self.slowest_answers.append(max(answers.slowest(since) for number, answers in self._answers.items() if number != dead))

    def _check(self) -> None:
        for each in self._written:
            name = f"{each.topic}-{each.partition}"
            assert each.failures == [], f"{name}: {each.failures[:5]}"
            until(lambda each=each: self._files_agree(each), f"{name}: the same in all files")  # type: ignore[misc]
            wanted = sorted(each.values)
            assert [value for _, value in wanted] == [f"value-{count}".encode() for count in range(len(wanted))], name
            for broker in self._three.brokers.values():
                found = in_files(broker.data, each.topic, each.partition)
                assert found == wanted, f"{name} of broker {broker.id}: {differences(found, wanted)}"
        assert self._three.tracebacks() == []
        self.done["records"] = sum(len(each.values) for each in self._written)

    def _files_agree(self, each: Written) -> bool:
        return len({segment_bytes(broker.data, each.topic, each.partition) for broker in self._three.brokers.values()}) == 1


def differences(found: list[tuple[int, bytes]], wanted: list[tuple[int, bytes]]) -> str:
    lost, other = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    return f"{len(lost)} not there, the first {lost[:3]}; {len(other)} that nobody was told of, the first {other[:3]}"


def plan(faults: int, seed: int, *, cuts: bool) -> list[str]:
    """So many faults, each kind with its share, in an order of the seed's."""
    drawn = [what for what, share in SHARES.items() for _ in range(round(faults * share / sum(SHARES.values()))) if cuts or what != "cut"]
    Random(seed).shuffle(drawn)
    return drawn


def tally(done: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(done.items()))


def spread(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    middle, high = (ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in (0.5, 0.95))
    return f"p50 {middle:.2f} s, p95 {high:.2f} s, max {ordered[-1]:.2f} s of {len(ordered)}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=inf, help="no fault begins later than that; what was written is checked all the same"
    )
    parser.add_argument("--only", choices=SHARES, help="no other fault: kill, for example, to measure how long a failover takes")
    given = parser.parse_args(arguments)
    links = _links()
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    (directory / "zookeeper").mkdir()
    try:
        with (
            zookeeper.running(directory / "zookeeper", links=links) as ensemble,
            cluster.running(directory, ensemble.address, SETTINGS, links) as three,
        ):
            chaos = Chaos(three, ensemble, links, given.seed)
            print(f"seed {given.seed}, logs in {directory}", flush=True)
            faults = [given.only] * given.faults if given.only else plan(given.faults, given.seed, cuts=links is not None)
            chaos.run(faults, given.minutes)
    finally:
        if links is not None:
            links.close()
    shutil.rmtree(directory)
    print(f"Every acknowledged record once, in order, on every replica: {tally(chaos.done)}")
    print(f"From SIGKILL of a leader to the next acknowledged write, with a session of {SETTINGS['zookeeper.session.timeout.ms']} ms:")
    for client, seconds in chaos.failovers.items():
        print(f"  {client}: {spread(seconds)}")
    print(f"  until no broker named the dead one as a leader any more: {spread(chaos.elections)}")
    print(f"Slowest answer to Metadata of a broker that was left alone, of each kill and deposition: {spread(chaos.slowest_answers)}")
    return 0


def _links() -> Links | None:
    try:
        return Links(MACHINES)
    except NotPermitted as why:
        print(f"No link is cut: {why}")
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
