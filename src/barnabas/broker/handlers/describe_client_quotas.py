"""DescribeClientQuotas: the quotas of users, client ids and addresses that match a filter.

Versions 0 to 1.
Behaviour
- the broker returns the quotas of the metadata store, which every broker applies.
- `strict` leaves out the entities that have other parts than the filter.
Authorization: DESCRIBE_CONFIGS on the cluster.
Errors
- CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNSUPPORTED_VERSION (an unknown entity type). There are no entries then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.client_quotas import FilterComponent, QuotaFilter
from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse, EntityData, EntryData, ValueData
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[DescribeClientQuotasRequest]) -> Reply[DescribeClientQuotasResponse]:
    return Reply.awaiting(request, _describe(broker, request))


async def _describe(broker: Broker, request: Request[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    message = request.message
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE_CONFIGS):
        return DescribeClientQuotasResponse(0, int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), None, None)  # Kafka sends no text
    try:
        components = [FilterComponent(component.entity_type, component.match_type, component.match) for component in message.components]
        quota_filter = QuotaFilter(components, message.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(0, error.code, str(error), None)
    quotas = await broker.configs.client_quotas()
    return DescribeClientQuotasResponse(
        entries=[
            EntryData([EntityData(kind, name) for kind, name in entity.items()], [ValueData(name, value) for name, value in values.items()])
            for entity, values in quotas
            if quota_filter.matches(entity)
        ],
    )
