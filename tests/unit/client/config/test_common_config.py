"""The settings of clients: Kafka's names, types and defaults, and its refusals word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.config.common_config import COMMON, bootstrap_addresses, common, finish
from barnabas.client.config.config import REQUIRED, ClientConfig, key, load
from barnabas.client.errors import ConfigException
from barnabas.config_def import Importance, InvalidConfig, Type, table, value_text

KAFKAS = json.loads((Path(__file__).parents[3] / "data" / "kafka-client-configs-4.2.0.json").read_text())
OURS_ONLY = {"sasl.username", "sasl.password", "sasl.kerberos.keytab", "sasl.kerberos.principal"}
# Java's classes, which have no meaning here.
OTHER_DEFAULTS = {"metric.reporters", "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"}
BY_CLIENT = {"connections.max.idle.ms", "enable.metrics.push", "receive.buffer.bytes", "client.id", "bootstrap.servers"}
KEYS = table([*common(), key("a.class", Type.CLASS, None, None, Importance.LOW, "")])


def config(given: dict[str, object] | None = None, **keywords: object) -> ClientConfig:
    made = ClientConfig(KEYS, {"bootstrap.servers": "localhost:9092"} | (given or {}), keywords)
    finish(made)
    return made


def test_every_setting_that_all_of_kafkas_clients_share_is_there() -> None:
    shared = set(KAFKAS["producer"]) & set(KAFKAS["consumer"]) & set(KAFKAS["admin"])
    assert {definition.name for definition in COMMON} == shared | OURS_ONLY


@pytest.mark.parametrize("definition", [one for one in COMMON if one.name not in OURS_ONLY], ids=lambda one: one.name)
def test_types_defaults_and_limits_are_kafkas(definition: Any) -> None:
    fact = KAFKAS["producer"][definition.name]
    assert definition.type.name == fact["type"]
    assert (definition.default is REQUIRED) == fact["required"]
    if definition.name not in OTHER_DEFAULTS | BY_CLIENT:
        assert value_text(definition.default) == fact["default"]
        assert definition.importance.name == fact["importance"]
        assert (str(definition.validator) if definition.validator else "") == fact["valid"]


# What Apache Kafka 4.2's producer says to the same settings.
REFUSALS = [
    ({"bootstrap.servers": ""}, "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"),
    ({"bootstrap.servers": []}, "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"),
    ({"bootstrap.servers": "localhost"}, "Invalid url in bootstrap.servers: localhost: the port is missing, write localhost:9092"),
    ({"bootstrap.servers": "localhost:http"}, "Invalid url in bootstrap.servers: localhost:http: write host:port"),
    ({"bootstrap.servers": "localhost:99999"}, "Invalid port in bootstrap.servers: localhost:99999"),
    ({"bootstrap.servers": "localhost:9092,,"}, "Configuration 'bootstrap.servers' values must not be empty."),
    ({"request.timeout.ms": "abc"}, "Invalid value abc for configuration request.timeout.ms: Not a number of type INT"),
    ({"request.timeout.ms": -1}, "Invalid value -1 for configuration request.timeout.ms: Value must be at least 0"),
    (
        {"request.timeout.ms": 1.5},
        "Invalid value 1.5 for configuration request.timeout.ms: Expected value to be a 32-bit integer, but it was a float",
    ),
    (
        {"enable.metrics.push": "maybe"},
        "Invalid value maybe for configuration enable.metrics.push: Expected value to be either true or false",
    ),
    ({"enable.metrics.push": 1}, "Invalid value 1 for configuration enable.metrics.push: Expected value to be either true or false"),
    ({"metric.reporters": 5}, "Invalid value 5 for configuration metric.reporters: Expected a comma separated list."),
    ({"client.id": 5}, "Invalid value 5 for configuration client.id: Expected value to be a string, but it was a int"),
    ({"retry.backoff.ms": "5.0"}, "Invalid value 5.0 for configuration retry.backoff.ms: Not a number of type LONG"),
    (
        {"sasl.login.refresh.window.factor": "x"},
        "Invalid value x for configuration sasl.login.refresh.window.factor: Not a number of type DOUBLE",
    ),
    (
        {"sasl.login.refresh.window.factor": 0.4},
        "Invalid value 0.4 for configuration sasl.login.refresh.window.factor: Value must be at least 0.5",
    ),
    (
        {"security.protocol": "TLS"},
        "Invalid value TLS for configuration security.protocol: "
        "String must be one of (case insensitive): SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT",
    ),
    (
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": ""},
        "Invalid value null for configuration sasl.mechanism: "
        "When the security.protocol configuration enables SASL, mechanism must be non-null and non-empty string.",
    ),
    (
        {"client.dns.lookup": "default"},
        "Invalid value default for configuration client.dns.lookup: "
        "String must be one of: use_all_dns_ips, resolve_canonical_bootstrap_servers_only",
    ),
    (
        {"metrics.recording.level": "LOUD"},
        "Invalid value LOUD for configuration metrics.recording.level: String must be one of: INFO, DEBUG, TRACE",
    ),
    ({"metrics.num.samples": 0}, "Invalid value 0 for configuration metrics.num.samples: Value must be at least 1"),
    (
        {"metadata.recovery.strategy": "never"},
        "Invalid value never for configuration metadata.recovery.strategy: String must be one of (case insensitive): REBOOTSTRAP, NONE",
    ),
]


@pytest.mark.parametrize(("given", "words"), REFUSALS, ids=[str(given) for given, _ in REFUSALS])
def test_refusals_are_kafkas(given: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        config(given)
    assert str(raised.value) == words


def test_the_address_is_required() -> None:
    with pytest.raises(ConfigException, match=r'^Missing required configuration "bootstrap\.servers" which has no default value\.$'):
        ClientConfig(KEYS, {})


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        ("localhost:9092,localhost:9092", [("localhost", 9092)]),
        ("PLAINTEXT://localhost:9092", [("localhost", 9092)]),
        ("[::1]:9092", [("::1", 9092)]),
        (" one:1 , two:2 ", [("one", 1), ("two", 2)]),
        (["one:1", "two:2"], [("one", 1), ("two", 2)]),
    ],
)
def test_addresses(given: object, addresses: list[tuple[str, int]]) -> None:
    assert bootstrap_addresses(config({"bootstrap.servers": given})) == addresses


def test_values_come_as_text_or_as_objects_and_by_either_name() -> None:
    made = config({"request.timeout.ms": "5", "metrics.num.samples": 3}, enable_metrics_push="false", reconnect_backoff_ms=7)
    assert (made["request.timeout.ms"], made["metrics.num.samples"], made["enable.metrics.push"]) == (5, 3, False)
    assert made["reconnect.backoff.ms"] == 7 and made.is_given("reconnect.backoff.ms") and not made.is_given("client.id")


def test_other_defaults_for_one_client() -> None:
    keys = table(common(connections_max_idle_ms=300000))
    assert ClientConfig(keys, {"bootstrap.servers": "h:1"})["connections.max.idle.ms"] == 300000


def test_one_back_off_alone_is_constant() -> None:
    assert config({"reconnect.backoff.ms": 5000})["reconnect.backoff.max.ms"] == 5000
    assert config({"reconnect.backoff.ms": 5000, "reconnect.backoff.max.ms": 6000})["reconnect.backoff.max.ms"] == 6000


def test_passwords_are_not_shown() -> None:
    made = config({"sasl.jaas.config": "the secret", "ssl.key.password": "the secret"})
    assert "the secret" not in repr(made) and "[hidden]" in repr(made)
    with pytest.raises(InvalidConfig, match=r"^Invalid value \[hidden\] for configuration ssl\.key\.password"):
        config({"ssl.key.password": 12345})


class Plugin:
    pass


class NeedsMore:
    def __init__(self, something: int) -> None: ...


def test_classes_are_made_objects_taken_and_names_looked_for() -> None:
    plugin = Plugin()
    assert load("a.class", plugin) is plugin
    assert isinstance(load("a.class", Plugin), Plugin)
    assert load("a.class", "collections.OrderedDict") == {}
    assert isinstance(load("a.class", "org.example.Plugin", {"Plugin": Plugin}), Plugin)
    assert isinstance(config({"a.class": Plugin}).instance("a.class"), Plugin)
    assert config().instance("a.class") is None


@pytest.mark.parametrize("name", ["NoSuch", "no.such.module.Class", "collections.NoSuch", ""])
def test_a_class_that_is_not_there(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"^Invalid value {name} for configuration a\.class: Class {name} could not be found\.$"):
        load("a.class", name)


def test_a_class_that_wants_arguments() -> None:
    with pytest.raises(InvalidConfig, match="Could not instantiate"):
        load("a.class", NeedsMore)


def test_a_value_may_stand_in_a_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("id=from-a-file\n")
    given = {
        "bootstrap.servers": "localhost:9092",
        "client.id": f"${{file:{secrets}:id}}",
        "config.providers": ["file"],
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    assert ClientConfig(KEYS, given)["client.id"] == "from-a-file"


def test_what_are_no_settings_is_refused_with_a_hint() -> None:
    with pytest.raises(InvalidConfig, match="'orders'; topics are named to subscribe"):
        ClientConfig(KEYS, "orders")  # type: ignore[arg-type]
