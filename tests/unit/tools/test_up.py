"""What `barnabas up` makes of its options."""

from __future__ import annotations

import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.endpoint import SecurityProtocol
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools import up
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running.data_home import data_home
from barnabas.tools.running.overrides import Overrides
from barnabas.tools.running.settings import parse_overrides

UpFails = Callable[..., str]


@pytest.fixture
def up_fails() -> UpFails:
    """Runs `barnabas up`, which has to end with this code; what it said on stderr."""

    def run(code: ExitCode, *options: str) -> str:
        done = subprocess.run([sys.executable, "-m", "barnabas", "up", *options], timeout=60, check=False, capture_output=True, text=True)
        assert done.returncode == code
        return done.stderr

    return run


def config(
    data: Path,
    host: str = "localhost",
    port: int = 9092,
    override: tuple[str, ...] = (),
    brokers: int = 1,
    processes: int | None = None,
    number: int = 1,
    secure: bool = False,
) -> BrokerConfig:
    given = Namespace(host=host, port=port, data=str(data), brokers=brokers, processes=processes, secure=secure)
    return up._settings(given, Overrides(parse_overrides(override)), number).config


@pytest.mark.parametrize(
    ("host", "listener"),
    [
        ("localhost", "PLAINTEXT://localhost:9092"),
        ("127.0.0.1", "PLAINTEXT://127.0.0.1:9092"),
        ("::1", "PLAINTEXT://[::1]:9092"),
        ("[::1]", "PLAINTEXT://[::1]:9092"),
    ],
)
def test_it_listens_where_it_is_told_and_says_so_to_clients(tmp_path: Path, host: str, listener: str) -> None:
    broker_config = config(tmp_path, host)
    assert (
        [str(listener) for listener in broker_config.listeners]
        == [str(advertised_listener) for advertised_listener in broker_config.advertised_listeners]
        == [listener]
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]"])
def test_clients_are_told_a_name_where_it_listens_on_every_address(tmp_path: Path, host: str) -> None:
    assert [advertised_listener.host for advertised_listener in config(tmp_path, host).advertised_listeners] == [socket.gethostname()]


def test_a_new_directory_is_of_node_1(tmp_path: Path) -> None:
    assert config(tmp_path / "new").broker_id == 1


