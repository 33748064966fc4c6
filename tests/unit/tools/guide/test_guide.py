"""What `barnabas TOOL` adds to a tool: the default cluster, help on stdout, suggestions. Kafka's names of the tools get none of it."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.tools import console
from barnabas.tools.command_line.grammar import grammar_of
from barnabas.tools.connecting.default_cluster import with_default_cluster
from barnabas.tools.connecting.reachable import patience_ms

BIN = Path(__file__).parents[4] / "bin"


def completed(line: str, environ: dict[str, str], *, runs_alone: bool = False) -> str:
    """The command line that the tool reads."""
    tool, *words = line.split()
    grammar = grammar_of(import_module(f"barnabas.tools.{tool.replace('-', '_')}"))
    return " ".join(with_default_cluster(grammar, words, environ, runs_alone=runs_alone)[0])


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose configuration directory is empty."""
    (tmp_path / "barnabas").mkdir()
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def write(home: dict[str, str], text: str) -> str:
    path = Path(home["XDG_CONFIG_HOME"], "barnabas", "client.properties")
    path.write_text(text)
    return str(path)


def test_without_anything_it_is_this_machine(home: dict[str, str]) -> None:
    assert completed("topics --list", home) == "--bootstrap-server localhost:9092 --list"


def test_the_variable_comes_before_the_file(home: dict[str, str]) -> None:
    write(home, "bootstrap.servers=file:1")
    assert completed("topics --list", home) == "--bootstrap-server file:1 --list"
    assert completed("topics --list", home | {"BARNABAS_BOOTSTRAP_SERVERS": "variable:1"}) == "--bootstrap-server variable:1 --list"


def test_the_settings_of_the_file_are_used_with_its_address(home: dict[str, str]) -> None:
    path = write(home, "bootstrap.servers=file:1\nsecurity.protocol=SSL")
    assert completed("topics --list", home) == f"--bootstrap-server file:1 --command-config {path} --list"
    assert completed("preferred-replica-election --path-to-json-file f", home).startswith(
        f"--bootstrap-server file:1 --admin.config {path}"
    )


def test_the_settings_of_the_file_are_not_sent_to_another_address(home: dict[str, str]) -> None:
    write(home, "bootstrap.servers=file:1\nsasl.jaas.config=secret")
    assert completed("topics --list", home | {"BARNABAS_BOOTSTRAP_SERVERS": "variable:1"}) == "--bootstrap-server variable:1 --list"


def test_settings_that_are_not_used_are_named(home: dict[str, str]) -> None:
    path = write(home, "bootstrap.servers=file:1\nsasl.jaas.config=secret")
    variable = home | {"BARNABAS_BOOTSTRAP_SERVERS": "variable:1"}
    grammar = grammar_of(import_module("barnabas.tools.topics"))
    _, line = with_default_cluster(grammar, ["--list"], variable)
    using = "barnabas: no --bootstrap-server: using variable:1 from $BARNABAS_BOOTSTRAP_SERVERS"
    assert line == f"{using}, without the settings of {path}, which are for file:1"
    _, line = with_default_cluster(grammar, ["--list", "--command-config", "other"], variable)
    assert line == using, "the settings are those of another file"


def test_a_console_whose_file_names_clusters_gets_no_address(home: dict[str, str]) -> None:
    grammar, words = grammar_of(console), ["--config", "console.toml"]
    assert with_default_cluster(grammar, words, home, instead=console.INSTEAD_OF_ADDRESS) == (words, "")
    assert "--bootstrap-server" in with_default_cluster(grammar, ["--port", "1"], home, instead=console.INSTEAD_OF_ADDRESS)[0]


def test_a_file_without_an_address_is_for_any_default(home: dict[str, str]) -> None:
    path = write(home, "security.protocol=SSL")
    variable = home | {"BARNABAS_BOOTSTRAP_SERVERS": "variable:1"}
    assert completed("topics --list", variable) == f"--bootstrap-server variable:1 --command-config {path} --list"


