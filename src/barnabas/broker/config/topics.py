"""Whether a topic may have these settings: what CreateTopics and AlterConfigs ask before anything is written.

Stricter than reading them back: a log is opened with what stands in the tree, but nobody may set what Kafka would refuse.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_configs import topic_config_key


def validate_topic(properties: Mapping[str, str], config: BrokerConfig) -> LogConfig:
    """The config a topic with these settings has on this broker; raises InvalidConfig with Kafka's words."""
    keys = {name: topic_config_key(name) for name in properties}
    values = {name: key.parse(properties[name]) for name, key in keys.items()}
    if values.get("remote.storage.enable"):
        raise InvalidConfig("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
    return LogConfig.from_properties(properties, config.log_config())
