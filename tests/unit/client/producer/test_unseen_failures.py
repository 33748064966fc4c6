"""Records that failed and that nobody looked at: flush and close report them, once; what somebody has looked at is not reported."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client.errors import FailedSends, SendFailed, Timeout
from barnabas.client.producer import AsyncProducer, Delivery, Producer, ProducerRecord
from barnabas.client.producer.batch import FailedDelivery, ProducerBatch
from barnabas.client.producer.unseen_failures import GROUPS_MAX, UnseenFailures
from barnabas.errors import InvalidRecord, KafkaError, RecordTooLarge
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.documentation import python_blocks
from tests.unit.client.producer.scripted_broker import DROP, ScriptedCluster

WAIT_S = 60
QUICK: dict[str, Any] = {"linger_ms": 0, "retry_backoff_ms": 5, "retry_backoff_max_ms": 10}
TP = TopicPartition("t", 0)


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(partitions=4) as cluster:
        yield cluster


@pytest.fixture
def refusing(scripted: ScriptedCluster) -> ScriptedCluster:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.INVALID_RECORD
    return scripted


def producer(cluster: ScriptedCluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap}, **{**QUICK, **settings})


def asynchronous(cluster: ScriptedCluster, **settings: Any) -> AsyncProducer:
    return AsyncProducer({"bootstrap.servers": cluster.bootstrap}, **{**QUICK, **settings})


# What is reported


def test_the_example_of_the_readme_fails_without_a_broker() -> None:
    example = next(block.source for block in python_blocks("README.md") if "Producer(" in block.source)
    assert "localhost:9092" in example
    impatient = example.replace("localhost:9092", "127.0.0.1:1").replace("Producer(boot", "Producer(max_block_ms=100, boot")
    ended = subprocess.run([sys.executable, "-c", impatient], capture_output=True, text=True, env=dict(os.environ), timeout=60)
    assert ended.returncode != 0, ended.stderr
    assert "SendFailed: 1 record was not delivered" in ended.stderr
    assert "1 for greetings (Timeout: Topic greetings not present in metadata after 100 ms; " in ended.stderr
    assert "the last connection error: 127.0.0.1:1 (bootstrap.servers) refused the connection" in ended.stderr


def test_a_record_that_is_too_large_does_not_vanish(scripted: ScriptedCluster) -> None:
    with pytest.raises(SendFailed) as raised, producer(scripted, max_request_size=1000) as sending:
        sending.send("t", b"small", partition=0).result(WAIT_S)
        sending.send("t", bytes(1000), partition=1)
    assert str(raised.value) == (
        "1 record was not delivered, and the result of send() was not read: 1 for t-1 (RecordTooLarge: The message is 1086 bytes when "
        "serialized which is larger than 1000, which is the value of the max.request.size configuration.). "
        "To handle such errors call delivery.result() or give send() a callback."
    )
    assert isinstance(raised.value.__cause__, RecordTooLarge)
    assert scripted.written() == [b"small"]


def test_records_that_the_broker_refuses_are_counted_by_partition_and_error(refusing: ScriptedCluster) -> None:
    sending = producer(refusing, max_request_size=1000)
    for partition in (0, 0, 0, 1, 1):
        sending.send("t", b"v", partition=partition)
    sending.send("t", bytes(1000), partition=0)
    with pytest.raises(SendFailed) as raised:
        sending.close()
    counts = {(failed.topic_partition.partition, type(failed.error)): failed.count for failed in raised.value.failures}
    assert counts == {(0, InvalidRecord): 3, (1, InvalidRecord): 2, (0, RecordTooLarge): 1}
    assert raised.value.count == 6
    assert str(raised.value).startswith("6 records were not delivered")


def test_what_close_gives_up_is_reported(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: DROP
    sending = producer(scripted)
    sending.send("t", b"v", partition=0)
    with pytest.raises(SendFailed, match=r"1 for t-0 \(KafkaError: Producer is closed forcefully\.\)"):
        sending.close(0)


def test_flush_reports_and_close_does_not_report_again(refusing: ScriptedCluster) -> None:
    with producer(refusing) as sending:
        delivery = sending.send("t", b"v", partition=0)
        with pytest.raises(SendFailed):
            sending.flush()
        assert isinstance(delivery.exception(0), InvalidRecord), "the delivery keeps its result"
        sending.flush()


def test_a_late_look_at_what_was_reported_hides_nothing_else(refusing: ScriptedCluster) -> None:
    sending = producer(refusing)
    reported = sending.send("t", b"v", partition=0)
    with pytest.raises(SendFailed):
        sending.flush()
    sending.send("t", b"v", partition=0)
    reported.exception(WAIT_S)
    with pytest.raises(SendFailed, match="1 record was not delivered"):
        sending.close()


def test_an_exception_that_leaves_the_block_goes_on_with_a_note(refusing: ScriptedCluster) -> None:
    with pytest.raises(ZeroDivisionError) as raised, producer(refusing) as sending:
        sending.send("t", b"v", partition=0)
        1 / 0  # noqa: B018
    assert [note[:24] for note in raised.value.__notes__] == ["1 record was not deliver"]


def test_close_in_a_callback_leaves_the_report_to_the_block(scripted: ScriptedCluster) -> None:
    scripted.on_produce = lambda partition, batch, number: ErrorCode.NOT_ENOUGH_REPLICAS if partition.partition == 0 else None
    closed = threading.Event()
    with pytest.raises(SendFailed, match="Producer is closed forcefully"), producer(scripted) as sending:

        def close(metadata: Any, error: Any) -> None:
            sending.close()
            closed.set()

        sending.send("t", b"sent again and again", partition=0)
        sending.send("t", b"v", partition=1, callback=close)
        assert closed.wait(WAIT_S)


# What counts as looking


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def _result(delivery: Delivery) -> None:
    with pytest.raises(KafkaError):
        delivery.result(WAIT_S)


def _exception(delivery: Delivery) -> None:
    assert delivery.exception(WAIT_S) is not None


def _callback(delivery: Delivery) -> None:
    delivery.add_done_callback(lambda _: None)


def _await(delivery: Delivery) -> None:
    async def wait() -> None:
        with pytest.raises(KafkaError):
            await delivery

    asyncio.run(wait())


LOOKS: list[Callable[[Delivery], None]] = [_result, _exception, _callback, _await]


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_is_not_told_again(refusing: ScriptedCluster, look: Callable[[Delivery], None]) -> None:
    """Before the record has failed or after, and twice."""
    with producer(refusing, max_request_size=1000) as sending:
        early = sending.send("t", b"v", partition=0)
        look(early)
        look(early)
        late = sending.send("t", b"v", partition=0)
        wait_until(late.done)
        look(late)
        look(sending.send("t", bytes(1000)))
        sending.flush()


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_one_record_is_not_looking_at_another(look: Callable[[Delivery], None]) -> None:
    unseen = UnseenFailures()
    batch, deliveries = batch_of(unseen, 3)
    _callback(deliveries[0])
    batch.fail(InvalidRecord("no"))
    look(deliveries[1])
    look(deliveries[1])
    report = unseen.take()
    assert report is not None
    assert report.count == 1


def test_a_callback_given_to_send_is_a_look(refusing: ScriptedCluster) -> None:
    errors: list[Any] = []
    with producer(refusing, max_request_size=1000) as sending:
        sending.send("t", b"v", callback=lambda metadata, error: errors.append(error))
        sending.send("t", bytes(1000), callback=lambda metadata, error: errors.append(error))
    assert {type(error) for error in errors} == {InvalidRecord, RecordTooLarge}


def test_a_wait_that_timed_out_is_no_look() -> None:
    unseen = UnseenFailures()
    batch, (delivery,) = batch_of(unseen, 1)
    with pytest.raises(Timeout):
        delivery.result(0)
    batch.fail(InvalidRecord("no"))
    assert unseen.take() is not None


def test_a_task_that_was_cancelled_has_not_looked() -> None:
    unseen = UnseenFailures()
    batch, (delivery,) = batch_of(unseen, 1)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(delivery, 0.01)

    asyncio.run(give_up())
    batch.fail(InvalidRecord("no"))
    assert unseen.take() is not None


def test_a_thread_that_waits_has_looked_when_the_batch_ends() -> None:
    unseen = UnseenFailures()
    batch, (delivery,) = batch_of(unseen, 1)
    thread = threading.Thread(target=_exception, args=(delivery,))
    thread.start()
    wait_until(lambda: bool(batch._watchers))
    batch.fail(InvalidRecord("no"))
    assert unseen.take() is None, "whether or not the thread has run since"
    thread.join(WAIT_S)


def test_an_interceptor_is_not_the_application(refusing: ScriptedCluster) -> None:
    class Counting:
        acknowledged = 0

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record

        def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
            self.acknowledged += 1

    counting = Counting()
    with pytest.raises(SendFailed, match="2 records were not delivered"), producer(refusing, interceptor_classes=[counting]) as sending:
        sending.send("t", b"v", partition=0)
        sending.send("t", b"v", partition=0)
        sending.send("t", b"v", partition=0).exception(WAIT_S)
    assert counting.acknowledged == 3


# Batches


def batch_of(unseen: UnseenFailures, count: int) -> tuple[ProducerBatch, list[Delivery]]:
    batch = ProducerBatch(TP, threading.RLock(), 0, None, 16384, 16384, 1000, unseen)
    deliveries = [batch.try_append(1000, None, b"%d" % number, ()) for number in range(count)]
    return batch, [delivery for delivery in deliveries if delivery is not None]


def test_the_records_of_a_batch_that_was_split() -> None:
    unseen = UnseenFailures()
    batch, deliveries = batch_of(unseen, 6)
    _callback(deliveries[1])
    parts = batch.split(1)
    assert len(parts) > 1
    _callback(deliveries[5])
    for part in parts:
        part.fail(InvalidRecord("no"))
    _exception(deliveries[0])
    report = unseen.take()
    assert report is not None
    assert report.count == 3


def test_records_of_one_batch_may_fail_with_different_errors() -> None:
    unseen = UnseenFailures()
    batch, deliveries = batch_of(unseen, 4)
    batch.fail(InvalidRecord("the batch"), {1: RecordTooLarge("large"), 2: RecordTooLarge("large")})
    _exception(deliveries[2])
    _exception(deliveries[3])
    report = unseen.take()
    assert report is not None
    assert {type(failed.error): failed.count for failed in report.failures} == {InvalidRecord: 1, RecordTooLarge: 1}


def test_acknowledged_records_are_not_counted() -> None:
    unseen = UnseenFailures()
    batch, _ = batch_of(unseen, 3)
    batch.complete(0, -1)
    assert unseen.take() is None


# Bounds


def test_memory_is_bounded_and_every_record_is_counted() -> None:
    unseen = UnseenFailures()
    deliveries: list[Delivery] = []
    for number in range(3 * GROUPS_MAX):
        batch = ProducerBatch(TopicPartition("t", number), threading.RLock(), 0, None, 0, 0, 0, unseen)
        deliveries.append(FailedDelivery(batch, InvalidRecord("no")))
    _exception(deliveries[0])
    _exception(deliveries[-1])
    report = unseen.take()
    assert report is not None
    assert len(report.failures) == GROUPS_MAX - 1
    assert report.count == 3 * GROUPS_MAX - 2
    assert f"; {3 * GROUPS_MAX - 2 - 5} more." in str(report)


def test_the_message_names_the_first_few() -> None:
    failures = [FailedSends(TopicPartition("t", number), InvalidRecord("no"), 2) for number in range(7)]
    named = "; ".join(f"2 for t-{number} (InvalidRecord: no)" for number in range(5))
    assert f"was not read: {named}; 4 more. To" in str(SendFailed(failures))


# Transactions


def test_a_commit_raises_and_leaving_the_block_adds_nothing(scripted: ScriptedCluster) -> None:
    with producer(scripted, transactional_id="x", max_request_size=1000) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        sending.send("t", bytes(1000))
        with pytest.raises(KafkaError, match="larger than 1000"):
            sending.commit_transaction()
        sending.abort_transaction()


def test_what_is_aborted_was_meant_to_be(scripted: ScriptedCluster) -> None:
    with producer(scripted, transactional_id="x", linger_ms=60000) as sending:
        sending.init_transactions()
        sending.begin_transaction()
        sending.send("t", b"v", partition=0)
        sending.abort_transaction()
        sending.flush()


# The asynchronous twin


def test_the_asynchronous_producer_reports_when_its_block_is_left(refusing: ScriptedCluster) -> None:
    async def run() -> None:
        async with asynchronous(refusing, max_request_size=1000) as sending:
            await sending.send("t", b"v", partition=0)
            await sending.send("t", bytes(1000), partition=0)
            with pytest.raises(InvalidRecord):
                await sending.send_and_wait("t", b"v", partition=1)

    with pytest.raises(SendFailed, match="2 records were not delivered"):
        asyncio.run(run())


def test_the_asynchronous_producer_reports_by_flush(refusing: ScriptedCluster) -> None:
    async def run() -> None:
        async with asynchronous(refusing) as sending:
            await sending.send("t", b"v", partition=0, callback=lambda metadata, error: None)
            await sending.flush()
            await sending.send("t", b"v", partition=0)
            with pytest.raises(SendFailed, match="1 record was not delivered"):
                await sending.flush()

    asyncio.run(run())


def test_an_exception_that_leaves_the_asynchronous_block_goes_on_with_a_note(refusing: ScriptedCluster) -> None:
    async def run() -> None:
        async with asynchronous(refusing) as sending:
            await sending.send("t", b"v", partition=0)
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError) as raised:
        asyncio.run(run())
    assert [note[:24] for note in raised.value.__notes__] == ["1 record was not deliver"]
