"""A cluster in the name of one person: an admin client, snapshots, and consumers and producers with the same credentials.

Visitors of a cluster without a login share one session. A session is created on its first use, and closed after some time without use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.config.config import SharedSettings
from barnabas.console.cluster.broker_metrics import BrokerMetrics
from barnabas.console.cluster.sampler import Sampler
from barnabas.console.cluster.settings_cache import SettingsCache
from barnabas.console.config import ClusterConfig
from barnabas.protocol.errors import UnsupportedVersion

if TYPE_CHECKING:
    from barnabas.client.consumer.async_consumer import AsyncConsumer
    from barnabas.client.producer.async_producer import AsyncProducer

_ADMIN_SETTINGS = {
    "client.id": "barnabas-console",
    "enable.metrics.push": "false",
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
}


class ClusterSession:
    """`settings` are those of the cluster's clients, with the visitor's credentials: never show them. `user` is None without a login."""

    def __init__(self, config: ClusterConfig, user: str | None = None, password: str | None = None) -> None:
        self.config = config
        self.name = config.name
        self.user = user
        self.settings: Mapping[str, object] = dict(config.client) | (
            {} if user is None else {"sasl.username": user, "sasl.password": password}
        )
        self.admin = AsyncAdmin(SharedSettings({**_ADMIN_SETTINGS, **self.settings}))
        self.snapshots = Sampler(self.admin, BrokerMetrics(config.metrics, self.settings))
        self.configs = SettingsCache(self.admin)
        self._producer: AsyncProducer | None = None
        self._apis: frozenset[int] | None = None

    def consumer(self, **settings: object) -> AsyncConsumer[Any, Any]:
        """A consumer without a group; `settings` have `_` for `.`. The caller closes it."""
        from barnabas.client.consumer.async_consumer import AsyncConsumer

        own: dict[str, object] = {"client.id": "barnabas-console", "enable.metrics.push": "false", "enable.auto.commit": "false"}
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return AsyncConsumer(SharedSettings({**own, **self.settings, **given}))

    async def producer(self) -> AsyncProducer[Any, Any]:
        """The producer of this session, which is closed with it."""
        from barnabas.client.producer.async_producer import AsyncProducer

        if self._producer is None:
            own = {
                "client.id": "barnabas-console",
                "enable.metrics.push": "false",
                "delivery.timeout.ms": "20000",
                "linger.ms": "0",
                "request.timeout.ms": "10000",
            }
            self._producer = AsyncProducer(SharedSettings({**own, **self.settings}))
        return self._producer

    async def apis(self) -> frozenset[int]:
        """The keys of the APIs that every broker offers, to say what a cluster does not have."""
        if self._apis is None:
            versions = (await self.admin.describe_api_versions()).successes.values()
            keys = [frozenset(of_node.api_versions) for of_node in versions]
            if not keys:
                raise UnsupportedVersion("No broker has said which APIs it offers")
            self._apis = frozenset.intersection(*keys)
        return self._apis

    def changed(self) -> None:
        """After a change: what was read before it is not shown any more."""
        self.snapshots.stale()
        self.configs.forget()

    async def close(self) -> None:
        await self.snapshots.close()
        if self._producer is not None:
            await self._producer.close()
        await asyncio.shield(self.admin.close(1_000))
