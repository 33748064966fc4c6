"""Which of several quotas applies to a client, in Kafka's order: the most specific entity that has the quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.admin.access.quotas import ClientQuotaEntity

_USER: Final = ClientQuotaEntity.USER
_CLIENT: Final = ClientQuotaEntity.CLIENT_ID
_NAMES: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")


@dataclass(frozen=True, slots=True)
class Applied:
    """A quota and the entity that it stands at."""

    entity: ClientQuotaEntity
    value: float


def quotas_of(quotas: Mapping[ClientQuotaEntity, Mapping[str, float]], user: str, client_id: str) -> dict[str, Applied | None]:
    """The quota of each name for a client; None if it has no bound."""
    return {name: _first(quotas, name, user, client_id) for name in _NAMES}


def _first(quotas: Mapping[ClientQuotaEntity, Mapping[str, float]], name: str, user: str, client_id: str) -> Applied | None:
    for names in (
        {_USER: user, _CLIENT: client_id},
        {_USER: user, _CLIENT: None},
        {_USER: user},
        {_USER: None, _CLIENT: client_id},
        {_USER: None, _CLIENT: None},
        {_USER: None},
        {_CLIENT: client_id},
        {_CLIENT: None},
    ):
        entity = ClientQuotaEntity(names)
        value = quotas.get(entity, {}).get(name)
        if value is not None:
            return Applied(entity, value)
    return None
