"""Brokers killed, stopped and put to sleep in turn, and controllers deposed, while records are written with acks of all: at the end every
acknowledged record is there once, in order, on every replica. `python -m tests.integration.cluster.chaos --faults 120` runs it by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import Options
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests import cluster, zookeeper
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import Acknowledged, in_files, segment_bytes

TOPIC = "chaos"
PARTITIONS = 3


class Chaos:
    def __init__(self, three: cluster.Cluster, ensemble: str, seed: int) -> None:
        self.three = three
        self.done: Counter[str] = Counter()
        self._ensemble = ensemble
        self._random = Random(seed)
        self._described = Description(three.bootstrap)

    def run(self, faults: int) -> None:
        """With a time to recover after each: what is not in sync again must not be the reason of a loss."""
        self._described.create(TOPIC, PARTITIONS, min_insync_replicas="2")
        written = [Acknowledged(self.three.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
        for each in written:
            each.start()
        for _ in range(faults):
            for each in written:
                each.wait_for_more(20, timeout_s=120)
            self._fault()
        self._until_in_sync()
        for each in written:
            each.stop()
        self._check(written)

    def _fault(self) -> None:
        broker = self.three.brokers[self._random.choice(list(self.three.brokers))]
        what = self._random.choice(["kill", "kill", "kill", "stop", "sleep", "depose"])
        self.done[what] += 1
        if what == "depose":
            asyncio.run(self._depose())
        elif what == "sleep":
            broker.signal(signal.SIGSTOP)
            time.sleep(self._random.uniform(0.5, 2.0) * cluster.SESSION_TIMEOUT_MS / 1000)
            broker.signal(signal.SIGCONT)
        else:
            broker.kill() if what == "kill" else broker.stop()
            time.sleep(self._random.uniform(0, 1.5) * cluster.SESSION_TIMEOUT_MS / 1000)
            broker.start()
            broker.wait_ready()
        self._until_in_sync()

    async def _depose(self) -> None:
        """Takes /controller away from whoever has it."""
        tree = ZooKeeperTree(Options(parse(self._ensemble)))
        client = TreeClient(tree, lambda: None)
        await client.connect()
        await client.delete(paths.CONTROLLER)
        await client.close()
        await tree.close()

    def _until_in_sync(self) -> None:
        until(lambda: all(self._described.isr(TOPIC, number) == {1, 2, 3} for number in range(PARTITIONS)), "all in sync", 120)

    def _check(self, written: list[Acknowledged]) -> None:
        for number, each in enumerate(written):
            assert each.failures == []
            until(
                lambda number=number: len({segment_bytes(broker.data, TOPIC, number) for broker in self.three.brokers.values()}) == 1,  # type: ignore[misc]
                "the same in all files",
            )
            wanted = sorted(each.values)
            assert [value for _, value in wanted] == [f"value-{count}".encode() for count in range(len(wanted))]
            for broker in self.three.brokers.values():
                assert in_files(broker.data, TOPIC, number) == wanted, f"broker {broker.id}, partition {number}"
        assert self.three.tracebacks() == []
        self.done["records"] = sum(len(each.values) for each in written)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "zookeeper").mkdir()
        with zookeeper.running(directory / "zookeeper") as ensemble, cluster.running(directory, ensemble.address) as three:
            chaos = Chaos(three, ensemble.address, given.seed)
            chaos.run(given.faults)
            print(", ".join(f"{what} {count}" for what, count in sorted(chaos.done.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
