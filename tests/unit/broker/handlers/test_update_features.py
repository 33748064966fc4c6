from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.security.access import Access
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_transactions_response import TransactionState as DescribedTransaction
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from barnabas.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from tests.unit.broker.handlers.asking import a_broker, ask
from tests.unit.broker.handlers.granting import granting

SAFE, UNSAFE = 2, 3


def groups(*of_groups: tuple[str, str], error: int = 0) -> Any:
    listed = [ListedGroup(name, group_state=state) for name, state in of_groups]

    def list_groups(request: ListGroupsRequest) -> ListGroupsResponse:
        assert request.types_filter == ["consumer"]
        return ListGroupsResponse(0, error, listed)

    return SimpleNamespace(list_groups=list_groups)


def transactions(*ids: str) -> Any:
    states = [TransactionState(name, 1, "Ongoing") for name in ids]
    return SimpleNamespace(
        list_transactions=lambda request: ListTransactionsResponse(transaction_states=states),
        describe_transaction=lambda name, done: done(DescribedTransaction(int(ErrorCode.NOT_COORDINATOR), name)),
    )


def played(requests: Sequence[tuple[UpdateFeaturesRequest, int]], **parts: Any) -> tuple[list[UpdateFeaturesResponse], Broker]:
    """The answers of a broker whose finalized levels are the highest at first."""
    given: dict[str, Any] = {"controller": SimpleNamespace(is_active=True), "groups": groups(), "transactions": transactions()}
    broker = a_broker(**given | parts)

    async def play() -> list[UpdateFeaturesResponse]:
        await broker.tree.connect()
        await broker.features.start()
        answers = [await ask(broker, request, UpdateFeaturesResponse, version) for request, version in requests]
        await broker.features.close()
        await broker.tree.close()
        return answers

    return asyncio.run(play()), broker


