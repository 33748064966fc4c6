"""A broker that may open few descriptors, and more clients than it has room for: it goes on, serves those it has, and says what to do."""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from benchmarks.wire import Client
from tests.integration.test_server_process import DEADLINE_S, Running, running, up, wait_for

LIMIT = 160  # descriptors
CONNECTIONS = 300
PARTITIONS = 30  # whose files are more than the broker may keep open
ROUNDS = 10
CHECKPOINTS = 3
ADVICE = "raise the limit of open files"
# The limit holds from the first instruction on, as with `ulimit -n` or LimitNOFILE.
SCRIPT = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
sys.argv[0] = "barnabas"
runpy.run_module("barnabas", run_name="__main__")
"""


@contextmanager
def limited(tmp_path: Path) -> Generator[Running, None, None]:
    options = up(tmp_path, "--override", "replica.high.watermark.checkpoint.interval.ms=100")
    with running(tmp_path, *options, command=(sys.executable, "-c", SCRIPT)) as broker:
        yield broker


def connecting(broker: Running) -> socket.socket:
    """A connection that is made, or waits in the kernel's backlog."""
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex((broker.host, broker.port))
    return made


def fill(broker: Running, flood: ExitStack) -> None:
    """Connects until the broker says that there is no room; the kernel drops what does not fit into its backlog."""
    for _ in range(CONNECTIONS):
        made = flood.enter_context(connecting(broker))
        until(lambda made=made: is_connected(made) or ADVICE in broker.log.read_text())  # type: ignore[misc]
    wait_for(broker.log, ADVICE)


def is_connected(made: socket.socket) -> bool:
    poll = select.poll()  # select() refuses descriptors above 1023, and a process of a long test run has that many
    poll.register(made, select.POLLOUT)
    return bool(poll.poll(0))


def written(client: Client, partition: int) -> int:
    data = PartitionProduceData(partition, Records(build([(0, None, b"x" * 5_000, ())])))
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData("t", partition_data=[data])])
    code: int = client.ask(request, 9).responses[0].partition_responses[0].error_code
    return code


def until(condition: Callable[[], bool]) -> None:
    end = monotonic() + DEADLINE_S
    while not condition():
        assert monotonic() < end
        select.select([], [], [], 0.01)


def wait_for_checkpoints(broker: Running, tmp_path: Path) -> None:
    """Until the high watermarks have been written a few times; a broker that ends meanwhile is not waited for."""
    path = tmp_path / "data" / "replication-offset-checkpoint"
    for _ in range(CHECKPOINTS):
        before = modified_ns(path)
        until(lambda before=before: modified_ns(path) != before or broker.process.poll() is not None)  # type: ignore[misc]


def modified_ns(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def test_a_broker_at_its_limit_of_descriptors_goes_on_and_says_what_to_do(tmp_path: Path) -> None:
    with limited(tmp_path) as broker, Client(broker.host, broker.port) as client, ExitStack() as flood:
        client.create_topics(["t"], PARTITIONS)
        fill(broker, flood)
        for _ in range(ROUNDS):
            assert [written(client, partition) for partition in range(PARTITIONS)] == [0] * PARTITIONS
        client.create_topics(["made-at-the-limit"], 10)
        wait_for_checkpoints(broker, tmp_path)
        assert broker.process.poll() is None, broker.log.read_text()[-2_000:]
        flood.close()
        with Client(broker.host, broker.port, DEADLINE_S) as late:  # there is room again
            assert isinstance(late.metadata(["t"]), MetadataResponse)
        assert broker.stop() == 0
        log = broker.log.read_text()
        assert "Stopping serving logs" not in log and "Too many open files" not in log


def test_a_flood_of_connections_does_not_end_a_broker_that_has_no_file_open(tmp_path: Path) -> None:
    """There is nothing that could be closed to write a checkpoint."""
    with limited(tmp_path) as broker, Client(broker.host, broker.port) as client:
        client.create_topics(["t"])
        assert broker.stop() == 0
    with limited(tmp_path) as broker, ExitStack() as flood:
        fill(broker, flood)
        wait_for_checkpoints(broker, tmp_path)
        assert broker.process.poll() is None, broker.log.read_text()[-2_000:]
        flood.close()
        assert broker.stop() == 0
