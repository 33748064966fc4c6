"""Every setting of a broker, a topic, a group and a subscription works, or is refused with a reason, or has no effect and is warned of.

A setting works if the sources outside of the definitions read it. That it then does what Kafka's does is tested next to the module that
uses it.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from barnabas.broker.config import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS, BrokerConfig
from barnabas.broker.config.client_metrics import CLIENT_METRICS_CONFIGS
from barnabas.broker.config.definitions.without_effect import BROKER_WITHOUT_EFFECT, ENTITIES_WITHOUT_EFFECT
from barnabas.broker.config.groups import GROUP_CONFIGS
from barnabas.broker.config.validation import REFUSED
from barnabas.config_def import InvalidConfig
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_configs import TOPIC_CONFIGS, topic_config_key
from tests.readings import Readings

SETTINGS_PAGE = Path(__file__).parents[4] / "docs" / "settings.md"
# Modules that only check settings or pass them on. A setting that nothing else reads has no effect.
CHECKS = (
    "broker/config/definitions/",
    "broker/config/dynamic.py",
    "broker/config/groups.py",
    "broker/config/alterations/reconfiguration.py",
    "broker/config/synonyms.py",
    "broker/config/validation.py",
    "client/",
    "cli",
    "security/settings_without_effect.py",
    "simulation/",
    "storage/topic_configs.py",
    "testing.py",
    "tools/",
)
# Settings of topics that other modules than LogConfig read, by their names.
READ_BY_NAME = {
    "follower.replication.throttled.replicas",
    "internal.segment.bytes",
    "leader.replication.throttled.replicas",
    "unclean.leader.election.enable",
}
BROKER = BROKER_CONFIGS | DYNAMIC_ONLY_CONFIGS
TOPIC_WITHOUT_EFFECT = ENTITIES_WITHOUT_EFFECT["topics"]
GROUP_WITHOUT_EFFECT = ENTITIES_WITHOUT_EFFECT["groups"]
# Limits of the configs of groups, which broker/config/groups.py reads.
LIMITS = {f"group.consumer.{bound}.{name}" for bound in ("min", "max") for name in ("heartbeat.interval.ms", "session.timeout.ms")}
# Other names of a setting.
SYNONYMS = {"node.id": "broker.id"}


@cache
def readings() -> Readings:
    return Readings(CHECKS)


@cache
def fields_read() -> frozenset[str]:
    """The settings whose field of a coordinator's config is read."""
    read = readings().attributes
    names = [field.name for config in (GroupCoordinatorConfig, TransactionConfig) for field in fields(config)]
    return frozenset(name.replace("_", ".") for name in names if name in read)


@cache
def topic_settings_read() -> frozenset[str]:
    read = readings().attributes
    names = {field.metadata["name"] for field in fields(LogConfig) if field.name in read}
    return frozenset(names | (readings().texts & READ_BY_NAME))


def works(name: str) -> bool:
    if name in LIMITS or SYNONYMS.get(name) is not None:
        return True
    topics = defaulted_by(name)
    if topics:
        return bool(topics & topic_settings_read())
    return readings().has(name) or name in fields_read()


def defaulted_by(name: str) -> set[str]:
    """The settings of topics whose default is this setting of the broker."""
    return {topic for topic in TOPIC_CONFIGS if any(synonym.name == name for synonym in topic_config_key(topic).synonyms)}


@pytest.mark.parametrize("name", BROKER)
def test_a_setting_of_a_broker_works_or_is_refused_or_is_warned_of(name: str) -> None:
    tables = [works(name), name in REFUSED, name in BROKER_WITHOUT_EFFECT]
    assert sum(tables) == 1, f"{name}: works, is refused, has no effect = {tables}"


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_a_setting_of_a_topic_works_or_is_warned_of(name: str) -> None:
    if name != "remote.storage.enable":  # refused: test_broker_config.py
        assert (name in topic_settings_read()) != (name in TOPIC_WITHOUT_EFFECT)


@pytest.mark.parametrize("name", GROUP_CONFIGS)
def test_a_setting_of_a_group_works_or_is_warned_of(name: str) -> None:
    assert readings().has(name) != (name in GROUP_WITHOUT_EFFECT)


@pytest.mark.parametrize("name", CLIENT_METRICS_CONFIGS)
def test_a_setting_of_a_subscription_works(name: str) -> None:
    assert name in readings().texts


def test_a_broker_warns_of_each_setting_that_is_set() -> None:
    config = BrokerConfig.from_properties({"num.io.threads": "8", "listener.name.plaintext.num.network.threads": "3", "broker.id": "1"})
    threads = "has no effect here, because a broker is one event loop, which has no pools of threads"
    assert config.without_effect() == [
        f"The setting listener.name.plaintext.num.network.threads {threads}",
        f"The setting num.io.threads {threads}",
    ]


def test_the_table_has_known_settings_only() -> None:
    assert BROKER_WITHOUT_EFFECT.keys() <= BROKER.keys()
    assert TOPIC_WITHOUT_EFFECT.keys() <= TOPIC_CONFIGS.keys()
    assert GROUP_WITHOUT_EFFECT.keys() <= GROUP_CONFIGS.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_setting_stops_the_start_with_its_reason(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name} must be false: {REFUSED[name]}"):
        BrokerConfig.from_properties({name: "true"})
    assert BrokerConfig.from_properties({name: "false"}).without_effect() == []


TABLES = {"brokers": BROKER_WITHOUT_EFFECT, **ENTITIES_WITHOUT_EFFECT}


@pytest.mark.parametrize("kind", TABLES)
def test_the_page_shows_the_settings_without_effect(kind: str) -> None:
    """One row for each reason, in the order of the table; after a change copy the rows that the failure shows."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in TABLES[kind].items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {reason} | {', '.join(sorted(names))} |" for reason, names in by_reason.items()]
    section = SETTINGS_PAGE.read_text().partition(f"\n### Of {kind}\n")[2].partition("\n#")[0]
    shown = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| because")]
    assert shown == rows
