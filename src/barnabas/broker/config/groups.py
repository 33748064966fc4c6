"""The configs of a group, which override the settings of the broker for all groups of its type.

The broker's `group.*.min.*` and `group.*.max.*` limit the values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.describe import ConfigEntry, ConfigSynonym
from barnabas.config_def import (
    ConfigKey,
    ConfigSource,
    Importance,
    InvalidConfig,
    OneOf,
    Range,
    Type,
    Validator,
    invalid,
    table,
    value_text,
)


class OffsetResetValidator:
    """The start offset of a share group: earliest, latest, or by_duration with an ISO 8601 duration."""

    # Java's Duration: days, hours, minutes, seconds. Kafka parses negative durations and rejects them; here they do not match.
    _DURATION: Final = re.compile(
        r"P(?=[0-9T])([0-9]{1,9}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}([.,][0-9]{0,9})?S)?)?", re.IGNORECASE
    )

    def check(self, name: str, value: Any) -> None:
        if value in ("earliest", "latest"):
            return
        kind, separator, duration = value.partition(":")
        if kind != "by_duration" or not separator or not self._DURATION.fullmatch(duration):
            message = f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or "
            raise invalid(name, value, message + "of the format 'by_duration:<PnDTnHnMn.nS>'.")


def _key(name: str, kind: Type, default: Any, validator: Validator, doc: str) -> ConfigKey:
    return ConfigKey(name, kind, default, validator, Importance.MEDIUM, doc)


# fmt: off
GROUP_CONFIGS: Final = table((
    _key("consumer.heartbeat.interval.ms", Type.INT, 5_000, Range(1),
         "How often members of this consumer group report."),
    _key("consumer.session.timeout.ms", Type.INT, 45_000, Range(1),
         "A member of this consumer group that is silent for so long is taken for dead."),
    _key("share.auto.offset.reset", Type.STRING, "latest", OffsetResetValidator(),
         "Where this share group begins to read a partition: earliest, latest, or by_duration:PT1H for an hour ago."),
    _key("share.heartbeat.interval.ms", Type.INT, 5_000, Range(1),
         "How often members of this share group report."),
    _key("share.isolation.level", Type.STRING, "read_uncommitted", OneOf(("read_committed", "read_uncommitted")),
         "Whether this share group is given records of open and aborted transactions."),
    _key("share.record.lock.duration.ms", Type.INT, 30_000, Range(1_000),
         "How long a record stays with the consumer it was handed to before another one may get it."),
    _key("share.session.timeout.ms", Type.INT, 45_000, Range(1),
         "A member of this share group that is silent for so long is taken for dead."),
    _key("streams.heartbeat.interval.ms", Type.INT, 5_000, Range(1),
         "How often members of this streams group report."),
    _key("streams.initial.rebalance.delay.ms", Type.INT, 3_000, Range(0),
         "How long the first assignment of this streams group waits for more members."),
    _key("streams.num.standby.replicas", Type.INT, 0, Range(0),
         "Copies of each state store that this streams group keeps warm."),
    _key("streams.session.timeout.ms", Type.INT, 45_000, Range(1),
         "A member of this streams group that is silent for so long is taken for dead."),
))
# fmt: on

# The defaults of these configs are settings of the broker, whose names have the prefix `group.`.
_BROKER_DEFAULTS: Final = frozenset(GROUP_CONFIGS) - {"share.auto.offset.reset", "share.isolation.level"}


def validate_group(properties: Mapping[str, str], config: BrokerConfig) -> None:
    """Raises InvalidConfig with Kafka's message. As in Kafka, a config that is not set counts with Kafka's default, not the broker's."""
    for name in properties:
        if name not in GROUP_CONFIGS:
            raise InvalidConfig(f"Unknown group config name: {name}")
    values = {name: key.parse(properties[name]) if name in properties else key.default for name, key in GROUP_CONFIGS.items()}
    for kind in ("consumer", "share"):
        _within(values, config, kind, "heartbeat.interval.ms")
        _within(values, config, kind, "session.timeout.ms")
    _within(values, config, "share", "record.lock.duration.ms")
    _within(values, config, "streams", "heartbeat.interval.ms")
    _within(values, config, "streams", "session.timeout.ms")
    if values["streams.num.standby.replicas"] > config.number("group.streams.max.standby.replicas"):
        raise InvalidConfig("streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise InvalidConfig(f"{session} must be greater than {heartbeat}")


def group_value(properties: Mapping[str, str], config: BrokerConfig, name: str) -> Any:
    """The effective value of a config for a group that has set `properties`."""
    key = GROUP_CONFIGS[name]
    if name in properties:
        return key.parse(properties[name])
    return config[f"group.{name}"] if name in _BROKER_DEFAULTS else key.default


def describe_group(config: BrokerConfig, group: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    entries = []
    for name in sorted({*GROUP_CONFIGS, *group}):
        if names is not None and name not in names:
            continue
        key = GROUP_CONFIGS.get(name)
        # The value of an unknown config, set by another version, may be a secret and is not shown.
        value = None if key is None else value_text(group_value(group, config, name))
        source = ConfigSource.DYNAMIC_GROUP_CONFIG if name in group else ConfigSource.DEFAULT_CONFIG
        kind, doc = (0, None) if key is None else (int(key.type), key.doc)
        entries.append(ConfigEntry(name, value, source, key is None, False, (ConfigSynonym(name, value, source),), kind, doc))
    return entries


def _within(values: Mapping[str, Any], config: BrokerConfig, kind: str, name: str) -> None:
    low, high = f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
    if values[f"{kind}.{name}"] < config.number(low):
        raise InvalidConfig(f"{kind}.{name} must be greater than or equal to {low}")
    if values[f"{kind}.{name}"] > config.number(high):
        raise InvalidConfig(f"{kind}.{name} must be less than or equal to {high}")
