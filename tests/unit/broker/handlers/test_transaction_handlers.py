"""The requests of transactional producers and of transaction tools, as frames: what the coordinator gets, and what the client gets."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.broker import Broker
from barnabas.errors import CoordinatorNotAvailable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TopicData
from barnabas.protocol.messages.describe_transactions_response import TransactionState as DescribedTransaction
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.handlers.asking import a_broker, ask, asked, topic
from tests.unit.broker.transacting import Errors, errors_of, topics_of
from tests.unit.coordinator.transaction.transaction_host import TransactionHost

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
FENCED_IN_OLD_VERSIONS = [(version, ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED) for version in range(4)]


def coordinating(host: TransactionHost | None = None) -> Broker:
    """With topics `t`, of two partitions, and `u`, of one."""
    return a_broker(topic("t", 2), topic("u"), topic("__consumer_offsets", 50), transactions=(host or TransactionHost()).coordinator)


def initialized(broker: Broker, transactional_id: str = "a", version: int = 5) -> InitProducerIdResponse:
    return asked(broker, InitProducerIdRequest(transactional_id, 1000), InitProducerIdResponse, version)


def added(broker: Broker, producer: InitProducerIdResponse, *partitions: tuple[str, int], version: int = 3, id: str = "a") -> Errors:
    request = AddPartitionsToTxnRequest([], id, producer.producer_id, producer.producer_epoch, topics_of(partitions))
    return errors_of(asked(broker, request, AddPartitionsToTxnResponse, version).results_by_topic_v3_and_below)


def of_transaction(
    producer: InitProducerIdResponse, *partitions: tuple[str, int], verify_only: bool = False, id: str = "a"
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(id, producer.producer_id, producer.producer_epoch, verify_only, topics_of(partitions))


def asked_by_a_broker(broker: Broker, *transactions: AddPartitionsToTxnTransaction, version: int = 5) -> list[tuple[str, Errors]]:
    response = asked(broker, AddPartitionsToTxnRequest(list(transactions)), AddPartitionsToTxnResponse, version)
    return [(result.transactional_id, errors_of(result.topic_results)) for result in response.results_by_transaction]


def ended(broker: Broker, producer: InitProducerIdResponse, committed: bool = True, version: int = 4, id: str = "a") -> EndTxnResponse:
    request = EndTxnRequest(id, producer.producer_id, producer.producer_epoch, committed)
    return asked(broker, request, EndTxnResponse, version)


# -- InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_producer_keeps_its_id_and_gets_the_next_epoch(version: int) -> None:
    broker = coordinating()
    first, second = initialized(broker, version=version), initialized(broker, version=version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert (second.error_code, second.producer_id, second.producer_epoch) == (0, first.producer_id, 1)


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)]
)
def test_a_producer_that_was_replaced_is_fenced_in_the_words_of_its_version(version: int, error: ErrorCode) -> None:
    broker = coordinating()
    old = initialized(broker)
    for _ in range(2):
        initialized(broker)
    request = InitProducerIdRequest("a", 1000, old.producer_id, old.producer_epoch)
    refused = asked(broker, request, InitProducerIdResponse, version)
    assert refused == InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


# -- AddPartitionsToTxn


@pytest.mark.parametrize("version", range(4))
def test_partitions_of_a_transaction_are_remembered(version: int) -> None:
    host = TransactionHost()
    broker = coordinating(host)
    assert added(broker, initialized(broker), T0, T1, U0, version=version) == {T0: 0, T1: 0, U0: 0}
    (shard,) = host.coordinator._runtime.shards()
    assert shard.transactions["a"].partitions == {TopicPartition(*partition) for partition in (T0, T1, U0)}


@pytest.mark.parametrize("version", range(4))
def test_one_partition_that_is_not_there_keeps_all_from_being_added(version: int) -> None:
    broker = coordinating()
    unknown, not_attempted = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    producer = initialized(broker)
    assert added(broker, producer, T0, ("t", 2), ("x", 0), version=version) == {T0: not_attempted, ("t", 2): unknown, ("x", 0): unknown}
    assert ended(broker, producer).error_code == ErrorCode.INVALID_TXN_STATE


def test_clients_do_not_write_to_internal_topics_and_brokers_do() -> None:
    broker = coordinating()
    producer = initialized(broker)
    offsets = ("__consumer_offsets", 3)
    assert added(broker, producer, T0, offsets) == {
        T0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        offsets: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert asked_by_a_broker(broker, of_transaction(producer, T0, offsets)) == [("a", {T0: 0, offsets: 0})]


@pytest.mark.parametrize(("version", "error"), FENCED_IN_OLD_VERSIONS)
def test_partitions_of_an_old_epoch_are_refused_in_the_words_of_the_version(version: int, error: ErrorCode) -> None:
    broker = coordinating()
    old = initialized(broker)
    initialized(broker)
    assert added(broker, old, T0, U0, version=version) == {T0: error, U0: error}


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_for_many_transactions_of_which_each_is_answered_for_itself(version: int) -> None:
    broker = coordinating()
    a, b = initialized(broker, "a"), initialized(broker, "b")
    answers = asked_by_a_broker(
        broker,
        of_transaction(b, T1, id="b"),
        of_transaction(a, T0, ("x", 0)),
        of_transaction(a, T0, id="c"),
        of_transaction(a, T0, U0),
        version=version,
    )
    assert answers == [
        ("b", {T1: 0}),
        ("a", {T0: ErrorCode.OPERATION_NOT_ATTEMPTED, ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
        ("c", {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}),
        ("a", {T0: 0, U0: 0}),
    ]


def test_a_request_without_transactions_is_answered() -> None:
    assert asked_by_a_broker(coordinating()) == []


def test_a_partition_that_is_only_looked_for_is_not_added() -> None:
    broker = coordinating()
    producer = initialized(broker)
    added(broker, producer, T0)
    looked_for = of_transaction(producer, T0, T1, verify_only=True)
    for _ in range(2):
        assert asked_by_a_broker(broker, looked_for) == [("a", {T0: 0, T1: ErrorCode.TRANSACTION_ABORTABLE})]


def test_answers_wait_for_the_last_of_their_transactions() -> None:
    host = TransactionHost()
    broker = coordinating(host)
    a = initialized(broker)
    host.log.held_at = 1

    async def scenario() -> None:
        request = AddPartitionsToTxnRequest([of_transaction(a, T0), of_transaction(a, T0, id="unknown")])
        asking = asyncio.ensure_future(ask(broker, request, AddPartitionsToTxnResponse, 5))
        await asyncio.sleep(0)
        assert not asking.done()
        host.log.held_at = None
        host.coordinator.high_watermark_updated(0, 2)
        results = (await asking).results_by_transaction
        assert [errors_of(result.topic_results)[T0] for result in results] == [0, ErrorCode.INVALID_PRODUCER_ID_MAPPING]

    asyncio.run(scenario())


# -- AddOffsetsToTxn


def add_offsets(broker: Broker, producer: InitProducerIdResponse, version: int = 4) -> int:
    request = AddOffsetsToTxnRequest("a", producer.producer_id, producer.producer_epoch, "g")
    return asked(broker, request, AddOffsetsToTxnResponse, version).error_code


@pytest.mark.parametrize("version", range(5))
def test_the_partition_of_a_groups_offsets_becomes_part_of_the_transaction(version: int) -> None:
    broker = coordinating()
    assert add_offsets(broker, initialized(broker), version) == 0
    assert described(broker, "a").topics == [TopicData("__consumer_offsets", [7])]


@pytest.mark.parametrize(("version", "error"), FENCED_IN_OLD_VERSIONS)
def test_offsets_of_an_old_epoch_are_refused_in_the_words_of_the_version(version: int, error: ErrorCode) -> None:
    broker = coordinating()
    old = initialized(broker)
    initialized(broker)
    assert add_offsets(broker, old, version) == error


def test_offsets_while_groups_have_no_coordinator_are_to_be_sent_again() -> None:
    def nowhere(group_id: str) -> int:
        raise CoordinatorNotAvailable

    host = TransactionHost()
    broker = coordinating(host)
    producer = initialized(broker)
    host.coordinator._offsets_partition = nowhere
    assert add_offsets(broker, producer) == ErrorCode.COORDINATOR_NOT_AVAILABLE


# -- EndTxn


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends_with_markers_in_its_partitions(version: int, committed: bool) -> None:
    host = TransactionHost()
    broker = coordinating(host)
    producer = initialized(broker)
    added(broker, producer, T0, U0)
    expected = EndTxnResponse() if version < 5 else EndTxnResponse(0, 0, producer.producer_id, producer.producer_epoch + 1)
    assert ended(broker, producer, committed, version) == expected
    assert [host.partitions.ends_of(TopicPartition(*partition)) for partition in (T0, T1, U0)] == [[committed], [], [committed]]


@pytest.mark.parametrize(("version", "error"), FENCED_IN_OLD_VERSIONS)
def test_an_end_of_an_old_epoch_is_refused_in_the_words_of_the_version(version: int, error: ErrorCode) -> None:
    broker = coordinating()
    old = initialized(broker)
    initialized(broker)
    assert ended(broker, old, version=version) == EndTxnResponse(error_code=error)


def test_an_end_that_is_refused_tells_no_producer() -> None:
    broker = coordinating()
    assert ended(broker, initialized(broker), version=5) == EndTxnResponse(0, ErrorCode.INVALID_TXN_STATE, -1, -1)


# -- ListTransactions and DescribeTransactions


def listed(broker: Broker, request: ListTransactionsRequest, version: int = 2) -> ListTransactionsResponse:
    return asked(broker, request, ListTransactionsResponse, version)


def described(broker: Broker, transactional_id: str) -> DescribedTransaction:
    (state,) = asked(broker, DescribeTransactionsRequest([transactional_id]), DescribeTransactionsResponse, 0).transaction_states
    return state


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_by_state(version: int) -> None:
    broker = coordinating()
    a, b = initialized(broker, "a"), initialized(broker, "b")
    added(broker, b, T0, id="b")
    everything = [TransactionState("a", a.producer_id, "Empty"), TransactionState("b", b.producer_id, "Ongoing")]
    assert listed(broker, ListTransactionsRequest(), version).transaction_states == everything
    ongoing = listed(broker, ListTransactionsRequest(["Ongoing", "Nonsense"]), version)
    assert (ongoing.transaction_states, ongoing.unknown_state_filters) == ([everything[1]], ["Nonsense"])


def test_transactions_are_listed_by_an_expression() -> None:
    broker = coordinating()
    for transactional_id in ("orders-1", "orders-2", "payments-1"):
        initialized(broker, transactional_id)
    transaction_states = listed(broker, ListTransactionsRequest(transactional_id_pattern="orders-.*")).transaction_states
    assert [state.transactional_id for state in transaction_states] == ["orders-1", "orders-2"]
    assert listed(broker, ListTransactionsRequest(transactional_id_pattern="(")).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_transactions_are_described_in_the_order_they_were_asked_for() -> None:
    broker = coordinating()
    producer = initialized(broker, "b")
    added(broker, producer, T1, U0, id="b")
    asked_for = DescribeTransactionsRequest(["nobody", "b", "", "b"])
    states = asked(broker, asked_for, DescribeTransactionsResponse, 0).transaction_states
    assert [(state.transactional_id, state.error_code) for state in states] == [
        ("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("b", 0),
        ("", ErrorCode.INVALID_REQUEST),
        ("b", 0),
    ]
    assert (states[1].transaction_state, states[1].transaction_timeout_ms, states[1].producer_id) == ("Ongoing", 1000, producer.producer_id)
    assert states[1].topics == [TopicData("t", [1]), TopicData("u", [0])]


def test_nothing_is_described_when_nothing_is_asked_for() -> None:
    assert asked(coordinating(), DescribeTransactionsRequest([]), DescribeTransactionsResponse, 0) == DescribeTransactionsResponse()


def test_a_broker_that_is_no_coordinator_says_so() -> None:
    host = TransactionHost()
    broker = coordinating(host)
    producer = initialized(broker)
    host.coordinator.on_resignation(0, None)
    not_coordinator = ErrorCode.NOT_COORDINATOR
    assert initialized(broker).error_code == not_coordinator
    assert added(broker, producer, T0) == {T0: not_coordinator}
    assert asked_by_a_broker(broker, of_transaction(producer, T0, verify_only=True)) == [("a", {T0: not_coordinator})]
    assert add_offsets(broker, producer) == not_coordinator
    assert ended(broker, producer).error_code == not_coordinator
    assert listed(broker, ListTransactionsRequest()).transaction_states == []
