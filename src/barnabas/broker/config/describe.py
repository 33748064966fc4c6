"""The entries of DescribeConfigs: each setting with its value, its source, and its synonyms in other sources.

The synonyms are in order of precedence: the topic, this broker, the cluster-wide default, server.properties, Kafka's default. The values of
passwords are hidden, and those of unknown settings too, because they may be passwords.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.broker.config.definitions import BROKER_CONFIGS
from barnabas.broker.config.dynamic import DynamicBrokerConfig, is_read_only
from barnabas.broker.config.synonyms import broker_config_synonyms, config_key
from barnabas.config_def import ConfigKey, ConfigResourceType, ConfigSource, Type, value_text
from barnabas.storage.topic_configs import TOPIC_CONFIGS, topic_config_key

_DEFAULTS: Final = {name: text for name, key in BROKER_CONFIGS.items() if (text := value_text(key.default)) is not None}


@dataclass(frozen=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    type: int
    doc: str | None


def describe_broker(config: DynamicBrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """All settings of this broker, or those in `names`, sorted by name."""
    current = config.current
    shown = {name for name, key in BROKER_CONFIGS.items() if not key.hidden} | set(current.properties)
    return [_broker_entry(config, name, _broker_value(config, name)) for name in sorted(shown) if names is None or name in names]


def describe_broker_default(config: DynamicBrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Only the settings that are set as the cluster-wide default."""
    return [
        _broker_entry(config, name, text, only=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        for name, text in sorted(config.default.items())
        if names is None or name in names
    ]


def describe_topic(config: DynamicBrokerConfig, topic: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """All settings of a topic. `topic` has those that are set for it."""
    shown = {name for name, key in TOPIC_CONFIGS.items() if not key.hidden} | set(topic)
    return [_topic_entry(config, topic, name) for name in sorted(shown) if names is None or name in names]


def _broker_value(config: DynamicBrokerConfig, name: str) -> str | None:
    return value_text(config.current[name]) if name in BROKER_CONFIGS else config.current.properties[name]


def _broker_entry(config: DynamicBrokerConfig, name: str, value: str | None, only: ConfigSource | None = None) -> ConfigEntry:
    key = config_key(name)
    synonyms = tuple(synonym for synonym in _synonyms(config, name, _hides(key)) if only is None or synonym.source is only)
    return _entry(name, value, key, synonyms, is_read_only(name))


def _topic_entry(config: DynamicBrokerConfig, topic: Mapping[str, str], name: str) -> ConfigEntry:
    if name not in TOPIC_CONFIGS:  # set by an older version of Kafka
        return _entry(name, None, None, (ConfigSynonym(name, None, ConfigSource.DYNAMIC_TOPIC_CONFIG),), read_only=False)
    key, own = topic_config_key(name), name in topic
    value = value_text(key.parse(topic[name]) if own else config.current.topic_default(name))
    synonyms = _synonyms(config, key.synonyms[0].name, hide=False) if key.synonyms else ()
    if own:
        synonyms = (ConfigSynonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms)
    return _entry(name, value, key, synonyms, read_only=False)


def _entry(name: str, value: str | None, key: ConfigKey | None, synonyms: tuple[ConfigSynonym, ...], read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    hides = _hides(key)
    kind, doc = (int(Type.UNKNOWN), None) if key is None else (int(key.type), key.doc)
    return ConfigEntry(name, None if hides else value, source, hides, read_only, synonyms, kind, doc)


def is_hidden(resource_type: int, name: str) -> bool:
    """Whether the value of a setting must not be shown, in the response of DescribeConfigs or in a log."""
    if resource_type == ConfigResourceType.TOPIC:
        return name not in TOPIC_CONFIGS
    if resource_type == ConfigResourceType.BROKER:
        return _hides(config_key(name))
    return resource_type not in (ConfigResourceType.BROKER_LOGGER, ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS)


def _hides(key: ConfigKey | None) -> bool:
    return key is None or key.sensitive


def _synonyms(config: DynamicBrokerConfig, name: str, hide: bool) -> tuple[ConfigSynonym, ...]:
    """Every source of a value for one of the names of a setting, beginning with the first one under `name` itself."""
    aliases = broker_config_synonyms(name)
    places: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, config.broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, config.default),
        (ConfigSource.STATIC_BROKER_CONFIG, config.static.properties),
        (ConfigSource.DEFAULT_CONFIG, _DEFAULTS),
    )
    synonyms = [
        ConfigSynonym(alias, None if hide else texts[alias], source) for source, texts in places for alias in aliases if alias in texts
    ]
    first = next((at for at, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
    return tuple(synonyms[first:])
