"""Our tables and answers against facts taken from Apache Kafka 4.2.0: its ConfigDefs, and what a broker answered to DescribeConfigs.

tests/data/KafkaConfigs.java takes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config import (
    BROKER_CONFIGS,
    DYNAMIC_ONLY_CONFIGS,
    BrokerConfig,
    ConfigEntry,
    DynamicBrokerConfig,
    describe_broker,
    describe_broker_default,
    describe_topic,
)
from barnabas.broker.config.definitions import newer, own, own_metrics, own_security, zookeeper
from barnabas.broker.config.synonyms import broker_config_synonyms
from barnabas.config_def import ConfigKey, Type, value_text
from barnabas.storage.topic_configs import TOPIC_CONFIGS, topic_config_key

FACTS = json.loads((Path(__file__).parents[3] / "data" / "kafka-configs-4.2.0.json").read_text())
DESCRIBED = FACTS["described"]

# Nothing that is null ever reaches a check here; and -1 is how an id is asked for.
OTHER_CHECK = {"authorizer.class.name": "", "node.id": ""}
# Kafka 4 takes no less than 1 MiB; 14 is what 3.9 takes.
OTHER_CHECK |= dict.fromkeys(("segment.bytes", "log.segment.bytes"), "[14,...]")


def facts_of(key: ConfigKey) -> dict[str, Any]:
    return {
        "type": key.type.name,
        "default": value_text(key.default),
        "valid": "" if key.validator is None else str(key.validator),
        "importance": key.importance.name,
    }


def expected(name: str, fact: dict[str, Any]) -> dict[str, Any]:
    expected = {field: fact[field] for field in ("type", "default", "valid", "importance")}
    if name in OTHER_CHECK:
        expected["valid"] = OTHER_CHECK[name]
    return expected


def test_only_what_kraft_cannot_do_without_is_required_by_kafka_and_not_here() -> None:
    assert {name for name, fact in FACTS["broker"].items() if fact["required"]} == {
        "process.roles",
        "node.id",
        "controller.listener.names",
    }


def test_every_broker_setting_of_kafka_is_there_and_none_else_but_those_of_zookeeper_mode_and_our_own() -> None:
    ours = (*own.KEYS, *own_security.KEYS, *own_metrics.KEYS)
    assert set(BROKER_CONFIGS) - {key.name for key in (*zookeeper.KEYS, *newer.KEYS, *ours)} == set(FACTS["broker"])
    assert all(key.hidden for key in newer.KEYS)
    assert all(key.name.startswith(("barnabas.", "metrics.")) and key.hidden for key in ours)


@pytest.mark.parametrize("name", sorted(FACTS["broker"]))
def test_a_broker_setting_is_kafkas(name: str) -> None:
    fact = FACTS["broker"][name]
    assert facts_of(BROKER_CONFIGS[name]) == expected(name, fact)
    assert BROKER_CONFIGS[name].update_mode.value == fact["update_mode"]
    assert BROKER_CONFIGS[name].hidden == fact["internal"]


def test_the_settings_that_are_dynamic_only_are_kafkas() -> None:
    assert {name: facts_of(key) for name, key in DYNAMIC_ONLY_CONFIGS.items()} == {
        name: expected(name, fact) for name, fact in FACTS["dynamic_only"].items()
    }


def test_every_topic_setting_of_kafka_is_there_and_none_else_but_three_of_kafka_3() -> None:
    old = {"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}
    assert set(TOPIC_CONFIGS) - old == set(FACTS["topic"])
    assert all(TOPIC_CONFIGS[name].hidden for name in old)


@pytest.mark.parametrize("name", sorted(FACTS["topic"]))
def test_a_topic_setting_is_kafkas(name: str) -> None:
    key, fact = topic_config_key(name), FACTS["topic"][name]
    assert facts_of(key) == expected(name, fact)
    assert key.hidden == fact["internal"]
    assert [[synonym.name, synonym.unit] for synonym in key.synonyms] == FACTS["topic_synonyms"].get(name, [])


def test_the_synonyms_of_broker_settings_are_kafkas() -> None:
    synonyms = {name: list(broker_config_synonyms(name)) for name in FACTS["broker"]}
    assert {name: names for name, names in synonyms.items() if names != [name]} == FACTS["broker_synonyms"]


def test_every_default_passes_its_own_check() -> None:
    for key in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()):
        if key.default is not None and key.default != ():
            assert key.parse(value_text(key.default) or "") == key.default


def test_every_setting_says_in_a_sentence_what_it_is_for() -> None:
    for key in (*BROKER_CONFIGS.values(), *DYNAMIC_ONLY_CONFIGS.values(), *TOPIC_CONFIGS.values()):
        assert key.doc[0].isupper() or key.doc.startswith(("min.insync", "SO_")), key.name
        assert key.doc.endswith("."), key.name


def config_before() -> DynamicBrokerConfig:
    config = DynamicBrokerConfig(BrokerConfig.from_properties(DESCRIBED["server_properties"]))
    config.update_default(DESCRIBED["default_config_before"])
    return config


def config_after() -> DynamicBrokerConfig:
    config = config_before()
    config.update_broker(DESCRIBED["broker_config"])
    config.update_default(DESCRIBED["default_config"])
    return config


def shown(entries: list[ConfigEntry]) -> dict[str, Any]:
    return {
        entry.name: [
            entry.value,
            entry.source.name,
            entry.sensitive,
            entry.read_only,
            Type(entry.type).name if entry.type else "UNKNOWN",
            [[synonym.name, synonym.value, synonym.source.name] for synonym in entry.synonyms],
        ]
        for entry in entries
    }


def test_a_broker_is_described_as_kafka_describes_it() -> None:
    assert shown(describe_broker(config_before())) == DESCRIBED["broker_static"]


def test_a_broker_with_dynamic_settings_is_described_as_kafka_describes_it() -> None:
    assert shown(describe_broker(config_after())) == DESCRIBED["broker_dynamic"]


def test_the_defaults_of_all_brokers_are_described_as_kafka_describes_them() -> None:
    assert shown(describe_broker_default(config_after())) == DESCRIBED["default_dynamic"]


def test_a_topic_is_described_as_kafka_describes_it() -> None:
    assert shown(describe_topic(config_before(), DESCRIBED["topic_config_before"])) == DESCRIBED["topic_static"]
    assert shown(describe_topic(config_after(), DESCRIBED["topic_config"])) == DESCRIBED["topic_dynamic"]
