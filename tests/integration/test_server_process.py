"""A broker as a process: how it says that it is ready, how it ends, and what it says when it cannot start."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.registry import APIS
from barnabas.tools.command_line.exit_codes import ExitCode
from benchmarks.generator import Batch, fetch_frame, produce
from benchmarks.wire import Client
from tests.ready import is_readable

DEADLINE_S = 120  # for what takes a second on a machine that is not busy
ROOT = Path(__file__).parents[2]
BROKER_LOGGER = 8
READY = re.compile(r"ready listeners=PLAINTEXT://(\[[^\]]*\]|[^:,]*):(\d+)\S* node\.id=([\d,]+) cluster\.id=(\S+) pid=(\d+)\n")


@dataclass
class Running:
    process: subprocess.Popen[str]
    host: str
    port: int
    cluster_id: str
    log: Path  # standard error

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host.strip("[]"), self.port), DEADLINE_S)


@contextmanager
def running(tmp_path: Path, *arguments: str, command: Sequence[str] = (sys.executable, "-m", "barnabas")) -> Generator[Running, None, None]:
    log = tmp_path / "stderr.txt"
    with log.open("w") as errors:
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        readable = is_readable(process.stdout, DEADLINE_S)
        ready = READY.fullmatch(process.stdout.readline()) if readable else None
        assert ready is not None, log.read_text()
        yield Running(process, ready[1], int(ready[2]), ready[4], log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def up(tmp_path: Path, *options: str) -> tuple[str, ...]:
    return ("up", "--port", "0", "--host", "127.0.0.1", "--data", str(tmp_path / "data"), *options)


def failed(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def call(connection: socket.socket, key: int, message: Message, version: int) -> Message:
    send(connection, key, message, version)
    size = int.from_bytes(receive(connection, 4), "big")
    api = APIS[key]
    _, reader = parse_response_header(receive(connection, size), api.response_header_version(version))
    return api.response.read(reader, version)


def send(connection: socket.socket, key: int, message: Message, version: int) -> None:
    connection.sendall(b"".join(request_frame(message, APIS[key], version, 1, "test")))


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "the broker closed the connection"
        data += more
    return data


def metadata(broker: Running, *topics: str) -> MetadataResponse:
    with broker.connect() as connection:
        requested = [MetadataRequestTopic(name=name) for name in topics]
        answer = call(connection, api_keys.METADATA, MetadataRequest(topics=requested, allow_auto_topic_creation=True), 9)
    assert isinstance(answer, MetadataResponse)
    return answer


def make_topic(broker: Running, name: str) -> int:
    """Asks for the topic, which makes it, until it is there and led; gives its partitions."""
    end = monotonic() + DEADLINE_S
    while True:
        (topic,) = metadata(broker, name).topics
        if topic.error_code == 0 and all(partition.error_code == 0 for partition in topic.partitions):
            return len(topic.partitions)
        assert monotonic() < end, topic


def wait_for(log: Path, text: str) -> None:
    """Until a line of the log has the text. A file cannot be waited for, so it is looked at every few milliseconds."""
    end = monotonic() + DEADLINE_S
    while text not in log.read_text():
        assert monotonic() < end, f"no {text!r} in:\n{log.read_text()}"
        select.select([], [], [], 0.01)


def test_the_ready_line_has_the_address_at_which_metadata_is_answered(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker:
        (node,) = metadata(broker).brokers
        assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", broker.port)


def test_standard_output_has_nothing_but_the_ready_line(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path, "--log-level", "debug")) as broker:
        assert broker.stop() == 0
        assert broker.process.stdout is not None
        assert broker.process.stdout.read() == ""


def test_the_banner_is_on_standard_error(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker:
        assert f"Barnabas is ready at 127.0.0.1:{broker.port}" in broker.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: int) -> None:
    with running(tmp_path, *up(tmp_path)) as broker:
        assert broker.stop(number) == ExitCode.STOPPED
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_an_idle_client_does_not_hold_it_up(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker, broker.connect() as connection:
        call(connection, api_keys.METADATA, MetadataRequest(topics=[]), 9)
        assert broker.stop() == ExitCode.STOPPED


def test_a_second_signal_cuts_the_waiting_short_and_is_still_clean(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path, "--log-level", "info")) as broker, broker.connect() as connection:
        make_topic(broker, "t")
        with Client(broker.host, broker.port) as producer:
            produce(producer, "t", Batch.of_bytes(1024, 900_000), seconds=0.5, in_flight=5)
        for _ in range(4):  # answers that this client never reads, and that no socket buffer holds
            connection.sendall(fetch_frame("t", 0, 30_000_000))
        broker.process.send_signal(signal.SIGTERM)
        wait_for(broker.log, "Stopping on SIGTERM")
        assert broker.stop() == ExitCode.STOPPED
        assert "Second stop signal" in broker.log.read_text()
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_the_same_data_is_the_same_cluster(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker:
        make_topic(broker, "t")
        cluster_id = broker.cluster_id
        broker.stop()
    with running(tmp_path, *up(tmp_path)) as broker:
        assert broker.cluster_id == cluster_id
        assert [(topic.name, topic.error_code) for topic in metadata(broker, "t").topics] == [("t", 0)]


def test_ipv6_works(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with running(tmp_path, "up", "--port", "0", "--host", "::1", "--data", str(tmp_path / "data")) as broker:
        assert broker.host == "[::1]"
        assert metadata(broker).brokers[0].host == "::1"


def test_a_server_properties_file_of_kraft_is_served(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=5\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\nnot.a.setting=1\n"
        f"log.dirs={tmp_path}/data\n"
    )
    with running(tmp_path, "server", str(file), "--override", "num.partitions=3") as broker:
        (node,) = metadata(broker).brokers
        assert node.node_id == 5
        assert make_topic(broker, "t") == 3
        log = broker.log.read_text()
    assert log.count("There is no KRaft quorum here") == log.count("The setting not.a.setting is not known") == 1
    assert log.count("The setting process.roles has no effect here, because there is no KRaft quorum") == 1


def test_a_log_in_json_is_json_line_by_line(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path, "--log-format", "json", "--log-level", "debug")) as broker:
        broker.stop()
        lines = [json.loads(line) for line in broker.log.read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()


# -- log files


def test_log_files_are_kafkas(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with running(tmp_path, *up(tmp_path, "--logs", str(logs))) as broker:
        make_topic(broker, "t")
        set_level(broker, "kafka.request.logger.Metadata", "DEBUG")
        metadata(broker, "t")
        wait_for(logs / "kafka-request.log", "Completed request:")
        set_level(broker, "kafka.request.logger.Metadata", None)
        requests = (logs / "kafka-request.log").read_text()
        metadata(broker, "t")
        assert broker.stop() == ExitCode.STOPPED
    line = requests.splitlines()[0]
    assert re.match(r"\[[-\d]+ [:\d]+,\d{3}\] DEBUG Completed request:\{", line)
    document = json.loads(line.partition("Completed request:")[2].rpartition(" (")[0])
    assert document["requestHeader"]["requestApiKeyName"] == "METADATA"
    assert document["request"]["topics"] == [{"name": "t"}]
    assert [topic["name"] for topic in document["response"]["topics"]] == ["t"]
    parts = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs")
    assert 0 < document["totalTimeMs"] < 1000 * DEADLINE_S
    assert sum(document[part] for part in parts) == pytest.approx(document["totalTimeMs"], abs=1)
    assert (logs / "kafka-request.log").read_text() == requests  # switched off again
    changes = (logs / "state-change.log").read_text()
    assert "Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=1, " in changes
    assert "[Broker id=1] Leader t-0 with topic id Some(" in changes
    assert "(kafka.controller.KafkaController)" in (logs / "controller.log").read_text()
    assert "(kafka.server.KafkaServer)" in (logs / "server.log").read_text()
    assert "Changed partition" not in broker.log.read_text() + (logs / "server.log").read_text()


def test_a_log_directory_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, err = failed(*up(tmp_path, "--logs", str(tmp_path / "file")))
    assert (code, out) == (ExitCode.DISK_UNUSABLE, "")
    (line,) = err.splitlines()
    assert line.startswith(f"barnabas: No log files can be written in {tmp_path}/file (")
    assert line.endswith("name another directory with --logs or $LOG_DIR")


def set_level(broker: Running, logger: str, level: str | None) -> None:
    config = AlterableConfig(logger, 0 if level is not None else 1, level)
    with broker.connect() as connection:
        answer = call(
            connection,
            api_keys.INCREMENTAL_ALTER_CONFIGS,
            IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER_LOGGER, "1", [config])]),
            1,
        )
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    assert [result.error_code for result in answer.responses] == [0]


# -- what keeps it from starting: a code, and one line that names the fix


@pytest.mark.parametrize("several", [False, True], ids=["one broker", "three brokers"])
def test_others_may_not_read_the_data(tmp_path: Path, several: bool) -> None:
    options = ("--brokers", "3") if several else ()
    before = os.umask(0)  # the most generous one: what the broker does not forbid is allowed
    try:
        with running(tmp_path, *up(tmp_path, *options)) as broker:
            metadata(broker, "made")
            broker.stop()
    finally:
        os.umask(before)
    data = tmp_path / "data"
    generous = [path for path in (data, *data.rglob("*")) if path.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP)]
    assert (data / "barnabas.db").exists()
    assert generous == []


@pytest.mark.linux
def test_a_secret_given_by_override_is_not_in_the_process_list(tmp_path: Path) -> None:
    options = ("--override", "ssl.key.password=geheimnis", "--override=broker.id=7")
    with running(tmp_path, *up(tmp_path, *options)) as broker:
        shown = Path(f"/proc/{broker.process.pid}/cmdline").read_text().split("\0")
        assert "ssl.key.password=********" in shown
        assert "--override=broker.id=7" in shown
        assert broker.stop() == ExitCode.STOPPED
    assert "ssl.key.password was given by --override" in broker.log.read_text()
    assert "geheimnis" not in broker.log.read_text()


def test_settings_of_an_override_file_count(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("broker.id=7\nssl.key.password=geheimnis\n")
    with running(tmp_path, *up(tmp_path, "--override-file", str(tmp_path / "secrets.properties"))) as broker:
        assert broker.stop() == ExitCode.STOPPED
    assert "node 7" in broker.log.read_text()
    assert "--override" not in broker.log.read_text()


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        metrics = ["--override", "metrics.listener=http://localhost:0"]  # the default port of a broker that another test runs is a warning
        code, _, stderr = failed("up", "--host", "127.0.0.1", "--port", port, "--data", str(tmp_path / "data"), *metrics)
    assert code == ExitCode.ADDRESS_UNAVAILABLE
    assert stderr.count("\n") == 1
    assert "stop what listens there, or set another port with --port" in stderr


def test_a_host_that_is_not_here(tmp_path: Path) -> None:
    code, _, stderr = failed("up", "--host", "192.0.2.1", "--port", "0", "--data", str(tmp_path / "data"))
    assert code == ExitCode.ADDRESS_UNAVAILABLE
    assert "correct --host" in stderr


def test_a_directory_in_use(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)):
        code, _, stderr = failed(*up(tmp_path))
    assert code == ExitCode.DIRECTORY_IN_USE
    assert stderr.count("\n") == 1
    assert "stop it, or give this one a directory of its own with --data" in stderr


def test_a_directory_of_another_node(tmp_path: Path) -> None:
    with running(tmp_path, *up(tmp_path)) as broker:
        broker.stop()
    code, _, stderr = failed(*up(tmp_path, "--override", "broker.id=2"))
    assert code == ExitCode.FOREIGN_DIRECTORY
    assert stderr.count("\n") == 1
    assert "make sure your configured broker.id matches" in stderr


def test_a_directory_of_apache_kafka(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    code, _, stderr = failed(*up(tmp_path))
    assert code == ExitCode.FOREIGN_DIRECTORY
    assert f"barnabas adopt {data}" in stderr


def test_a_log_whose_directory_names_no_partition(tmp_path: Path) -> None:
    (tmp_path / "data" / "holiday pictures").mkdir(parents=True)
    (tmp_path / "data" / "holiday pictures" / "00000000000000000000.log").write_bytes(b"")
    code, _, stderr = failed(*up(tmp_path))
    assert code == ExitCode.FOREIGN_DIRECTORY
    assert stderr.count("\n") == 1


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    code, _, stderr = failed("up", "--port", "0", "--data", str(tmp_path / "data" / "logs"))
    assert code == ExitCode.DISK_UNUSABLE
    assert stderr.rstrip().splitlines()[-1].endswith("name another directory with --data")


@pytest.mark.parametrize(
    ("override", "code", "fix"),
    [
        ("num.partitions=0", ExitCode.INVALID_CONFIG, "num.partitions"),
        ("num.partitions", ExitCode.INVALID_CONFIG, "write it as name=value"),
        ("listeners=PLAINTEXT", ExitCode.INVALID_CONFIG, "PLAINTEXT"),
        ("zookeeper.connect=/nowhere", ExitCode.ZOOKEEPER_UNUSABLE, "Give it as host:port"),
    ],
)
def test_a_wrong_setting(tmp_path: Path, override: str, code: int, fix: str) -> None:
    ended, out, stderr = failed(*up(tmp_path, "--override", override))
    assert (ended, out, stderr.count("\n")) == (code, "", 1)
    assert stderr.startswith("barnabas: ")
    assert fix in stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    code, _, stderr = failed("server", str(tmp_path / "server.properties"))
    assert code == ExitCode.INVALID_CONFIG
    assert "name a server.properties file that can be read" in stderr


def test_losing_every_directory_ends_it_with_a_code_of_its_own(tmp_path: Path) -> None:
    often = "replica.high.watermark.checkpoint.interval.ms=100"
    with running(tmp_path, *up(tmp_path, "--override", often)) as broker:
        make_topic(broker, "t")
        (tmp_path / "data").rename(tmp_path / "gone")
        assert broker.process.wait(DEADLINE_S) == ExitCode.LOG_DIRS_FAILED
        assert "check the disks of" in broker.log.read_text().splitlines()[-1]


# -- Apache Kafka's scripts


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A properties file, with the logs of the scripts in a directory of the test and `barnabas` on the path."""
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "logs"))
    command = tmp_path / "bin" / "barnabas"  # where it is not installed
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=4\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\n")
    return file


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "bin" / name), *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_the_start_script_runs_a_broker_and_the_stop_script_ends_it(tmp_path: Path, scripts: Path) -> None:
    with running(tmp_path, str(scripts), command=[str(ROOT / "bin" / "kafka-server-start.sh")]) as broker:
        assert metadata(broker).brokers[0].node_id == 4
        assert script("kafka-server-stop.sh", "--process-role=broker").returncode == 0
        assert broker.process.wait(DEADLINE_S) == ExitCode.STOPPED


