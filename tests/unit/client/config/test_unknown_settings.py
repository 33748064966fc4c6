"""Settings that a client does not know: a misspelled name is refused, others are warned about once, unless a plug-in asks for them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer, ProducerRecord
from barnabas.client.admin.config import KEYS as ADMIN
from barnabas.client.config import config as client_config
from barnabas.client.config.config import ClientConfig, SharedSettings
from barnabas.client.consumer.config import KEYS as CONSUMER
from barnabas.client.errors import ConfigException
from barnabas.client.producer.config import KEYS as PRODUCER
from barnabas.client.serialization import StringSerializer
from barnabas.config_def import ConfigKey
from barnabas.tools.connecting.connect import open_admin, open_consumer, open_producer

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
CLIENTS: list[Callable[..., Any]] = [Producer, AsyncProducer, Consumer, AsyncConsumer, Admin, AsyncAdmin]
BLOCKING: list[Callable[..., Any]] = [Producer, Consumer, Admin]


@pytest.fixture(autouse=True)
def _nothing_was_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_config, "_warned", set())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == client_config.__name__ and record.levelno == logging.WARNING]


def made(kind: Callable[..., Any], given: dict[str, Any] | None = None, **keywords: Any) -> None:
    """Made and, if it has a thread, closed."""
    client = kind({**SERVERS, **(given or {})}, **keywords)
    if kind in BLOCKING:
        client.close()


# Misspelled


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize(
    "name", ["request.timeout.mss", "request.timeot.ms", "reqeust.timeout.ms", "request_timeout.ms", "Request.Timeout.MS"]
)
def test_a_misspelled_name_is_refused(kind: Callable[..., Any], name: str) -> None:
    with pytest.raises(ConfigException) as refused:
        made(kind, {name: 5000})
    assert str(refused.value) == f"Unknown configuration {name}: did you mean request.timeout.ms?"


@pytest.mark.parametrize(
    ("kind", "keyword", "words"),
    [
        (Producer, "linger_mss", "Unknown configuration linger.mss: did you mean linger.ms?"),
        (Producer, "value_serialiser", "Unknown configuration value.serialiser: did you mean value.serializer?"),
        (Producer, "ack", "Unknown configuration ack: did you mean acks?"),
        (Consumer, "gruop_id", "Unknown configuration gruop.id: did you mean group.id?"),
        (Consumer, "enable_autocommit", "Unknown configuration enable.autocommit: did you mean enable.auto.commit?"),
        (Consumer, "sasl_mechanisms", "Unknown configuration sasl.mechanisms: did you mean sasl.mechanism?"),
        (Admin, "retrys", "Unknown configuration retrys: did you mean retries?"),
    ],
)
def test_keyword_arguments_are_checked_as_well(kind: Callable[..., Any], keyword: str, words: str) -> None:
    with pytest.raises(ConfigException, match=f"^{re.escape(words)}$"):
        made(kind, {}, **{keyword: "1"})


def test_a_required_name_that_is_misspelled() -> None:
    with pytest.raises(
        ConfigException, match=r"which has no default value. Unknown configuration bootstrap.server: did you mean bootstrap.serv"
    ):
        Producer(bootstrap_server="127.0.0.1:1")


def test_all_that_are_misspelled_are_named() -> None:
    with pytest.raises(
        ConfigException, match=r"^Unknown configuration batch.sise: .*; Unknown configuration linger.mss: did you mean linger.ms\?$"
    ):
        made(Producer, {"linger.mss": 1, "batch.sise": 1})


# Not known


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_name_like_no_other_is_warned_about_once(kind: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        made(kind, {"an.unheard.of.name": 1, "task": 2})
    assert warnings(caplog) == ["These configurations '['an.unheard.of.name', 'task']' were supplied but are not used yet."]


@pytest.mark.parametrize("kind", BLOCKING)
def test_the_settings_of_the_other_kinds_are_never_refused(kind: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    keys: dict[Callable[..., Any], Mapping[str, ConfigKey]] = {Producer: PRODUCER, Consumer: CONSUMER, Admin: ADMIN}
    own = keys[kind]
    foreign = {name: "1" for name in {**PRODUCER, **CONSUMER, **ADMIN} if name not in own}
    made(kind, foreign)
    assert warnings(caplog) == [f"These configurations '{sorted(foreign)}' were supplied but are not used yet."]


def test_names_of_brokers_and_other_programs_are_near_to_none() -> None:
    from barnabas.broker.config.definitions import BROKER_CONFIGS

    others = "tasks.max key.converter commit.interval.ms schema.registry.url ssl.cafile sasl.plain.username queue.buffering.max.ms poll.ms"
    for keys in (PRODUCER, CONSUMER, ADMIN):
        names = [name for name in (*BROKER_CONFIGS, *others.split()) if name not in keys]
        assert client_config._misspelled(names, keys) == {}


def test_what_config_providers_read_is_used(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_NAME", "from-the-environment")
    provider = {"config.providers": "env", "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider"}
    made(Producer, {**provider, "config.providers.env.param.allowlist.pattern": "CLIENT.*", "client.id": "${env:CLIENT_NAME}"})
    assert warnings(caplog) == []


# Plug-ins


class Interceptor:
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record

    def configure(self, configs: dict[str, Any]) -> None:
        self.ask(configs)

    def ask(self, configs: dict[str, Any]) -> Any:
        raise NotImplementedError


class ByName(Interceptor):
    def ask(self, configs: dict[str, Any]) -> Any:
        self.found = configs["linger.mss"], configs.get("another.name"), "a.third" in configs, configs.pop("a.fourth")


class ByPrefix(Interceptor):
    def ask(self, configs: dict[str, Any]) -> Any:
        self.found = {name: value for name, value in configs.items() if name.startswith("a")}


class Serializer(StringSerializer):
    def configure(self, configs: Any, is_key: bool) -> None:
        self.found = configs["linger.mss"]


def test_a_name_that_a_plug_in_asks_for_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    plugin = ByName()
    given = {"linger.mss": 1, "another.name": 2, "a.third": 3, "a.fourth": 4}
    made(Producer, {**given, "interceptor.classes": [plugin]})
    made(Producer, {"linger.mss": 1, "value.serializer": Serializer})
    assert plugin.found == (1, 2, True, 4)
    assert warnings(caplog) == []


def test_a_plug_in_that_goes_through_all_names_may_have_used_them(caplog: pytest.LogCaptureFixture) -> None:
    plugin = ByPrefix()
    made(Producer, {"another.name": 2, "interceptor.classes": [plugin]})
    assert plugin.found == {"another.name": 2}
    assert warnings(caplog) == []
    with pytest.raises(ConfigException, match=r"did you mean linger\.ms"):
        made(Producer, {"linger.mss": 2, "interceptor.classes": [ByPrefix()]})


def test_other_names_are_reported_beside_a_plug_in(caplog: pytest.LogCaptureFixture) -> None:
    made(Consumer, {"another.name": 2, "key.deserializer": bytes.decode})
    assert warnings(caplog) == ["These configurations '['another.name']' were supplied but are not used yet."]


def test_a_plug_in_is_closed_when_the_client_is_refused() -> None:
    class Closing(ByPrefix):
        closed = False

        def close(self) -> None:
            self.closed = True

    for kind in (Producer, Consumer):
        plugin = Closing()
        with pytest.raises(ConfigException):
            made(kind, {"client.ids": 2, "interceptor.classes": [plugin]})
        assert plugin.closed


# Without effect


def test_what_only_java_uses_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    made(Producer, {"sasl.kerberos.kinit.cmd": "kinit", "ssl.provider": "BC"})
    assert warnings(caplog) == [
        "The configuration sasl.kerberos.kinit.cmd has no effect here, because MIT Kerberos renews the tickets of a keytab by itself, "
        "without kinit",
        "The configuration ssl.provider has no effect here, because it names classes or algorithms of Java",
    ]


def test_what_only_java_uses_may_have_its_default(caplog: pytest.LogCaptureFixture) -> None:
    made(Producer, {"sasl.kerberos.kinit.cmd": "/usr/bin/kinit", "ssl.provider": None})
    assert warnings(caplog) == []


# Files that several programs share


def test_a_shared_file_is_never_refused(caplog: pytest.LogCaptureFixture) -> None:
    config = ClientConfig(PRODUCER, SharedSettings({**SERVERS, "linger.mss": 1, "another.name": 2}))
    config.report_unused()
    assert warnings(caplog) == [
        "Unknown configuration linger.mss: did you mean linger.ms?",
        "These configurations '['another.name']' were supplied but are not used yet.",
    ]


def test_tools_only_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shared = {**SERVERS, "linger.mss": "1", "group.id": "g", "acks": "all", "request.timeout.mss": "1"}
    for opened in (open_producer, open_consumer):
        opened(shared).close()
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in shared.items()))
    open_admin(None, str(file)).close()
    assert "Unknown configuration request.timeout.mss: did you mean request.timeout.ms?" in warnings(caplog)
