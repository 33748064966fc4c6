"""A random history of one partition, told to a broker request by request: producers with sequences right and wrong, markers early and late,
records deleted in between, and readers of both kinds everywhere. What two brokers say to the same history is compared line by line.

Nobody coordinates: the ids of the producers are made up, the markers are written past any coordinator. Verification has to be off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.fetch_response import PartitionData
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.protocol.slices import Records
from barnabas.records.batch import SEQUENCE_MAX, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.uuid import Uuid
from tests.integration.transactions.wire import Connection, Names, error_codes, text_of

FIRST_ID = 88_000_000  # far from those that brokers give out
PRODUCERS = 4
STEPS = 120
LOOKS = 6  # at the whole log, in the course of a history
READ_COMMITTED = 1
TOPIC_RESOURCE = 2
LATEST, EARLIEST = -1, -2
DEADLINE_S = 30
TOPIC = {"retention.ms": "-1", "internal.segment.bytes": "1000", "index.interval.bytes": "100"}  # transactions lie across many segments

Request = tuple[Message, int]


class Teller:
    """Tells one broker, and takes down what it says."""

    def __init__(self, bootstrap: str, topic: str, start_ms: int, config: Mapping[str, str] | None = None) -> None:
        self.topic = topic
        self.start_ms = start_ms
        self.lines: list[str] = []
        self.bootstrap = bootstrap
        self.connection = Connection(bootstrap)
        self._names = Names()
        settings = [CreatableTopicConfig(name, value) for name, value in {**TOPIC, **(config or {})}.items()]
        made = self.connection.ask(CreateTopicsRequest([CreatableTopic(topic, 1, 1, configs=settings)], 30_000), 5)
        assert [topic.error_code for topic in made.topics] == [0]
        self._wait_for_leader()

    def close(self) -> None:
        self.connection.close()

    def ask(self, request: Message, version: int) -> Any:
        return self.take_down(request, self.connection.ask(request, version))

    def take_down(self, request: Message, answer: Any) -> Any:
        if isinstance(request, DescribeProducersRequest):
            answer.topics[0].partitions[0].active_producers.sort(key=lambda active_producer: active_producer.producer_id)
        elif isinstance(request, FetchRequest):
            _leave_out_others(answer.responses[0].partitions[0])
        what = type(request).__name__.removesuffix("Request")
        self.lines.append(f"{what}: {text_of(answer, self._names)}".replace(self.topic, "TOPIC"))
        return answer

    def look(self, sizes: list[int], timestamps: list[int]) -> None:
        """At everything a reader can see, from every offset on, and at what is known of the producers."""
        for isolation in (0, READ_COMMITTED):
            for timestamp in (EARLIEST, LATEST, *timestamps):
                self.ask(*list_offset(self.topic, timestamp, isolation))
            for size in sizes:
                self._read_all(size, isolation)
        self.producers()

    def configure(self, name: str, value: str) -> None:
        resource = AlterConfigsResource(TOPIC_RESOURCE, self.topic, [AlterableConfig(name, 0, value)])
        (answer,) = self.connection.ask(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert answer.error_code == 0, answer.error_message

    def seen(self) -> list[str]:
        """What readers see now; not taken down."""
        kept = len(self.lines)
        self.look([1, 1 << 20], [])
        new_lines = self.lines[kept:]
        del self.lines[kept:]
        return new_lines

    def producers(self) -> Any:
        return self.ask(DescribeProducersRequest([TopicRequest(self.topic, [0])]), 0).topics[0].partitions[0].active_producers

    def _read_all(self, size: int, isolation: int) -> None:
        offset = self.connection.ask(*list_offset(self.topic, EARLIEST, 0)).topics[0].partitions[0].offset
        end = self.connection.ask(*list_offset(self.topic, LATEST, 0)).topics[0].partitions[0].offset
        while offset <= end + 1:
            self.ask(*fetch(self.topic, offset, size, isolation))
            offset += 1

    def batch_with(self, offset: int) -> int:
        """Where a batch begins: the one with this offset, or the next there is."""
        records = self.connection.ask(*fetch(self.topic, offset, 1, 0)).responses[0].partitions[0].records
        batches = read_batches(b"" if records is None else records.to_bytes())
        return batches[0].base_offset if batches else offset

    def _wait_for_leader(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while any(error_codes(self.connection.ask(*list_offset(self.topic, LATEST, 0)))):
            assert time.monotonic() < deadline, f"{self.topic} has no leader"
            time.sleep(0.05)


def _leave_out_others(read: PartitionData) -> None:
    """Of the aborted transactions those that have no records in what was read: how many of them are named follows from the index alone."""
    batches = read_batches(b"" if read.records is None else read.records.to_bytes())
    if batches and read.aborted_transactions is not None:
        last = batches[-1].last_offset
        read.aborted_transactions = [
            aborted_transaction for aborted_transaction in read.aborted_transactions if aborted_transaction.first_offset <= last
        ]


def list_offset(topic: str, timestamp: int, isolation: int) -> Request:
    return ListOffsetsRequest(-1, isolation, [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=timestamp)])]), 7


def fetch(topic: str, offset: int, size: int, isolation: int, max_wait_ms: int = 0) -> Request:
    fetch_topic = FetchTopic(topic, Uuid.ZERO, [FetchPartition(0, fetch_offset=offset, partition_max_bytes=size)])
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, isolation_level=isolation, topics=[fetch_topic]), 11


def produce(
    topic: str, values: list[bytes], first_ms: int, producer_id: int, epoch: int, sequence: int, *, transactional: bool = False
) -> Request:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    for number, value in enumerate(values):
        builder.append(first_ms + number, b"k%d" % number, value)
    data = TopicProduceData(topic, Uuid.ZERO, [PartitionProduceData(0, Records(builder.build()))])
    return ProduceRequest("somebody" if transactional else None, -1, 30_000, [data]), 11


def mark(topic: str, producer_id: int, epoch: int, committed: bool, coordinator_epoch: int = 0, transaction_version: int = 0) -> Request:
    topics = [WritableTxnMarkerTopic(topic, [0])]
    marker = WritableTxnMarker(producer_id, epoch, committed, topics, coordinator_epoch, transaction_version)
    return WriteTxnMarkersRequest([marker]), 2


class Walk:
    """A history, decided by its seed alone: it is the same for whoever it is told to."""

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = Random(seed)
        self._start_ms = start_ms
        self._epochs = [0] * PRODUCERS
        self._next = [0] * PRODUCERS
        self._coordinator_epoch = 0
        self._count = 0
        self._deletes = seed % 4 == 0
        if seed % 2:
            self._next[0] = SEQUENCE_MAX - 4  # nothing is known of it, so it may begin anywhere; it soon wraps

    def tell(self, teller: Teller, looks: int = LOOKS) -> None:
        for step in range(STEPS):
            teller.ask(*self._step(teller))
            if looks and (step + 1) % (STEPS // looks) == 0:
                # Kafka finds nothing by time where the segment that has it is deleted, and its file not yet.
                timestamps = [] if self._deletes else [teller.start_ms + self._random.randrange(self._count + 2) for _ in range(3)]
                teller.look([self._random.choice([1, 150, 300]), 1 << 20], timestamps)

    def _step(self, teller: Teller) -> Request:
        steps: list[Callable[[Teller], Request]] = [self._produce, self._mark, self._produce_plainly, self._delete]
        (step,) = self._random.choices(steps, weights=[70, 22, 6, 3 if self._deletes else 0])
        return step(teller)

    def _produce(self, teller: Teller) -> Request:
        who = self._random.randrange(PRODUCERS)
        epoch, count = self._epochs[who], self._random.randint(1, 3)
        sequence = self._next[who]
        kind = self._random.choices(["next", "again", "gap", "zero", "zombie", "bump"], weights=[70, 10, 5, 3, 4, 8])[0]
        if kind == "next":
            self._next[who] = after(sequence, count)
        elif kind == "again":
            sequence = max(0, sequence - self._random.randint(1, 8))
        elif kind == "gap":
            sequence = after(sequence, self._random.randint(1, 5))
        elif kind == "zero":
            sequence = 0
        elif kind == "zombie":
            epoch = max(0, epoch - 1)
        else:
            epoch = self._epochs[who] = epoch + 1
            sequence = self._random.choice([0, 0, 0, sequence])
            self._next[who] = after(sequence, count)
        # The first two write in transactions, the third outside of them, the last as it comes.
        transactional = who < 2 or (who == 3 and self._random.random() < 0.5)
        return self._batch(teller.topic, count, FIRST_ID + who, epoch, sequence, transactional=transactional)

    def _produce_plainly(self, teller: Teller) -> Request:
        return self._batch(teller.topic, self._random.randint(1, 3), -1, -1, -1, transactional=False)

    def _batch(self, topic: str, count: int, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> Request:
        values = [b"v" * self._random.randint(1, 60) for _ in range(count)]
        first_ms = self._start_ms + self._count
        self._count += count
        return produce(topic, values, first_ms, producer_id, epoch, sequence, transactional=transactional)

    def _mark(self, teller: Teller) -> Request:
        who = self._random.choice([0, 0, 1, 1, 2, 3])
        version = self._random.choice([0, 0, 2])
        epoch = self._epochs[who]
        if version == 2 and self._random.random() < 0.8:
            epoch = self._epochs[who] = epoch + 1  # as a coordinator would
            self._next[who] = 0
        elif self._random.random() < 0.1:
            epoch = max(0, epoch - 1)
        if self._random.random() < 0.1:
            self._coordinator_epoch += 1
        coordinator_epoch = self._coordinator_epoch - (self._random.random() < 0.1)
        return mark(teller.topic, FIRST_ID + who, epoch, self._random.random() < 0.5, coordinator_epoch, version)

    def _delete(self, teller: Teller) -> Request:
        """At the beginning of a batch: within one, Kafka says of an open transaction that it begins before the first record."""
        partition = DeleteRecordsPartition(0, teller.batch_with(self._random.randrange(max(self._count // 2, 1))))
        return DeleteRecordsRequest([DeleteRecordsTopic(teller.topic, [partition])], 30_000), 2


def after(sequence: int, count: int) -> int:
    return (sequence + count) % (SEQUENCE_MAX + 1)
