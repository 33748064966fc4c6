"""The quotas of users, client ids and addresses, as the metadata store has them.

DescribeClientQuotas returns them. ConfigManager reads them at the start and after each notification, and passes them to the objects that
apply them. `quota_alterations.py` changes them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.errors import InvalidRequest
from barnabas.metadata.admin_tree import CLIENT, IP, USER, AdminTree
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, desanitize, sanitize
from barnabas.protocol.errors import UnsupportedVersion

ENTITY_TYPES: Final = (USER, CLIENT, IP)  # the folders of /config that have quotas
USER_TYPE: Final = "user"
CLIENT_ID_TYPE: Final = "client-id"
IP_TYPE: Final = "ip"
EXACT, DEFAULT, SPECIFIED = range(3)  # the match types of a component
CONNECTION_RATE: Final = "connection_creation_rate"
# The quotas of users and client ids, and of addresses, with their types of Kafka's ConfigDef.
QUOTA_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    USER_TYPE: {
        "producer_byte_rate": "LONG",
        "consumer_byte_rate": "LONG",
        "request_percentage": "DOUBLE",
        "controller_mutation_rate": "DOUBLE",
    },
    IP_TYPE: {CONNECTION_RATE: "INT"},
}
_TYPES: Final = (USER_TYPE, CLIENT_ID_TYPE, IP_TYPE)
_JAVA_ORDER: Final = (CLIENT_ID_TYPE, USER_TYPE, IP_TYPE)  # of a HashMap
_IP_ALONE: Final = (
    "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component."
)

_log = logging.getLogger(__name__)

QuotaEntity = Mapping[str, str | None]  # entity type to name; None is the default entity of that type
Quotas = dict[str, float]  # by name


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


async def client_quotas(admin_tree: AdminTree) -> list[tuple[QuotaEntity, Quotas]]:
    """All entities that have quotas."""
    entities: list[tuple[QuotaEntity, Quotas]] = []

    def add(configs: Mapping[str, Mapping[str, str]], entity_type: str, parent: str = "") -> None:
        for name, properties in configs.items():
            entity = entity_of(entity_type, parent + name)
            if entity is not None and (quotas := quotas_of(entity, properties)):
                entities.append((entity, quotas))

    users = await admin_tree.fetch_all_configs(USER)
    add(users, USER)
    for user, clients in (await admin_tree.fetch_all_child_configs(USER, list(users), CLIENT)).items():
        add(clients, USER, f"{user}/{CLIENT}/")
    add(await admin_tree.fetch_all_configs(CLIENT), CLIENT)
    add(await admin_tree.fetch_all_configs(IP), IP)
    return entities


def entity_znode(entity: QuotaEntity) -> tuple[str, str]:
    """The type and sanitized path below /config of an entity: ("users", "al%20ice/clients/c1")."""
    if IP_TYPE in entity:
        return IP, _znode_name(entity[IP_TYPE])
    if USER_TYPE not in entity:
        return CLIENT, _znode_name(entity[CLIENT_ID_TYPE])
    user = _znode_name(entity[USER_TYPE])
    return USER, f"{user}/{CLIENT}/{_znode_name(entity[CLIENT_ID_TYPE])}" if CLIENT_ID_TYPE in entity else user


def entity_of(entity_type: str, path: str) -> QuotaEntity | None:
    """The entity of a znode; the opposite of `entity_znode`. None for a path that Kafka does not write."""
    if entity_type != USER:
        return {CLIENT_ID_TYPE if entity_type == CLIENT else IP_TYPE: _name(path)}
    match path.split("/"):
        case [user]:
            return {USER_TYPE: _name(user)}
        case [user, _, client]:
            return {USER_TYPE: _name(user), CLIENT_ID_TYPE: _name(client)}
    return None


def entity_text(entity: QuotaEntity) -> str:
    """As Kafka prints it in errors."""
    kinds = sorted(entity, key=lambda kind: _JAVA_ORDER.index(kind) if kind in _JAVA_ORDER else len(_JAVA_ORDER))
    parts = ", ".join(f"{kind}={'null' if entity[kind] is None else entity[kind]}" for kind in kinds)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def quotas_of(entity: QuotaEntity, properties: Mapping[str, str]) -> Quotas:
    """The quotas in a znode, without the credentials of a user. A value that is no number was written by hand, and is skipped."""
    quotas: Quotas = {}
    for name in QUOTA_TYPES[IP_TYPE if IP_TYPE in entity else USER_TYPE].keys() & properties.keys():
        try:
            value = float(properties[name])
        except ValueError:
            value = math.nan
        if math.isnan(value):
            _log.error("The quota %s of %s is ignored: %r is no number", name, entity_text(entity), properties[name])
        else:
            quotas[name] = value
    return dict(sorted(quotas.items()))


def _name(sanitized: str) -> str | None:
    return None if sanitized == DEFAULT_ENTITY else desanitize(sanitized)


def _znode_name(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitize(name)
