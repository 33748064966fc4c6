from __future__ import annotations

import re

import pytest

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig, describe_broker, validate_dynamic
from barnabas.config_def import ConfigSource, InvalidConfig


def dynamic(**static: str) -> DynamicBrokerConfig:
    return DynamicBrokerConfig(BrokerConfig.from_properties({name.replace("_", "."): text for name, text in static.items()}))


def test_this_broker_wins_over_all_brokers_and_they_over_the_file() -> None:
    config = dynamic(log_cleaner_threads="2")
    config.update_default({"log.cleaner.threads": "3"})
    assert config.current["log.cleaner.threads"] == 3
    config.update_broker({"log.cleaner.threads": "4"})
    assert config.current["log.cleaner.threads"] == 4
    config.update_broker({})
    config.update_default({})
    assert config.current["log.cleaner.threads"] == 2


def test_an_update_tells_what_has_changed() -> None:
    config = dynamic(log_retention_ms="5")
    assert config.update_broker({"log.retention.ms": "6", "num.io.threads": "8"}) == {"log.retention.ms"}
    assert config.update_broker({"log.retention.ms": "6"}) == set()
    assert config.update_broker({"listener.name.a.max.connections": "7"}) == {"log.retention.ms", "listener.name.a.max.connections"}


def test_a_dynamic_setting_wins_over_a_finer_one_in_the_file() -> None:
    config = dynamic(log_retention_minutes="1")
    config.update_default({"log.retention.ms": "7"})
    assert config.current.topic_default("retention.ms") == 7
    assert config.current["log.retention.minutes"] is None


def test_the_throttles_are_set_dynamically() -> None:
    config = dynamic()
    config.update_broker({"leader.replication.throttled.rate": "500"})
    assert config.current["leader.replication.throttled.rate"] == 500


def test_what_the_tree_holds_wrongly_is_left_out() -> None:
    config = dynamic()
    config.update_broker({"log.retention.ms": "x", "log.dirs": "/a", "ssl.keystore.type": "PEM", "num.io.threads": "9"})
    assert config.broker == {"num.io.threads": "9"}


def test_per_broker_settings_are_left_out_of_the_default_of_all() -> None:
    config = dynamic()
    config.update_default({"listeners": "PLAINTEXT://:1", "num.io.threads": "9"})
    assert config.default == {"num.io.threads": "9"}


def test_an_update_that_does_not_fit_the_rest_changes_nothing() -> None:
    config = dynamic()
    before = config.current
    assert config.update_broker({"log.cleaner.dedupe.buffer.size": "5"}) == frozenset()
    assert config.current is before


@pytest.mark.parametrize(
    ("per_broker", "properties", "message"),
    [
        (True, {"log.dirs": "/x"}, "Cannot update these configs dynamically: Set(log.dirs)"),
        (True, {"super.users": "User:a"}, "Cannot update these configs dynamically: Set(super.users)"),
        (
            False,
            {"allow.everyone.if.no.acl.found": "true"},
            "Cannot update these configs dynamically: Set(allow.everyone.if.no.acl.found)",
        ),
        (True, {"log.retention.hours": "5"}, "Cannot update these configs dynamically: Set(log.retention.hours)"),
        (True, {"log.dirs": "/x", "broker.id": "3"}, "Cannot update these configs dynamically: Set(broker.id, log.dirs)"),
        (
            True,
            {"ssl.keystore.location": "/x"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: HashSet(ssl.keystore.location)",
        ),
        (
            False,
            {"listeners": "PLAINTEXT://:1"},
            "Cannot update these configs at default cluster level, broker id must be specified: Set(listeners)",
        ),
        (
            False,
            {"listener.name.a.ssl.keystore.location": "/x"},
            "Cannot update these configs at default cluster level, broker id must be specified: Set(listener.name.a.ssl.keystore.location)",
        ),
        (True, {"log.retention.ms": "x"}, "Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
        (True, {"num.io.threads": "0"}, "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
        (
            True,
            {"leader.replication.throttled.rate": "-1"},
            "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0",
        ),
    ],
)
def test_what_may_not_be_set_dynamically_is_refused_in_kafkas_words(per_broker: bool, properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(message)}$"):
        validate_dynamic(properties, per_broker)


@pytest.mark.parametrize(
    ("per_broker", "properties"),
    [
        (True, {"foo": "x"}),
        (True, {"listener.name.a.ssl.keystore.location": "/x"}),
        (True, {"listener.name.a.plain.sasl.jaas.config": "x"}),
        (True, {"sasl.jaas.config": "x"}),
        (False, {"listener.name.a.max.connections": "5"}),
        (False, {"listener.name.a.num.network.threads": "5"}),
    ],
)
def test_what_may_be_set_dynamically_is_taken(per_broker: bool, properties: dict[str, str]) -> None:
    validate_dynamic(properties, per_broker)


def test_a_change_is_checked_together_with_all_other_settings() -> None:
    config = dynamic()
    with pytest.raises(InvalidConfig, match="1MB per cleaner thread"):
        config.validate({"log.cleaner.threads": "1000"}, per_broker=True)
    with pytest.raises(InvalidConfig, match="1MB per cleaner thread"):
        config.validate({"log.cleaner.threads": "1000"}, per_broker=False)
    config.validate({"log.cleaner.threads": "2"}, per_broker=False)
    assert config.current["log.cleaner.threads"] == 1


def test_only_asked_settings_are_described() -> None:
    assert [entry.name for entry in describe_broker(dynamic(), {"num.io.threads", "no.such"})] == ["num.io.threads"]


def test_a_setting_of_zookeeper_mode_is_described_only_where_it_is_set() -> None:
    assert describe_broker(dynamic(), {"zookeeper.connect"}) == []
    (entry,) = describe_broker(dynamic(zookeeper_connect="z:1"), {"zookeeper.connect"})
    assert (entry.value, entry.source, entry.read_only) == ("z:1", ConfigSource.STATIC_BROKER_CONFIG, True)


def test_a_password_is_never_shown() -> None:
    (entry,) = describe_broker(dynamic(ssl_key_password="secret"), {"ssl.key.password"})
    assert "secret" not in repr(entry)
    assert entry.sensitive


def test_a_setting_nobody_knows_is_not_shown_either() -> None:
    (entry,) = describe_broker(dynamic(my_plugin_password="secret"), {"my.plugin.password"})
    assert "secret" not in repr(entry)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("principal.builder.class", "os.abort"),
        ("ssl.engine.factory.class", "os.abort"),
        ("ssl.client.auth", "none"),
        ("sasl.kerberos.principal.to.local.rules", "RULE:[1:admin]"),
        ("listener.name.ssl.principal.builder.class", "os.abort"),
        ("listener.name.ssl.ssl.client.auth", "none"),
        ("listener.name.ssl.ssl.principal.mapping.rules", "RULE:^.*$/admin/"),
        ("listener.name.ssl.plain.sasl.server.callback.handler.class", "os.abort"),
    ],
)
def test_who_a_client_is_does_not_change_while_the_broker_runs(name: str, text: str) -> None:
    config = dynamic(listeners="SSL://:1", security_inter_broker_protocol="SSL", ssl_client_auth="required")
    with pytest.raises(InvalidConfig, match="Configs cannot be updated dynamically for existing listener"):
        config.validate({name: text}, per_broker=True)
