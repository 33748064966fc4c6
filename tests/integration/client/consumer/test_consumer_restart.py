"""A consumer whose broker goes away and comes back: nothing is lost, and nothing read twice."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

from barnabas.client.consumer.consumer import Consumer
from tests import broker
from tests.integration.client.records import numbered, partitions, poll_until, produce


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_reading_goes_on_when_the_broker_is_back(tmp_path: Path) -> None:
    options = ["--port", str(free_port())]
    with ExitStack() as after:
        with broker.running(tmp_path, options) as bootstrap:
            topic = broker.topic_maker(bootstrap, "restart")("restart")
            produce(bootstrap, topic, numbered(700))
            consumer = after.enter_context(
                Consumer[bytes, bytes]({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, max_poll_records=100)
            )
            consumer.assign(partitions(topic, 1))
            seen = poll_until(consumer, 250)
        with broker.running(tmp_path, options):
            writer = threading.Thread(target=produce, args=(bootstrap, topic, numbered(300, 700)))
            writer.start()
            seen += poll_until(consumer, 1000 - len(seen))
            writer.join()
        assert [record.value for record in seen] == numbered(1000)


def test_a_group_goes_on_when_the_broker_is_back(tmp_path: Path) -> None:
    options = ["--port", str(free_port()), "--override", "group.initial.rebalance.delay.ms=0"]
    with ExitStack() as after:
        with broker.running(tmp_path, options) as bootstrap:
            topic = broker.topic_maker(bootstrap, "restart")("restart-group")
            produce(bootstrap, topic, numbered(100))
            consumer = after.enter_context(
                Consumer[bytes, bytes](
                    {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
                )
            )
            consumer.subscribe([topic])
            seen = poll_until(consumer, 100)
            consumer.commit_sync()
        with broker.running(tmp_path, options):
            produce(bootstrap, topic, numbered(100, 100))
            seen += poll_until(consumer, 100)
            consumer.commit_sync()
            consumer.close()
        assert [record.value for record in seen] == numbered(200)