def test_the_stop_script_ends_only_the_node_it_is_told(tmp_path: Path, scripts: Path) -> None:
    with running(tmp_path, str(scripts), command=[str(ROOT / "bin" / "kafka-server-start.sh")]) as broker:
        assert script("kafka-server-stop.sh", "--node-id=3").stdout == "No kafka server to stop\n"
        assert broker.process.poll() is None
        assert script("kafka-server-stop.sh", "--node-id=4").returncode == 0
        assert broker.process.wait(DEADLINE_S) == ExitCode.STOPPED


def test_a_daemon_outlives_its_script(tmp_path: Path, scripts: Path) -> None:
    assert script("kafka-server-start.sh", "-daemon", str(scripts)).returncode == 0
    try:
        wait_for(tmp_path / "logs" / "kafkaServer.out", "ready listeners=")
    finally:
        assert script("kafka-server-stop.sh").returncode == 0
    wait_for(tmp_path / "logs" / "kafkaServer.out", "shut down completed")


def test_without_a_broker_there_is_nothing_to_stop(scripts: Path) -> None:
    done = script("kafka-server-stop.sh")
    assert (done.returncode, done.stdout) == (1, "No kafka server to stop\n")


def test_the_start_script_needs_a_file(scripts: Path) -> None:
    done = script("kafka-server-start.sh")
    assert done.returncode == 1
    assert "USAGE:" in done.stderr


# -- the service manager


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with running(tmp_path, *up(tmp_path)) as broker:
            assert manager.recv(100) == b"READY=1"
            broker.stop()
            assert manager.recv(100) == b"STOPPING=1"
