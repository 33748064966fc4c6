"""Transactions and features."""

from __future__ import annotations

import pytest

from barnabas.client.admin import (
    AbortTransactionSpec,
    FeatureUpdate,
    FinalizedVersionRange,
    ProducerIdAndEpoch,
    SupportedVersionRange,
    TransactionState,
    UpgradeType,
)
from barnabas.client.errors import ClusterAuthorization, IllegalArgument, InvalidUpdateVersion, TransactionalIdNotFound
from barnabas.errors import InvalidProducerEpoch
from barnabas.protocol import api_keys
from barnabas.protocol.messages import describe_transactions_response as described
from barnabas.protocol.messages import list_transactions_response as listed
from barnabas.protocol.messages import write_txn_markers_response as markers
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.update_features_request import UpdateFeaturesRequest
from barnabas.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from barnabas.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from barnabas.topic_partition import TopicPartition
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

A = TopicPartition("t", 0)
SPEC = AbortTransactionSpec(A, 7, 2, 3)


def test_each_broker_lists_the_transactions_it_coordinates() -> None:
    cluster = FakeCluster()
    cluster.on(
        ListTransactionsRequest,
        lambda node, _: listed.ListTransactionsResponse(transaction_states=[listed.TransactionState(f"x{node}", node, "Ongoing")]),
    )
    transactions = run(
        ScriptedAdmin(cluster).list_transactions(
            states=[TransactionState.ONGOING], producer_ids=[5], duration_ms=1000, transactional_id_pattern="x.*"
        )
    )
    assert {node: [one.transactional_id for one in transactions[node]] for node in transactions} == {1: ["x1"], 2: ["x2"], 3: ["x3"]}
    request = cluster.requests(ListTransactionsRequest)[0]
    assert (request.state_filters, request.producer_id_filters, request.duration_filter, request.transactional_id_pattern) == (
        ["Ongoing"],
        [5],
        1000,
        "x.*",
    )


def test_a_transaction_is_described_by_its_coordinator() -> None:
    cluster = FakeCluster()
    states = [
        described.TransactionState(0, "x", "Ongoing", 60000, 5, 7, 2, [described.TopicData("t", [0])]),
        described.TransactionState(105, "y"),
    ]
    cluster.on(DescribeTransactionsRequest, described.DescribeTransactionsResponse(transaction_states=states))
    transactions = run(ScriptedAdmin(cluster).describe_transactions(["x", "y"]))
    assert (transactions["x"].coordinator_id, transactions["x"].state) == (2, TransactionState.ONGOING)
    assert transactions["x"].topic_partitions == {A}
    assert cluster.requests(FindCoordinatorRequest)[0].key_type == 1
    with pytest.raises(TransactionalIdNotFound, match="DescribeTransactions request for transactionalId `y` failed because the ID could"):
        transactions["y"]


def marked(code: int) -> markers.WriteTxnMarkersResponse:
    rows = [markers.WritableTxnMarkerPartitionResult(0, code)]
    return markers.WriteTxnMarkersResponse([markers.WritableTxnMarkerResult(7, [markers.WritableTxnMarkerTopicResult("t", rows)])])


def test_a_marker_is_written_at_the_leader() -> None:
    cluster = FakeCluster()
    cluster.leader_of = {("t", 0): 3}
    cluster.on(WriteTxnMarkersRequest, marked(6), marked(0))
    run(ScriptedAdmin(cluster).abort_transaction(SPEC))
    assert cluster.nodes_asked(WriteTxnMarkersRequest) == [3, 3]
    (marker,) = cluster.requests(WriteTxnMarkersRequest)[0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (7, 2, 3, False)


@pytest.mark.parametrize(("code", "kind"), [(31, ClusterAuthorization), (47, InvalidProducerEpoch)])
def test_a_marker_that_is_refused_is_an_error(code: int, kind: type[Exception]) -> None:
    cluster = FakeCluster()
    cluster.leader_of = {("t", 0): 3}
    cluster.on(WriteTxnMarkersRequest, marked(code))
    with pytest.raises(kind, match=r"WriteTxnMarkers request with AbortTransactionSpec\(topicPartition=t-0, producerId=7"):
        run(ScriptedAdmin(cluster).abort_transaction(SPEC))


def test_a_producer_is_fenced_by_taking_its_place() -> None:
    cluster = FakeCluster()
    cluster.on(InitProducerIdRequest, InitProducerIdResponse(error_code=51), InitProducerIdResponse(producer_id=7, producer_epoch=3))
    assert run(ScriptedAdmin(cluster).fence_producers(["x"])).all() == {"x": ProducerIdAndEpoch(7, 3)}
    assert cluster.requests(InitProducerIdRequest)[0].transaction_timeout_ms == 30000


def test_features_are_described() -> None:
    cluster = FakeCluster()
    cluster.on(
        ApiVersionsRequest,
        ApiVersionsResponse(
            supported_features=[SupportedFeatureKey("f", 1, 3)],
            finalized_features_epoch=9,
            finalized_features=[FinalizedFeatureKey("f", 2, 1)],
        ),
    )
    features = run(ScriptedAdmin(cluster).describe_features(node_id=2))
    assert features.supported_features == {"f": SupportedVersionRange(1, 3)}
    assert features.finalized_features == {"f": FinalizedVersionRange(1, 2)}
    assert features.finalized_features_epoch == 9
    assert cluster.nodes_asked(ApiVersionsRequest) == [2]


def test_one_feature_that_fails_fails_all() -> None:
    cluster = FakeCluster()
    cluster.on(UpdateFeaturesRequest, UpdateFeaturesResponse(error_code=95, error_message="too high"))
    errors = run(ScriptedAdmin(cluster).update_features({"f": FeatureUpdate(1), "g": FeatureUpdate(2)})).errors
    assert [type(error) for error in errors.values()] == [InvalidUpdateVersion] * 2


def test_older_controllers_answer_for_each_feature() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.UPDATE_FEATURES] = 0
    cluster.on(UpdateFeaturesRequest, UpdateFeaturesResponse(results=[UpdatableFeatureResult("f")]))
    run(ScriptedAdmin(cluster).update_features({"f": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)})).all()
    assert cluster.requests(UpdateFeaturesRequest)[0].feature_updates[0].allow_downgrade


def test_updates_that_make_no_sense_are_refused() -> None:
    with pytest.raises(IllegalArgument):
        FeatureUpdate(0)
    with pytest.raises(IllegalArgument):
        FeatureUpdate(-1, UpgradeType.SAFE_DOWNGRADE)
    with pytest.raises(IllegalArgument, match=r"Feature updates cannot be None or empty\."):
        run(ScriptedAdmin(FakeCluster()).update_features({}))
    with pytest.raises(IllegalArgument, match=r"Provided feature can not be empty."):
        run(ScriptedAdmin(FakeCluster()).update_features({" ": FeatureUpdate(1)}))
