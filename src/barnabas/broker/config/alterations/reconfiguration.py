"""Limits on dynamic changes that depend on the current values: Kafka's validateReconfiguration.

A thread count can change by a factor of two at most, and listeners cannot change while the broker runs. Barnabas does not have these
threads, but gives the same responses as Kafka, for scripts that change them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.listeners import config_prefix, normalised
from barnabas.broker.config.metrics_listener import LISTENER_NAME
from barnabas.broker.config.synonyms import base_name
from barnabas.config_def import InvalidConfig
from barnabas.security.tls.settings import STORE_SETTINGS

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

_THREAD_POOLS: Final = ("num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads")
_NETWORK_THREADS: Final = "num.network.threads"
# Settings of an open listener that can change: limits and certificates. Users and mechanisms of SASL cannot, as in Kafka: a client that may
# alter configs must not be able to log in as another user.
_LISTENER_CONFIGS: Final = ("max.connections", "max.connection.creation.rate", _NETWORK_THREADS, *STORE_SETTINGS)
# Settings that decide who a client is, or name code that the broker runs.
_IDENTITY_CONFIGS: Final = (
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.login.class",
    "ssl.client.auth",
    "ssl.engine.factory.class",
)


def validate_reconfiguration(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raises InvalidConfig with the message that Kafka sends to clients."""
    for name in _THREAD_POOLS:
        _check_thread_count(name, before.number(name), after.number(name))
    for endpoint in before.broker_listeners:
        counts = [config.for_listener(endpoint.listener_name, _NETWORK_THREADS) for config in (before, after)]
        _check_thread_count(_NETWORK_THREADS, *counts)
    _check_cleaner_threads(before.number("log.cleaner.threads"), after.number("log.cleaner.threads"))
    _check_listeners(before, after)


def _check_thread_count(name: str, before: int, after: int) -> None:
    failed = f"Dynamic thread count update validation failed for {name}={after}, value should"
    if after < before // 2:
        raise refused(f"{failed} be at least half the current value {before}")
    if after > before * 2:
        raise refused(f"{failed} not be greater than double the current value {before}")


def _check_cleaner_threads(before: int, after: int) -> None:
    if after < before // 2:
        raise refused(f"Log cleaner threads cannot be reduced to less than half the current value {before}")
    if after > before * 2:
        raise refused(f"Log cleaner threads cannot be increased to more than double the current value {before}")


def _check_listeners(before: BrokerConfig, after: BrokerConfig) -> None:
    old, new = before.security_protocols, after.security_protocols
    for name in [endpoint.listener_name for endpoint in before.listeners] + ([LISTENER_NAME] if before.text("metrics.listener") else []):
        if _fixed(before, name) != _fixed(after, name) or _identity(before, name) != _identity(after, name):
            raise refused(
                f"Configs cannot be updated dynamically for existing listener ListenerName({name}), "
                "restart broker or create a new listener for update"
            )
        if name in new and old[name] != new[name]:
            raise refused(f"Security protocol cannot be updated for existing listener ListenerName({name})")
    if before.advertised_listeners != after.advertised_listeners or before.listeners != after.listeners:
        raise refused("Advertised listeners cannot be altered when using a Raft-based metadata quorum.")


def _fixed(config: BrokerConfig, listener_name: str) -> dict[str, str]:
    """The settings with the prefix of the listener that cannot change."""
    prefix = config_prefix(normalised(listener_name))
    return {name: text for name, text in config.properties.items() if name.startswith(prefix) and base_name(name) not in _LISTENER_CONFIGS}


def _identity(config: BrokerConfig, listener_name: str) -> list[object]:
    """Also without the prefix of the listener: Kafka accepts them so, and ignores them until a restart."""
    return [config.for_listener(listener_name, name) for name in _IDENTITY_CONFIGS]


def refused(message: str) -> InvalidConfig:
    """The error of a dynamic setting that Kafka's validateReconfiguration rejects."""
    return InvalidConfig(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {message} for configuration Invalid dynamic configuration"
    )
