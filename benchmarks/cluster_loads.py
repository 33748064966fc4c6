"""What is done to a cluster while it is measured: records written with acks of all, as fast as it goes or at an even pace, and brokers
that are killed and restarted meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import pairwise
from random import Random

from confluent_kafka import KafkaError, Message, Producer

from barnabas.metadata import paths
from barnabas.metadata.tree import Exists
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from benchmarks.cluster_peers import POLL_S, WAIT_S, Trio

PACE_S = 0.005  # between two records for the same partition
DELIVERY_S = 120


class SteadyWriter:
    """Writes to all partitions of a topic at an even pace from a thread, and remembers when each record was acknowledged."""

    def __init__(self, trio: Trio, topic: str, partitions: int) -> None:
        self.acknowledged: list[list[float]] = [[] for _ in range(partitions)]  # when, for each partition
        self.failures: list[str] = []
        self._topic = topic
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": trio.bootstrap,
                "acks": "all",
                "enable.idempotence": "true",
                "delivery.timeout.ms": DELIVERY_S * 1000,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> SteadyWriter:
        self._thread.start()
        for partition in range(len(self.acknowledged)):
            self.wait_after(partition, time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._producer.flush(DELIVERY_S):
            self.failures.append("not everything was acknowledged in time")

    def wait_after(self, partition: int, since: float) -> float:
        """When the first record was acknowledged that comes after this moment."""
        times = self.acknowledged[partition]
        deadline = time.perf_counter() + DELIVERY_S
        while not times or times[-1] <= since:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"Nothing was acknowledged in {DELIVERY_S} s; failures: {self.failures[:3]}")
            time.sleep(PACE_S)
        return next(time_s for time_s in times if time_s > since)

    def longest_pause(self) -> float:
        """Between two acknowledgements of the same partition."""
        return max(later - sooner for times in self.acknowledged for sooner, later in pairwise(times))

    def _write(self) -> None:
        while not self._stop.wait(PACE_S):
            for partition in range(len(self.acknowledged)):
                self._producer.produce(self._topic, b"v" * 100, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged[message.partition() or 0].append(time.perf_counter())


def restart_in_turn(trio: Trio, topic: str) -> None:
    """Each broker is asked to stop, and started again; the next one goes when all is in sync."""
    for broker in trio.brokers.values():
        broker.stop()
        broker.start()
        trio.wait_complete()
        trio.wait_in_sync([topic])


def leader_failover_s(trio: Trio, writer: SteadyWriter, topic: str) -> float:
    """From SIGKILL of the leader of the first partition to the next acknowledged write; the broker is brought back afterwards."""
    leader_id = trio.metadata(next(iter(trio.brokers)), [topic]).topics[0].partitions[0].leader_id
    leader = trio.brokers[leader_id]
    killed = time.perf_counter()
    leader.kill()
    seconds = writer.wait_after(0, killed + PACE_S) - killed
    trio.wait_gone(leader_id)
    leader.start()
    trio.wait_complete()
    trio.wait_in_sync([topic])
    return seconds


async def controller_failover_s(trio: Trio, topics: list[str]) -> tuple[float, float]:
    """From SIGKILL of the controller until both others name a new one and a leader for every partition; and the same since the session of
    the dead one has ended. It stays dead."""
    tree = ZooKeeperTree(ZooKeeperOptions(parse(trio.zookeeper), random=Random(0)))
    session = await tree.open_session(lambda event: None)
    dead = trio.controller_id()
    killed = time.perf_counter()
    trio.brokers[dead].kill()
    while (await session.handle([Exists(paths.broker_id(dead))]))[0].value is not None:
        await asyncio.sleep(0.01)
    expired = time.perf_counter()
    for broker_id in trio.brokers.keys() - {dead}:
        _wait_led(trio, broker_id, topics, dead)
    done = time.perf_counter()
    await tree.close()
    return done - killed, done - expired


def _wait_led(trio: Trio, broker_id: int, topics: list[str], dead: int) -> None:
    deadline = time.perf_counter() + WAIT_S
    while True:
        answer = trio.metadata(broker_id, topics)
        leaders = {partition.leader_id for topic in answer.topics for partition in topic.partitions}
        if answer.controller_id not in (dead, -1) and not leaders & {dead, -1}:
            return
        if time.perf_counter() > deadline:
            raise RuntimeError(f"{trio.name}: there are partitions without a leader {WAIT_S} s after the controller was killed")
        time.sleep(POLL_S)
