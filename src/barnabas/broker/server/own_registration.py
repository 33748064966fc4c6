"""The registration of this broker in the metadata store, and its change while the broker runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from barnabas.broker.broker import Broker
from barnabas.broker.cluster.registration import register
from barnabas.broker.config import BrokerConfig
from barnabas.endpoint import EndPoint
from barnabas.metadata import paths
from barnabas.metadata.tree import SetData
from barnabas.metadata.znodes import cluster

PATIENCE_MS: Final = 20_000  # added to the session timeout: a ZooKeeper server may grant a longer one than requested


class OwnRegistration:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._registered: cluster.BrokerRegistration | None = None

    async def register(self, broker: Broker, endpoints: Iterable[EndPoint]) -> int:
        """Creates the broker's znode. Returns the broker epoch, the zxid of the creation."""
        self._registered = cluster.BrokerRegistration(
            endpoints=tuple(endpoints),
            timestamp=broker.clock.now_ms(),
            rack=self._config.text("broker.rack"),
            features={name: {"min_version": low, "max_version": high} for name, (low, high) in broker.features.supported.items()},
            is_cordoned=broker.config.current.is_cordoned,
        )
        patience_ms = 2 * self._config.number("zookeeper.session.timeout.ms") + PATIENCE_MS
        return await register(broker.tree, broker.broker_id, self._registered, patience_ms)

    def with_cordons(self, broker_id: int, is_cordoned: bool) -> SetData | None:
        """The change of the znode from which the controller learns whether all log directories are cordoned. None where nothing changes, or
        before the registration."""
        if self._registered is None or self._registered.is_cordoned == is_cordoned:
            return None
        self._registered = replace(self._registered, is_cordoned=is_cordoned)
        return SetData(paths.broker_id(broker_id), cluster.encode_broker(self._registered))