def test_a_directory_stays_with_its_node(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=abc\n")
    assert config(tmp_path).broker_id == 7


def test_an_override_comes_last(tmp_path: Path) -> None:
    broker_config = config(tmp_path, override=("node.id=3", "num.partitions=6"))
    assert (broker_config.broker_id, broker_config.number("num.partitions")) == (3, 6)


def test_a_directory_with_a_comma_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot have one"):
        config(tmp_path / "a,b")


def test_the_data_of_a_user_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert data_home() == "/somewhere/barnabas"


@pytest.mark.parametrize("port", ["-1", "65536", "x", ""])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        up.main(["--port", port])
    assert ended.value.code == 2
    assert "a port is a number from 0 to 65535" in capsys.readouterr().err


def test_each_of_several_brokers_has_its_port_its_directory_and_replicas_on_the_others(tmp_path: Path) -> None:
    third = config(tmp_path, brokers=5, number=3)
    assert (third.broker_id, third.log_dirs) == (3, (f"{tmp_path}/broker-3",))
    assert [listener.port for listener in third.listeners] == [9094]
    assert third.number("default.replication.factor") == 3


def test_metrics_are_on_consecutive_ports_of_this_machine(tmp_path: Path) -> None:
    assert config(tmp_path / "one")["metrics.listener"] == "http://localhost:9404"
    assert config(tmp_path / "three", host="0.0.0.0", brokers=3, number=3)["metrics.listener"] == "http://localhost:9406"
    assert config(tmp_path / "any", port=0)["metrics.listener"] is None
    secured = config(tmp_path / "secured", secure=True, brokers=2, number=2)
    assert (secured["metrics.listener"], secured["metrics.listener.authentication"]) == ("https://localhost:9405", "basic")


@pytest.mark.parametrize(("brokers", "directory"), [(3, ""), (1, "broker-1")])
def test_a_directory_of_another_number_of_brokers_is_refused(tmp_path: Path, brokers: int, directory: str) -> None:
    (tmp_path / directory).mkdir(exist_ok=True)
    (tmp_path / directory / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    with pytest.raises(CannotRun, match=f"or move the data with: barnabas convert --data .* --brokers {brokers}") as refused:
        config(tmp_path, brokers=brokers)
    assert refused.value.code == ExitCode.FOREIGN_DIRECTORY


def taken_port() -> tuple[socket.socket, int]:
    listening = socket.create_server(("127.0.0.1", 0))
    return listening, listening.getsockname()[1]


def test_a_port_in_use_is_told_with_the_option_for_another(tmp_path: Path, up_fails: UpFails) -> None:
    listening, port = taken_port()
    with listening:
        error = up_fails(ExitCode.ADDRESS_UNAVAILABLE, "--host", "127.0.0.1", "--port", str(port), "--data", str(tmp_path))
    assert error.endswith("Address already in use; stop what listens there, or set another port with --port\n")


def test_what_is_overridden_is_told_by_the_name_of_its_setting(tmp_path: Path, up_fails: UpFails) -> None:
    (tmp_path / "file").touch()
    listening, port = taken_port()
    with listening:
        override = ("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}")
        error = up_fails(ExitCode.ADDRESS_UNAVAILABLE, "--port", "0", "--data", str(tmp_path / "data"), *override)
        assert error.endswith("Address already in use; stop what listens there, or set another port in listeners\n")
    error = up_fails(ExitCode.DISK_UNUSABLE, "--port", "0", "--override", f"log.dirs={tmp_path / 'file'}")
    assert error.endswith("let this user write there, or name another directory in log.dirs\n")


def test_a_misspelt_setting_is_refused_once(tmp_path: Path, up_fails: UpFails) -> None:
    error = up_fails(ExitCode.INVALID_CONFIG, "--port", "0", "--data", str(tmp_path), "--override", "log.segmnt.bytes=1")
    assert error == "barnabas: the setting log.segmnt.bytes is not known; did you mean log.segment.bytes?\n"


def test_a_host_that_is_not_here_is_told_with_the_option_for_it(tmp_path: Path, up_fails: UpFails) -> None:
    error = up_fails(ExitCode.ADDRESS_UNAVAILABLE, "--host", "192.0.2.1", "--port", "0", "--data", str(tmp_path))
    assert error.endswith("the host is not an address of this machine, correct --host\n")


def test_a_directory_in_use_is_told_with_the_option_for_another(tmp_path: Path, up_fails: UpFails) -> None:
    lock = LogDir(Files(), str(tmp_path))
    try:
        error = up_fails(ExitCode.DIRECTORY_IN_USE, "--port", "0", "--data", str(tmp_path))
    finally:
        lock.release()
    assert error.endswith("is using this directory; stop it, or give this one a directory of its own with --data\n")


def test_a_file_in_place_of_the_directory_is_told_with_the_option_for_another(tmp_path: Path, up_fails: UpFails) -> None:
    (tmp_path / "file").touch()
    error = up_fails(ExitCode.DISK_UNUSABLE, "--port", "0", "--data", str(tmp_path / "file"))
    assert error.endswith("Not a directory; name another directory with --data\n")


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_secured_broker_authenticates_everybody(tmp_path: Path, brokers: int) -> None:
    made = config(tmp_path, brokers=brokers, secure=True)
    assert [endpoint.security_protocol for endpoint in made.listeners] == [SecurityProtocol.SASL_SSL]
    assert made.inter_broker_security_protocol is SecurityProtocol.SASL_SSL
    assert made["authorizer.class.name"] and made.properties["super.users"] == "User:admin;User:broker"


def test_secured_data_is_not_opened_without_saying_so(tmp_path: Path) -> None:
    config(tmp_path, secure=True)
    with pytest.raises(CannotRun, match=r"is secured: start it with --secure, or remove .*/secure"):
        config(tmp_path)


def test_open_data_that_becomes_secured_is_told(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    given = Namespace(host="localhost", port=9092, data=str(tmp_path), brokers=1, processes=None, secure=True)
    assert any("was open until now" in remark for remark in up._settings(given, Overrides({})).remarks)
    assert not any("was open until now" in remark for remark in up._settings(given, Overrides({})).remarks)


def test_an_open_listener_is_refused_beside_secure(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"PLAINTEXT://.* is not secured: use SASL_SSL, or start without --secure"):
        config(tmp_path, override=("listeners=SASL_SSL://localhost:0,PLAINTEXT://localhost:1",), secure=True)


def test_each_process_has_a_directory_a_port_and_the_rack_of_this_machine(tmp_path: Path) -> None:
    second = config(tmp_path, processes=3, number=2)
    assert second.log_dirs == (f"{tmp_path}/broker-2",)
    assert [str(listener) for listener in second.listeners] == ["PLAINTEXT://localhost:9093"]
    assert (second.broker_id, second.text("broker.rack")) == (2, socket.gethostname())
    assert second.number("default.replication.factor") == 1
    assert second.flag("controlled.shutdown.enable")


def test_processes_and_brokers_are_not_given_together(up_fails: UpFails) -> None:
    assert "give one of them" in up_fails(ExitCode.USAGE, "--processes", "2", "--brokers", "2")


def test_processes_have_directories_of_their_own(tmp_path: Path, up_fails: UpFails) -> None:
    said = up_fails(ExitCode.INVALID_CONFIG, "--processes", "2", "--override", f"log.dirs={tmp_path}")
    assert "--data" in said
