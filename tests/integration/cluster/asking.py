"""Each broker asked by itself what it knows of the cluster, on a connection of its own: a client library asks whichever broker it likes,
and may put its question to a dead one again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from barnabas.protocol.messages.metadata_request import MetadataRequest
from tests.cluster import BrokerProcess
from tests.integration.transactions.wire import Connection

VERSION = 7
PAUSE_S = 0.1


def metadata(broker: BrokerProcess) -> Any:
    """Its answer to Metadata for all topics, or None if it does not take connections."""
    try:
        connection = Connection(broker.address)
    except OSError:
        return None
    try:
        return connection.ask(MetadataRequest(None, False), VERSION)
    except OSError:
        return None
    finally:
        connection.close()


def all_in_sync(brokers: Iterable[BrokerProcess]) -> bool:
    """Each of them knows all of them, the same controller, and every replica of every partition in sync."""
    brokers_asked = list(brokers)
    answers = [metadata(broker) for broker in brokers_asked]
    return len({answer and answer.controller_id for answer in answers}) == 1 and all(
        answer is not None and _is_whole(answer, {broker.id for broker in brokers_asked}) for answer in answers
    )


def leaders(broker: BrokerProcess) -> dict[tuple[str, int], int]:
    answer = metadata(broker)
    assert answer is not None, f"broker {broker.id} does not answer"
    return {(topic.name, partition.partition_index): partition.leader_id for topic in answer.topics for partition in topic.partitions}


def isr(broker: BrokerProcess, name: str) -> set[int]:
    """Of the first partition of a topic; empty while the broker does not know it."""
    partitions = [partition for topic in metadata(broker).topics if topic.name == name for partition in topic.partitions]
    return next((set(partition.isr_nodes) for partition in partitions if partition.partition_index == 0), set())


def epochs(broker: BrokerProcess) -> dict[tuple[str, int], int]:
    """Of the leaders of all partitions: each election makes a new one."""
    return {
        (topic.name, partition.partition_index): partition.leader_epoch
        for topic in metadata(broker).topics
        for partition in topic.partitions
    }


class Answers:
    """Asks a broker again and again from a thread, and keeps how long it took it to answer, and when it last named each leader."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.led_until: dict[int, float] = {}
        self._broker = broker
        self._took: list[tuple[float, float]] = []  # asked and answered when
        self._asked: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def slowest(self, since: float) -> float:
        """Of the answers since then, and of the question that is not answered yet."""
        waiting, now = self._asked, time.monotonic()
        done = [answered - began for began, answered in reversed(self._took) if answered >= since]
        return max([*done, now - waiting if waiting is not None else 0.0])

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                connection = Connection(self._broker.address)
            except OSError:
                self._stop.wait(PAUSE_S)
                continue
            try:
                while not self._stop.is_set():
                    self._asked = time.monotonic()
                    answer = connection.ask(MetadataRequest(None, False), VERSION)
                    self._note_leaders(answer, time.monotonic())
                    self._took.append((self._asked, time.monotonic()))
                    self._asked = None
                    self._stop.wait(PAUSE_S)
            except OSError:
                self._asked = None  # it was killed
            finally:
                connection.close()

    def _note_leaders(self, answer: Any, now: float) -> None:
        for topic in answer.topics:
            for partition in topic.partitions:
                self.led_until[partition.leader_id] = now


def _is_whole(answer: Any, everybody: set[int]) -> bool:
    alive = {broker.node_id for broker in answer.brokers}
    return alive == everybody and all(set(partition.isr_nodes) == everybody for topic in answer.topics for partition in topic.partitions)