def test_a_file_on_the_command_line_is_used_instead(home: dict[str, str], tmp_path: Path) -> None:
    write(home, "bootstrap.servers=file:1\nsecurity.protocol=SSL")
    (tmp_path / "mine").write_text("bootstrap.servers=mine:1")
    assert completed(f"topics --command-config {tmp_path}/mine --list", home).startswith("--bootstrap-server mine:1 --command-config")
    assert completed("topics --command-config other --list", home) == "--bootstrap-server file:1 --command-config other --list"


@pytest.mark.parametrize(
    "line",
    [
        "topics --bootstrap-server a:1 --list",
        "topics --bootstrap-server=a:1 --list",
        "topics -bootstrap-server a:1 --list",
        "topics --zookeeper a:1 --list",
        "topics --version",
        "topics",
        "cluster cluster-id -b a:1",
        "features --bootstrap-controller a:1 describe",
        "console-producer --broker-list a:1 --topic t",
        "get-offsets --broker-list a:1",
        "producer-perf-test --topic t --producer-props acks=1 bootstrap.servers=a:1",
        "consumer-groups --validate-regex x",
        "e2e-latency a:1 topic 100 1 100",
        "dump-log --files x",
        "up --port 1",
    ],
)
def test_a_command_line_that_needs_no_address_stays_as_it_is(line: str, home: dict[str, str]) -> None:
    assert completed(line, home) == " ".join(line.split()[1:])


def test_the_address_stands_where_the_tool_reads_it(home: dict[str, str]) -> None:
    address = "--bootstrap-server localhost:9092"
    assert completed("features --json describe", home) == f"{address} --json describe"
    assert completed("cluster list-endpoints --include-fenced-brokers", home) == f"list-endpoints {address} --include-fenced-brokers"
    assert completed("status", home, runs_alone=True) == address


