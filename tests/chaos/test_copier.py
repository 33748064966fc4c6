"""Java's TransactionalMessageCopier copies a topic, aborts at random, and loses its broker every few seconds: the copy is exact."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests import kafka
from tests.chaos import topics
from tests.chaos.mortal import MortalBroker, java_jars, killing, mortal, seconds

pytestmark = [pytest.mark.java, pytest.mark.timeout(7200)]

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
INPUT, OUTPUT = "input", "output"
PARTITIONS = 2
RECORDS_PER_S = 100  # of each partition: about what a copier manages while it loses its broker now and then
TRANSACTION_SIZE = 20
GRACE_S = 120  # after the last kill


def test_the_copy_is_exact_in_every_partition(tmp_path: Path) -> None:
    with mortal(tmp_path) as broker:
        topics.make_topics(broker.bootstrap, [INPUT, OUTPUT], PARTITIONS)
        count = int(seconds() * RECORDS_PER_S)
        topics.fill(broker.bootstrap, INPUT, PARTITIONS, count)
        copy_all(broker)
        expected = [str(number) for number in range(count)]
        assert topics.values(broker.bootstrap, OUTPUT, PARTITIONS, topics.COMMITTED) == [expected] * PARTITIONS
        for everything in topics.values(broker.bootstrap, OUTPUT, PARTITIONS, topics.UNCOMMITTED):
            assert set(everything) == set(expected)
            assert len(everything) > count  # what was aborted is there too
        assert topics.committed(broker.bootstrap, "copiers", INPUT, PARTITIONS) == [count] * PARTITIONS
        assert broker.kills > 0


def copy_all(broker: MortalBroker) -> None:
    """Copiers until all is copied; one that gives up is started again, as an administrator would."""
    copiers = [start(broker.bootstrap, partition) for partition in range(PARTITIONS)]
    began = time.monotonic()
    try:
        with killing(broker, 2, 4) as enough:
            while any(copier.poll() != 0 for copier in copiers):
                elapsed_s = time.monotonic() - began
                if elapsed_s > seconds():
                    enough.set()
                assert elapsed_s < seconds() + GRACE_S, f"copiers ended with {[copier.poll() for copier in copiers]}"
                for partition, copier in enumerate(copiers):
                    if copier.poll() not in (None, 0):
                        copiers[partition] = start(broker.bootstrap, partition)
                time.sleep(0.2)
    finally:
        for copier in copiers:
            copier.kill()
            copier.wait()


def start(bootstrap: str, partition: int) -> subprocess.Popen[bytes]:
    options = {
        "--broker-list": bootstrap,
        "--input-topic": INPUT,
        "--input-partition": str(partition),
        "--output-topic": OUTPUT,
        "--consumer-group": "copiers",
        "--transactional-id": f"copier-{partition}",
        "--transaction-size": str(TRANSACTION_SIZE),
        "--transaction-timeout": "20000",
    }
    java = [*kafka.java(java_jars(), "-Xmx128m", kafka.QUIET), COPIER]
    words = [word for option in options.items() for word in option]
    return subprocess.Popen(
        [*java, *words, "--enable-random-aborts", "--use-group-metadata"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
