"""Connects the quotas of a broker to their sources: the metadata store, dynamic settings, and for client.quota.callback.class the
metadata of the cluster."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from barnabas.broker.broker import Broker
from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.client_quotas import CLIENT_ID_TYPE, USER_TYPE, QuotaEntity
from barnabas.broker.quotas.client_quota_callback import DEFAULT, ClientQuotaCallback, ClusterMetadata, ClusterPartition, DefaultName
from barnabas.broker.quotas.connection_rates import ConnectionRates
from barnabas.broker.security.python_class import instance_of
from barnabas.broker.topics.metadata_cache import MetadataCache

CALLBACK_CLASS: Final = "client.quota.callback.class"

_log = logging.getLogger(__name__)


def load_callback(config: BrokerConfig) -> ClientQuotaCallback | None:
    """The configured callback; None if the setting is empty. Raises InvalidConfig: a broker whose quotas cannot be decided must not
    start."""
    name = (config.text(CALLBACK_CLASS) or "").strip()
    if not name:
        return None
    callback = instance_of(name, CALLBACK_CLASS, ClientQuotaCallback)
    callback.configure(dict(config.properties))
    return callback


def connection_rates(config: BrokerConfig) -> ConnectionRates:
    return ConnectionRates(
        config.number("quota.window.num"), config.number("quota.window.size.seconds") * 1000, config.number("barnabas.quota.sensors.max")
    )


class QuotaChanges:
    """An error of the callback is logged and changes nothing else: neither a start nor an UpdateMetadata fails with it."""

    def __init__(self, broker: Broker, rates: ConnectionRates) -> None:
        self._broker = broker
        self._rates = rates

    def listen(self) -> None:
        """Called before ConfigManager.start, which reports the quotas that are stored."""
        configs, callback = self._broker.configs, self._broker.quotas.callback
        configs.on_quota_change.append(self._quotas_changed)
        configs.on_ip_quota_change.append(self._rates.rate_changed)
        if callback is not None:
            self._broker.metadata_cache.on_update.append(self._cluster_changed)
            self._broker.config.validators.append(lambda config: _validate(callback, self._broker.config.current, config))
            configs.on_broker_change.append(lambda changed: self._settings_changed(callback, changed))

    def _quotas_changed(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        try:
            self._broker.quotas.quota_changed(_part(entity, USER_TYPE), _part(entity, CLIENT_ID_TYPE), quotas)
        except Exception:
            _log.exception("The quotas of %s are not applied", dict(entity))

    def _cluster_changed(self) -> None:
        try:
            self._broker.quotas.cluster_changed(cluster_metadata(self._broker.cluster_id, self._broker.metadata_cache))
        except Exception:
            _log.exception("The class of %s has not taken the metadata of the cluster", CALLBACK_CLASS)

    def _settings_changed(self, callback: ClientQuotaCallback, changed: frozenset[str]) -> None:
        if changed & set(callback.reconfigurable_configs()):
            callback.reconfigure(dict(self._broker.config.current.properties))


def cluster_metadata(cluster_id: str, cache: MetadataCache) -> ClusterMetadata:
    """What the metadata cache knows, for the callback. It has no topics that are being deleted."""
    partitions: list[ClusterPartition] = []
    for topic in cache.topics():
        for index in cache.partitions(topic):
            state = cache.partition_info(topic, index)
            if state is not None:
                leader = state.leader if cache.has_alive_broker(state.leader) else None
                partitions.append(ClusterPartition(topic, index, leader, tuple(state.replicas), tuple(state.isr)))
    return ClusterMetadata(cluster_id, [broker.id for broker in cache.alive_brokers()], partitions)


def _validate(callback: ClientQuotaCallback, current: BrokerConfig, updated: BrokerConfig) -> None:
    """Raises what the callback raises, if one of its settings would change."""
    before, after = current.properties, updated.properties
    if any(before.get(name) != after.get(name) for name in callback.reconfigurable_configs()):
        callback.validate_reconfiguration(dict(after))


def _part(entity: QuotaEntity, kind: str) -> str | DefaultName | None:
    if kind not in entity:
        return None
    name = entity[kind]
    return DEFAULT if name is None else name
