"""Validates topic configs for CreateTopics and AlterConfigs, before they are written.

This is stricter than reading them: a log opens with whatever the metadata store has, but a client cannot set what Kafka would reject.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_configs import topic_config_key


def validate_topic(properties: Mapping[str, str], config: BrokerConfig) -> LogConfig:
    """The LogConfig of a topic with these configs on this broker. Raises InvalidConfig with Kafka's message."""
    keys = {name: topic_config_key(name) for name in properties}
    values = {name: key.parse(properties[name]) for name, key in keys.items()}
    if values.get("remote.storage.enable"):
        raise InvalidConfig("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
    return LogConfig.from_properties(properties, config.log_config())