class Told:
    def __init__(self, *words: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            self.code = cli.main(words)
        self.out, self.err = out.getvalue(), err.getvalue()


@pytest.mark.parametrize("words", [["topics"], ["features"], ["features", "describe"], ["up"], ["pipeline", "run"], ["status"]])
def test_help_is_on_stdout_and_no_failure(words: list[str]) -> None:
    guide = Told(*words, "--help")
    assert (guide.code, guide.err) == (0, "")
    assert "--" in guide.out


def test_help_of_kafkas_name_is_kafkas() -> None:
    guide = Told("kafka-topics", "--help")
    assert (guide.code, guide.out) == (1, "")
    assert "--under-replicated-partitions" in guide.err


def test_which_address_was_taken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", "host.invalid:9092")
    guide = Told("topics", "--list")
    assert guide.err.startswith("barnabas: no --bootstrap-server: using host.invalid:9092 from $BARNABAS_BOOTSTRAP_SERVERS\n")


def test_kafkas_name_of_a_tool_insists_on_an_address() -> None:
    guide = Told("kafka-topics", "--list")
    assert (guide.code, guide.err) == (1, "--bootstrap-server must be specified\n")


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("topisc --list", "barnabas: there is no tool 'topisc'; did you mean topics?"),
        ("topics --lst", "barnabas: did you mean --list? There is no option --lst"),
        ("topics --bootstrap-sevrer a:1 --list", "barnabas: did you mean --bootstrap-server? There is no option --bootstrap-sevrer"),
        ("up --prot 9092", "barnabas: did you mean --port? There is no option --prot"),
        ("pipeline rnu", "barnabas: did you mean run? There is no command rnu"),
        ("transactions --bootstrap-server a:1 lsit", "barnabas: did you mean list? There is no command lsit"),
        (
            "topics --bootstrap-server localhost:1 --create --topic t --config retention.mss=1",
            "barnabas: did you mean retention.ms? There is no setting retention.mss",
        ),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(line: str, suggestion: str) -> None:
    guide = Told(*line.split())
    assert guide.code != 0
    assert guide.err.splitlines()[-1] == suggestion


def test_kafkas_names_get_no_suggestion() -> None:
    assert Told("kafka-topics", "--lst").err == "lst is not a recognized option\n"


def test_a_value_is_no_misspelt_option() -> None:
    guide = Told("console-consumer", "--bootstrap-server", "a:1", "--topic", "--topci", "--nothing-like-it")
    assert "did you mean" not in guide.err


@pytest.mark.parametrize("script", sorted(path.name for path in BIN.glob("kafka-*.sh") if "server-st" not in path.name))
def test_kafkas_script_runs_the_tool_by_kafkas_name(script: str, tmp_path: Path) -> None:
    (tmp_path / "barnabas").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "barnabas").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / script).write_text((BIN / script).read_text())
    output = subprocess.run(
        ["sh", tmp_path / "bin" / script, "--x"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    tool = re.sub(r"\.sh$", "", script)
    assert output.stdout == f"{tool} --x\n"
    assert tool.removeprefix("kafka-") in cli.tool_names()


@pytest.mark.parametrize(
    ("line", "settings", "waited_ms"),
    [
        ("topics --list", {}, 10_000),
        ("topics --list", {"default.api.timeout.ms": "3000"}, 3_000),
        ("topics --list", {"request.timeout.ms": "4000"}, 4_000),
        ("consumer-groups --list --timeout 2000", {}, 2_000),
        ("console-consumer --topic t --timeout-ms 20", {}, 10_000),  # which is how long no record may come
        ("consumer-perf-test --topic t --timeout 20", {}, 10_000),
        ("reassign-partitions --execute --timeout 20", {}, 10_000),  # for moves to begin
        ("console-consumer --topic t --command-property default.api.timeout.ms=2000", {}, 2_000),
        ("console-producer --topic t --timeout 2000", {}, 10_000),  # which is linger.ms there
        ("console-producer --topic t --max-block-ms 2000", {}, 2_000),
    ],
)
def test_a_tool_waits_ten_seconds_for_a_broker_unless_it_is_told_otherwise(line: str, settings: dict[str, str], waited_ms: int) -> None:
    tool, *words = line.split()
    module = import_module(f"barnabas.tools.{tool.replace('-', '_')}")
    assert patience_ms(grammar_of(module), words, settings, getattr(module, "PATIENCE_OPTION", None)) == waited_ms


@pytest.mark.parametrize(
    "tool",
    [
        "topics --list",
        "get-offsets",
        "console-producer --topic t",
        "console-consumer --topic t",
        "status",
        "consumer-groups --list",
        "acls --list",
        "client-metrics --list",
        "configs --describe --entity-type topics",
        "reassign-partitions --list",
        "log-dirs --describe",
        "groups --list",
        "cluster cluster-id",
    ],
)
@pytest.mark.parametrize(
    ("address", "reason"),
    [("localhost", "the port is missing, write localhost:9092"), ("localhost:99999", "a port is a number from 0 to 65535")],
)
def test_an_address_without_a_right_port_is_told_in_one_line(tool: str, address: str, reason: str) -> None:
    guide = Told(*tool.split(), "--bootstrap-server", address)
    assert (guide.code, guide.out, guide.err) == (1, "", f"barnabas: --bootstrap-server {address}: {reason}\n")


def test_kafkas_name_of_a_tool_tells_it_as_kafkas_does() -> None:
    guide = Told("kafka-topics", "--list", "--bootstrap-server", "localhost")
    assert guide.err.startswith("Failed to create new KafkaAdminClient\nCaused by:")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_wait_on_a_terminal_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.tools.command_line.text._AFTER_S", 0.0)
    monkeypatch.setattr("barnabas.tools.command_line.text._REDRAW_S", 0.01)
    monkeypatch.setenv("COLUMNS", "200")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    terminal = Terminal()
    with redirect_stderr(terminal):
        assert cli.main(["consumer-groups", "--list", "--timeout", "1500", "--bootstrap-server", address]) == 1
    assert f" s: {address} (--bootstrap-server) refused the connection" in terminal.getvalue()