def update(feature: str, level: int, upgrade_type: int = 1, *, validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(1000, [FeatureUpdateKey(feature, level, upgrade_type=upgrade_type)], validate_only)


def test_a_level_is_changed_at_once() -> None:
    (down, up), broker = played([(update("group.version", 0, SAFE), 2), (update("group.version", 1), 2)])
    assert down == up == UpdateFeaturesResponse(0, 0, None)
    assert (broker.features.finalized["group.version"], broker.features.epoch) == (1, 2)


def test_old_versions_have_a_result_for_each_feature() -> None:
    (answer,), _ = played([(update("group.version", 1), 1)])
    assert answer == UpdateFeaturesResponse(0, 0, None, [UpdatableFeatureResult("group.version", 0, "NONE")])


def test_a_request_that_only_validates_changes_nothing() -> None:
    (answer,), broker = played([(update("group.version", 0, SAFE, validate_only=True), 2)])
    assert answer.error_code == 0
    assert (broker.features.finalized["group.version"], broker.features.epoch) == (1, 0)


def test_one_wrong_feature_refuses_all_of_them() -> None:
    request = UpdateFeaturesRequest(1000, [FeatureUpdateKey("group.version", 0, upgrade_type=SAFE), FeatureUpdateKey("cats", 1)])
    (answer,), broker = played([(request, 2)])
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert (answer.error_message or "").endswith("for feature cats. Local controller 0 does not support this feature.")
    assert broker.features.finalized["group.version"] == 1


@pytest.mark.parametrize("validate_only", [True, False])
def test_groups_of_the_consumer_protocol_refuse_a_safe_downgrade_but_not_an_unsafe_one(validate_only: bool) -> None:
    parts = {"groups": groups(("old", "Empty"), ("b", "Stable"), ("a", "Assigning"))}
    requests = [(update("group.version", 0, kind, validate_only=validate_only), 2) for kind in (SAFE, UNSAFE)]
    (safe, unsafe), broker = played(requests, **parts)
    assert safe.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Consumer group a and 1 more would lose their members: close these consumers first" in (safe.error_message or "")
    assert unsafe.error_code == 0
    assert broker.features.finalized["group.version"] == int(validate_only)


def test_groups_without_members_or_without_a_topic_for_them_refuse_nothing() -> None:
    (answer,), _ = played([(update("group.version", 0, SAFE), 2)], groups=groups(("old", "Empty")))
    assert answer.error_code == 0
    (answer,), _ = played([(update("group.version", 0, SAFE), 2)], groups=groups(error=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    assert answer.error_code == 0


def test_a_coordinator_that_is_loading_refuses_a_safe_downgrade() -> None:
    loading = groups(error=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    (answer,), broker = played([(update("group.version", 0, SAFE), 2)], groups=loading)
    assert answer.error_code == ErrorCode.FEATURE_UPDATE_FAILED
    assert broker.features.finalized["group.version"] == 1


def of_another_broker(access: Access) -> Any:
    """A cluster with one more broker, which has a group and a transaction, and this access for the principal of brokers."""
    other = a_broker(
        access=access, groups=groups(("elsewhere", "Stable")), transactions=transactions("t9"), controller=SimpleNamespace(is_active=False)
    )

    async def ask_brokers(request: Message, version: int, response: type[Message]) -> list[Message]:
        return [await ask(other, request, response, version)]

    return SimpleNamespace(ask_brokers=ask_brokers, initial_metadata=SimpleNamespace(is_complete=True))


@pytest.mark.parametrize("access", [Access(None), granting("DESCRIBE cluster", "CLUSTER_ACTION cluster")])
def test_groups_of_other_brokers_count_too(access: Access) -> None:
    (answer,), _ = played([(update("group.version", 0, SAFE), 2)], cluster=of_another_broker(access))
    assert "Consumer group elsewhere would lose" in (answer.error_message or "")


def test_transactions_of_other_brokers_count_too() -> None:
    (answer,), _ = played([(update("transaction.version", 0, SAFE), 2)], cluster=of_another_broker(Access(None)))
    assert "Transaction t9 would not end as begun" in (answer.error_message or "")


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        ("group.version", "Other brokers hide their groups from the controller: grant DESCRIBE on the cluster to the principal"),
        (
            "transaction.version",
            "Other brokers hide their transactions from the controller: grant DESCRIBE on all transactional ids to the",
        ),
    ],
)
def test_brokers_that_may_not_see_what_is_in_use_refuse_a_safe_downgrade(feature: str, text: str) -> None:
    requests = [(update(feature, 0, kind), 2) for kind in (SAFE, UNSAFE)]
    (safe, unsafe), broker = played(requests, cluster=of_another_broker(granting("CLUSTER_ACTION cluster")))
    assert (safe.error_code, unsafe.error_code) == (ErrorCode.FEATURE_UPDATE_FAILED, 0)
    assert text in (safe.error_message or "")
    assert broker.features.finalized[feature] == 0


def test_first_levels_that_another_controller_creates_at_the_same_time_refuse_the_update() -> None:
    broker = a_broker(controller=SimpleNamespace(is_active=True))

    async def play() -> UpdateFeaturesResponse:
        await broker.tree.connect()
        registered = broker.features.registered

        async def registered_late() -> Any:
            await broker.tree.create_recursive(broker.features.path, b'{"levels":{},"version":1}')
            return await registered()

        broker.features.registered = registered_late  # type: ignore[method-assign]
        answer = await ask(broker, update("group.version", 1), UpdateFeaturesResponse, 2)
        await broker.tree.close()
        return answer

    answer = asyncio.run(play())
    assert answer.error_code == ErrorCode.FEATURE_UPDATE_FAILED
    assert "changed at the same time" in (answer.error_message or "")


def test_open_transactions_refuse_a_level_whose_records_cannot_hold_them() -> None:
    requests = [(update("transaction.version", level, SAFE), 2) for level in (1, 0)]
    (one, none), broker = played(requests, transactions=transactions("t1"))
    assert (one.error_code, none.error_code) == (0, ErrorCode.INVALID_UPDATE_VERSION)
    assert "Transaction t1 would not end as begun" in (none.error_message or "")
    assert broker.features.finalized["transaction.version"] == 1


def test_only_the_controller_changes_levels() -> None:
    (answer,), _ = played([(update("group.version", 1), 2)], controller=SimpleNamespace(is_active=False))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_it_needs_a_permission_of_the_cluster() -> None:
    (answer,), broker = played([(update("group.version", 0, SAFE), 2)], access=granting())
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.features.finalized["group.version"] == 1
