"""What the handlers of producers and transactions refuse and hide from a client that an authorizer does not allow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.handlers import init_producer_id
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TopicData, TransactionState
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from tests.unit.broker.handlers.asking import asked, request_of
from tests.unit.broker.handlers.granting import decisions, granting
from tests.unit.broker.handlers.test_transaction_handlers import (
    T0,
    T1,
    U0,
    added,
    coordinating,
    ended,
    initialized,
    of_transaction,
)
from tests.unit.broker.handlers.test_txn_offset_commit import commit
from tests.unit.broker.handlers.test_txn_offset_commit import told as committed
from tests.unit.broker.handlers.test_write_txn_markers import a_marker, write
from tests.unit.broker.handlers.test_write_txn_markers import told as written
from tests.unit.broker.marking import Marking
from tests.unit.broker.verifying import PRODUCER

DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
CLUSTER_DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
NOT_ATTEMPTED = int(ErrorCode.OPERATION_NOT_ATTEMPTED)
WRITE_A = "WRITE transactional_id a"
OFFSETS = ("__consumer_offsets", 0)


@pytest.fixture
def broker() -> Broker:
    return coordinating()


@pytest.fixture
def producer(broker: Broker) -> InitProducerIdResponse:
    """Of the transactional id a."""
    return initialized(broker)


@pytest.fixture
def marking(tmp_path: Path) -> Iterator[Marking]:
    marking = Marking(tmp_path)
    yield marking
    marking.replicas.close()


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_producer_needs_write_on_its_id(broker: Broker, version: int) -> None:
    for grants in ((), ("DESCRIBE transactional_id a",), ("WRITE transactional_id b",), ("IDEMPOTENT_WRITE cluster", "WRITE topic t")):
        broker.access = granting(*grants)
        assert initialized(broker, version=version) == InitProducerIdResponse(error_code=DENIED, producer_id=-1, producer_epoch=-1)
    broker.access = granting(WRITE_A)
    assert initialized(broker, version=version).error_code == 0


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(
    ("grants", "code"),
    [
        ((), CLUSTER_DENIED),
        (("READ topic t", WRITE_A), CLUSTER_DENIED),
        (("IDEMPOTENT_WRITE cluster",), 0),
        (("WRITE topic any",), 0),
    ],
)
def test_an_idempotent_producer_needs_idempotent_write_or_write_on_any_topic(
    broker: Broker, version: int, grants: tuple[str, ...], code: int
) -> None:
    broker.access = granting(*grants)
    response = asked(broker, InitProducerIdRequest(None, 1000), InitProducerIdResponse, version)
    assert response.error_code == code
    assert (response.producer_id == -1) == bool(code)


def test_two_phase_commit_needs_its_own_operation(broker: Broker) -> None:
    """No version that is offered has the field yet."""

    def code(*grants: str) -> int:
        broker.access = granting(*grants)
        request = request_of(InitProducerIdRequest("a", 1000), 5)
        request.message.enable_2pc = True
        response = init_producer_id.handle(broker, request).response
        return 0 if response is None else response.error_code

    two_phase = "TWO_PHASE_COMMIT transactional_id a"
    assert [code(WRITE_A), code(two_phase)] == [DENIED, DENIED]
    assert code(WRITE_A, two_phase) == 0
    assert decisions(broker.access) == [WRITE_A, two_phase]


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_with_write_on_the_id_and_on_the_topics(
    broker: Broker, producer: InitProducerIdResponse, version: int
) -> None:
    broker.access = granting("WRITE topic t", "DESCRIBE transactional_id a")
    assert added(broker, producer, T0, U0, version=version) == {T0: DENIED, U0: DENIED}
    broker.access = granting(WRITE_A, "WRITE topic t", "WRITE topic gone")
    answer = added(broker, producer, T0, U0, ("gone", 0), ("hidden", 0), version=version)
    assert answer == {T0: NOT_ATTEMPTED, U0: TOPIC_DENIED, ("gone", 0): UNKNOWN, ("hidden", 0): TOPIC_DENIED}
    assert added(broker, producer, T0, version=version) == {T0: 0}


def test_nobody_adds_partitions_of_internal_topics(broker: Broker, producer: InitProducerIdResponse) -> None:
    broker.access = granting(WRITE_A, "WRITE topic __consumer_offsets")
    assert added(broker, producer, OFFSETS) == {OFFSETS: TOPIC_DENIED}
    assert decisions(broker.access) == [WRITE_A]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("verify_only", [True, False])
def test_brokers_that_add_partitions_need_cluster_action(
    broker: Broker, producer: InitProducerIdResponse, version: int, verify_only: bool
) -> None:
    request = AddPartitionsToTxnRequest([of_transaction(producer, T0, verify_only=verify_only)])
    broker.access = granting(WRITE_A, "WRITE topic t")
    refused = asked(broker, request, AddPartitionsToTxnResponse, version)
    assert refused == AddPartitionsToTxnResponse(error_code=CLUSTER_DENIED)
    broker.access = granting("CLUSTER_ACTION cluster")
    allowed = asked(broker, request, AddPartitionsToTxnResponse, version)
    assert (allowed.error_code, len(allowed.results_by_transaction)) == (0, 1)


def test_many_transactions_of_a_client_that_is_no_broker_are_refused_as_a_whole(broker: Broker, producer: InitProducerIdResponse) -> None:
    broker.access = granting(WRITE_A, "WRITE topic t")
    transactions = [of_transaction(producer, T0, T1, id=str(number)) for number in range(ELEMENTS_AT_ONCE)]
    refused = asked(broker, AddPartitionsToTxnRequest(transactions), AddPartitionsToTxnResponse, 4)
    assert refused == AddPartitionsToTxnResponse(error_code=CLUSTER_DENIED)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    ("grants", "code"),
    [
        (("READ group g", "WRITE transactional_id b"), DENIED),
        ((WRITE_A, "DESCRIBE group g"), GROUP_DENIED),
        ((WRITE_A, "READ group g"), 0),
    ],
)
def test_offsets_are_added_with_write_on_the_id_and_read_on_the_group(version: int, grants: tuple[str, ...], code: int) -> None:
    broker = coordinating()
    producer = initialized(broker)
    broker.access = granting(*grants)
    request = AddOffsetsToTxnRequest("a", producer.producer_id, producer.producer_epoch, "g")
    response = asked(broker, request, AddOffsetsToTxnResponse, version)
    assert (response.error_code in (DENIED, GROUP_DENIED), response.error_code) == (code != 0, code or response.error_code)


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_is_ended_with_write_on_its_id(broker: Broker, producer: InitProducerIdResponse, version: int) -> None:
    added(broker, producer, T0)
    broker.access = granting("DESCRIBE transactional_id a", "WRITE topic t")
    assert ended(broker, producer, version=version) == EndTxnResponse(error_code=DENIED)
    broker.access = granting(WRITE_A)
    assert ended(broker, producer, version=version).error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_transaction_need_write_on_the_id_read_on_the_group_and_on_the_topics(marking: Marking, version: int) -> None:
    offsets = {("orders", 0): 7, ("gone", 0): 8, ("hidden", 0): 9}
    for grants, code in (
        (("READ group g", "READ topic orders"), DENIED),
        (("WRITE transactional_id t", "READ topic orders", "DESCRIBE group g"), GROUP_DENIED),
    ):
        assert committed(commit(marking, version, offsets, access=granting(*grants))) == dict.fromkeys(offsets, code)
    granted = ("WRITE transactional_id t", "READ group g", "READ topic gone")
    answer = committed(commit(marking, version, offsets, access=granting(*granted)))
    assert answer == {("orders", 0): TOPIC_DENIED, ("gone", 0): UNKNOWN, ("hidden", 0): TOPIC_DENIED}
    assert marking.verifying.verifier.asked == []
    answer = committed(commit(marking, version, offsets, access=granting(*granted, "READ topic orders")))
    assert answer == {("orders", 0): 0, ("gone", 0): UNKNOWN, ("hidden", 0): TOPIC_DENIED}


@pytest.mark.parametrize("version", [1, 2])
def test_markers_need_alter_or_cluster_action(marking: Marking, version: int) -> None:
    marker = a_marker({"orders": [0]})
    denied = write(marking, marker, version=version, access=granting("WRITE topic orders", "DESCRIBE cluster"))
    assert written(denied) == {PRODUCER: {("orders", 0): CLUSTER_DENIED}}
    for grant in ("ALTER cluster", "CLUSTER_ACTION cluster"):
        assert written(write(marking, marker, version=version, access=granting(grant))) == {PRODUCER: {("orders", 0): 0}}


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_for_those_who_may_describe_them(broker: Broker, version: int) -> None:
    for transactional_id in ("a", "b"):
        initialized(broker, transactional_id)
    broker.access = granting("DESCRIBE transactional_id b", WRITE_A)
    states = asked(broker, ListTransactionsRequest(), ListTransactionsResponse, version).transaction_states
    assert [state.transactional_id for state in states] == ["b"]


def test_transactions_are_described_for_those_who_may_and_without_the_topics_they_may_not(
    broker: Broker, producer: InitProducerIdResponse
) -> None:
    added(broker, producer, T1, U0)
    broker.access = granting("DESCRIBE transactional_id a", "DESCRIBE topic u", "WRITE transactional_id b")
    denied, described, gone = asked(
        broker, DescribeTransactionsRequest(["b", "a", "nobody"]), DescribeTransactionsResponse, 0
    ).transaction_states
    assert denied == TransactionState(DENIED, "b")
    assert (described.error_code, described.topics) == (0, [TopicData("u", [0])])
    assert gone == TransactionState(DENIED, "nobody")
