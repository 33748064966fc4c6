"""The quotas of users, client ids and addresses, as the metadata store has them: DescribeClientQuotas.

kafka-configs asks for them when it lists users. This broker does not apply quotas, and does not change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.errors import InvalidRequest
from barnabas.metadata.admin_tree import CLIENT, IP, USER, AdminTree
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, desanitize
from barnabas.protocol.errors import UnsupportedVersion

USER_TYPE: Final = "user"
CLIENT_ID_TYPE: Final = "client-id"
IP_TYPE: Final = "ip"
EXACT, DEFAULT, SPECIFIED = range(3)  # the match types of a component
_TYPES: Final = (USER_TYPE, CLIENT_ID_TYPE, IP_TYPE)
_QUOTAS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate"}
)
_IP_ALONE: Final = (
    "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component."
)

QuotaEntity = Mapping[str, str | None]  # entity type to name; None is the default entity of that type


@dataclass(frozen=True, slots=True)
class FilterComponent:
    entity_type: str
    match_type: int
    match: str | None


class QuotaFilter:
    """Kafka 4.2's checks. Raises KafkaError."""

    def __init__(self, components: Sequence[FilterComponent], is_strict: bool) -> None:
        self._exact: dict[str, str | None] = {}
        self._specified: set[str] = set()
        self._is_strict = is_strict
        for component in components:
            self._add(component)
        given = self._exact.keys() | self._specified
        if IP_TYPE in given and len(given) > 1:
            raise InvalidRequest(_IP_ALONE)

    def matches(self, entity: QuotaEntity) -> bool:
        if self._is_strict and len(entity) != len(self._exact) + len(self._specified):
            return False
        return self._specified <= entity.keys() and self._exact.items() <= entity.items()

    def _add(self, component: FilterComponent) -> None:
        kind = component.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind in self._exact or kind in self._specified:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _TYPES:
            raise UnsupportedVersion(f"Unsupported entity type {kind}")
        if component.match_type == EXACT:
            if component.match is None:
                raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            self._exact[kind] = component.match
            return
        name = {DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}.get(component.match_type)
        if name is None:
            raise InvalidRequest(f"Unknown match type {component.match_type}")
        if component.match is not None:
            raise InvalidRequest(f"Request specified {name}, but also specified a match string.")
        if component.match_type == DEFAULT:
            self._exact[kind] = None
        else:
            self._specified.add(kind)


async def client_quotas(admin_tree: AdminTree) -> list[tuple[QuotaEntity, dict[str, float]]]:
    """All entities that have quotas."""
    entities: list[tuple[QuotaEntity, dict[str, float]]] = []

    def add(configs: Mapping[str, Mapping[str, str]], kind: str, **parent: str | None) -> None:
        for name, properties in configs.items():
            if quotas := _quotas(properties):
                entities.append(({**parent, kind: _name(name)}, quotas))

    users = await admin_tree.fetch_all_configs(USER)
    add(users, USER_TYPE)
    for user, clients in (await admin_tree.fetch_all_child_configs(USER, list(users), CLIENT)).items():
        add(clients, CLIENT_ID_TYPE, **{USER_TYPE: _name(user)})
    add(await admin_tree.fetch_all_configs(CLIENT), CLIENT_ID_TYPE)
    add(await admin_tree.fetch_all_configs(IP), IP_TYPE)
    return entities


def _name(sanitized: str) -> str | None:
    return None if sanitized == DEFAULT_ENTITY else desanitize(sanitized)


def _quotas(properties: Mapping[str, str]) -> dict[str, float]:
    """Without the credentials of the user."""
    return {name: float(text) for name, text in properties.items() if name in _QUOTAS}
