"""Client quotas: limits on what users, client ids and addresses may send and fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls, check_controller
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_client_quotas_request as altering
from barnabas.protocol.messages import alter_client_quotas_response as altered
from barnabas.protocol.messages import describe_client_quotas_response as described
from barnabas.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from barnabas.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


class ClientQuotaEntity(Mapping[str, str | None]):
    """The entity of a quota: names by type, such as {"user": "alice", "client-id": None}; None is the default entity of a type."""

    __slots__ = ("_entries",)

    USER: ClassVar[str] = "user"
    CLIENT_ID: ClassVar[str] = "client-id"
    IP: ClassVar[str] = "ip"

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self._entries = dict(entries)

    @staticmethod
    def is_valid_entity_type(entity_type: str) -> bool:
        """Whether it is one of `user`, `client-id` and `ip`."""
        return entity_type in (ClientQuotaEntity.USER, ClientQuotaEntity.CLIENT_ID, ClientQuotaEntity.IP)

    def __getitem__(self, entity_type: str) -> str | None:
        return self._entries[entity_type]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientQuotaEntity) and self._entries == other._entries

    def __repr__(self) -> str:
        return f"ClientQuotaEntity({self._entries!r})"


@dataclass(frozen=True, slots=True)
class ClientQuotaAlteration:
    """The changes to one entity: quotas by name (`producer_byte_rate`, …); None removes a quota."""

    entity: ClientQuotaEntity
    ops: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ClientQuotaFilterComponent:
    """Matches one entity type: a name, the default entity, or (with neither) any entity that has a quota."""

    entity_type: str
    match: str | None = None
    is_default: bool = False

    @classmethod
    def of_entity(cls, entity_type: str, entity_name: str) -> ClientQuotaFilterComponent:
        """Matches the entity of a type that has this name."""
        return cls(entity_type, entity_name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """Matches the default entity of a type."""
        return cls(entity_type, None, True)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """Matches every entity of a type."""
        return cls(entity_type)


@dataclass(frozen=True, slots=True)
class ClientQuotaFilter:
    """Matches the entities that all components match; `strict` excludes entities that have further types."""

    components: Sequence[ClientQuotaFilterComponent] = field(default=())
    strict: bool = False

    @classmethod
    def contains(cls, components: Iterable[ClientQuotaFilterComponent]) -> ClientQuotaFilter:
        """Matches entities that have all these components; they may have others."""
        return cls(tuple(components))

    @classmethod
    def contains_only(cls, components: Iterable[ClientQuotaFilterComponent]) -> ClientQuotaFilter:
        """Matches entities that have these components and no others."""
        return cls(tuple(components), True)

    @classmethod
    def all(cls) -> ClientQuotaFilter:
        """Matches every entity."""
        return cls()


class QuotaCalls:
    """Describes and changes client quotas."""

    _calls: Calls

    async def describe_client_quotas(
        self, filter: ClientQuotaFilter | None = None, *, timeout_ms: int | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas of all entities that match a filter; of all entities by default."""
        quota_filter = ClientQuotaFilter.all() if filter is None else filter
        request = DescribeClientQuotasRequest([_component(component) for component in quota_filter.components], quota_filter.strict)

        def read(response: DescribeClientQuotasResponse) -> dict[ClientQuotaEntity, dict[str, float]]:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            return {_entity(entry.entity): {value.key: value.value for value in entry.values} for entry in response.entries or ()}

        call = self._calls.begin("describe_client_quotas", timeout_ms)
        return await self._calls.request(call, self._calls.any_node, lambda _: request, read)

    async def alter_client_quotas(
        self, entries: Iterable[ClientQuotaAlteration], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[ClientQuotaEntity, None]:
        """Sets and removes quotas; each entity gets all its changes or none."""
        changes: dict[ClientQuotaEntity, ClientQuotaAlteration] = {}
        for entry in entries:
            if entry.entity in changes:
                raise IllegalArgument(f"The entity {entry.entity} is given twice; give all its changes at once")
            changes[entry.entity] = entry

        def build(_: int, entities: Sequence[ClientQuotaEntity]) -> Message:
            return altering.AlterClientQuotasRequest([_alteration(changes[entity]) for entity in entities], validate_only)

        def read(response: AlterClientQuotasResponse) -> ApiResult[ClientQuotaEntity, None]:
            answer: ApiResult[ClientQuotaEntity, None] = ApiResult()
            for entry in response.entries:
                check_controller(entry.error_code, entry.error_message)
                entity = _entity(entry.entity)
                if entry.error_code:
                    answer.failed[entity] = error_for(entry.error_code, entry.error_message)
                else:
                    answer.done[entity] = None
            return answer

        call = self._calls.begin("alter_client_quotas", timeout_ms)
        return await self._calls.request_keys(call, changes, self._calls.any_node, build, read)


def _entity(parts: Iterable[altered.EntityData] | Iterable[described.EntityData]) -> ClientQuotaEntity:
    return ClientQuotaEntity({part.entity_type: part.entity_name for part in parts})


def _component(component: ClientQuotaFilterComponent) -> ComponentData:
    if component.is_default:
        return ComponentData(component.entity_type, _DEFAULT, None)
    return ComponentData(component.entity_type, _ANY if component.match is None else _EXACT, component.match)


def _alteration(change: ClientQuotaAlteration) -> altering.EntryData:
    return altering.EntryData(
        [altering.EntityData(kind, name) for kind, name in change.entity.items()],
        [altering.OpData(key, 0.0 if value is None else float(value), value is None) for key, value in change.ops.items()],
    )
