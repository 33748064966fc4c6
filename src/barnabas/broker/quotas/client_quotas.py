"""The quotas of clients: produced bytes, fetched bytes, time of requests, changes of topics. A broker has one `ClientQuotas`.

`quota_changed` receives every entity of the metadata store when the broker starts, and each entity that changes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.broker.quotas.client_quota import ClientQuota
from barnabas.broker.quotas.client_quota_callback import (
    ClientQuotaCallback,
    ClientQuotaEntity,
    ClientQuotaType,
    ClusterMetadata,
    DefaultName,
)
from barnabas.broker.quotas.default_quotas import DefaultQuotas
from barnabas.broker.quotas.mutation_quota import MutationQuotas
from barnabas.broker.quotas.quota_rules import CallbackQuotas, QuotaRules
from barnabas.broker.quotas.rate_quota import RateQuota
from barnabas.broker.quotas.request_quota import RequestQuota

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"


class ClientQuotas:
    """`number` returns the value of a setting of the broker that cannot change while it runs. With a `callback` the callback decides, and
    what is configured is only passed on to it."""

    def __init__(self, number: Callable[[str], int], callback: ClientQuotaCallback | None = None) -> None:
        self.callback = callback
        sensors_max = number("barnabas.quota.sensors.max")
        samples, window_ms = number("quota.window.num"), number("quota.window.size.seconds") * 1000

        def rules(quota_type: ClientQuotaType) -> QuotaRules:
            return DefaultQuotas() if callback is None else CallbackQuotas(quota_type, callback)

        self.produce = RateQuota(rules(ClientQuotaType.PRODUCE), sensors_max, samples, window_ms)
        self.fetch = RateQuota(rules(ClientQuotaType.FETCH), sensors_max, samples, window_ms)
        self.request = RequestQuota(rules(ClientQuotaType.REQUEST), sensors_max, samples, window_ms)
        self.controller_mutation = MutationQuotas(
            rules(ClientQuotaType.CONTROLLER_MUTATION),
            sensors_max,
            number("controller.quota.window.num"),
            number("controller.quota.window.size.seconds") * 1000,
        )
        self._by_name: dict[str, ClientQuota[Any]] = {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.controller_mutation,
        }

    def quota_changed(self, user: str | DefaultName | None, client_id: str | DefaultName | None, values: Mapping[str, float]) -> None:
        """Takes all quotas of one entity. A quota that is not among the values is removed. Names are as clients have them, DEFAULT stands
        for the default entity, and None says that the entity has no such part."""
        entity = ClientQuotaEntity(user, client_id)
        for name, quota in self._by_name.items():
            quota.update(entity, values.get(name))

    def cluster_changed(self, cluster: ClusterMetadata) -> None:
        """Passes brokers and partitions on to the callback. Only for a broker with a callback."""
        if self.callback is not None and self.callback.update_cluster_metadata(cluster):
            for quota in self._by_name.values():
                quota.bounds_changed()

    def close(self) -> None:
        if self.callback is not None:
            self.callback.close()
