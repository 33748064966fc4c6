"""AlterClientQuotas: sets and removes quotas of users, client ids, both, and addresses.

Versions 0 to 1.
Behaviour
- each entity has its own result. All its quotas are changed, or none. With validate_only nothing is written.
- a removed quota need not exist. The SCRAM credentials of a user stay.
- any broker serves it, as in Kafka's ZooKeeper mode. It applies the quotas at once; the others do so when they receive the notification.
Authorization: ALTER_CONFIGS on the cluster.
Version notes: version 1 is flexible.
Errors, of an entity
- CLUSTER_AUTHORIZATION_FAILED (every entity of the request).
- INVALID_REQUEST: no entity, an unknown type, an empty name, an address together with a user or a client id, a host that cannot be
  resolved, an unknown quota, a value that is not above 0, too large or fractional, an entity or a quota named twice.
- POLICY_VIOLATION (every entity): more than 10,000 changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.alterations.quota_alterations import QuotaAlteration, QuotaOutcome
from barnabas.broker.requests.reply import Reply
from barnabas.errors import PolicyViolation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData
from barnabas.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData
from barnabas.protocol.messages.alter_client_quotas_response import EntryData as ResponseEntry
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.config.client_quotas import QuotaEntity
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[AlterClientQuotasRequest]) -> Reply[AlterClientQuotasResponse]:
    return Reply.awaiting(request, _alter(broker, request))


async def _alter(broker: Broker, request: Request[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    message = request.message
    if not broker.access.allows_on_cluster(request, AclOperation.ALTER_CONFIGS):
        return _refused(message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    alterations = [_alteration(entry) for entry in message.entries]
    try:
        outcomes = await broker.configs.alter_client_quotas(alterations, message.validate_only)
    except PolicyViolation:
        return _refused(message, ErrorCode.POLICY_VIOLATION)
    return AlterClientQuotasResponse(0, [_outcome(outcome) for outcome in outcomes])


def _refused(message: AlterClientQuotasRequest, error: ErrorCode) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(0, [_entry(_entity(entry), error, error.message) for entry in message.entries])


def _alteration(entry: EntryData) -> QuotaAlteration:
    return QuotaAlteration(_entity(entry), [(op.key, None if op.remove else op.value) for op in entry.ops])


def _entity(entry: EntryData) -> QuotaEntity:
    return {part.entity_type: part.entity_name for part in entry.entity}


def _outcome(outcome: QuotaOutcome) -> ResponseEntry:
    if outcome.error is None:
        return _entry(outcome.entity, 0, None)
    return _entry(outcome.entity, outcome.error.code, str(outcome.error))


def _entry(entity: QuotaEntity, code: int, text: str | None) -> ResponseEntry:
    return ResponseEntry(int(code), text, [EntityData(kind, name) for kind, name in entity.items()])
