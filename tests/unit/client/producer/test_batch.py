"""A batch of the producer: its bytes, its deliveries, and how it ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.client.errors import Timeout
from barnabas.client.producer.batch import Delivery, ProducerBatch, size_upper_bound
from barnabas.errors import CorruptRecord, InvalidRecord, KafkaError
from barnabas.records.batch import read_batch
from barnabas.records.builder import build
from barnabas.records.codecs.compression import GZIP, NONE
from tests.unit.client.producer.parts import TP, values


def batch_of(*contents: bytes, codec: int = NONE, limit: int = 16384) -> tuple[ProducerBatch, list[Delivery]]:
    batch = ProducerBatch(TP, threading.RLock(), codec, None, limit, limit, 1000)
    deliveries = [delivery for content in contents if (delivery := batch.try_append(7, b"k", content, ())) is not None]
    return batch, deliveries


def test_its_bytes_are_those_of_the_builder() -> None:
    batch, _ = batch_of(b"a", b"b")
    batch.set_producer_state(5, 1, 10, True)
    assert batch.data() == build(
        [(7, b"k", b"a", ()), (7, b"k", b"b", ())], producer_id=5, producer_epoch=1, base_sequence=10, transactional=True
    )


def test_records_are_refused_once_it_is_full() -> None:
    batch, deliveries = batch_of(*[bytes(100)] * 10, limit=510)
    assert len(deliveries) == 4
    assert len(batch.data()) <= 510


def test_the_first_record_always_fits() -> None:
    _, deliveries = batch_of(bytes(1000), limit=100)
    assert len(deliveries) == 1


def test_no_record_makes_a_larger_batch_than_its_upper_bound() -> None:
    batch, _ = batch_of(bytes(1000))
    assert len(batch.data()) <= size_upper_bound(b"k", bytes(1000), ())


def test_a_delivery_gives_offset_timestamp_and_sizes() -> None:
    batch, deliveries = batch_of(b"a", b"bcd")
    batch.complete(40, -1)
    metadata = deliveries[1].result(0)
    assert (metadata.offset, metadata.timestamp, metadata.serialized_key_size, metadata.serialized_value_size) == (41, 7, 1, 3)


def test_log_append_time_takes_the_place_of_the_records_own() -> None:
    batch, deliveries = batch_of(b"a")
    batch.complete(0, 99)
    assert deliveries[0].result(0).timestamp == 99


def test_without_an_offset_in_the_answer_there_is_none() -> None:
    batch, deliveries = batch_of(b"a", b"b")
    batch.complete(-1, -1)
    assert deliveries[1].result(0).offset == -1


def test_sizes_of_null_are_minus_one() -> None:
    batch = ProducerBatch(TP, threading.RLock(), NONE, None, 1000, 0, 0)
    delivery = batch.try_append(7, None, None, ())
    assert delivery is not None
    batch.complete(0, -1)
    assert (delivery.result(0).serialized_key_size, delivery.result(0).serialized_value_size) == (-1, -1)


def test_a_result_that_does_not_come_is_a_timeout() -> None:
    _, deliveries = batch_of(b"a")
    with pytest.raises(Timeout):
        deliveries[0].result(0.01)
    assert not deliveries[0].done()


def test_a_failed_batch_fails_its_deliveries() -> None:
    batch, deliveries = batch_of(b"a")
    batch.fail(CorruptRecord("bad"))
    with pytest.raises(CorruptRecord, match="bad"):
        deliveries[0].result(0)
    assert isinstance(deliveries[0].exception(0), CorruptRecord)


def test_records_can_fail_for_reasons_of_their_own() -> None:
    batch, deliveries = batch_of(b"a", b"b")
    batch.fail(InvalidRecord("batch"), {1: InvalidRecord("this one")})
    assert [str(delivery.exception(0)) for delivery in deliveries] == ["batch", "this one"]


def test_a_batch_ends_once() -> None:
    batch, deliveries = batch_of(b"a")
    assert batch.fail(KafkaError("expired"))
    assert not batch.complete(3, -1)
    assert str(deliveries[0].exception(0)) == "expired"


def test_callbacks_come_in_the_order_of_the_records() -> None:
    batch, deliveries = batch_of(b"a", b"b", b"c")
    called: list[int] = []
    for number, delivery in enumerate(deliveries):
        delivery.add_done_callback(lambda done, number=number: called.append(number))  # type: ignore[misc]
    batch.complete(0, -1)
    assert called == [0, 1, 2]


def test_a_callback_that_raises_does_not_keep_the_others_from_being_called() -> None:
    batch, deliveries = batch_of(b"a", b"b")
    called: list[int] = []
    deliveries[0].add_done_callback(lambda done: 1 / 0)
    deliveries[1].add_done_callback(lambda done: called.append(1))
    batch.complete(0, -1)
    assert called == [1]


def test_a_callback_added_late_is_called_at_once() -> None:
    batch, deliveries = batch_of(b"a")
    batch.complete(0, -1)
    called: list[Delivery] = []
    deliveries[0].add_done_callback(called.append)
    assert called == deliveries


def test_the_end_of_a_batch_comes_after_its_callbacks() -> None:
    batch, deliveries = batch_of(b"a")
    called: list[str] = []
    assert batch.on_end(lambda: called.append("end"))
    deliveries[0].add_done_callback(lambda done: called.append("callback"))
    batch.complete(0, -1)
    assert called == ["callback", "end"]
    assert not batch.on_end(lambda: None)


def test_a_delivery_can_be_awaited() -> None:
    batch, deliveries = batch_of(b"a", b"b")

    async def both() -> list[int]:
        asyncio.get_running_loop().call_soon(lambda: batch.complete(5, -1))
        return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(both()) == [5, 6]


def test_a_delivery_can_be_awaited_while_another_thread_completes_it() -> None:
    batch, deliveries = batch_of(b"a")

    async def waiting() -> int:
        threading.Thread(target=batch.complete, args=(5, -1)).start()
        return (await deliveries[0]).offset

    assert asyncio.run(waiting()) == 5


def test_a_thread_that_waits_is_woken() -> None:
    batch, deliveries = batch_of(b"a")
    threading.Timer(0.01, batch.complete, (5, -1)).start()
    assert deliveries[0].result(10).offset == 5


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_split_keeps_records_order_and_sequences(codec: int) -> None:
    contents = [bytes([number]) * 200 for number in range(10)]
    batch, _ = batch_of(*contents, codec=codec)
    batch.set_producer_state(5, 1, 100, False)
    parts = batch.split(1000)
    assert len(parts) > 1
    assert [value for part in parts for value in values(part.data())] == contents
    batches = [read_batch(part.data(), 0, len(part.data())) for part in parts]
    assert [header.base_sequence for header in batches] == [100 + sum(part.count for part in parts[:at]) for at in range(len(parts))]


def test_deliveries_follow_their_records_into_the_parts_of_a_split() -> None:
    batch, deliveries = batch_of(*[bytes(300)] * 4)
    called: list[int] = []
    for number, delivery in enumerate(deliveries):
        delivery.add_done_callback(lambda done, number=number: called.append(number))  # type: ignore[misc]
    ended: list[str] = []
    batch.on_end(lambda: ended.append("end"))
    first, *rest = batch.split(700)
    first.complete(10, -1)
    assert [deliveries[0].done(), deliveries[3].done()] == [True, False]
    assert ended == []
    for part in rest:
        part.complete(20, -1)
    assert [delivery.result(0).offset for delivery in deliveries] == [10, 11, 20, 21]
    assert called == [0, 1, 2, 3]
    assert ended == ["end"]


def test_a_flush_that_comes_after_a_split_waits_for_the_parts() -> None:
    batch, _ = batch_of(*[bytes(300)] * 4)
    first, last = batch.split(700)
    first.complete(0, -1)
    ended: list[str] = []
    assert batch.on_end(lambda: ended.append("end"))
    last.complete(2, -1)
    assert ended == ["end"]
    assert not batch.on_end(lambda: None)


def test_a_retry_need_not_wait_once_the_leader_has_changed() -> None:
    batch, _ = batch_of(b"a")
    batch.update_leader_epoch(1)
    assert not batch.leader_changed_for_retry
    batch.reenqueued(2000)
    assert not batch.leader_changed_for_retry
    batch.update_leader_epoch(2)
    assert batch.leader_changed_for_retry
    batch.reenqueued(2100)
    assert not batch.leader_changed_for_retry
