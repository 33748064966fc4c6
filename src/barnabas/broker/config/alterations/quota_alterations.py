"""AlterClientQuotas: validates the quotas of each entity separately, then writes them to the metadata store.

Checks and texts are those of Apache Kafka 4.2, except that a quota that is no number (NaN) is refused. The znodes are those of Apache Kafka
3.9: /config/users, /config/clients and /config/ips. A user's znode also has SCRAM credentials, which stay as they are. Nothing is applied
here: every broker, this one included, applies a change when it receives the notification.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.broker.config.client_quotas import CLIENT_ID_TYPE, IP_TYPE, QUOTA_TYPES, USER_TYPE, QuotaEntity, entity_text, entity_znode
from barnabas.broker.scheduling.turns import Turns
from barnabas.errors import InvalidRequest, KafkaError, PolicyViolation
from barnabas.java_numbers import double_text
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.errors import TreeError
from barnabas.protocol.errors import ErrorCode

_log = logging.getLogger(__name__)

ALTERATIONS_MAX: Final = 10_000  # Kafka's limit of changes per request
ENTITIES_PER_SLICE: Final = 50  # written before other requests are served
_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_LARGEST: Final = {"LONG": ("a LONG", _LONG_MAX), "INT": ("an INT", _INT_MAX)}
_FRACTION_MAX: Final = 1e-6

Addresses = Callable[[str], Awaitable[Sequence[str]]]  # resolves a host name, as `Resolver.addresses`
Stored = dict[str, str | None]  # the text of a quota by its name; None removes it


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """The new quotas of an entity, in the order of the request; None removes one."""

    entity: QuotaEntity
    operations: Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class QuotaOutcome:
    entity: QuotaEntity
    error: KafkaError | None = None


class QuotaAlterations:
    """`resolve` returns the addresses of a host, none if it is unknown."""

    def __init__(self, admin_tree: AdminTree, resolve: Addresses, turns: Turns | None = None) -> None:
        self._admin = admin_tree
        self._resolve = resolve
        self._turns = turns

    async def alter(self, alterations: Sequence[QuotaAlteration], validate_only: bool) -> list[QuotaOutcome]:
        """The outcome of each entity, in the order of its first mention. As in Kafka, an entity that is named again fails, although its
        first alteration is made. Raises PolicyViolation for too many changes."""
        if sum(max(1, len(alteration.operations)) for alteration in alterations) > ALTERATIONS_MAX:
            raise PolicyViolation(ErrorCode.POLICY_VIOLATION.message)
        outcomes: dict[frozenset[tuple[str, str | None]], QuotaOutcome] = {}
        for number, alteration in enumerate(alterations, 1):
            key = frozenset(alteration.entity.items())
            names = [name for name, _ in alteration.operations]
            if key in outcomes or len(set(names)) < len(names):
                duplicate = InvalidRequest(f"Ignoring duplicate entity {entity_text(alteration.entity)}")
                outcomes[key] = QuotaOutcome(alteration.entity, duplicate)
            else:
                outcomes[key] = QuotaOutcome(alteration.entity, await self._alter(alteration, validate_only))
            if self._turns is not None and number % ENTITIES_PER_SLICE == 0:
                await self._turns.next("AlterClientQuotas")
        return list(outcomes.values())

    async def _alter(self, alteration: QuotaAlteration, validate_only: bool) -> KafkaError | None:
        entity = alteration.entity
        try:
            check_entity(entity)
            if (ip := entity.get(IP_TYPE)) is not None and not await self._resolve(ip):
                raise InvalidRequest(f"{ip} is not a valid IP or resolvable host.")
            stored = stored_quotas(entity, alteration.operations)
            if not validate_only:
                await self._admin.update_config(*entity_znode(entity), partial(_changed, stored))
        except KafkaError as error:
            _log.info("The quotas of %s are not altered: %s", entity_text(entity), error)
            return error
        except TreeError as error:
            _log.warning("The quotas of %s cannot be written: %s", entity_text(entity), type(error).__name__)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR.message)
        return None


def check_entity(entity: QuotaEntity) -> None:
    """Raises InvalidRequest for an entity that cannot have quotas."""
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER_TYPE, CLIENT_ID_TYPE, IP_TYPE):
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    if IP_TYPE in entity and len(entity) > 1:
        raise InvalidRequest("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")


def stored_quotas(entity: QuotaEntity, operations: Sequence[tuple[str, float | None]]) -> Stored:
    """What is written for each quota: its text, or None to remove it. Raises InvalidRequest."""
    types = QUOTA_TYPES[IP_TYPE if IP_TYPE in entity else USER_TYPE]
    stored: Stored = {}
    for name, value in operations:
        if value is not None:
            stored[name] = _text(types, name, value)
        elif name in types:  # a credential of the user cannot be removed as a quota
            stored[name] = None
    return stored


def _text(types: Mapping[str, str], name: str, value: float) -> str:
    kind = types.get(name)
    if kind is None:
        raise InvalidRequest(f"Invalid configuration key {name}")
    if not value > 0:
        raise InvalidRequest(f"Quota {name} must be greater than 0")
    if kind == "DOUBLE":
        return double_text(value)
    type_text, largest = _LARGEST[kind]
    if value > float(largest):
        raise InvalidRequest(f"Proposed value for {name} is too large for {type_text}.")
    if value % 1.0 > _FRACTION_MAX:
        raise InvalidRequest(f"{name} cannot be a fractional value.")
    return str(min(int(value), largest))


def _changed(stored: Stored, config: dict[str, str]) -> Mapping[str, str]:
    return {name: text for name, text in (config | stored).items() if text is not None}
