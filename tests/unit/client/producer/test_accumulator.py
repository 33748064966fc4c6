"""Which batch goes when."""

from __future__ import annotations

import pytest

from barnabas.client.errors import Timeout
from barnabas.client.producer.transactions.sequences import ProducerIdAndEpoch
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.errors import KafkaError
from barnabas.records.batch import read_batch
from barnabas.records.codecs.compression import ZSTD
from barnabas.topic_partition import TopicPartition
from tests.unit.client.producer.parts import TP, Setup, cluster, values


def test_records_of_a_partition_share_a_batch() -> None:
    setup = Setup(linger_ms=0)
    setup.append(b"a")
    setup.append(b"b")
    assert setup.drain() == [[b"a", b"b"]]


def test_a_batch_lingers() -> None:
    setup = Setup(linger_ms=10)
    setup.append()
    assert setup.ready() == []
    assert setup.next_check_ms() == 10
    setup.clock.ms += 10
    assert setup.ready() == [1]


def test_a_full_batch_does_not_linger() -> None:
    setup = Setup(linger_ms=1000, batch_size=300)
    for _ in range(3):
        setup.append(bytes(150))
    assert setup.ready() == [1]


def test_the_sender_is_woken_for_a_new_batch_and_for_a_full_one_only() -> None:
    setup = Setup(linger_ms=1000, batch_size=300)
    setup.append(bytes(10))
    assert setup.wakeups == 1
    setup.append(bytes(10))
    assert setup.wakeups == 1
    setup.append(bytes(290))
    assert setup.wakeups == 2


def test_one_batch_of_a_partition_is_drained_at_a_time() -> None:
    setup = Setup(linger_ms=0, batch_size=200)
    for number in range(3):
        setup.append(bytes([number]) * 150)
    assert setup.drain() == [[bytes(150)]]
    assert setup.drain() == [[b"\x01" * 150]]


def test_with_batch_size_zero_each_record_is_a_batch() -> None:
    setup = Setup(linger_ms=0, batch_size=0)
    setup.append(b"a" * 30)
    setup.append(b"b" * 30)
    assert setup.drain() == [[b"a" * 30]]
    assert setup.drain() == [[b"b" * 30]]


def test_nothing_lingers_while_somebody_flushes() -> None:
    setup = Setup(linger_ms=1000)
    setup.append()
    setup.accumulator.begin_flush()
    assert setup.ready() == [1]
    setup.accumulator.end_flush()
    assert setup.ready() == []


def test_nothing_lingers_while_somebody_waits_for_memory() -> None:
    setup = Setup(linger_ms=1000, memory=20000)
    setup.append()
    setup.pool.wait(16384, lambda: None)
    assert setup.ready() == [1]


def test_nothing_lingers_once_the_producer_closes() -> None:
    setup = Setup(linger_ms=1000)
    setup.append()
    setup.accumulator.close()
    assert setup.ready() == [1]
    with pytest.raises(KafkaError, match="Producer closed while send in progress"):
        setup.append()


def test_a_partition_without_a_leader_waits_and_its_topic_is_told() -> None:
    setup = Setup(leaders={"t": [None]}, linger_ms=0)
    setup.append()
    check = setup.accumulator.ready(setup.cluster, setup.clock.ms)
    assert (list(check.nodes), check.unknown_leader_topics) == ([], {"t"})


def test_each_node_gets_the_batches_of_the_partitions_it_leads() -> None:
    setup = Setup(leaders={"t": [1, 2]}, linger_ms=0)
    setup.append(b"one", partition=0)
    setup.append(b"two", partition=1)
    assert setup.drain(1) == [[b"one"]]
    assert setup.drain(2) == [[b"two"]]


def test_a_request_holds_no_more_than_its_size_but_one_batch_at_least() -> None:
    setup = Setup(leaders={"t": [1, 1, 1]}, linger_ms=0)
    for partition in range(3):
        setup.append(bytes(400), partition=partition)
    assert len(setup.drain_batches(size_max=1000)) == 2
    assert len(setup.drain_batches(size_max=10)) == 1


