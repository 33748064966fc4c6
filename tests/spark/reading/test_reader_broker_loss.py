"""Planning while the broker is away: it waits and goes on, or says in the end whom it waited for. Without a Spark."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_barnabas.errors import ClusterError
from tests import broker
from tests.spark.reader_world import fill, places, planned, stream_reader


@contextmanager
def broker_at(port: int, data: Path) -> Generator[str, None, None]:
    """A broker that is killed when the block ends."""
    command = [sys.executable, "-m", "barnabas", "up", "--no-console", "--port", str(port), "--data", str(data)]
    with broker.started(command, broker.READY, broker.START_TIMEOUT_S):
        yield f"localhost:{port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_stream_goes_on_when_the_broker_comes_back(tmp_path: Path) -> None:
    port = free_port()
    with broker_at(port, tmp_path) as bootstrap:
        topic = broker.topic_maker(bootstrap, str(os.getpid()))("lost", 1)
        fill(bootstrap, topic, (3,))
        reader = stream_reader(bootstrap, {"subscribe": topic, "startingOffsets": "earliest", "kafka.group.id": "lost-readers"})
        start = reader.initialOffset()
        middle = reader.latestOffset(start, ReadAllAvailable())
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(reader.latestOffset, middle, ReadAllAvailable())
        with broker_at(port, tmp_path):
            assert pending.result(60) == middle
            fill(bootstrap, topic, (2,))
            end = reader.latestOffset(middle, ReadAllAvailable())
            assert places(part.value for part in reader.partitions(middle, end)) == [(0, 3, 5)]
            reader.stop()


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    bootstrap = f"localhost:{free_port()}"
    patience = {"kafka.default.api.timeout.ms": 300, "kafka.request.timeout.ms": 200, "fetchOffset.numRetries": 2}
    with pytest.raises(ClusterError, match=rf"The cluster at {bootstrap} did not answer.*'kafka\.bootstrap\.servers'.*numRetries"):
        planned(bootstrap, {"subscribe": "t", **patience})
