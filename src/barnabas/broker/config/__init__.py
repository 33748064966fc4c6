"""Configs of brokers, topics, groups and client metrics: their definitions, validation, storage and dynamic updates."""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.definitions import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS
from barnabas.broker.config.describe import (
    ConfigEntry,
    ConfigSynonym,
    describe_broker,
    describe_broker_default,
    describe_topic,
)
from barnabas.broker.config.dynamic import DynamicBrokerConfig, validate_dynamic
from barnabas.broker.config.topics import validate_topic

__all__ = [
    "BROKER_CONFIGS",
    "DYNAMIC_ONLY_CONFIGS",
    "BrokerConfig",
    "ConfigEntry",
    "ConfigSynonym",
    "DynamicBrokerConfig",
    "describe_broker",
    "describe_broker_default",
    "describe_topic",
    "validate_dynamic",
    "validate_topic",
]
