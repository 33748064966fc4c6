"""The base class for client.quota.callback.class: a Python class, named by its dotted path, that decides the quotas of clients.

The names are Kafka's ClientQuotaCallback in Python's spelling. One instance decides all four types of quotas. It is called on the event
loop, so no method may wait. Without such a class `barnabas.broker.quotas.default_quotas` decides, by Kafka's order of precedence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from barnabas.security.principal import KafkaPrincipal


class ClientQuotaType(Enum):
    """The value is Kafka's name of the type, in the names of metrics."""

    PRODUCE = "Produce"  # bytes a second
    FETCH = "Fetch"  # bytes a second
    REQUEST = "Request"  # percent of the time of the event loop
    CONTROLLER_MUTATION = "ControllerMutation"  # created and deleted partitions a second


class DefaultName(Enum):
    """The name of a default entity, which no user and no client can have."""

    DEFAULT = "<default>"


DEFAULT: Final = DefaultName.DEFAULT


@dataclass(frozen=True, slots=True)
class ClientQuotaEntity:
    """The users and clients that a configured quota is for. `user` and `client_id` are names as clients have them, not as znodes have them.
    None: the entity has no such part. DEFAULT: all users or clients that have no quota of their own."""

    user: str | DefaultName | None
    client_id: str | DefaultName | None

    def __str__(self) -> str:
        """As Kafka's log has it: `user alice client-id reports`."""
        parts = (_part("user", self.user), _part("client-id", self.client_id))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """`leader` is None while the partition has no leader that is alive."""

    topic: str
    partition: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """Brokers and partitions as the metadata cache of this broker has them, without topics that are being deleted."""

    cluster_id: str
    broker_ids: Sequence[int]
    partitions: Sequence[ClusterPartition]


class ClientQuotaCallback:
    """Subclasses implement `quota_metric_tags` and `quota_limit`, and the others as needed."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Takes the settings of the broker, once, before any other call."""

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: KafkaPrincipal, client_id: str) -> Mapping[str, str]:
        """The tags of the quota that a request is charged to. Clients with equal tags share one quota. Called for each request."""
        raise NotImplementedError

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The bound of a quota by its tags; None: unlimited. Called for new tags, and after each change."""
        raise NotImplementedError

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        """The configured quota of an entity is set or changed."""

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        """The configured quota of an entity is removed."""

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """True once after bounds have changed for another reason than the calls of `update_quota`, `remove_quota` and
        `update_cluster_metadata`. Called for each request."""
        return False

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Brokers or partitions have changed. Returns whether bounds have changed with them."""
        return False

    def reconfigurable_configs(self) -> Collection[str]:
        """The names of dynamic settings of the broker that this class uses; they need not be Kafka's."""
        return ()

    def validate_reconfiguration(self, configs: Mapping[str, Any]) -> None:
        """Raises `barnabas.config_def.InvalidConfig` if these settings cannot be used. A client that sets one of them gets the error."""

    def reconfigure(self, configs: Mapping[str, Any]) -> None:
        """Takes the settings of the broker, after one of `reconfigurable_configs` has changed."""

    def close(self) -> None:
        """The broker stops."""


def _part(kind: str, name: str | DefaultName | None) -> str:
    if name is None:
        return ""
    return f"default {kind}" if name is DEFAULT else f"{kind} {name}"
