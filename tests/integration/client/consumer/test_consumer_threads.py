"""Three models of reading with several threads: a consumer each, parts of one partition, and a window of batches.

The third of them, one that polls and a pool that handles, stands in `test_consumer_patterns`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import Wakeup
from barnabas.client.producer.producer import Producer
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import DEADLINE_S, numbered, partitions, poll_until, produce

Batch = list[Any]  # of records


def member(bootstrap: str, group: str, **settings: Any) -> Consumer[Any, Any]:
    base = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return Consumer(base, **settings)


def test_every_thread_has_a_consumer_of_its_own(bootstrap: str, new_topic: TopicMaker) -> None:
    """The first model: as many threads as there are partitions at most, each ended by a wakeup."""
    topic = new_topic("thread-each", partitions=3)
    for number in range(3):
        produce(bootstrap, topic, numbered(100), partition=number)
    lock, all_read = threading.Lock(), threading.Event()
    seen: dict[int, list[int]] = {}

    def read(consumer: Consumer[Any, Any]) -> None:
        consumer.subscribe([topic])
        try:
            while True:
                records = consumer.poll(1)
                with lock:
                    for record in records:
                        seen.setdefault(record.partition, []).append(record.offset)
                    if sum(map(len, seen.values())) >= 300:
                        all_read.set()
                consumer.commit_sync()
        except Wakeup:
            pass
        finally:
            consumer.close()

    with member(bootstrap, topic) as one:
        count = len(one.partitions_for(topic))
    consumers = [member(bootstrap, topic) for _ in range(count)]
    threads = [threading.Thread(target=read, args=(consumer,)) for consumer in consumers]
    for thread in threads:
        thread.start()
    assert all_read.wait(DEADLINE_S)
    for consumer, thread in zip(consumers, threads, strict=True):
        consumer.wakeup()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    # A rebalance may bring records again that were not committed, but leaves none out.
    assert {number: sorted(set(offsets)) for number, offsets in seen.items()} == {number: list(range(100)) for number in range(3)}


def test_several_threads_read_parts_of_one_partition(bootstrap: str, new_topic: TopicMaker) -> None:
    """The second model: without a group, each with its offset to begin at."""
    topic = new_topic("parts")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(200))

    def read(start: int, end: int) -> list[bytes]:
        with Consumer[bytes, bytes]({"bootstrap.servers": bootstrap}) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, start)
            return [record.value for record in poll_until(consumer, end - start) if record.offset < end]

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(read, range(0, 200, 50), range(50, 250, 50)))
    assert parts == [numbered(50, start) for start in range(0, 200, 50)]


class Window:
    """The fourth model: so many batches are under way at once, and only those at its head that are done are committed."""

    def __init__(
        self, consumer: Consumer[Any, Any], partition: TopicPartition, pool: ThreadPoolExecutor, handle: Callable[[Batch], None], slots: int
    ) -> None:
        self.slots: deque[tuple[int, Future[None]]] = deque()
        self._consumer = consumer
        self._partition = partition
        self._pool = pool
        self._handle = handle
        self._size = slots

    def turn(self) -> None:
        """Fills the window by one batch, if there is room, and moves it on if its head is done."""
        if len(self.slots) < self._size:
            batch = list(self._consumer.poll(1))
            if batch:
                self.slots.append((batch[-1].offset + 1, self._pool.submit(self._handle, batch)))
        done = None
        while self.slots and self.slots[0][1].done():
            done, future = self.slots.popleft()
            future.result()
        if done is not None:
            self._consumer.commit_sync({self._partition: OffsetAndMetadata(done)})


def test_a_window_of_batches_is_committed_from_its_head_on(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("window")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(100))
    go_on = threading.Event()
    handled: list[int] = []

    def handle(batch: Batch) -> None:
        if batch[0].offset == 20:
            assert go_on.wait(DEADLINE_S)
        handled.extend(record.offset for record in batch)

    with ThreadPoolExecutor(4) as pool, member(bootstrap, topic, max_poll_records=10) as consumer:
        consumer.subscribe([topic])
        window = Window(consumer, partition, pool, handle, slots=4)
        while not (len(window.slots) == 4 and window.slots[0][0] == 30):  # the head stands still, and the window is full
            window.turn()
        wait([future for _, future in list(window.slots)[1:]], DEADLINE_S)
        window.turn()
        assert consumer.committed(partition) == OffsetAndMetadata(20)
        assert sorted(handled) == [*range(20), *range(30, 60)]
        go_on.set()
        while consumer.committed(partition) != OffsetAndMetadata(100):
            window.turn()
    assert sorted(handled) == list(range(100))


def test_a_batch_that_cannot_be_handled_leaves_the_window_for_the_dead_letters(bootstrap: str, new_topic: TopicMaker) -> None:
    """It is tried again where it is, then once more from a queue, and then put aside with the reason; the window moves on."""
    topic, dead_letters = new_topic("poisoned"), new_topic("dead-letters")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(100))
    attempts: list[str] = []
    queue: deque[Batch] = deque()

    def work(batch: Batch, where: str) -> None:
        if batch[0].offset == 20:
            attempts.append(where)
            raise ValueError("poison")

    def handle(batch: Batch) -> None:
        for _ in range(2):
            try:
                return work(batch, "in place")
            except ValueError:
                continue
        queue.append(batch)

    with (
        ThreadPoolExecutor(3) as pool,
        Producer({"bootstrap.servers": bootstrap}) as producer,
        member(bootstrap, topic, max_poll_records=10) as consumer,
    ):
        consumer.subscribe([topic])
        window = Window(consumer, partition, pool, handle, slots=3)
        while consumer.committed(partition) != OffsetAndMetadata(100):
            window.turn()
        for batch in queue:
            try:
                work(batch, "from the queue")
            except ValueError as problem:
                for record in batch:
                    headers = {"offset": b"%d" % record.offset, "reason": str(problem).encode()}
                    producer.send(dead_letters, record.value, record.key, headers=headers)
    assert attempts == ["in place", "in place", "from the queue"]
    with Consumer[bytes, bytes]({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as reader:
        reader.assign(partitions(dead_letters, 1))
        records = poll_until(reader, 10)
    assert [record.value for record in records] == numbered(10, 20)
    assert dict(records[0].headers) == {"offset": b"20", "reason": b"poison"}
