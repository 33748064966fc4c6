"""Tools without --bootstrap-server find their cluster, and the shell completes names that this cluster knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics.topics import NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.topic_partition import TopicPartition
from tests import broker


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a topic, and a group that has committed an offset in it."""
    with broker.running(tmp_path_factory.mktemp("data")) as address:
        with Admin({"bootstrap.servers": address}) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)]).all()
        with Consumer({"bootstrap.servers": address, "group.id": "billing"}) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.seek_to_beginning([TopicPartition("orders", 0)])
            consumer.position(TopicPartition("orders", 0))
            consumer.commit_sync()
        yield address


def test_the_variable_names_the_cluster(bootstrap: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", bootstrap)
    assert cli.main(["topics", "--list", "--exclude-internal"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "orders\n"
    assert captured.err == f"barnabas: no --bootstrap-server: using {bootstrap} from $BARNABAS_BOOTSTRAP_SERVERS\n"


def test_the_file_names_the_cluster_and_its_settings(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "barnabas" / "client.properties"
    path.parent.mkdir()
    path.write_text(f"bootstrap.servers={bootstrap}\nsecurity.protocol=PLAINTEXT\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BARNABAS_BOOTSTRAP_SERVERS", raising=False)
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().err == f"barnabas: no --bootstrap-server: using {bootstrap} from {path}\n"


def test_an_end_without_records_is_no_limit_for_the_connection(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["console-consumer", "--bootstrap-server", bootstrap, "--topic", "orders", "--timeout-ms", "1"]) == 0
    assert capsys.readouterr().err == "Processed a total of 0 messages\n"


@pytest.mark.parametrize("tool", ["get-offsets", "kafka-get-offsets", "kafka-run-class kafka.tools.GetOffsetShell"])
def test_the_end_of_a_topic_is_found_by_the_option_of_kafka_3(tool: str, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*tool.split(), "--broker-list", bootstrap, "--topic", "orders"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("orders:0:0\n", "")


@pytest.mark.parametrize(
    ("kind", "line", "name"),
    [
        ("topics", "console-consumer --topic", "orders"),
        ("groups", "consumer-groups --describe --group", "billing"),
        ("settings", "topics --create --topic new --config", "retention.ms"),
        ("settings", "configs --alter --entity-type brokers --entity-name 1 --add-config", "log.retention.ms"),
        ("entities", "configs --describe --entity-type topics --entity-name", "orders"),
        ("entities", "configs --describe --entity-type groups --entity-name", "billing"),
    ],
)
def test_names_are_asked_of_the_broker(
    kind: str, line: str, name: str, bootstrap: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", bootstrap)
    monkeypatch.setattr("logging.disable", lambda level: None)
    assert cli.main(["completion", "names", kind, *line.split()]) == 0
    assert name in capsys.readouterr().out.splitlines()
