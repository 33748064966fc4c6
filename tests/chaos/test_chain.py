"""A chain of three links, each a process that reads, writes and commits in transactions; they and the broker are killed at random.

Whoever reads what is committed sees each record once and in order at every link; whoever reads all sees what was aborted too; what the
groups have committed agrees with what was written.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos import topics
from tests.chaos.mortal import MortalBroker, killing, mortal, seconds, seed

pytestmark = pytest.mark.timeout(7200)

LINK = Path(__file__).parent / "link.py"
LINKS = 3
PARTITIONS = 2
RECORDS_PER_S = 40
GRACE_S = 120
TOPICS = [f"chain-{number}" for number in range(LINKS + 1)]


def test_every_record_passes_every_link_exactly_once(tmp_path: Path) -> None:
    with mortal(tmp_path) as broker:
        count = int(seconds() * RECORDS_PER_S)
        topics.make_topics(broker.bootstrap, TOPICS, PARTITIONS)
        topics.fill(broker.bootstrap, TOPICS[0], PARTITIONS, count)
        chain = Chain(broker)
        try:
            chain.run(count)
        finally:
            chain.end()
        check_records(broker.bootstrap, count)
        check_offsets(broker.bootstrap)
        assert broker.kills > 0 and chain.kills > 0


def check_records(bootstrap: str, count: int) -> None:
    expected = [str(number) for number in range(count)]
    for topic in TOPICS[1:]:
        assert topics.values(bootstrap, topic, PARTITIONS, topics.COMMITTED) == [expected] * PARTITIONS
        everything = topics.values(bootstrap, topic, PARTITIONS, topics.UNCOMMITTED)
        assert [set(some) for some in everything] == [set(expected)] * PARTITIONS
        assert sum(map(len, everything)) > count * PARTITIONS  # what was aborted


def check_offsets(bootstrap: str) -> None:
    """A group stands behind the last record that it has passed on, or behind the marker after that."""
    for number, topic in enumerate(TOPICS[:-1]):
        places = topics.committed(bootstrap, f"link-{number}", topic, PARTITIONS)
        last = [some[-1].offset for some in topics.read(bootstrap, topic, PARTITIONS, topics.COMMITTED)]
        assert all(place > offset for place, offset in zip(places, last, strict=True)), f"link-{number} has passed on {last}, not {places}"


class Chain:
    """The links, started again whenever they have ended."""

    def __init__(self, broker: MortalBroker) -> None:
        self.kills = 0
        self._broker = broker
        self._chance = random.Random(seed())
        self._links = [self._start(number) for number in range(LINKS)]

    def run(self, count: int) -> None:
        """Until all has arrived at the end of the chain; kills for some time, then lets it come to its end, as long as anything arrives."""
        began = time.monotonic()
        next_kill = began + 3
        arrived, last_arrival = 0, began + seconds()
        with killing(self._broker, 3, 6) as enough:
            while True:
                now = time.monotonic()
                if now > began + seconds():
                    enough.set()
                    before, arrived = arrived, self._arrived()
                    if arrived == count * PARTITIONS:
                        return
                    if arrived > before:
                        last_arrival = now
                elif now > next_kill:
                    self._links[self._chance.randrange(LINKS)].kill()
                    self.kills += 1
                    next_kill = now + self._chance.uniform(1, 4)
                assert now < last_arrival + GRACE_S, f"only {arrived} of {count * PARTITIONS} records have arrived"
                self._revive()
                time.sleep(0.2)

    def end(self) -> None:
        for link in self._links:
            link.kill()
            link.wait()

    def _arrived(self) -> int:
        return sum(map(len, topics.read(self._broker.bootstrap, TOPICS[-1], PARTITIONS, topics.COMMITTED)))

    def _revive(self) -> None:
        for number, link in enumerate(self._links):
            if link.poll() is not None:
                self._links[number] = self._start(number)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        words = [self._broker.bootstrap, f"link-{number}", TOPICS[number], TOPICS[number + 1], str(self._chance.random())]
        return subprocess.Popen([sys.executable, str(LINK), *words], stderr=subprocess.DEVNULL)
