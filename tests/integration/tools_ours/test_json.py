"""What tools find is one JSON document with --json, has colours on a terminal, and is plain text in a pipe."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import cli
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.producer.producer import Producer
from tests import broker

ESCAPE = b"\x1b["


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a topic of three records and a group that has read them."""
    with broker.running(tmp_path_factory.mktemp("data")) as address:
        with Producer({"bootstrap.servers": address}) as producer:
            for number in range(3):
                producer.send("told", b"%d" % number).result(30)
        consumer: Consumer[Any, Any] = Consumer(
            {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        )
        with consumer:
            consumer.subscribe(["told"])
            while not consumer.poll(0.1):
                pass
            consumer.commit_sync()
        yield address


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("topics --bootstrap-server B --list", None),
        (
            "topics --bootstrap-server B --describe --topic told",
            {"topic", "topicId", "internal", "replicationFactor", "configs", "partitions"},
        ),
        ("configs --bootstrap-server B --describe --entity-type topics --entity-name told", {"type", "name", "configs"}),
        ("configs --bootstrap-server B --describe --entity-type brokers", {"type", "name", "configs"}),
        ("get-offsets --bootstrap-server B --topic told", None),
        ("consumer-groups --bootstrap-server B --list", {"group", "type", "state"}),
        ("consumer-groups --bootstrap-server B --describe --group readers", None),
        ("consumer-groups --bootstrap-server B --describe --group readers --state", None),
        ("groups --bootstrap-server B --list", None),
        ("transactions --bootstrap-server B list", None),
        ("features --bootstrap-server B describe", {"epoch", "features"}),
        ("features --bootstrap-server B version-mapping", None),
        ("features --bootstrap-server B feature-dependencies --feature group.version=1", {"group.version=1"}),
        ("cluster cluster-id --bootstrap-server B", {"clusterId"}),
        ("cluster list-endpoints --bootstrap-server B", {"id", "host", "port", "rack", "type", "fenced"}),
        (
            "leader-election --bootstrap-server B --election-type preferred --topic told --partition 0",
            {"elected", "alreadyElected", "failed"},
        ),
        ("preferred-replica-election --bootstrap-server B", {"elected", "alreadyElected", "failed"}),
        ("broker-api-versions --bootstrap-server B", None),
        ("status --bootstrap-server B", None),
    ],
)
def test_what_is_found_is_one_json_document(
    command: str, fields: set[str] | None, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command.replace(" B", f" {bootstrap}").split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert fields is None or set(document[0] if isinstance(document, list) else document) == fields


@pytest.mark.parametrize(
    "command",
    [
        "topics --bootstrap-server B --describe --topic told",
        "consumer-groups --bootstrap-server B --describe --group readers",
        "features --bootstrap-server B describe",
        "cluster list-endpoints --bootstrap-server B",
        "status --bootstrap-server B",
    ],
)
def test_a_terminal_sees_colours_and_a_pipe_plain_text(command: str, bootstrap: str) -> None:
    words = [sys.executable, "-m", "barnabas", *command.replace(" B", f" {bootstrap}").split()]
    plain = subprocess.run(words, capture_output=True, timeout=60, check=True).stdout
    assert ESCAPE not in plain
    assert ESCAPE in _on_a_terminal(words)


def _on_a_terminal(words: list[str]) -> bytes:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux tells the end of a terminal so
                break
            if not part:
                break
            printed += part
        process.wait(60)
    os.close(ours)
    return printed


def test_a_wrong_election_is_told_in_json_and_in_the_exit_code(bootstrap: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--election-type", "preferred", "--topic", "absent", "--partition", "0", "--json"]
    assert cli.main(["leader-election", *arguments]) == 1
    assert list(json.loads(capsys.readouterr().out)["failed"]) == ["absent-0"]
