"""Sending, sending again, giving up: a real producer against a cluster that fails as it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from barnabas.client.errors import ClusterAuthorization, IllegalState, NetworkError, NotEnoughReplicasAfterAppend, SendFailed, Timeout
from barnabas.client.producer import Delivery, Producer
from barnabas.errors import CorruptRecord, InvalidRecord, KafkaError, RecordTooLarge
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.produce_response import BatchIndexAndErrorMessage, PartitionProduceResponse
from barnabas.records.batch import Batch
from barnabas.topic_partition import TopicPartition
from tests.unit.client.producer.scripted_broker import DROP, HANG_UP, HANG_UP_AFTER_WRITE, ScriptedCluster

WAIT_S = 60


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    with ScriptedCluster() as cluster:
        yield cluster


def producer(cluster: ScriptedCluster, **settings: Any) -> Producer:
    quick = {"linger_ms": 0, "retry_backoff_ms": 5, "retry_backoff_max_ms": 10, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 10}
    return Producer({"bootstrap.servers": cluster.bootstrap}, **{**quick, **settings})


def failing(*verdicts: Any) -> Any:
    """The verdicts about the first batches; all later ones are written."""
    left = list(verdicts)
    return lambda partition, batch, number: left.pop(0) if left else None


def noting(called: list[int], number: int) -> Callable[[Any, Any], None]:
    return lambda metadata, error: called.append(number)


def offsets(deliveries: list[Delivery]) -> list[int]:
    return [delivery.result(WAIT_S).offset for delivery in deliveries]


def test_records_arrive_in_order_with_their_offsets(scripted: ScriptedCluster) -> None:
    with producer(scripted, batch_size=100) as sending:
        deliveries = [sending.send("t", b"%d" % number) for number in range(200)]
        assert offsets(deliveries) == list(range(200))
    assert scripted.written() == [b"%d" % number for number in range(200)]


def test_no_more_requests_are_in_flight_than_allowed(scripted: ScriptedCluster) -> None:
    seen: list[int] = []
    with producer(scripted, batch_size=0, max_in_flight_requests_per_connection=2) as sending:
        core = sending._core

        def look(partition: TopicPartition, batch: Batch, number: int) -> None:
            seen.append(core.client.in_flight_count())

        scripted.on_produce = look
        offsets([sending.send("t", bytes(30)) for _ in range(50)])
    assert max(seen) <= 2


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE]
)
def test_a_retriable_error_is_retried(scripted: ScriptedCluster, code: int) -> None:
    scripted.on_produce = failing(code, code)
    with producer(scripted) as sending:
        assert sending.send("t", b"v").result(WAIT_S).offset == 0
    assert scripted.produced == 3


def test_the_error_surfaces_after_the_retries(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    with producer(scripted, retries=3) as sending, pytest.raises(NotEnoughReplicasAfterAppend):
        sending.send("t", b"v").result(WAIT_S)
    assert scripted.produced == 4


def test_an_error_that_is_not_retriable_surfaces_at_once(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
    with producer(scripted) as sending, pytest.raises(InvalidRecord):
        sending.send("t", b"v").result(WAIT_S)
    assert scripted.produced == 1


def test_a_lost_connection_is_retried_and_nothing_is_written_twice(scripted: ScriptedCluster) -> None:
    scripted.on_produce = failing(HANG_UP, HANG_UP_AFTER_WRITE)
    with producer(scripted, batch_size=0) as sending:
        deliveries = [sending.send("t", b"%030d" % number) for number in range(20)]
        assert offsets(deliveries) == list(range(20))
    assert scripted.written() == [b"%030d" % number for number in range(20)]


@pytest.mark.parametrize("seed", range(4))
def test_retries_do_not_change_the_order_with_several_in_flight(scripted: ScriptedCluster, seed: int) -> None:
    random = Random(seed)

    def unreliable(partition: TopicPartition, batch: Batch, number: int) -> Any:
        return random.choice([None, None, None, ErrorCode.NOT_ENOUGH_REPLICAS, HANG_UP, HANG_UP_AFTER_WRITE])

    scripted.on_produce = unreliable
    with producer(scripted, batch_size=0) as sending:
        called: list[int] = []
        deliveries = [sending.send("t", b"%030d" % number, callback=noting(called, number)) for number in range(100)]
        assert offsets(deliveries) == list(range(100))
    assert scripted.written() == [b"%030d" % number for number in range(100)]
    assert called == list(range(100))


def test_without_idempotence_one_in_flight_keeps_the_order(scripted: ScriptedCluster) -> None:
    scripted.on_produce = failing(ErrorCode.NOT_ENOUGH_REPLICAS, None, ErrorCode.NOT_ENOUGH_REPLICAS)
    with producer(scripted, batch_size=0, enable_idempotence=False, max_in_flight_requests_per_connection=1) as sending:
        offsets([sending.send("t", b"%030d" % number) for number in range(10)])
    assert scripted.written() == [b"%030d" % number for number in range(10)]


def test_the_new_leader_is_found(tmp_path: Any) -> None:
    with ScriptedCluster(nodes=2) as cluster, producer(cluster) as sending:
        assert sending.send("t", b"one").result(WAIT_S).offset == 0
        cluster.leaders[0] = 2
        cluster.leader_epoch = 1
        assert sending.send("t", b"two").result(WAIT_S).offset == 1


def test_a_hint_of_the_new_leader_is_taken_without_asking(tmp_path: Any) -> None:
    with ScriptedCluster(nodes=2) as cluster, producer(cluster, retry_backoff_ms=5000, retry_backoff_max_ms=5000) as sending:
        cluster.hints_leader = True
        sending.send("t", b"one").result(WAIT_S)
        cluster.leaders[0] = 2
        cluster.leader_epoch = 1
        began = time.monotonic()
        assert sending.send("t", b"two").result(WAIT_S).offset == 1
        assert time.monotonic() - began < 4


def test_a_record_that_is_not_acknowledged_in_time_expires(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: DROP
    with producer(scripted, request_timeout_ms=1_000, delivery_timeout_ms=1_000) as sending:
        error = sending.send("t", b"v").exception(WAIT_S)
    assert isinstance(error, Timeout)
    assert str(error).startswith("Expiring 1 record(s) for t-0:")
    assert str(error).endswith(" ms has passed since batch creation")


def test_records_for_a_partition_without_a_leader_expire(scripted: ScriptedCluster) -> None:
    scripted.leaders[0] = -1
    with producer(scripted, request_timeout_ms=50, delivery_timeout_ms=200) as sending:
        assert isinstance(sending.send("t", b"v").exception(WAIT_S), Timeout)


def test_after_an_expired_batch_the_producer_goes_on_under_another_epoch(scripted: ScriptedCluster) -> None:
    # A request that has expired can reach the cluster after the next one was sent: the epoch tells them apart.
    scripted.on_produce = lambda partition, batch, number: DROP if batch.producer_epoch == 0 else None
    with producer(scripted, request_timeout_ms=50, delivery_timeout_ms=1_000, batch_size=0) as sending:
        assert isinstance(sending.send("t", b"lost" * 10).exception(WAIT_S), Timeout | NetworkError)
        assert sending.send("t", b"next" * 10).result(WAIT_S).offset == 0
        transactions = sending._core.transactions
        assert transactions is not None
        assert transactions.identity.producer.epoch == 1


def test_a_batch_too_large_for_the_broker_is_split(scripted: ScriptedCluster) -> None:
    sizes: list[int] = []

    def limited(partition: TopicPartition, batch: Batch, number: int) -> Any:
        sizes.append(batch.count)
        return ErrorCode.MESSAGE_TOO_LARGE if batch.count > 4 else None

    scripted.on_produce = limited
    contents = [bytes([number]) * 300 for number in range(20)]
    called: list[int] = []
    with producer(scripted, linger_ms=200, batch_size=10000) as sending:
        deliveries = [sending.send("t", content, callback=noting(called, number)) for number, content in enumerate(contents)]
        sending.flush()
        assert offsets(deliveries) == list(range(20))
    assert scripted.written() == contents
    assert called == list(range(20))
    assert sizes[0] == 20


def test_one_record_too_large_for_the_broker_fails(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.MESSAGE_TOO_LARGE
    with producer(scripted) as sending, pytest.raises(RecordTooLarge):
        sending.send("t", b"v").result(WAIT_S)
    assert scripted.produced == 1


def test_records_that_the_broker_names_fail_for_their_own_reasons(scripted: ScriptedCluster) -> None:
    answer = PartitionProduceResponse(
        error_code=ErrorCode.INVALID_RECORD,
        base_offset=-1,
        record_errors=[BatchIndexAndErrorMessage(1, "no key")],
        error_message="One or more records have been rejected",
    )
    scripted.on_produce = lambda partition, batch, number: answer
    with producer(scripted, linger_ms=50) as sending:
        errors = [delivery.exception(WAIT_S) for delivery in [sending.send("t", b"v") for _ in range(3)]]
    assert [str(error) for error in errors] == [
        "Failed to append record because it was part of a batch which had one more more invalid records",
        "no key",
        "Failed to append record because it was part of a batch which had one more more invalid records",
    ]
    assert isinstance(errors[1], InvalidRecord)


def test_with_acks_0_nothing_is_waited_for() -> None:
    arrived = threading.Event()
    with ScriptedCluster() as scripted:
        scripted.on_produce = lambda partition, batch, number: arrived.set()
        with producer(scripted, acks="0") as sending:
            assert sending.send("t", b"v").result(WAIT_S).offset == -1
        assert arrived.wait(WAIT_S)
    assert scripted.written() == [b"v"]


def test_a_duplicate_that_the_broker_no_longer_knows_the_place_of_counts_as_sent(scripted: ScriptedCluster) -> None:
    scripted.on_produce = failing(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    with producer(scripted) as sending:
        assert sending.send("t", b"v").result(WAIT_S).offset == -1


def test_after_a_gap_an_idempotent_producer_goes_on_under_another_epoch(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending:
        sending.send("t", b"one").result(WAIT_S)
        scripted.on_produce = failing(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        assert sending.send("t", b"two").result(WAIT_S).offset == 1
        transactions = sending._core.transactions
        assert transactions is not None
        assert transactions.identity.producer.epoch == 1


def test_a_broker_that_forgot_the_producer_is_met_with_another_epoch(scripted: ScriptedCluster) -> None:
    with producer(scripted) as sending:
        sending.send("t", b"one").result(WAIT_S)
        scripted.on_produce = failing(ErrorCode.UNKNOWN_PRODUCER_ID)
        assert sending.send("t", b"two").result(WAIT_S).offset == 1


def test_batches_of_several_partitions_share_a_request() -> None:
    with ScriptedCluster(partitions=3) as cluster, producer(cluster, linger_ms=50) as sending:
        offsets([sending.send("t", b"v", partition=partition) for partition in range(3)])
        assert cluster.produced == 1


def test_flush_returns_when_all_is_acknowledged_and_called_back(scripted: ScriptedCluster) -> None:
    called: list[Any] = []
    with producer(scripted, linger_ms=60000, delivery_timeout_ms=120000) as sending:
        for _ in range(10):
            sending.send("t", b"v", callback=lambda metadata, error: called.append((metadata, error)))
        sending.flush()
        assert len(called) == 10
        assert all(error is None and metadata is not None for metadata, error in called)


def test_flush_in_a_callback_is_refused(scripted: ScriptedCluster) -> None:
    caught: list[BaseException] = []
    done = threading.Event()
    with producer(scripted) as sending:

        def callback(metadata: Any, error: Any) -> None:
            try:
                sending.flush()
            except KafkaError as refusal:
                caught.append(refusal)
            done.set()

        sending.send("t", b"v", callback=callback)
        assert done.wait(WAIT_S)
    assert "not permitted" in str(caught[0])


def test_a_callback_may_send(scripted: ScriptedCluster) -> None:
    second: list[Delivery] = []
    done = threading.Event()
    with producer(scripted) as sending:

        def callback(metadata: Any, error: Any) -> None:
            second.append(sending.send("t", b"two"))
            done.set()

        sending.send("t", b"one", callback=callback)
        assert done.wait(WAIT_S)
        assert second[0].result(WAIT_S).offset == 1


def test_close_waits_for_what_was_sent(scripted: ScriptedCluster) -> None:
    sending = producer(scripted, linger_ms=60000, delivery_timeout_ms=120000)
    delivery = sending.send("t", b"v")
    sending.close()
    assert delivery.done()
    assert scripted.written() == [b"v"]


def test_close_gives_up_after_its_timeout(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: DROP
    sending = producer(scripted)
    delivery = sending.send("t", b"v")
    began = time.monotonic()
    with pytest.raises(SendFailed):
        sending.close(0.1)
    assert time.monotonic() - began < 5
    assert str(delivery.exception(0)) == "Producer is closed forcefully."


def test_a_closed_producer_takes_nothing(scripted: ScriptedCluster) -> None:
    sending = producer(scripted)
    sending.close()
    sending.close()
    with pytest.raises(IllegalState, match="Cannot perform operation after producer has been closed"):
        sending.send("t", b"v")


def test_close_may_be_called_in_a_callback(scripted: ScriptedCluster) -> None:
    done = threading.Event()
    sending = producer(scripted)

    def callback(metadata: Any, error: Any) -> None:
        sending.close()
        done.set()

    sending.send("t", b"v", callback=callback)
    assert done.wait(WAIT_S)
    sending._network._thread.join(WAIT_S)
    assert not sending._network._thread.is_alive()


def test_without_the_right_to_be_idempotent_it_is_asked_for_again(scripted: ScriptedCluster) -> None:
    refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    scripted.answers[api_keys.INIT_PRODUCER_ID] = [refused]
    with producer(scripted) as sending:
        # The id is asked for before there is a record; one that comes before the answer fails with it.
        assert isinstance(sending.send("t", b"v").exception(WAIT_S), ClusterAuthorization | None)
        assert sending.send("t", b"v").result(WAIT_S).has_offset()
    assert len(scripted.of_kind("InitProducerId")) == 2


def test_a_corrupt_batch_is_sent_again_until_it_expires(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.CORRUPT_MESSAGE
    with producer(scripted, request_timeout_ms=100, delivery_timeout_ms=250) as sending:
        error = sending.send("t", b"v").exception(WAIT_S)
    assert isinstance(error, Timeout | CorruptRecord)
    assert scripted.produced > 2