def test_partitions_take_turns_where_not_all_fit_in_a_request() -> None:
    setup = Setup(leaders={"t": [1, 1, 1]}, linger_ms=0, batch_size=0)
    for _ in range(2):
        for partition in range(3):
            setup.append(bytes([partition]) * 400, partition=partition)
    drained = [setup.drain(size_max=500)[0][0] for _ in range(6)]
    assert [value[0] for value in drained if value] == [0, 1, 2, 0, 1, 2]


def test_a_muted_partition_is_left_alone() -> None:
    setup = Setup(linger_ms=0)
    setup.append()
    setup.accumulator.mute(TP, True)
    assert (setup.ready(), setup.drain()) == ([], [])
    setup.accumulator.mute(TP, False)
    assert setup.ready() == [1]


def test_memory_comes_back_when_a_batch_has_ended() -> None:
    setup = Setup(linger_ms=0, memory=16384)
    setup.append()
    assert setup.pool.available == 0
    (batch,) = setup.drain_batches()
    batch.complete(0, -1)
    setup.accumulator.deallocate(batch)
    setup.accumulator.deallocate(batch)
    assert setup.pool.available == 16384


def test_without_memory_there_is_no_new_batch() -> None:
    setup = Setup(leaders={"t": [1, 1]}, linger_ms=0, memory=16384)
    setup.append(b"a", partition=0)
    assert setup.accumulator.append("t", 1, 0, None, b"b", (), setup.cluster, None) is None
    setup.append(b"there is still room in the first", partition=0)


def test_memory_somebody_waited_for_is_used_or_given_back() -> None:
    setup = Setup(linger_ms=0, memory=40000)
    setup.pool.try_allocate(16384)
    setup.accumulator.append("t", 0, 0, None, b"a", (), setup.cluster, None, 16384)
    setup.pool.try_allocate(16384)
    setup.accumulator.append("t", 0, 0, None, b"b", (), setup.cluster, None, 16384)
    assert setup.pool.available == 40000 - 16384


def test_a_large_record_gets_a_batch_of_its_size() -> None:
    setup = Setup(linger_ms=0)
    setup.append(bytes(50000))
    assert setup.pool.available < (1 << 20) - 50000
    assert setup.drain() == [[bytes(50000)]]


def test_a_retry_waits_for_its_back_off() -> None:
    setup = Setup(linger_ms=0)
    setup.append()
    (batch,) = setup.drain_batches()
    setup.accumulator.reenqueue(batch, setup.clock.ms)
    assert (setup.ready(), setup.drain(), setup.next_check_ms()) == ([], [], 100)
    setup.clock.ms += 100
    assert setup.ready() == [1]
    (batch,) = setup.drain_batches()
    setup.accumulator.reenqueue(batch, setup.clock.ms)
    assert setup.next_check_ms() == 200


def test_a_retry_does_not_wait_if_the_leader_has_changed() -> None:
    setup = Setup(leaders={"t": [1]}, linger_ms=0)
    setup.append()
    (batch,) = setup.drain_batches()
    setup.accumulator.reenqueue(batch, setup.clock.ms)
    setup.cluster = cluster({"t": [2]}, epoch=1)
    assert setup.ready() == [2]
    assert setup.drain(2) == [[b"v"]]


def test_a_batch_that_comes_back_goes_before_those_that_have_not_been_sent() -> None:
    setup = Setup(linger_ms=0)
    setup.append(b"first")
    (batch,) = setup.drain_batches()
    setup.append(b"second")
    setup.accumulator.reenqueue(batch, setup.clock.ms)
    setup.clock.ms += 100
    assert setup.drain() == [[b"first"]]
    assert setup.drain() == [[b"second"]]


def test_batches_expire_in_the_order_of_sending() -> None:
    setup = Setup(linger_ms=0, delivery_timeout_ms=1000, batch_size=0)
    setup.append(b"old" * 10)
    setup.clock.ms += 500
    setup.append(b"new" * 10)
    assert setup.accumulator.expired(setup.clock.ms) == []
    assert setup.accumulator.next_expiry_ms == 2000
    setup.clock.ms += 500
    (expired,) = setup.accumulator.expired(setup.clock.ms)
    assert values(expired.data()) == [b"old" * 10]
    assert setup.drain() == [[b"new" * 10]]


