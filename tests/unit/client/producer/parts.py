"""What the tests of the producer's parts share: a clock that is set, a cluster made of leaders, an accumulator of small batches."""

from __future__ import annotations

import threading
from collections.abc import Callable

from barnabas.client.cluster import Cluster, Node, PartitionInfo
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.producer.accumulator import AccumulatorConfig, RecordAccumulator
from barnabas.client.producer.batch import Delivery
from barnabas.client.producer.buffer_pool import BufferPool
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.records.batch import read_batch
from barnabas.records.reader import read_records
from barnabas.topic_partition import TopicPartition

NODES = {node_id: Node(node_id, "broker", 9090 + node_id) for node_id in (1, 2)}


class TestClock:
    __test__ = False

    def __init__(self) -> None:
        self.ms = 1000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def cluster(leaders: dict[str, list[int | None]], epoch: int = 0) -> Cluster:
    """Topics with the leader of each partition; None for a partition without one."""
    infos = [
        PartitionInfo(topic, partition, None if leader is None else NODES[leader], leader_epoch=epoch)
        for topic, row in leaders.items()
        for partition, leader in enumerate(row)
    ]
    return Cluster(NODES.values(), infos)


class Setup:
    """An accumulator with what it needs, and short ways to use it."""

    def __init__(
        self,
        *,
        leaders: dict[str, list[int | None]] | None = None,
        memory: int = 1 << 20,
        transactions: TransactionManager | None = None,
        random: Callable[[], int] = lambda: 0,
        **config: int,
    ) -> None:
        self.clock = TestClock()
        self.cluster = cluster(leaders or {"t": [1]})
        self.wakeups = 0
        self.pool = BufferPool(memory)
        self.transactions = transactions
        self.accumulator = RecordAccumulator(
            AccumulatorConfig(**config),  # type: ignore[arg-type]
            self.pool,
            ExponentialBackoff(100, 1000, jitter=0),
            transactions,
            transactions.lock if transactions else threading.RLock(),
            now_ms=self.clock.monotonic_ms,
            random=random,
            wakeup=self._woken,
        )

    def append(
        self,
        value: bytes = b"v",
        topic: str = "t",
        partition: int = 0,
        key: bytes | None = None,
        on_done: Callable[[Delivery], None] | None = None,
    ) -> Delivery:
        delivery = self.accumulator.append(topic, partition, self.clock.ms, key, value, (), self.cluster, on_done)
        assert delivery is not None
        return delivery

    def ready(self) -> list[int]:
        return list(self.accumulator.ready(self.cluster, self.clock.ms).nodes)

    def next_check_ms(self) -> int:
        return int(self.accumulator.ready(self.cluster, self.clock.ms).next_check_ms)

    def drain(self, *nodes: int, size_max: int = 1 << 20) -> list[list[bytes | None]]:
        """The values of each batch that is drained."""
        return [values(batch.data()) for batch in self.drain_batches(*nodes, size_max=size_max)]

    def drain_batches(self, *nodes: int, size_max: int = 1 << 20):  # type: ignore[no-untyped-def]
        drained = self.accumulator.drain(self.cluster, nodes or (1,), size_max, self.clock.ms)
        return [batch for batches in drained.values() for batch in batches]

    def _woken(self) -> None:
        self.wakeups += 1


def values(data: bytes) -> list[bytes | None]:
    return [record.value for record in read_records(data, read_batch(data, 0, len(data)))]


TP = TopicPartition("t", 0)
