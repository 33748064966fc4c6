"""A transaction coordinator on a log in memory, with partitions that take its markers, and a clock that moves when told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.markers import Marker
from barnabas.coordinator.transaction.shard import TransactionCoordinatorShard
from barnabas.coordinator.transaction.transaction_metadata import TransactionMetadata
from barnabas.errors import CoordinatorNotAvailable
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.describe_transactions_response import TransactionState as DescribedTransaction
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.topic_partition import TopicPartition
from tests.unit.coordinator.coordinator_host import Answers, MemoryLog, Time

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
OFFSETS_7 = TopicPartition("__consumer_offsets", 7)


class Partitions:
    """What the markers are written to. It answers at once, unless it is `held`; `codes` are answers other than 0."""

    def __init__(self) -> None:
        self.sent: list[Marker] = []
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.codes: dict[TopicPartition, int] = {}
        self.gone: set[TopicPartition] = set()
        self.held = False
        self._waiting: list[Callable[[], None]] = []

    def exists(self, partition: TopicPartition) -> bool:
        return partition not in self.gone

    def send(self, marker: Marker, on_done: Callable[[Mapping[TopicPartition, int]], None]) -> None:
        self.sent.append(marker)

        def write() -> None:
            codes = {partition: self.codes.get(partition, 0) for partition in marker.partitions}
            self.written += [(partition, marker) for partition, code in codes.items() if code == 0]
            on_done(codes)

        if self.held:
            self._waiting.append(write)
        else:
            write()

    def release(self) -> None:
        self.held = False
        waiting, self._waiting = self._waiting, []
        for write in waiting:
            write()

    def ends_of(self, partition: TopicPartition) -> list[bool]:
        """Whether each transaction that ended in the partition was committed."""
        return [marker.committed for marked, marker in self.written if marked == partition]


class Ids:
    """Producer ids in blocks, of which the first is large; the next one comes when `deliver` is called."""

    def __init__(self, first: int = 1000) -> None:
        self.next_id = first
        self.left = 1_000_000
        self.block = 10
        self.waiting: list[Callable[[Exception | None], None]] = []

    def take(self) -> int | None:
        if not self.left:
            return None
        self.left -= 1
        self.next_id += 1
        return self.next_id - 1

    def fetch(self, on_done: Callable[[Exception | None], None]) -> None:
        self.waiting.append(on_done)

    def deliver(self, error: Exception | None = None) -> None:
        if error is None:
            self.left += self.block
        waiting, self.waiting = self.waiting, []
        for on_done in waiting:
            on_done(error)


class TransactionHost:
    def __init__(
        self,
        log: MemoryLog | None = None,
        *,
        time: Time | None = None,
        partitions: Partitions | None = None,
        ids: Ids | None = None,
        version: int = 2,
        epoch: int = 5,
        **settings: Any,
    ) -> None:
        self.time = time or Time()
        self.log = log or MemoryLog()
        self.partitions = partitions or Partitions()
        self.ids = ids or Ids()
        self.version = version
        self.has_no_groups = False
        # Unless a test says otherwise, EndTxn is answered as soon as it is decided.
        self.config = TransactionConfig(**{"add_partitions_to_txn_retry_backoff_max_ms": 0, **settings})
        self.coordinator = TransactionCoordinator(
            self.config,
            self.log,
            self.time,
            self.time,
            self.ids,
            self.partitions,
            transaction_version=lambda: self.version,
            offsets_partition=self._offsets_partition,
        )
        self.coordinator.start(1)
        self.load(epoch)

    def _offsets_partition(self, group_id: str) -> int:
        if self.has_no_groups:
            raise CoordinatorNotAvailable
        return 7

    def load(self, epoch: int = 5) -> None:
        for _ in self.coordinator.on_election(0, epoch):
            pass

    def again(self, epoch: int = 6, **changes: Any) -> TransactionHost:
        """Another broker, which goes on from the log of this one; this one hears of nothing any more."""
        self.coordinator.on_resignation(0, epoch)
        parts: dict[str, Any] = {"time": self.time, "partitions": self.partitions, "ids": self.ids, "version": self.version, **changes}
        return TransactionHost(self.log, epoch=epoch, **parts)

    @property
    def shard(self) -> TransactionCoordinatorShard:
        return self.coordinator._runtime.shards()[0]

    def state(self, transactional_id: str = "x") -> TransactionMetadata:
        return self.shard.transactions[transactional_id]

    # -- requests

    def init(
        self, transactional_id: str | None = "x", *, timeout_ms: int = 60_000, expected: tuple[int, int] = (-1, -1), version: int = 5
    ) -> InitProducerIdResponse:
        response: InitProducerIdResponse = self.asked_init(transactional_id, timeout_ms=timeout_ms, expected=expected, version=version).one
        return response

    def asked_init(
        self,
        transactional_id: str | None = "x",
        *,
        timeout_ms: int = 60_000,
        expected: tuple[int, int] = (-1, -1),
        version: int = 5,
        respond: Callable[[InitProducerIdResponse], None] | None = None,
    ) -> Answers:
        answers = Answers()
        request = InitProducerIdRequest(transactional_id, timeout_ms, *expected)
        self.coordinator.init_producer_id(request, version, respond or answers.append)
        return answers

    def producer(self, transactional_id: str = "x", timeout_ms: int = 60_000) -> tuple[int, int]:
        response = self.init(transactional_id, timeout_ms=timeout_ms)
        assert response.error_code == 0
        return response.producer_id, response.producer_epoch

    def add(self, producer: tuple[int, int], *partitions: TopicPartition, transactional_id: str = "x", version: int = 3) -> int:
        code: int = self.asked_add(producer, *partitions, transactional_id=transactional_id, version=version).one
        return code

    def asked_add(self, producer: tuple[int, int], *partitions: TopicPartition, transactional_id: str = "x", version: int = 3) -> Answers:
        answers = Answers()
        self.coordinator.add_partitions(transactional_id, *producer, partitions or (T0,), version, answers.append)
        return answers

    def add_offsets(self, producer: tuple[int, int], *, transactional_id: str = "x", version: int = 4) -> int:
        answers = Answers()
        request = AddOffsetsToTxnRequest(transactional_id, *producer, "group")
        self.coordinator.add_offsets(request, version, answers.append)
        code: int = answers.one.error_code
        return code

    def verify(self, producer: tuple[int, int], *partitions: TopicPartition, transactional_id: str = "x") -> dict[TopicPartition, int]:
        answers = Answers()
        self.coordinator.verify_partitions(transactional_id, *producer, partitions or (T0,), answers.append)
        codes: dict[TopicPartition, int] = answers.one
        return codes

    def end(self, producer: tuple[int, int], *, committed: bool, transactional_id: str = "x", version: int = 5) -> EndTxnResponse:
        response: EndTxnResponse = self.asked_end(producer, committed=committed, transactional_id=transactional_id, version=version).one
        return response

    def asked_end(
        self,
        producer: tuple[int, int],
        *,
        committed: bool,
        transactional_id: str = "x",
        version: int = 5,
        respond: Callable[[EndTxnResponse], None] | None = None,
    ) -> Answers:
        answers = Answers()
        request = EndTxnRequest(transactional_id, *producer, committed)
        self.coordinator.end_txn(request, version, respond or answers.append)
        return answers

    def commit(self, producer: tuple[int, int], transactional_id: str = "x", version: int = 5) -> tuple[int, int]:
        """The producer as it goes on."""
        response = self.end(producer, committed=True, transactional_id=transactional_id, version=version)
        assert response.error_code == 0
        return response.producer_id, response.producer_epoch

    def ongoing(self, *partitions: TopicPartition, transactional_id: str = "x", timeout_ms: int = 60_000) -> tuple[int, int]:
        """A producer with an open transaction."""
        producer = self.producer(transactional_id, timeout_ms)
        assert self.add(producer, *partitions, transactional_id=transactional_id) == 0
        return producer

    def describe(self, transactional_id: str = "x") -> DescribedTransaction:
        answers = Answers()
        self.coordinator.describe_transaction(transactional_id, answers.append)
        described: DescribedTransaction = answers.one
        return described

    def hold(self) -> None:
        """From now on nothing is committed."""
        self.log.held_at = self.log.log_end_offset(0)

    def commit_log(self) -> None:
        self.log.held_at = None
        self.coordinator.high_watermark_updated(0, self.log.log_end_offset(0))
