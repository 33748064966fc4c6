"""From server.properties and the command line to settings: what is taken, what is said, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running.settings import parse_overrides, read_properties_file, settings

# The settings of the example that Apache Kafka 4 comes with for a node that is broker and controller.
KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    "num.network.threads": "3",
    "log.dirs": "/tmp/kraft-combined-logs",
    "offsets.topic.replication.factor": "1",
}


def test_an_unknown_setting_gets_one_line() -> None:
    assert settings({"no.such.setting": "1"}).remarks == ("The setting no.such.setting is not known and has no effect",)


def test_a_misspelt_setting_of_a_file_is_named_with_the_one_that_is_meant() -> None:
    (remark,) = settings({"log.segmnt.bytes": "1"}).remarks
    assert remark == "The setting log.segmnt.bytes is not known and has no effect; did you mean log.segment.bytes?"


def test_known_settings_get_none() -> None:
    assert settings({"broker.id": "1", "log.dirs": "/x"}).remarks == ()


def test_a_kraft_file_is_taken_and_its_settings_without_effect_are_known() -> None:
    taken = settings(KRAFT)
    assert taken.remarks == ("There is no KRaft quorum here, so these listeners for controllers are not opened: CONTROLLER://:9093",)
    warned = [line.split()[2] for line in taken.config.without_effect()]
    assert warned == ["controller.quorum.bootstrap.servers", "num.network.threads", "process.roles"]


def test_a_listener_for_controllers_is_not_opened() -> None:
    assert [str(broker_listener) for broker_listener in settings(KRAFT).config.broker_listeners] == ["PLAINTEXT://:9092"]


def test_a_node_that_is_a_controller_alone_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"process\.roles must contain broker"):
        settings({**KRAFT, "process.roles": "controller"})


def test_zookeeper_is_taken_as_it_is() -> None:
    assert settings({"zookeeper.connect": "localhost:2181/kafka"}).config["zookeeper.connect"] == "localhost:2181/kafka"


def test_a_value_of_a_config_provider_is_found(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("where=/from/a/secret\n")
    provider = {"config.providers": "file", "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}
    read_settings = settings({**provider, "log.dirs": f"${{file:{tmp_path}/secrets.properties:where}}"})
    assert read_settings.config.log_dirs == ("/from/a/secret",)
    assert read_settings.remarks == ()


def test_an_override_is_split_at_its_first_equals_sign() -> None:
    assert parse_overrides(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_the_last_override_of_a_name_counts() -> None:
    assert parse_overrides(["a=1", "a=2"]) == {"a": "2"}


@pytest.mark.parametrize("override", ["a", "=b", ""])
def test_an_override_without_a_name_or_value_is_refused(override: str) -> None:
    with pytest.raises(CannotRun, match="write it as name=value"):
        parse_overrides([override])


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("# a comment\nlog.dirs = /a,\\\n  /b\nbroker.id:7\n")
    assert read_properties_file(str(tmp_path / "server.properties")) == {"log.dirs": "/a,/b", "broker.id": "7"}


def test_a_file_that_is_not_there_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"No such file.*server\.properties") as refused:
        read_properties_file(str(tmp_path / "missing"))
    assert refused.value.code is ExitCode.INVALID_CONFIG


def test_a_broken_escape_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("a=\\u12")
    with pytest.raises(CannotRun, match="Malformed"):
        read_properties_file(str(tmp_path / "server.properties"))
