"""The settings that topics of a cluster have, as its brokers name them: another version of Kafka has others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.administration.topic_settings import COMMON_SETTINGS, KnownSetting, known_settings
from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.cluster.config_entries import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource
from barnabas.client.admin.topics.topics import NewTopic
from barnabas.console.cluster.settings_list import plain
from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.errors import KafkaError

PROBE: Final = "barnabas-console-settings"  # the name of a topic that is validated and not created


@dataclass(frozen=True, slots=True)
class OfferedSettings:
    """`settings` by name. `is_from_brokers`: their defaults are the values of this cluster's brokers, otherwise those of Kafka."""

    settings: tuple[KnownSetting, ...]
    is_from_brokers: bool

    @property
    def common(self) -> tuple[KnownSetting, ...]:
        """Those that people set most."""
        by_name = {setting.name: setting for setting in self.settings}
        return tuple(by_name[name] for name in COMMON_SETTINGS if name in by_name)


async def offered_settings(admin: AsyncAdmin, snapshot: ClusterSnapshot) -> OfferedSettings:
    """What the brokers say about a topic that exists; without one, about one that they validate; where they say nothing, Kafka's."""
    for topic in _examples(snapshot):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        try:
            described = await admin.describe_configs([resource], include_synonyms=True, include_documentation=True)
            return _offered(described[resource].entries)
        except KafkaError:
            continue  # deleted meanwhile, or not allowed
    try:
        config = (await admin.create_topics([NewTopic(PROBE)], validate_only=True))[PROBE].config
    except KafkaError:
        config = None
    if config is not None and config.entries:
        return _offered(config.entries)
    return OfferedSettings(known_settings(), is_from_brokers=False)


def _examples(snapshot: ClusterSnapshot) -> list[str]:
    """One topic of people, and one internal topic."""
    own = next((name for name, topic in snapshot.topics.items() if not topic.is_internal), None)
    internal = next((name for name, topic in snapshot.topics.items() if topic.is_internal), None)
    return [name for name in (own, internal) if name is not None]


def _offered(entries: Iterable[ConfigEntry]) -> OfferedSettings:
    documented = {setting.name: setting.documentation for setting in known_settings()}
    made = [
        KnownSetting(entry.name, plain(entry.documentation) or documented.get(entry.name, ""), _value_of_brokers(entry))
        for entry in entries
    ]
    return OfferedSettings(tuple(sorted(made, key=lambda setting: setting.name)), is_from_brokers=True)


def _value_of_brokers(entry: ConfigEntry) -> str:
    """The value that a topic without this setting has."""
    if entry.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG:
        return entry.value or ""
    return next((synonym.value for synonym in entry.synonyms if synonym.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG), None) or ""
