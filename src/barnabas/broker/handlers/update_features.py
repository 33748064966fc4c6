"""UpdateFeatures: changes the finalized levels of features, for the whole cluster at once.

Versions 0 to 2.
Behaviour
- only the active controller serves it. All updates of a request are made, or none; with validate_only none. All brokers apply the new
  levels when the metadata store shows them; this broker has applied them when it responds.
- a level is supported if the controller and all registered brokers support it.
- a safe downgrade is refused while what it takes away is in use: group.version while consumer groups of the consumer protocol have members,
  transaction.version below 1 while transactions are open. An unsafe downgrade is not.
- the controller asks the other brokers what is in use. They leave out what its principal may not describe, so a safe downgrade is refused
  unless that principal has DESCRIBE on the cluster, or on transactional ids of any name.
Authorization: ALTER on the cluster.
Version notes
- 0: allow_downgrade is ignored, as by Kafka 4.2. 1: upgrade types, validate_only. 2: no results of features; one error for all.
Errors, of the whole
- CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED (the levels were changed at the same time, or
  a broker does not say what is in use, or not to the controller).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.broker.topics.feature_updates import FeatureUpdate, new_levels, refused, safe_downgrades
from barnabas.broker.topics.features import GROUP_VERSION, TRANSACTION_VERSION
from barnabas.errors import KafkaError, NotController
from barnabas.metadata.errors import BadVersion, NodeExists
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.protocol.messages.update_features_request import UpdateFeaturesRequest
from barnabas.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.broker.requests.request import Request

RESULTS_VERSION_MAX: Final = 1
FLEXIBLE_RECORDS_LEVEL: Final = 1  # of transaction.version: below it the log has no place for the protocol of a transaction
_LIST_GROUPS_VERSION: Final = 5
_LIST_TRANSACTIONS_VERSION: Final = 0
_DESCRIBE_CLUSTER_VERSION: Final = 0
_DESCRIBE_TRANSACTIONS_VERSION: Final = 0
_OPEN_STATES: Final = ["Ongoing", "PrepareCommit", "PrepareAbort"]
_NO_PARTITIONS: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # the topic of the coordinator does not exist yet


def handle(broker: Broker, request: Request[UpdateFeaturesRequest]) -> Reply[UpdateFeaturesResponse]:
    return Reply.awaiting(request, _update(broker, request))


async def _update(broker: Broker, request: Request[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
    message = request.message
    updates = {update.feature: FeatureUpdate(update.max_version_level, update.upgrade_type) for update in message.feature_updates}
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
        if not broker.controller.is_active:
            raise NotController("This is not the correct controller for this cluster.")
        await _change(broker, updates, message.validate_only)
    except KafkaError as error:
        return UpdateFeaturesResponse(0, int(error.code), str(error))
    except (BadVersion, NodeExists):
        text = "Feature levels were changed at the same time: describe them, and try again"
        return UpdateFeaturesResponse(0, int(ErrorCode.FEATURE_UPDATE_FAILED), text)
    results = [UpdatableFeatureResult(update.feature, 0, "NONE") for update in message.feature_updates]
    return UpdateFeaturesResponse(0, 0, None, results if request.version <= RESULTS_VERSION_MAX else [])


async def _change(broker: Broker, updates: Mapping[str, FeatureUpdate], validate_only: bool) -> None:
    features = broker.features
    await features.read()
    levels = new_levels(updates, features.finalized, features.supported, broker.broker_id, await features.registered())
    for feature, level in safe_downgrades(updates, features.finalized).items():
        if (reason := await _use(broker, feature, level)) is not None:
            raise refused(feature, level, reason)
    if not validate_only and levels != features.finalized:
        await features.finalize(levels)


async def _use(broker: Broker, feature: str, level: int) -> str | None:
    """What is in use of the levels above this one; None if nothing is."""
    if feature == GROUP_VERSION:
        groups = await _groups_in_use(broker)
        if groups:
            return f"{_some(groups, 'consumer group')} would lose their members: close these consumers first, or use an unsafe downgrade."
    if feature == TRANSACTION_VERSION and level < FLEXIBLE_RECORDS_LEVEL:
        transactions = await _open_transactions(broker)
        if transactions:
            return f"{_some(transactions, 'transaction')} would not end as begun: end these first, or use an unsafe downgrade."
    return None


async def _groups_in_use(broker: Broker) -> list[str]:
    request = ListGroupsRequest(types_filter=["consumer"])
    responses: list[ListGroupsResponse] = [broker.groups.list_groups(request)]
    if broker.cluster is not None:
        await _require_groups_shown(broker.cluster)
        responses += await broker.cluster.ask_brokers(request, _LIST_GROUPS_VERSION, ListGroupsResponse)
    _check([response.error_code for response in responses])
    return sorted({group.group_id for response in responses for group in response.groups if group.group_state not in ("Empty", "Dead")})


async def _open_transactions(broker: Broker) -> list[str]:
    request = ListTransactionsRequest(state_filters=list(_OPEN_STATES))
    responses: list[ListTransactionsResponse] = [broker.transactions.list_transactions(request)]
    if broker.cluster is not None:
        await _require_transactions_shown(broker.cluster, str(Uuid.random(broker.random)))
        responses += await broker.cluster.ask_brokers(request, _LIST_TRANSACTIONS_VERSION, ListTransactionsResponse)
    _check([response.error_code for response in responses])
    return sorted({state.transactional_id for response in responses for state in response.transaction_states})


async def _require_groups_shown(cluster: ClusterMember) -> None:
    """Raises unless the other brokers list all their groups to this one: to a principal with DESCRIBE on the cluster they do."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answers = await cluster.ask_brokers(request, _DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse)
    if not all(answer.cluster_authorized_operations >> AclOperation.DESCRIBE & 1 for answer in answers):
        raise _hidden("groups", "the cluster")


async def _require_transactions_shown(cluster: ClusterMember, unused_id: str) -> None:
    """Raises unless the other brokers list their transactions to this one. Brokers check each transactional id, and the right for one that
    nobody uses is the right for ids of any name. An ACL that denies brokers single ids still hides these."""
    request = DescribeTransactionsRequest([unused_id])
    answers = await cluster.ask_brokers(request, _DESCRIBE_TRANSACTIONS_VERSION, DescribeTransactionsResponse)
    if any(
        state.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED for answer in answers for state in answer.transaction_states
    ):
        raise _hidden("transactions", "all transactional ids")


def _hidden(kind: str, resource: str) -> _UnknownUse:
    return _UnknownUse(
        f"Other brokers hide their {kind} from the controller: grant DESCRIBE on {resource} to the principal of the brokers, or list it in "
        "super.users, or use an unsafe downgrade"
    )


def _check(codes: list[int]) -> None:
    code = next((code for code in codes if code not in (0, _NO_PARTITIONS)), 0)
    if code:
        raise _UnknownUse(f"A broker does not say what is in use (error {code}): try again later, or use an unsafe downgrade")


class _UnknownUse(KafkaError):
    """FEATURE_UPDATE_FAILED: a coordinator is still loading its state, or the principal of this broker may not see it."""

    code = int(ErrorCode.FEATURE_UPDATE_FAILED)


def _some(names: list[str], noun: str) -> str:
    more = len(names) - 1
    return f"{noun.capitalize()} {names[0]}" + (f" and {more} more" if more else "")
