"""A dead or wrong address: the driver says at the first plan, in the first line, what happened, where, and which option to set."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from barnabas import testing
from pyspark_barnabas.errors import DataSourceError
from pyspark_barnabas.read.read_options import ReadOptions
from tests import certificates
from tests.spark.reader_world import planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# How long the first answer is waited for; more only where a busy machine has not found out why there is none.
PATIENCE_MS = (500, 2_000, 10_000, 60_000)
ASKED = r"Are the brokers running, and is the option 'kafka\.bootstrap\.servers' right\?"
REFUSED = r"localhost:\d+ \(kafka\.bootstrap\.servers\) refused the connection: no broker listens on this port\. " + ASKED

Address = tuple[str, dict[str, str]]


@contextmanager
def refused() -> Generator[Address, None, None]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"localhost:{port}", {}


@contextmanager
def unknown() -> Generator[Address, None, None]:
    yield "no-such-host.invalid:9092", {}


@contextmanager
def dropped() -> Generator[Address, None, None]:
    """A listening socket whose backlog is full: the system drops further attempts, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}", {"kafka.socket.connection.setup.timeout.ms": "100"}
        for each in waiting:
            each.close()


@contextmanager
def plain_port() -> Generator[Address, None, None]:
    with testing.broker() as broker:
        yield broker.bootstrap_servers, {"kafka.security.protocol": "SSL"}


@contextmanager
def tls_port(directory: Path) -> Generator[Address, None, None]:
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.make(directory).server_store),
    }
    with testing.broker(config=settings) as broker:
        yield broker.bootstrap_servers, {}


CASES: dict[str, str] = {
    "refused": REFUSED,
    "unknown": r"^Option 'kafka\.bootstrap\.servers': .*the host name no-such-host\.invalid is not known",
    "dropped": r"127\.0\.0\.1:\d+ \(kafka\.bootstrap\.servers\) did not answer within \d+ ms "
    r"\(kafka\.socket\.connection\.setup\.timeout\.ms\): is a firewall in the way, or the host down\? " + ASKED,
    "plain_port": r"closed the connection during the TLS handshake: if the port does not speak TLS set kafka\.security\.protocol=PLAINTEXT",
    "tls_port": r"if the broker speaks TLS on this port set kafka\.security\.protocol=SSL",
}


def first_told(attempt: Callable[[int], None], kind: type[Exception], reason: str) -> str:
    """The first line of what is raised, with the shortest patience that was enough to find out the reason."""
    for patience_ms in PATIENCE_MS:
        with pytest.raises(kind) as caught:
            attempt(patience_ms)
        line = str(caught.value).partition("\n")[0]
        if re.search(reason, line):
            return line
    raise AssertionError(line)


@pytest.mark.parametrize("case", CASES)
def test_planning_says_why_nobody_answers(case: str, tmp_path: Path) -> None:
    places = {"refused": refused, "unknown": unknown, "dropped": dropped, "plain_port": plain_port}
    with tls_port(tmp_path) if case == "tls_port" else places[case]() as (bootstrap, options):

        def plan(patience_ms: int) -> None:
            timeouts = {"kafka.default.api.timeout.ms": patience_ms, "kafka.request.timeout.ms": patience_ms, "fetchOffset.numRetries": 1}
            planned(bootstrap, {"subscribe": "t", **options, **timeouts})

        first_told(plan, DataSourceError, CASES[case])


def test_the_first_answer_is_waited_for_ten_seconds_unless_told_otherwise() -> None:
    options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}
    assert ReadOptions.of(options).first_answer_ms == 10_000
    assert ReadOptions.of({**options, "fetchOffset.numRetries": "5"}).first_answer_ms is None


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(2).selectExpr("cast(id as string) as value")


def write(spark: SparkSession, bootstrap: str, **options: Any) -> None:
    rows(spark).write.format("barnabas").options(**{"kafka.bootstrap.servers": bootstrap, "topic": "t", **options}).mode("append").save()


def read_stream(spark: SparkSession, bootstrap: str, directory: Path, **options: Any) -> None:
    reader = spark.readStream.format("barnabas").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": "t", **options})
    sink = reader.load().writeStream.format("noop").option("checkpointLocation", str(directory))
    sink.trigger(availableNow=True).start().awaitTermination()


def write_stream(spark: SparkSession, bootstrap: str, directory: Path, **options: Any) -> None:
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load().selectExpr("cast(value as string) as value")
    sink = numbers.writeStream.format("barnabas").options(**{"kafka.bootstrap.servers": bootstrap, "topic": "t", **options})
    sink.option("checkpointLocation", str(directory)).trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize("use", ["read", "read_stream", "write", "write_stream", "exactly_once"])
def test_every_use_names_the_address_in_the_first_line(spark: SparkSession, tmp_path: Path, use: str) -> None:
    with refused() as (bootstrap, _):

        def attempt(patience_ms: int) -> None:
            reading = {"kafka.default.api.timeout.ms": patience_ms, "kafka.request.timeout.ms": patience_ms, "fetchOffset.numRetries": 1}
            writing = {"kafka.max.block.ms": patience_ms}
            directory = tmp_path / str(patience_ms)
            if use == "read":
                options: dict[str, str | int] = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", **reading}
                spark.read.format("barnabas").options(**options).load().count()
            elif use == "read_stream":
                read_stream(spark, bootstrap, directory, **reading)
            elif use == "write":
                write(spark, bootstrap, **writing)
            else:
                once = {"exactlyOnce": "true", "transactionalIdPrefix": "p"} if use == "exactly_once" else {}
                write_stream(spark, bootstrap, directory, **writing, **once)

        line = first_told(attempt, PySparkException, f"ClusterError: The cluster at {bootstrap} did not answer.*{REFUSED}")
        option = "kafka.default.api.timeout.ms" if use.startswith("read") else "kafka.max.block.ms"
        assert f"'{option}'" in line


def test_a_cluster_that_has_answered_once_is_waited_for_by_the_tasks(spark: SparkSession) -> None:
    with testing.broker(topics=["t"]) as broker:
        write(spark, broker.bootstrap_servers, **{"kafka.max.block.ms": 60_000})
        address = broker.bootstrap_servers
    with pytest.raises(PySparkException) as caught:
        write(spark, address, **{"kafka.max.block.ms": 500, "kafka.request.timeout.ms": 400, "kafka.delivery.timeout.ms": 500})
    assert "ClusterError" not in str(caught.value)
