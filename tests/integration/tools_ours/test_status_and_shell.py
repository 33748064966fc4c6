"""The tools that look at a broker while it works: status, metadata-shell and replica-verification, each against a running one."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas import cli
from tests import broker, kafka_server


class Running(NamedTuple):
    bootstrap: str
    data: Path


class Printed(NamedTuple):
    code: int
    out: str
    err: str


def tool(*words: str, stdin: str = "") -> Printed:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = cli.main(list(words))
    return Printed(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module", params=["ours", pytest.param("kafka", marks=pytest.mark.java)])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running, None, None]:
    """A broker with a topic of one partition, five records in it, and a group that has read two of them."""
    data = tmp_path_factory.mktemp(request.param)
    with broker.running(data) if request.param == "ours" else kafka_server.running(data, 1) as bootstrap:
        at = ("--bootstrap-server", bootstrap)
        made = [
            tool("topics", *at, "--create", "--topic", "seen", "--partitions", "1"),
            tool("console-producer", *at, "--topic", "seen", stdin="a\nb\nc\nd\ne\n"),
            tool("consumer-groups", *at, "--group", "late", "--reset-offsets", "--to-offset", "2", "--topic", "seen", "--execute"),
        ]
        assert [process.code for process in made] == [0, 0, 0], made
        yield Running(bootstrap, data)


def test_status_counts_what_there_is(running: Running) -> None:
    printed = tool("status", "--bootstrap-server", running.bootstrap, "--json")
    health = json.loads(printed.out)
    assert printed.code == 0
    assert health["status"] == "HEALTHY"
    assert health["problems"] == []
    assert health["controller"] == 1
    assert [broker["id"] for broker in health["brokers"]] == [1]
    assert health["topics"] - health["internalTopics"] == 1
    assert health["partitions"] == health["replicas"] == health["brokers"][0]["leads"]
    assert health["features"]["group.version"] == "1"


def test_more_in_sync_replicas_than_there_are_replicas_are_not_asked_for(running: Running) -> None:
    """Neither by the broker, which takes a record with acks=all, nor by status."""
    at = ("--bootstrap-server", running.bootstrap)
    assert tool("topics", *at, "--create", "--topic", "one", "--replication-factor", "1", "--config", "min.insync.replicas=2").code == 0
    sent = tool("console-producer", *at, "--topic", "one", "--request-required-acks", "all", stdin="a\n")
    assert (sent.code, sent.err) == (0, "")
    offsets = tool("get-offsets", *at, "--topic", "one")
    health = json.loads(tool("status", *at, "--json").out)
    assert tool("topics", *at, "--delete", "--topic", "one").code == 0
    assert offsets.out == "one:0:1\n"
    assert (health["status"], health["underMinIsrPartitions"]) == ("HEALTHY", [])


def test_status_shows_how_far_a_group_is_behind(running: Running) -> None:
    health = json.loads(tool("status", "--bootstrap-server", running.bootstrap, "--json").out)
    (group,) = [listed for listed in health["groups"] if listed["name"] == "late"]
    assert group == {"name": "late", "type": "Classic", "state": "Empty", "members": 0, "lag": 3}


def test_status_shows_the_disks(running: Running) -> None:
    (log_dir,) = json.loads(tool("status", "--bootstrap-server", running.bootstrap, "--json").out)["logDirs"]
    assert log_dir["path"].startswith(str(running.data))
    assert log_dir["bytes"] > 0
    assert 0 < log_dir["freeBytes"] < log_dir["volumeBytes"]


def test_status_is_one_screen_for_people(running: Running) -> None:
    printed = tool("status", "--bootstrap-server", running.bootstrap)
    assert printed.out.startswith("Cluster ")
    assert "HEALTHY" in printed.out.splitlines()[0]
    assert "\x1b" not in printed.out
    assert len(printed.out.splitlines()) < 24


def test_status_looks_again_until_it_is_stopped(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("barnabas.tools.status.time.sleep", wait)
    printed = tool("status", "--bootstrap-server", running.bootstrap, "--watch", "7", "--json")
    assert printed.code == 130
    assert waits == [7, 7]
    assert [json.loads(line)["status"] for line in printed.out.splitlines()] == ["HEALTHY", "HEALTHY"]


def test_replicas_are_compared_once(running: Running) -> None:
    printed = tool("replica-verification", "--broker-list", running.bootstrap, "--topics-include", "seen", "--time", "-2", "--once")
    assert printed.code == 0
    assert printed.out.endswith(": verification process is started\n")


def test_no_topics_are_an_error(running: Running) -> None:
    printed = tool("replica-verification", "--broker-list", running.bootstrap, "--topics-include", "nowhere")
    assert (printed.code, printed.out) == (1, "")
    assert printed.err == "No topics found. [topics-include] if specified, is either filtering out all topics or there is no topic.\n"


@pytest.mark.parametrize("running", ["ours"], indirect=True)  # Apache Kafka keeps its metadata in a log of its own
def test_the_metadata_of_a_running_broker_can_be_looked_at(running: Running) -> None:
    printed = tool("metadata-shell", "--data", str(running.data), "cat", "/brokers/topics/seen")
    assert json.loads(printed.out)["partitions"] == {"0": [1]}
    assert tool("topics", "--bootstrap-server", running.bootstrap, "--list", "--topic", "seen").out == "seen\n"


def test_where_nobody_answers_status_says_what_to_check() -> None:
    printed = tool("status", "--bootstrap-server", "127.0.0.1:1")
    assert (printed.code, printed.out) == (1, "")
    assert "127.0.0.1:1 (--bootstrap-server) refused the connection: no broker listens on this port" in printed.err