def test_aborting_fails_what_has_not_been_sent_and_leaves_the_rest() -> None:
    setup = Setup(linger_ms=0, batch_size=0)
    sent = setup.append(b"sent")
    setup.drain_batches()
    waiting = setup.append(b"waiting")
    setup.accumulator.abort_undrained(KafkaError("gone"))
    assert str(waiting.exception(0)) == "gone"
    assert not sent.done()
    assert not setup.accumulator.has_undrained
    setup.accumulator.abort_batches(Timeout("all"))
    assert str(sent.exception(0)) == "all"
    assert setup.pool.available == setup.pool.total
    assert not setup.accumulator.has_incomplete


def test_callbacks_are_in_the_order_of_appending() -> None:
    setup = Setup(linger_ms=0)
    called: list[int] = []
    for number in range(5):
        setup.append(on_done=lambda delivery, number=number: called.append(number))  # type: ignore[misc]
    (batch,) = setup.drain_batches()
    batch.complete(0, -1)
    assert called == list(range(5))


def test_records_without_a_partition_move_on_when_the_batch_is_full() -> None:
    random = iter([0, 1, 2])
    setup = Setup(leaders={"t": [1, 1, 1]}, linger_ms=0, batch_size=300, random=lambda: next(random))
    partitions = [setup.append(bytes(250), partition=-1).topic_partition.partition for _ in range(4)]
    assert partitions == [0, 0, 1, 1]  # the second record finds the batch full


def test_the_sticky_partitioners_of_kafka_3_move_on_when_a_batch_begins() -> None:
    random = iter([0, 0, 1, 0])
    setup = Setup(leaders={"t": [1, 1, 1]}, linger_ms=0, batch_size=1000, random=lambda: next(random), switches_at_new_batch=True)
    assert [setup.append(partition=-1).topic_partition.partition for _ in range(3)] == [1, 1, 1]
    setup.drain_batches()
    assert [setup.append(partition=-1).topic_partition.partition for _ in range(2)] == [2, 2]  # the first batch is sent, though not full
    assert [setup.append(bytes(900), partition=-1).topic_partition.partition for _ in range(2)] == [2, 0]


def test_partitions_with_long_queues_are_chosen_less() -> None:
    setup = Setup(leaders={"t": [1, 1]}, linger_ms=0, batch_size=0, random=lambda: 1)
    setup.append(bytes(30), partition=0)
    for _ in range(3):
        setup.append(bytes(30), partition=1)
    setup.ready()
    # The queues are 1 and 3: of 4 numbers 3 fall to the first, and 1 is among them.
    assert setup.append(partition=-1).topic_partition.partition == 0


def test_a_broker_that_takes_nothing_is_avoided_after_a_while() -> None:
    setup = Setup(leaders={"t": [1, 2]}, linger_ms=0, batch_size=0, random=lambda: 1, availability_timeout_ms=100)
    for partition in range(2):
        setup.append(bytes(30), partition=partition)
    for can_send in (True, False):
        setup.accumulator.node_checked(1, setup.clock.ms, True)
        setup.accumulator.node_checked(2, setup.clock.ms, can_send)
        setup.clock.ms += 200
    setup.accumulator.node_checked(2, setup.clock.ms, False)
    setup.ready()
    assert [setup.append(bytes(30), partition=-1).topic_partition.partition for _ in range(3)] == [0, 0, 0]


def test_the_ratio_of_compression_is_learned_for_each_topic() -> None:
    setup = Setup(linger_ms=0, batch_size=2000, codec=ZSTD)
    counts = []
    for _ in range(40):
        while not setup.accumulator.ready(setup.cluster, setup.clock.ms).nodes or len(setup.accumulator._filled) == 0:
            setup.append(b"the same again " * 4)
        while setup.append(b"the same again " * 4):
            if len(next(iter(setup.accumulator._filled)).batches) > 1:
                break
        (batch,) = setup.drain_batches()
        counts.append(batch.count)
        for rest in setup.drain_batches():
            rest.complete(0, -1)
            setup.accumulator.deallocate(rest)
        batch.complete(0, -1)
        setup.accumulator.deallocate(batch)
    assert counts[-1] > counts[0]


