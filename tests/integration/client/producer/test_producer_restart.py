"""An idempotent producer while its broker is killed and started again: each record once, in order; transactions whole or not at all."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.producer import Producer
from tests import broker
from tests.integration.client.producer.test_producer import values

WAIT_S = 60
QUICK: dict[str, Any] = {"reconnect_backoff_max_ms": 100, "retry_backoff_ms": 20, "request_timeout_ms": 5000, "delivery_timeout_ms": 60000}


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def killed_at_the_end(data: Path, port: int) -> Generator[str, None, None]:
    """A broker that ends as a machine does that loses its power supply: without a word."""
    command = [sys.executable, "-m", "barnabas", "up", "--no-console", "--port", str(port), "--data", str(data)]
    with broker.started([*command, "--override", "transaction.state.log.num.partitions=1"], broker.READY, broker.START_TIMEOUT_S):
        yield f"127.0.0.1:{port}"


def test_each_record_arrives_once_and_in_order(tmp_path: Path, port: int) -> None:
    enough, done = threading.Event(), threading.Event()
    count = 3000

    def send(producer: Producer) -> None:
        for number in range(count):
            producer.send("t", b"%06d" % number, partition=0)
            if number == count // 3:
                enough.set()
        producer.flush()
        done.set()

    with killed_at_the_end(tmp_path, port) as bootstrap:
        producer = Producer(bootstrap_servers=bootstrap, batch_size=500, **QUICK)
        producer.send("t", b"first", partition=0).result(WAIT_S)
        thread = threading.Thread(target=send, args=(producer,))
        thread.start()
        assert enough.wait(WAIT_S)
    with killed_at_the_end(tmp_path, port) as bootstrap:
        assert done.wait(WAIT_S)
        thread.join()
        producer.close()
        assert values(bootstrap, "t") == [b"first", *(b"%06d" % number for number in range(count))]


def test_a_transaction_survives_its_coordinator(tmp_path: Path, port: int) -> None:
    with killed_at_the_end(tmp_path, port) as bootstrap:
        producer = Producer(bootstrap_servers=bootstrap, transactional_id="x", **QUICK)
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"before")
        producer.begin_transaction()
        producer.send("t", b"across").result(WAIT_S)
    with killed_at_the_end(tmp_path, port) as bootstrap:
        producer.send("t", b"after")
        producer.commit_transaction()
        with producer.transaction():
            producer.send("t", b"last")
        producer.close()
        assert values(bootstrap, "t") == [b"before", b"across", b"after", b"last"]