def test_the_parts_of_a_split_take_the_place_of_the_whole() -> None:
    setup = Setup(linger_ms=0, batch_size=500)
    deliveries = [setup.append(bytes([number]) * 100) for number in range(4)]
    (batch,) = setup.drain_batches()
    setup.append(b"later")
    setup.accumulator.config.batch_size = 250
    setup.accumulator._batch_size = 250
    setup.accumulator.split_and_reenqueue(batch)
    setup.accumulator.deallocate(batch)
    drained: list[bytes | None] = []
    while found := setup.drain_batches():
        for part in found:
            drained += values(part.data())
            part.complete(0, -1)
            setup.accumulator.deallocate(part)
    assert drained == [bytes([number]) * 100 for number in range(4)] + [b"later"]
    assert all(delivery.done() for delivery in deliveries)
    assert setup.pool.available == setup.pool.total


def idempotent() -> TransactionManager:
    manager = TransactionManager()
    manager.ensure_producer_id()
    manager.initialized(ProducerIdAndEpoch(7, 0), False)
    return manager


def established() -> TransactionManager:
    """One whose producer id the brokers know."""
    manager = idempotent()
    manager.identity.established.add(TP)
    return manager


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    manager = TransactionManager()
    setup = Setup(linger_ms=0, transactions=manager)
    setup.append()
    assert setup.drain() == []
    manager.ensure_producer_id()
    manager.initialized(ProducerIdAndEpoch(7, 0), False)
    (batch,) = setup.drain_batches()
    header = read_batch(batch.data(), 0, batch.size)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, 0)


def test_sequences_count_records() -> None:
    setup = Setup(linger_ms=0, batch_size=300, transactions=established())
    for _ in range(6):
        setup.append(bytes(100))
    batches = [*setup.drain_batches(), *setup.drain_batches(), *setup.drain_batches()]
    assert [batch.base_sequence for batch in batches] == [0, 2, 4]


def test_the_second_batch_of_a_partition_waits_for_the_first_ever() -> None:
    """A broker that knows nothing of a producer takes any sequence: the second batch could pass a first that was refused for a moment."""
    setup = Setup(linger_ms=0, batch_size=0, transactions=idempotent())
    for _ in range(3):
        setup.append(bytes(30))
    (first,) = setup.drain_batches()
    assert setup.drain_batches() == []
    assert setup.transactions is not None
    setup.transactions.identity.batch_completed(first, 0)
    assert len(setup.drain_batches()) == len(setup.drain_batches()) == 1


def test_batches_that_come_back_are_sent_again_in_order_and_one_at_a_time() -> None:
    setup = Setup(linger_ms=0, batch_size=0, transactions=established())
    for number in range(3):
        setup.append(bytes([number]) * 30)
    batches = [setup.drain_batches()[0] for _ in range(3)]
    for batch in (batches[1], batches[2], batches[0]):
        setup.accumulator.reenqueue(batch, setup.clock.ms)
    setup.clock.ms += 1000
    assert setup.drain_batches() == [batches[0]]
    assert setup.drain_batches() == []
    assert setup.transactions is not None
    setup.transactions.identity.batch_completed(batches[0], 0)
    assert setup.drain_batches() == [batches[1]]


def test_a_transactional_batch_waits_until_its_partition_is_part_of_the_transaction() -> None:
    manager = TransactionManager("x")
    manager.initialize()
    manager.initialized(ProducerIdAndEpoch(7, 0), False)
    manager._pending = None
    manager.begin()
    setup = Setup(linger_ms=0, transactions=manager)
    setup.append()
    manager.maybe_add_partition(TP)
    assert setup.drain() == []
    manager.partitions.add(TopicPartition("t", 0))
    (batch,) = setup.drain_batches()
    assert read_batch(batch.data(), 0, batch.size).attributes & 0x10
